/** Certificates for the loopback listener: an authority of our own, and server certificates that it signs. */
// The certificate library's own dependency needs it, and before it.
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

export interface CertifiedKey {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}

export interface Authority extends CertifiedKey {
  readonly commonName: string;
}

const DAY_MS = 86_400_000;
/** Clocks of clients may be a little behind ours. */
const BACKDATED_MS = DAY_MS;
const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' };

cryptoProvider.set(webcrypto as typeof globalThis.crypto);

const newKeys = () => webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);

const privateKeyPem = async (key: webcrypto.CryptoKey): Promise<string> =>
  `${PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), PemConverter.PrivateKeyTag)}\n`;

const validity = ({ nowMs, validDays }: { readonly nowMs: number; readonly validDays: number }) => ({
  notBefore: new Date(nowMs - BACKDATED_MS),
  notAfter: new Date(nowMs + validDays * DAY_MS),
});

/** A self-signed authority that may sign server certificates and nothing below them. */
export async function makeAuthority(options: {
  readonly commonName: string;
  readonly nowMs: number;
  readonly validDays: number;
}): Promise<Authority> {
  const { commonName } = options;
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    ...validity(options),
    signingAlgorithm: SIGNING_ALGORITHM,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  return {
    commonName,
    certificatePem: `${certificate.toString('pem')}\n`,
    privateKeyPem: await privateKeyPem(keys.privateKey),
  };
}

/** A server certificate for these DNS names and addresses. */
export async function makeServerCertificate(
  authority: Authority,
  options: { readonly names: readonly string[]; readonly nowMs: number; readonly validDays: number },
): Promise<CertifiedKey> {
  const keys = await newKeys();
  const issuer = new X509Certificate(authority.certificatePem);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    PemConverter.decodeFirst(authority.privateKeyPem),
    KEY_ALGORITHM,
    false,
    ['sign'],
  );
  const certificate = await X509CertificateGenerator.create({
    subject: [{ CN: [options.names[0] ?? 'localhost'] }],
    issuer: issuer.subjectName,
    ...validity(options),
    signingAlgorithm: SIGNING_ALGORITHM,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        options.names.map((name) => ({ type: isIP(name) === 0 ? 'dns' : 'ip', value: name })),
      ),
    ],
  });
  return {
    certificatePem: `${certificate.toString('pem')}\n`,
    privateKeyPem: await privateKeyPem(keys.privateKey),
  };
}
