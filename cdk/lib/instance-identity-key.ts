import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Name of the file beside the handler; functions/api/compose.ts reads it. */
export const INSTANCE_IDENTITY_KEY_FILE = 'instance-identity-key.txt';
const MODULUS_BITS_MIN = 2_048;

/**
 * The public key with which EC2 signs identity documents in a Region, from the certificate that AWS publishes (EC2 User
 * Guide, "RSA-2048 signature"): SubjectPublicKeyInfo, base64.
 *
 * @throws Error for a file that is no RSA certificate
 */
export function readInstanceIdentityKey(path: string): string {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(readFileSync(path));
  } catch (cause) {
    throw new Error(`${path} is no certificate`, { cause });
  }
  const { publicKey } = certificate;
  if (
    publicKey.asymmetricKeyType !== 'rsa' ||
    (publicKey.asymmetricKeyDetails?.modulusLength ?? 0) < MODULUS_BITS_MIN
  ) {
    throw new Error(`${path} must be an RSA certificate with 2048 bits or more (EC2: "RSA-2048 signature")`);
  }
  return publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
}
