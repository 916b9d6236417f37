import { createHash, X509Certificate } from 'node:crypto';

/**
 * `sha256:` and the hash of the public key of a certificate (PEM or DER), as kubeadm computes it: it stays when an
 * authority is renewed with its key. @throws Error for what is no certificate
 */
export const authorityHash = (certificate: string | Buffer): string =>
  `sha256:${createHash('sha256')
    .update(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')}`;
