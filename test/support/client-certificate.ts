/** Client certificates of an authority, as an administrator makes them. */
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Authority, CertifiedKey } from '../../shared/host/certificate.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };
const DAY_MS = 86_400_000;

export async function makeClientCertificate(
  authority: Authority,
  options: {
    readonly commonName: string;
    readonly organizations: readonly string[];
    readonly nowMs: number;
    readonly validDays: number;
  },
): Promise<CertifiedKey> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const pkcs8 = PemConverter.decodeFirst(authority.privateKeyPem);
  const certificate = await X509CertificateGenerator.create({
    subject: [{ CN: [options.commonName] }, ...options.organizations.map((O) => ({ O: [O] }))],
    issuer: new X509Certificate(authority.certificatePem).subjectName,
    notBefore: new Date(options.nowMs - DAY_MS),
    notAfter: new Date(options.nowMs + options.validDays * DAY_MS),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    publicKey: keys.publicKey,
    signingKey: await webcrypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign']),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]),
    ],
  });
  const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { certificatePem: `${certificate.toString('pem')}\n`, privateKeyPem: `${key}\n` };
}
