/** The key in a certificate request: whether it signed the request, and what it is called as the key of a machine. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { PublicKeyReading } from '../../../shared/access/node-keys.ts';
import { readPublicKey } from '../../../shared/access/public-keys.ts';
import type { CertificateRequest } from '../../../shared/kinds/certificates/certificate-request.ts';

/** False also for a key that is none. The author of the request then does not have it. */
export function isSignedByItsKey({ publicKey, signed, signature, hash }: CertificateRequest): boolean {
  try {
    return verify(hash, signed, keyIn(publicKey), signature);
  } catch {
    // The library throws for a point that is not on its curve; the client receives the same reason.
    return false;
  }
}

/** The caller knows that the request is signed by its key. */
export const nodeKeyIn = ({ publicKey }: CertificateRequest): PublicKeyReading =>
  readPublicKey(keyIn(publicKey).export({ format: 'jwk' }) as Record<string, unknown>);

const keyIn = (publicKey: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.from(publicKey), format: 'der', type: 'spki' });
