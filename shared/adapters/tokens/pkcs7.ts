/**
 * Content signed by one known key, in the form EC2 gives out: PKCS #7 SignedData (RFC 5652) with the content inside, one
 * signer, RSA with SHA-256. Certificates that come along are not looked at: trust is the key's that was configured.
 *
 * The encoding may be BER: indefinite lengths, strings in parts. A reader of our own, because Node has none.
 */
import { createHash, type KeyObject, timingSafeEqual, verify } from 'node:crypto';

export type SignedContent =
  | { readonly kind: 'signed'; readonly content: Buffer }
  | { readonly kind: 'refused'; readonly reason: string };

interface Element {
  /** Identifier octet; high tag numbers do not occur. */
  readonly tag: number;
  /** Elements inside, of a constructed one. */
  readonly inside: readonly Element[];
  /** Content octets, of a primitive one. */
  readonly octets: Buffer;
  /** With tag and length, as it stood. */
  readonly whole: Buffer;
}

const DEPTH_MAX = 24;
const ELEMENTS_MAX = 2_000;
const CONSTRUCTED = 0x20;
const SEQUENCE = 0x30;
const SET = 0x31;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const CONTEXT_0 = 0xa0;

/** Content octets of object identifiers, hex. */
const SIGNED_DATA = '2a864886f70d010702';
const DATA = '2a864886f70d010701';
const SHA_256 = '608648016503040201';
const RSA_ENCRYPTION = '2a864886f70d010101';
const SHA_256_WITH_RSA = '2a864886f70d01010b';
const CONTENT_TYPE = '2a864886f70d010903';
const MESSAGE_DIGEST = '2a864886f70d010904';

class Malformed extends Error {
  override readonly name = 'Malformed';
}

const refused = (reason: string): SignedContent => ({ kind: 'refused', reason });

/** `key`: RSA, of the certificate that is trusted. Never throws. */
export function signedContent(pkcs7: Buffer, key: KeyObject): SignedContent {
  try {
    return check(pkcs7, key);
  } catch (error) {
    if (error instanceof Malformed) return refused(error.message);
    throw error;
  }
}

function check(pkcs7: Buffer, key: KeyObject): SignedContent {
  const [type, wrapped] = parts(readAll(pkcs7), SEQUENCE);
  if (hexOf(type, OBJECT_ID) !== SIGNED_DATA) return refused('no signed data');
  const signedData = parts(only(wrapped, CONTEXT_0), SEQUENCE);
  const [contentType, contentWrapped] = parts(signedData[2], SEQUENCE);
  if (hexOf(contentType, OBJECT_ID) !== DATA) return refused('signs no plain data');
  const content = stringOf(only(contentWrapped, CONTEXT_0));
  const signers = parts(signedData.at(-1), SET);
  if (signers.length !== 1) return refused('has not one signer');

  const signer = parts(signers[0], SEQUENCE);
  const digestAlgorithm = signer[2];
  const attributes = signer[3]?.tag === CONTEXT_0 ? signer[3] : undefined;
  const [signatureAlgorithm, signature] = signer.slice(attributes === undefined ? 3 : 4);
  if (hexOf(parts(digestAlgorithm, SEQUENCE)[0], OBJECT_ID) !== SHA_256) return refused('is not by SHA-256');
  const algorithm = hexOf(parts(signatureAlgorithm, SEQUENCE)[0], OBJECT_ID);
  if (algorithm !== RSA_ENCRYPTION && algorithm !== SHA_256_WITH_RSA) return refused('is not by RSA');
  const signed = attributes === undefined ? content : signedAttributes(attributes, content);
  if (signed === undefined) return refused('attributes are of another content');
  return verify('sha256', signed, key, stringOf(signature)) ? { kind: 'signed', content } : refused('wrong signature');
}

