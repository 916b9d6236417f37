/** A machine's key pair and the tokens it signs, honest or forged. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { NodeKeyAlgorithm, NodePublicKey } from '../../shared/access/node-identity.ts';
import { readPublicKey } from '../../shared/access/public-keys.ts';

export interface NodeKeyPair {
  readonly algorithm: NodeKeyAlgorithm;
  readonly keyId: string;
  readonly publicKey: NodePublicKey;
  readonly publicKeyObject: KeyObject;
  readonly privateKey: KeyObject;
}

export function nodeKeyPair(algorithm: NodeKeyAlgorithm = 'ES256'): NodeKeyPair {
  const pair =
    algorithm === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
  const read = readPublicKey(pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>);
  if (read.kind !== 'key') throw new Error(read.why);
  return { ...read, publicKeyObject: pair.publicKey, privateKey: pair.privateKey };
}

export const base64url = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/** A token with these parts, signed by `signature` over what stands before it. */
export function assembled(header: object, claims: object, signature: (signed: string) => string | Buffer): string {
  const signed = `${base64url(header)}.${base64url(claims)}`;
  const made = signature(signed);
  return `${signed}.${typeof made === 'string' ? made : made.toString('base64url')}`;
}

export const signedBy =
  ({ algorithm, privateKey }: Pick<NodeKeyPair, 'algorithm' | 'privateKey'>) =>
  (text: string): Buffer =>
    sign(algorithm === 'ES256' ? 'sha256' : null, Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });

/** What an honest machine sends. `header` and `claims` change parts of it. */
export function nodeToken(
  pair: NodeKeyPair,
  said: {
    readonly nodeName: string;
    readonly nowMs: number;
    readonly clusterId: string;
    readonly header?: object;
    readonly claims?: object;
  },
): string {
  const iat = Math.floor(said.nowMs / 1_000);
  const name = `system:node:${said.nodeName}`;
  return assembled(
    { alg: pair.algorithm, typ: 'JWT', kid: pair.keyId, ...said.header },
    { iss: name, sub: name, aud: said.clusterId, iat, exp: iat + 300, ...said.claims },
    signedBy(pair),
  );
}
