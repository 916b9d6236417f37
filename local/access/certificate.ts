import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

/**
 * X.509 certificates (RFC 5280) for the loopback listener: an authority of our own and one server certificate signed
 * by it. Only what that needs is written here: ECDSA P-256 with SHA-256, a common name, key usage and alternative names.
 */
export interface CertifiedKey {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}

export interface Authority extends CertifiedKey {
  readonly commonName: string;
}

const DAY_MS = 86_400_000;
/** Clients may run a little behind us. */
const BACKDATED_MS = DAY_MS;

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
};

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length: number[] = [];
  for (let rest = body.length; rest > 0; rest >>= 8) length.unshift(rest & 0xff);
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length, ...length]), body]);
}

const sequence = (...parts: readonly Uint8Array[]) => der(TAG.sequence, ...parts);

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const base128 = [arc & 0x7f];
    for (let high = arc >> 7; high > 0; high >>= 7) base128.unshift(0x80 | (high & 0x7f));
    bytes.push(...base128);
  }
  return der(TAG.oid, Buffer.from(bytes));
}

const OID = {
  ecdsaWithSha256: oid('1.2.840.10045.4.3.2'),
  commonName: oid('2.5.4.3'),
  subjectAltName: oid('2.5.29.17'),
  basicConstraints: oid('2.5.29.19'),
  keyUsage: oid('2.5.29.15'),
  extendedKeyUsage: oid('2.5.29.37'),
  serverAuth: oid('1.3.6.1.5.5.7.3.1'),
};

const distinguishedName = (commonName: string) =>
  sequence(der(TAG.set, sequence(OID.commonName, der(TAG.utf8, Buffer.from(commonName)))));

/** UTCTime up to 2049, GeneralizedTime after, as RFC 5280 §4.1.2.5 demands. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  return ms < Date.UTC(2050, 0) ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits));
}

const extension = (id: Buffer, critical: boolean, value: Buffer) =>
  sequence(id, ...(critical ? [der(TAG.boolean, Buffer.from([0xff]))] : []), der(TAG.octets, value));

/** Bits counted from the left: digitalSignature 0, keyCertSign 5, cRLSign 6 (RFC 5280 §4.2.1.3). */
function keyUsage(...bits: readonly number[]): Buffer {
  const byte = bits.reduce((sum, bit) => sum | (0x80 >> bit), 0);
  return extension(OID.keyUsage, true, der(TAG.bits, Buffer.from([7 - Math.max(...bits), byte])));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
  const [head = '', tail = ''] = address.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)));
  const before = groups(head);
  const after = groups(tail);
  const middle = Array<number>(8 - before.length - after.length).fill(0);
  return Buffer.from([...before, ...middle, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}

/** Names with letters become dNSName, addresses iPAddress. */
function alternativeNames(names: readonly string[]): Buffer {
  const entries = names.map((name) =>
    isIP(name) === 0 ? der(0x82, Buffer.from(name, 'latin1')) : der(0x87, addressBytes(name)),
  );
  return extension(OID.subjectAltName, false, sequence(...entries));
}

interface Subject {
  readonly commonName: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

function signed(subject: Subject, issuer: { commonName: string; privateKey: KeyObject | string }, period: Period) {
  const serial = randomBytes(16);
  serial[0] = (serial[0]! & 0x7f) | 0x40; // positive, and never shortened
  const algorithm = sequence(OID.ecdsaWithSha256);
  const body = sequence(
    der(0xa0, der(TAG.integer, Buffer.from([2]))),
    der(TAG.integer, serial),
    algorithm,
    distinguishedName(issuer.commonName),
    sequence(time(period.fromMs), time(period.untilMs)),
    distinguishedName(subject.commonName),
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...subject.extensions)),
  );
  const signature = sign('sha256', body, issuer.privateKey);
  const certificate = sequence(body, algorithm, der(TAG.bits, Buffer.from([0]), signature));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

interface Period {
  readonly fromMs: number;
  readonly untilMs: number;
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const exported = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** A self-signed authority that may sign server certificates and nothing below it. */
export function makeAuthority(options: { commonName: string; nowMs: number; validDays: number }): Authority {
  const key = newKey();
  const extensions = [
    extension(
      OID.basicConstraints,
      true,
      sequence(der(TAG.boolean, Buffer.from([0xff])), der(TAG.integer, Buffer.from([0]))),
    ),
    keyUsage(5, 6),
  ];
  const certificatePem = signed(
    { commonName: options.commonName, publicKey: key.publicKey, extensions },
    { commonName: options.commonName, privateKey: key.privateKey },
    { fromMs: options.nowMs - BACKDATED_MS, untilMs: options.nowMs + options.validDays * DAY_MS },
  );
  return { commonName: options.commonName, certificatePem, privateKeyPem: exported(key.privateKey) };
}

/** A server certificate for these DNS names and addresses. */
export function makeServerCertificate(
  authority: Authority,
  options: { names: readonly string[]; nowMs: number; validDays: number },
): CertifiedKey {
  const key = newKey();
  const extensions = [
    extension(OID.basicConstraints, true, sequence()),
    keyUsage(0),
    extension(OID.extendedKeyUsage, false, sequence(OID.serverAuth)),
    alternativeNames(options.names),
  ];
  const certificatePem = signed(
    { commonName: options.names[0] ?? 'localhost', publicKey: key.publicKey, extensions },
    { commonName: authority.commonName, privateKey: authority.privateKeyPem },
    { fromMs: options.nowMs - BACKDATED_MS, untilMs: options.nowMs + options.validDays * DAY_MS },
  );
  return { certificatePem, privateKeyPem: exported(key.privateKey) };
}
