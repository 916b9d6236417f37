/** An authority of our own, and what it signs: certificates of the listener, and of those who ask for one. */
// The certificate library's own dependency needs it, and before it.
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type ExtendedKeyUsageType,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  PemConverter,
  PublicKey,
  type PublicKeyType,
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

/**
 * A subject with these values as they are. A plain string would be read by the library: `"system:masters"` with its
 * quotes, `system:\masters`, and `#` before hexadecimal bytes all become the group system:masters.
 */
const subjectOf = (attributes: readonly (readonly [type: 'CN' | 'O', value: string])[]): Name =>
  new Name(attributes.map(([type, value]) => ({ [type]: [{ utf8String: value }] })));

/** A server certificate for these DNS names and addresses. */
export async function makeServerCertificate(
  authority: Authority,
  options: { readonly names: readonly string[]; readonly nowMs: number; readonly validDays: number },
): Promise<CertifiedKey> {
  const keys = await newKeys();
  const certificatePem = await signed(authority, {
    subject: subjectOf([['CN', options.names[0] ?? 'localhost']]),
    ...validity(options),
    publicKey: keys.publicKey,
    keyUsages: KeyUsageFlags.digitalSignature,
    purposes: [ExtendedKeyUsage.serverAuth],
    alternativeNames: options.names.map((name) => ({ type: isIP(name) === 0 ? 'dns' : 'ip', value: name })),
  });
  return { certificatePem, privateKeyPem: await privateKeyPem(keys.privateKey) };
}

export interface CertificateToMake {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly alternativeNames: readonly { readonly type: 'dns' | 'email' | 'ip' | 'url'; readonly value: string }[];
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
  /** Usages as a CertificateSigningRequest names them. Others than these four have no effect. */
  readonly usages: readonly string[];
  readonly fromMs: number;
  readonly throughMs: number;
}

/** A certificate in PEM for a key of somebody else. It has what is named here and nothing else. */
export const makeCertificate = (authority: Authority, wanted: CertificateToMake): Promise<string> =>
  signed(authority, {
    subject: subjectOf([
      ...wanted.organizations.map((organization) => ['O', organization] as const),
      ...(wanted.commonName === '' ? [] : [['CN', wanted.commonName] as const]),
    ]),
    notBefore: new Date(wanted.fromMs),
    notAfter: new Date(wanted.throughMs),
    publicKey: new PublicKey(Uint8Array.from(wanted.publicKey)),
    keyUsages:
      (wanted.usages.includes('digital signature') ? KeyUsageFlags.digitalSignature : 0) |
      (wanted.usages.includes('key encipherment') ? KeyUsageFlags.keyEncipherment : 0),
    purposes: [
      ...(wanted.usages.includes('client auth') ? [ExtendedKeyUsage.clientAuth] : []),
      ...(wanted.usages.includes('server auth') ? [ExtendedKeyUsage.serverAuth] : []),
    ],
    alternativeNames: wanted.alternativeNames,
  });

async function signed(
  authority: Authority,
  {
    keyUsages,
    purposes,
    alternativeNames,
    ...certified
  }: {
    readonly subject: Name;
    readonly notBefore: Date;
    readonly notAfter: Date;
    readonly publicKey: PublicKeyType;
    /** KeyUsageFlags. */
    readonly keyUsages: number;
    readonly purposes: readonly ExtendedKeyUsageType[];
    readonly alternativeNames: CertificateToMake['alternativeNames'];
  },
): Promise<string> {
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    PemConverter.decodeFirst(authority.privateKeyPem),
    KEY_ALGORITHM,
    false,
    ['sign'],
  );
  const certificate = await X509CertificateGenerator.create({
    ...certified,
    issuer: new X509Certificate(authority.certificatePem).subjectName,
    signingAlgorithm: SIGNING_ALGORITHM,
    signingKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      ...(keyUsages === 0 ? [] : [new KeyUsagesExtension(keyUsages, true)]),
      new ExtendedKeyUsageExtension([...purposes]),
      ...(alternativeNames.length === 0 ? [] : [new SubjectAlternativeNameExtension([...alternativeNames])]),
    ],
  });
  return `${certificate.toString('pem')}\n`;
}
