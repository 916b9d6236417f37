/**
 * Compares string keys as DynamoDB does: by UTF-8 bytes, which is the order of code points. JavaScript compares UTF-16
 * units, in which a surrogate pair (U+10000 and up) sorts below U+E000 to U+FFFF. Surrogates are ranked above them
 * here.
 */
export function compareKeys(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index += 1) {
    const left = one.charCodeAt(index);
    const right = other.charCodeAt(index);
    if (left !== right) return rank(left) - rank(right);
  }
  return one.length - other.length;
}

const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit);
