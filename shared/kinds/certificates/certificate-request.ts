/**
 * Reads the request of a CertificateSigningRequest: PKCS #10 (RFC 2986) in PEM. What it asks for is only data here: the
 * signer decides what a certificate has.
 *
 * Bounds: REQUEST_BYTES_MAX, and keys that are verified within a millisecond. Upstream has none.
 */
import { bitsOf, contentOf, DerError, type DerValue, partsOf, readValues, TAG } from './der.ts';

/** The largest of a person, with an RSA key of 8,192 bits, has about 3,000. Bytes of PEM. */
export const REQUEST_BYTES_MAX = 16_384;
const RSA_BITS_MIN = 2_048;
const RSA_BITS_MAX = 8_192;
/** Bytes of the public exponent. A longer one makes a verification as slow as a signature. */
const RSA_EXPONENT_BYTES_MAX = 4;

export interface AlternativeName {
  readonly type: 'dns' | 'email' | 'ip' | 'url';
  readonly value: string;
}

export interface CertificateRequest {
  /** '' if it has none. */
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly alternativeNames: readonly AlternativeName[];
  readonly keyType: 'EC P-256' | 'EC P-384' | 'EC P-521' | 'Ed25519' | 'RSA';
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
  /** What the key has signed. */
  readonly signed: Uint8Array;
  readonly signature: Uint8Array;
  /** undefined: Ed25519 has its own. */
  readonly hash: 'sha256' | 'sha384' | 'sha512' | undefined;
}

export type RequestReading =
  | { readonly kind: 'request'; readonly request: CertificateRequest }
  | { readonly kind: 'malformed'; readonly why: string }
  | { readonly kind: 'tooLong' };

const malformed = (why: string): RequestReading => ({ kind: 'malformed', why });

const BEGIN = '-----BEGIN ';
const HEAD = '-----BEGIN CERTIFICATE REQUEST-----';
const TAIL = '-----END CERTIFICATE REQUEST-----';
const BASE64 = /^[A-Za-z0-9+/=\s]+$/;

/** @param text `spec.request`: PEM as base64 */
export function readCertificateRequest(text: string): RequestReading {
  if (text.length > Math.ceil(REQUEST_BYTES_MAX / 3) * 4) return { kind: 'tooLong' };
  const pem = Buffer.from(text, 'base64').toString('latin1');
  // Other text may precede the first block.
  const from = pem.indexOf(BEGIN);
  const to = from < 0 ? -1 : pem.indexOf(TAIL, from);
  const body = to < 0 || !pem.startsWith(HEAD, from) ? '' : pem.slice(from + HEAD.length, to);
  if (!BASE64.test(body)) return malformed('PEM block type must be CERTIFICATE REQUEST');
  try {
    return { kind: 'request', request: requestIn(Buffer.from(body, 'base64')) };
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return malformed(`malformed certificate request: ${error.message}`);
  }
}