/** What was signed where there are attributes: they, as a set, one of them the digest of the content (RFC 5652 §5.4). */
function signedAttributes(attributes: Element, content: Buffer): Buffer | undefined {
  const attributeOf = (wanted: string): Element | undefined => {
    const found = attributes.inside.filter((each) => hexOf(parts(each, SEQUENCE)[0], OBJECT_ID) === wanted);
    return found.length === 1 ? only(parts(found[0], SEQUENCE)[1], SET) : undefined;
  };
  const digest = attributeOf(MESSAGE_DIGEST);
  const type = attributeOf(CONTENT_TYPE);
  if (digest === undefined || type === undefined || hexOf(type, OBJECT_ID) !== DATA) return undefined;
  const told = stringOf(digest);
  const true256 = createHash('sha256').update(content).digest();
  if (told.length !== true256.length || !timingSafeEqual(told, true256)) return undefined;
  const asSet = Buffer.from(attributes.whole);
  asSet[0] = SET;
  return asSet;
}

function parts(element: Element | undefined, tag: number): readonly Element[] {
  if (element?.tag !== tag) throw new Malformed('is not of its form');
  return element.inside;
}

function only(element: Element | undefined, tag: number): Element {
  const [first, ...more] = parts(element, tag);
  if (first === undefined || more.length > 0) throw new Malformed('is not of its form');
  return first;
}

function hexOf(element: Element | undefined, tag: number): string {
  if (element?.tag !== tag) throw new Malformed('is not of its form');
  return element.octets.toString('hex');
}

/** An octet string, in one piece or in parts. */
function stringOf(element: Element | undefined): Buffer {
  if (element?.tag === OCTET_STRING) return element.octets;
  if (element?.tag !== (OCTET_STRING | CONSTRUCTED)) throw new Malformed('is not of its form');
  return Buffer.concat(element.inside.map(stringOf));
}

function readAll(bytes: Buffer): Element {
  const budget = { elements: ELEMENTS_MAX };
  const { element, end } = read(bytes, 0, 0, budget);
  if (end !== bytes.length) throw new Malformed('goes on after its end');
  return element;
}

function read(bytes: Buffer, start: number, depth: number, budget: { elements: number }) {
  budget.elements -= 1;
  const tag = bytes[start];
  const first = bytes[start + 1];
  if (tag === undefined || first === undefined || depth > DEPTH_MAX || budget.elements < 0 || (tag & 0x1f) === 0x1f) {
    throw new Malformed('is not of its form');
  }
  const constructed = (tag & CONSTRUCTED) !== 0;
  if (first === 0x80) {
    if (!constructed) throw new Malformed('is not of its form');
    return readUntilEnd(bytes, start, depth, budget, tag);
  }
  let length = first;
  let at = start + 2;
  if (first > 0x80) {
    const octets = first - 0x80;
    if (octets > 3 || at + octets > bytes.length) throw new Malformed('is not of its form');
    length = bytes.readUIntBE(at, octets);
    at += octets;
  }
  const end = at + length;
  if (end > bytes.length) throw new Malformed('ends too early');
  const inside: Element[] = [];
  while (constructed && at < end) {
    const next = read(bytes, at, depth + 1, budget);
    inside.push(next.element);
    at = next.end;
  }
  if (constructed && at !== end) throw new Malformed('is not of its form');
  const octets = constructed ? Buffer.alloc(0) : bytes.subarray(at, end);
  return { element: { tag, inside, octets, whole: bytes.subarray(start, end) }, end };
}

/** Of indefinite length: to two zero octets. */
function readUntilEnd(
  bytes: Buffer,
  start: number,
  depth: number,
  budget: { elements: number },
  tag: number,
): { readonly element: Element; readonly end: number } {
  const inside: Element[] = [];
  let at = start + 2;
  while (!(bytes[at] === 0 && bytes[at + 1] === 0)) {
    const next = read(bytes, at, depth + 1, budget);
    inside.push(next.element);
    at = next.end;
  }
  const end = at + 2;
  return { element: { tag, inside, octets: Buffer.alloc(0), whole: bytes.subarray(start, end) }, end };
}
