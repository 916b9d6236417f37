/**
 * Reads the Distinguished Encoding Rules (X.690), as far as certificate requests need them. A value is not read into:
 * the caller does that where it expects parts. So the cost is linear, and nothing recurses.
 */

export interface DerValue {
  /** Identifier octet. */
  readonly tag: number;
  readonly content: Uint8Array;
  /** With identifier and length. */
  readonly whole: Uint8Array;
}

export class DerError extends Error {
  override readonly name = 'DerError';
}

export const TAG = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  ia5String: 0x16,
  sequence: 0x30,
  set: 0x31,
} as const;

/** The values that these bytes consist of. @throws DerError */
export function readValues(bytes: Uint8Array): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { start, end } = contentAt(bytes, at);
    values.push({ tag: bytes[at]!, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) });
    at = end;
  }
  return values;
}

/** The parts of a value with this tag. @throws DerError for another one */
export function partsOf(value: DerValue | undefined, tag: number = TAG.sequence): DerValue[] {
  return readValues(contentOf(value, tag));
}

/** @throws DerError for a value with another tag, or none */
export function contentOf(value: DerValue | undefined, tag: number): Uint8Array {
  if (value?.tag !== tag) throw new DerError(`expected a value with tag ${tag}, found ${value?.tag ?? 'none'}`);
  return value.content;
}

/** Bytes of a bit string that consists of whole bytes. @throws DerError */
export function bitsOf(value: DerValue | undefined): Uint8Array {
  const content = contentOf(value, TAG.bitString);
  if (content[0] !== 0) throw new DerError('a bit string has unused bits');
  return content.subarray(1);
}

/** Bytes of a length, at most: 16 MB. */
const LENGTH_BYTES_MAX = 3;

function contentAt(bytes: Uint8Array, at: number): { readonly start: number; readonly end: number } {
  // Tags above 30 have more octets. No part of a certificate request has one.
  if ((bytes[at]! & 0x1f) === 0x1f) throw new DerError('a tag is too large');
  const first = bytes[at + 1];
  if (first === undefined) throw new DerError('a value has no length');
  const count = first < 0x80 ? 0 : first - 0x80;
  if (first === 0x80 || count > LENGTH_BYTES_MAX) throw new DerError('a length is indefinite or too large');
  let length = count === 0 ? first : 0;
  for (let index = 0; index < count; index += 1) length = length * 256 + (bytes[at + 2 + index] ?? 0);
  if (count > 0 && length < (count === 1 ? 0x80 : 256 ** (count - 1))) throw new DerError('a length is not minimal');
  const start = at + 2 + count;
  if (start + length > bytes.length) throw new DerError('a value is longer than what contains it');
  return { start, end: start + length };
}