/** CertificationRequest. */
function requestIn(der: Uint8Array): CertificateRequest {
  const [whole, ...after] = readValues(der);
  if (after.length > 0) throw new DerError('data follows the request');
  const [info, algorithm, signature, ...more] = partsOf(whole);
  if (more.length > 0) throw new DerError('a request has three parts');
  const [version, subject, publicKey, attributes] = partsOf(info);
  if (hex(contentOf(version, TAG.integer)) !== '00') throw new DerError('the version must be 1');
  const keyType = keyTypeOf(publicKey);
  const hash = hashOf(algorithm, keyType);
  return {
    ...namesIn(subject),
    alternativeNames: alternativeNamesIn(attributes),
    keyType,
    publicKey: publicKey!.whole,
    signed: info!.whole,
    signature: bitsOf(signature),
    hash,
  };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const oidOf = (value: DerValue | undefined): string => hex(contentOf(value, TAG.oid));

const COMMON_NAME = '550403';
const ORGANIZATION = '55040a';
/** A name of another attribute is no identity here, and is not in the certificate either. */
function namesIn(subject: DerValue | undefined): Pick<CertificateRequest, 'commonName' | 'organizations'> {
  const commonNames: string[] = [];
  const organizations: string[] = [];
  for (const attribute of partsOf(subject).flatMap((set) => partsOf(set, TAG.set))) {
    const [type, value] = partsOf(attribute);
    const kind = oidOf(type);
    if (kind === COMMON_NAME) commonNames.push(textOf(value));
    if (kind === ORGANIZATION) organizations.push(textOf(value));
  }
  // Which one of several is the user depends on the reader.
  if (commonNames.length > 1) throw new DerError('the subject has several common names');
  return { commonName: commonNames[0] ?? '', organizations };
}

const ASCII_STRINGS: readonly number[] = [TAG.printableString, TAG.ia5String];
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const CONTROL = /[\u0000-\u001f\u007f]/;

function textOf(value: DerValue | undefined): string {
  const text = value?.tag === TAG.utf8String ? utf8(value.content) : asciiOf(value);
  if (CONTROL.test(text)) throw new DerError('a name has control characters');
  return text;
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new DerError('a name is not UTF-8');
  }
}

function asciiOf(value: DerValue | undefined): string {
  if (value === undefined || !ASCII_STRINGS.includes(value.tag)) {
    throw new DerError('a name is neither UTF8String, PrintableString nor IA5String');
  }
  return ascii(value.content);
}

function ascii(bytes: Uint8Array): string {
  if (bytes.some((byte) => byte > 0x7e || byte < 0x20)) throw new DerError('a name has other characters than ASCII');
  return Buffer.from(bytes).toString('latin1');
}

const EC_KEY = '2a8648ce3d0201';
const RSA_KEY = '2a864886f70d010101';
const ED25519_KEY = '2b6570';
const CURVES: Readonly<Record<string, CertificateRequest['keyType']>> = {
  '2a8648ce3d030107': 'EC P-256',
  '2b81040022': 'EC P-384',
  '2b81040023': 'EC P-521',
};

/** @throws DerError for a key that is weak, or slow to verify */
function keyTypeOf(publicKey: DerValue | undefined): CertificateRequest['keyType'] {
  const [algorithm, key] = partsOf(publicKey);
  const [type, parameters] = partsOf(algorithm);
  const bits = bitsOf(key);
  switch (oidOf(type)) {
    case EC_KEY: {
      const curve = CURVES[oidOf(parameters)];
      if (curve === undefined) throw new DerError('the key must be on the curve P-256, P-384 or P-521');
      return curve;
    }
    case RSA_KEY: {
      const [modulus, exponent] = partsOf(readValues(bits)[0]).map((number) => contentOf(number, TAG.integer));
      const bitLength = modulus === undefined ? 0 : hex(modulus).replace(/^(00)+/, '').length * 4;
      if (bitLength < RSA_BITS_MIN || bitLength > RSA_BITS_MAX) {
        throw new DerError(`an RSA key must have ${RSA_BITS_MIN} to ${RSA_BITS_MAX} bits`);
      }
      if (exponent === undefined || exponent.length > RSA_EXPONENT_BYTES_MAX) {
        throw new DerError('the exponent of the RSA key is too large');
      }
      return 'RSA';
    }
    case ED25519_KEY:
      return 'Ed25519';
    default:
      throw new DerError('the key must be ECDSA, RSA or Ed25519');
  }
}

const SIGNATURES: Readonly<Record<string, readonly [family: string, hash: CertificateRequest['hash']]>> = {
  '2a8648ce3d040302': ['EC', 'sha256'],
  '2a8648ce3d040303': ['EC', 'sha384'],
  '2a8648ce3d040304': ['EC', 'sha512'],
  '2a864886f70d01010b': ['RSA', 'sha256'],
  '2a864886f70d01010c': ['RSA', 'sha384'],
  '2a864886f70d01010d': ['RSA', 'sha512'],
  [ED25519_KEY]: ['Ed25519', undefined],
};

