/**
 * The certificates of a site: an authority (site CA), and server certificates of relays that it signs. P-256, in the
 * encoding of RFC 5280. Written by hand because a library would be a third of the agent's size.
 */
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIP, SocketAddress } from 'node:net';

export interface CertifiedKey {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}

const DAY_MS = 86_400_000;
/** Clocks of machines may be behind ours. */
const BACKDATED_MS = DAY_MS;

/** Tags of ASN.1 (ITU-T X.690). */
const BOOLEAN = 0x01;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const SET = 0x31;
const context = (number: number, isConstructed = false): number => 0x80 | (isConstructed ? 0x20 : 0) | number;

function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const bytes: number[] = [];
  for (let rest = content.length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  const length = content.length < 0x80 ? [content.length] : [0x80 | bytes.length, ...bytes];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** The encoded values of object identifiers. */
const OIDS = {
  ecdsaWithSha256: '2a8648ce3d040302',
  commonName: '550403',
  subjectKeyIdentifier: '551d0e',
  authorityKeyIdentifier: '551d23',
  basicConstraints: '551d13',
  keyUsage: '551d0f',
  extendedKeyUsage: '551d25',
  subjectAltName: '551d11',
  serverAuth: '2b06010505070301',
} as const;
const oid = (name: keyof typeof OIDS): Buffer => der(OBJECT_ID, Buffer.from(OIDS[name], 'hex'));

const TRUE = der(BOOLEAN, Buffer.from([0xff]));
const extension = (name: keyof typeof OIDS, isCritical: boolean, value: Buffer): Buffer =>
  der(SEQUENCE, oid(name), ...(isCritical ? [TRUE] : []), der(OCTET_STRING, value));

/** `bits`: the byte of named bits, `unused`: how many of its last bits are not used. */
const keyUsage = (bits: number, unused: number): Buffer =>
  extension('keyUsage', true, der(BIT_STRING, Buffer.from([unused, bits])));
const KEY_CERT_SIGN_AND_CRL_SIGN = keyUsage(0x06, 1);
const DIGITAL_SIGNATURE = keyUsage(0x80, 7);

const nameOf = (commonName: string): Buffer =>
  der(SEQUENCE, der(SET, der(SEQUENCE, oid('commonName'), der(UTF8_STRING, Buffer.from(commonName, 'utf8')))));

/** RFC 5280, 4.1.2.5: two digits of the year until 2049. */
function timeOf(timeMs: number): Buffer {
  const digits = `${new Date(timeMs).toISOString().replace(/\D/g, '').slice(0, 14)}Z`;
  return digits < '2050' ? der(UTC_TIME, Buffer.from(digits.slice(2))) : der(GENERALIZED_TIME, Buffer.from(digits));
}

const alternativeName = (name: string): Buffer =>
  isIP(name) === 0 ? der(context(2), Buffer.from(name, 'ascii')) : der(context(7), addressBytes(name));

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  // The canonical form has at most one `::`. An address that contains one of IPv4 ends with that, such as
  // ::ffff:10.0.0.7.
  const canonical = new SocketAddress({ address, family: 'ipv6' }).address;
  const [head, tail] = canonical.replace(/\d+(?:\.\d+){3}$/, (dotted) => hexGroups(dotted)).split('::', 2);
  const groupsOf = (text: string | undefined): string[] => (text ? text.split(':') : []);
  const [first, last] = [groupsOf(head), groupsOf(tail)];
  const zeros = new Array<string>(8 - first.length - last.length).fill('0');
  return Buffer.from([...first, ...zeros, ...last].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** 10.0.0.7 as 0a00:0007. */
const hexGroups = (dotted: string): string =>
  Buffer.from(dotted.split('.').map(Number)).toString('hex').replace(/^.{4}/, '$&:');

interface CertificateParts {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly publicKey: KeyObject;
  readonly signingKey: KeyObject;
  readonly nowMs: number;
  readonly validDays: number;
  readonly extensions: readonly Buffer[];
}

function certificate(parts: CertificateParts): string {
  const { issuer, subject, publicKey, signingKey, nowMs, validDays, extensions } = parts;
  const algorithm = der(SEQUENCE, oid('ecdsaWithSha256'));
  // Positive, and never with a leading zero byte.
  const serial = randomBytes(16);
  serial[0] = 0x40 | (serial[0]! & 0x3f);
  const content = der(
    SEQUENCE,
    der(context(0, true), der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    algorithm,
    issuer,
    der(SEQUENCE, timeOf(nowMs - BACKDATED_MS), timeOf(nowMs + validDays * DAY_MS)),
    subject,
    publicKey.export({ format: 'der', type: 'spki' }),
    der(context(3, true), der(SEQUENCE, ...extensions)),
  );
  const signature = der(BIT_STRING, Buffer.from([0]), sign('sha256', content, signingKey));
  return new X509Certificate(der(SEQUENCE, content, algorithm, signature)).toString();
}

/** Any identifier of the key, the same in both extensions (RFC 5280, 4.2.1.1 and 4.2.1.2). */
const keyIdentifier = (key: KeyObject): Buffer =>
  createHash('sha256')
    .update(key.export({ format: 'der', type: 'spki' }))
    .digest()
    .subarray(0, 20);
const ownKey = (key: KeyObject): Buffer =>
  extension('subjectKeyIdentifier', false, der(OCTET_STRING, keyIdentifier(key)));
const issuerKey = (key: KeyObject): Buffer =>
  extension('authorityKeyIdentifier', false, der(SEQUENCE, der(context(0), keyIdentifier(key))));

const pemOf = (key: KeyObject): string => String(key.export({ format: 'pem', type: 'pkcs8' }));

/** A self-signed authority. It may sign server certificates and no other authority. */
export function makeSiteAuthority({
  commonName,
  nowMs,
  validDays,
}: {
  readonly commonName: string;
  readonly nowMs: number;
  readonly validDays: number;
}): CertifiedKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = nameOf(commonName);
  const isAuthority = der(SEQUENCE, TRUE, der(INTEGER, Buffer.from([0])));
  const certificatePem = certificate({
    issuer: name,
    subject: name,
    publicKey,
    signingKey: privateKey,
    nowMs,
    validDays,
    extensions: [
      extension('basicConstraints', true, isAuthority),
      KEY_CERT_SIGN_AND_CRL_SIGN,
      ownKey(publicKey),
      issuerKey(publicKey),
    ],
  });
  return { certificatePem, privateKeyPem: pemOf(privateKey) };
}

/**
 * A server certificate for these DNS names and addresses.
 *
 * @throws Error if the authority cannot be read, or its key is not the certificate's
 */
export function makeRelayCertificate(
  authority: CertifiedKey,
  {
    names,
    nowMs,
    validDays,
  }: { readonly names: readonly string[]; readonly nowMs: number; readonly validDays: number },
): CertifiedKey {
  const issuer = new X509Certificate(authority.certificatePem);
  const signingKey = createPrivateKey(authority.privateKeyPem);
  if (!issuer.checkPrivateKey(signingKey)) throw new Error('the key of the site CA does not belong to its certificate');
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificatePem = certificate({
    // An authority of ours has one name, the common name.
    issuer: nameOf(issuer.subject.replace(/^CN=/, '')),
    subject: nameOf(names[0] ?? 'relay'),
    publicKey,
    signingKey,
    nowMs,
    validDays,
    extensions: [
      extension('basicConstraints', true, der(SEQUENCE)),
      DIGITAL_SIGNATURE,
      ownKey(publicKey),
      issuerKey(issuer.publicKey),
      extension('extendedKeyUsage', false, der(SEQUENCE, oid('serverAuth'))),
      extension('subjectAltName', false, der(SEQUENCE, ...names.map(alternativeName))),
    ],
  });
  return { certificatePem, privateKeyPem: pemOf(privateKey) };
}
