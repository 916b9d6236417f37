/** mulberry32: the same numbers from the same seed on every machine. In [0, 1). */
export function seededFraction(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A member of the list, by one random number; undefined for an empty list. */
export const oneOf = <T>(list: readonly T[], fraction: () => number): T | undefined =>
  list[Math.floor(fraction() * list.length)];

/** A version 4 UUID made of these numbers. */
export function seededUuid(fraction: () => number): string {
  const digits = Array.from({ length: 4 }, () =>
    Math.floor(fraction() * 4_294_967_296)
      .toString(16)
      .padStart(8, '0'),
  ).join('');
  const variant = '89ab'[Number.parseInt(digits[16]!, 16) & 3]!;
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(13, 16)}`,
    `${variant}${digits.slice(17, 20)}`,
    digits.slice(20),
  ].join('-');
}

/** FNV-1a, 32 bits: a seed from a text. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
