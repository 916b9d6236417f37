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