function hashOf(algorithm: DerValue | undefined, keyType: string): CertificateRequest['hash'] {
  const [family, hash] = SIGNATURES[oidOf(partsOf(algorithm)[0])] ?? [];
  if (family === undefined) throw new DerError('the signature must use SHA-256, SHA-384, SHA-512 or Ed25519');
  if (family !== keyType.split(' ')[0]) throw new DerError('the signature is not of the kind of the key');
  return hash;
}

/** extensionRequest of PKCS #9, and subjectAltName. */
const EXTENSIONS = '2a864886f70d01090e';
const ALTERNATIVE_NAMES = '551d11';
const ATTRIBUTES_TAG = 0xa0;
const ALTERNATIVE_TYPES: Readonly<Record<number, AlternativeName['type']>> = {
  [0x81]: 'email',
  [0x82]: 'dns',
  [0x86]: 'url',
  [0x87]: 'ip',
};

/** Other extensions are not read: none of them gets into a certificate. */
function alternativeNamesIn(attributes: DerValue | undefined): AlternativeName[] {
  if (attributes === undefined) return [];
  const requested = partsOf(attributes, ATTRIBUTES_TAG)
    .map((attribute) => partsOf(attribute))
    .filter(([type]) => oidOf(type) === EXTENSIONS);
  return requested
    .flatMap(([, values]) => partsOf(values, TAG.set))
    .flatMap((extensions) => partsOf(extensions))
    .map((extension) => partsOf(extension))
    .filter(([type]) => oidOf(type) === ALTERNATIVE_NAMES)
    .flatMap((extension) => partsOf(readValues(contentOf(extension.at(-1), TAG.octetString))[0]))
    .map(alternativeName);
}

function alternativeName({ tag, content }: DerValue): AlternativeName {
  const type = ALTERNATIVE_TYPES[tag];
  if (type === undefined) throw new DerError('a subjectAltName is neither DNS name, address, email nor URI');
  return { type, value: type === 'ip' ? addressOf(content) : ascii(content) };
}

/** ::ffff:0:0/96, of IPv4 addresses. */
const MAPPED = '00000000000000000000ffff';

/** An IPv4 address in the form of IPv6 is that address to clients: the certificate has it in its own form. */
function addressOf(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  if (hex(bytes.subarray(0, -4)) === MAPPED) return bytes.subarray(-4).join('.');
  if (bytes.length !== 16) throw new DerError('an address has neither 4 nor 16 bytes');
  return Array.from({ length: 8 }, (_, at) => (bytes[2 * at]! * 256 + bytes[2 * at + 1]!).toString(16)).join(':');
}

const CERTIFICATE_BLOCK = /-----BEGIN ([^-\n]*)-----([^-]*)-----END \1-----/g;

/** Why these are no certificates in PEM. undefined: they are. What they certify is not read. */
export function certificatesFault(pem: string): string | undefined {
  const blocks = [...pem.matchAll(CERTIFICATE_BLOCK)];
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block';
  const other = blocks.find(([, type]) => type !== 'CERTIFICATE');
  if (other !== undefined) return `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(other[1])}`;
  return blocks.every(([, , body = '']) => BASE64.test(body) && isCertificate(Buffer.from(body, 'base64')))
    ? undefined
    : 'found CERTIFICATE PEM block containing no certificate';
}

/** SEQUENCE of what is signed, the algorithm, and the signature. */
function isCertificate(der: Uint8Array): boolean {
  try {
    const [whole, ...after] = readValues(der);
    const [signed, algorithm, signature, ...more] = partsOf(whole);
    partsOf(signed);
    partsOf(algorithm);
    bitsOf(signature);
    return after.length + more.length === 0;
  } catch (error) {
    if (error instanceof DerError) return false;
    throw error;
  }
}
