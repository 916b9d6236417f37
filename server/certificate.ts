/** The certificate of the listener: from files of the user, or signed by the authority of the data directory. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { CertifiedKey } from '../shared/host/certificate.ts';
import { StartError } from '../shared/host/start-error.ts';
import type { Log } from '../shared/observability/log.ts';

export interface CertificateFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Options that name a certificate and its key. */
type CertificateOptions = readonly [certificate: string, key: string];

/** @throws StartError that names the file, for one that cannot be read, is no PEM, or does not belong to the other */
export function readCertificate(
  { certificateFile, keyFile }: CertificateFiles,
  [certificateOption, keyOption]: CertificateOptions = ['--tls-cert', '--tls-key'],
): CertifiedKey {
  const certificatePem = fileText(certificateOption, certificateFile);
  const privateKeyPem = fileText(keyOption, keyFile);
  try {
    new X509Certificate(certificatePem);
  } catch (cause) {
    throw new StartError(`${certificateOption}: ${certificateFile} has no certificate in PEM`, { cause });
  }
  try {
    createSecureContext({ cert: certificatePem, key: privateKeyPem });
  } catch (cause) {
    throw new StartError(`${keyOption}: ${keyFile} is not the private key of ${certificateFile}`, { cause });
  }
  return { certificatePem, privateKeyPem };
}

/** The dot of the root, and the zone of an address. Some clients ignore them. */
const IGNORED_END = /\.$|%.*$/;

/** Whether the certificate is for this name or address, in whatever spelling. */
export function isNameIn(certificatePem: string, name: string): boolean {
  const certificate = new X509Certificate(certificatePem);
  const plain = name.replace(IGNORED_END, '');
  return (isIP(plain) === 0 ? certificate.checkHost(plain) : certificate.checkIP(plain)) !== undefined;
}

const CERTIFICATE_PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Authorities of client certificates. @throws StartError that names the file, for one without any */
export function readAuthorities(file: string): readonly X509Certificate[] {
  const parts = fileText('--client-ca', file).match(CERTIFICATE_PEM) ?? [];
  try {
    const authorities = parts.map((pem) => new X509Certificate(pem));
    if (authorities.length > 0 && authorities.every(({ ca }) => ca)) return authorities;
  } catch (cause) {
    throw new StartError(`--client-ca: ${file} has a certificate that cannot be read`, { cause });
  }
  throw new StartError(`--client-ca: ${file} must have certificates of authorities in PEM`);
}

/** Changes when one of the files does, or is no longer to be had. */
const filesVersion = ({ certificateFile, keyFile }: CertificateFiles): string =>
  [certificateFile, keyFile].map(versionOf).join(' ');

function versionOf(file: string): number | string {
  try {
    return statSync(file).mtimeMs;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}

/** @throws StartError that names the option and the file */
export function fileText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(`${option}: ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** Between two looks at the files of the certificate. Milliseconds. */
const CHECK_MS = 10_000;
/** A timer cannot wait for much longer than three weeks. Milliseconds. */
const DAY_MS = 86_400_000;
const RENEWED_AFTER_DAYS = 30;

interface Following {
  /** Uses this certificate for new connections. @throws Error when its two parts do not belong together */
  use(certificate: CertifiedKey): void;
  readonly log: Log;
}

/** Uses the files of the certificate again when they change. Files that cannot be used leave the one that is. */
export function followFiles(files: CertificateFiles, { use, log }: Following): () => void {
  let version = filesVersion(files);
  const timer = setInterval(() => {
    const current = filesVersion(files);
    if (current === version) return;
    version = current;
    try {
      use(readCertificate(files));
      log.info('the certificate was read again', { file: files.certificateFile });
    } catch (error) {
      log.error('the changed certificate cannot be used: the one before stays', { error });
    }
  }, CHECK_MS);
  return () => clearInterval(timer);
}

/** Signs another certificate each month: a process may run longer than one is valid. */
export function renewMonthly(sign: () => Promise<CertifiedKey>, { use, log }: Following): () => void {
  let days = 0;
  const timer = setInterval(async () => {
    days += 1;
    if (days < RENEWED_AFTER_DAYS) return;
    try {
      use(await sign());
      days = 0;
    } catch (error) {
      log.error('the certificate could not be renewed: it is tried again in a day', { error });
    }
  }, DAY_MS);
  return () => clearInterval(timer);
}
