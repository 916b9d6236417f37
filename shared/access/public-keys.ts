/** Public keys of nodes: validation and thumbprint. */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { algorithmOf, type NodePublicKey, publicKeyOf } from './node-identity.ts';
import type { ReadPublicKey } from './node-keys.ts';

/** The hash of the required members, in order of their names. Source: RFC 7638. */
export function thumbprintOf(key: NodePublicKey): string {
  const members =
    key.kty === 'EC' ? { crv: key.crv, kty: key.kty, x: key.x, y: key.y } : { crv: key.crv, kty: key.kty, x: key.x };
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url');
}

/** @throws Error for a point that is not on its curve */
export const keyObjectOf = (key: NodePublicKey): KeyObject => createPublicKey({ key, format: 'jwk' });

export const readPublicKey: ReadPublicKey = (jwk) => {
  const publicKey = publicKeyOf(jwk);
  if (publicKey === undefined) return { kind: 'invalid', why: 'must be a public key of P-256 or Ed25519' };
  try {
    // The library encodes the point again. Two encodings of one point would have two thumbprints.
    const { x, y } = keyObjectOf(publicKey).export({ format: 'jwk' });
    if (x !== publicKey.x || (publicKey.kty === 'EC' && y !== publicKey.y)) {
      return { kind: 'invalid', why: 'is not in its canonical form' };
    }
  } catch {
    return { kind: 'invalid', why: 'is no point on its curve' };
  }
  return { kind: 'key', keyId: thumbprintOf(publicKey), algorithm: algorithmOf(publicKey), publicKey };
};
