/**
 * FNV-1a, 32 bits, over UTF-16 code units. It spreads names over shards and distinguishes texts. It is not
 * collision-resistant: do not use it on hostile input. Changing it moves every key.
 */
export function textHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash ^= text.charCodeAt(index);
    hash = Math.imul(hash, 0x01000193);
  }
  return hash >>> 0;
}

/** Eight hex digits. */
export const shortHash = (text: string): string => textHash(text).toString(16).padStart(8, '0');

/** Bytes of a text in UTF-8, counted without encoding it. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    // A surrogate pair is two UTF-16 units and four bytes: each half adds one to the unit already counted.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/** The text in parts of a length, or of one more: the two halves of a surrogate pair are one character of UTF-8. */
export function* textParts(text: string, length: number): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = start + length;
    const isPair = (text.codePointAt(end - 1) ?? 0) > 0xffff;
    yield text.slice(start, isPair ? end + 1 : end);
    start = isPair ? end + 1 : end;
  }
}
