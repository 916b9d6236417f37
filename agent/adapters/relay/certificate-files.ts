/** The certificate and the key of a relay, from their files. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RelayCertificate } from '../../app/relay-listener.ts';
import type { RelayConfig } from '../../config.ts';

/** @throws Error if a file cannot be read, or is no certificate */
export function readRelayCertificate({
  certificateFile,
  privateKeyFile,
}: Pick<RelayConfig, 'certificateFile' | 'privateKeyFile'>): RelayCertificate {
  const certificatePem = readFileSync(certificateFile, 'utf8');
  const expiresAtMs = Date.parse(certificateIn(certificatePem, certificateFile).validTo);
  return { certificatePem, privateKeyPem: readFileSync(privateKeyFile, 'utf8'), expiresAtMs };
}

function certificateIn(pem: string, file: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${file} is no certificate: ${(cause as Error).message}`, { cause });
  }
}
