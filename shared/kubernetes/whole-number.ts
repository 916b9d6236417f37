/**
 * Whole numbers as programs in Go hold them. A number here has 53 bits, so the largest int64 itself is none of ours;
 * what a client sends within int64 is kept as near as we can, and never written as something that Go cannot read.
 */

export const INT32_MAX = 2_147_483_647;
/** The largest number of ours that is an int64. */
export const INT64_MAX = 2 ** 63 - 1_024;

const INT64_TEXT_MAX = 2n ** 63n - 1n;
const UINT64_TEXT_MAX = 2n ** 64n - 1n;

export type ParsedWholeNumber =
  | { readonly kind: 'parsed'; readonly value: number }
  /** The message is Go's: `strconv.ParseInt: parsing "x": invalid syntax`. */
  | { readonly kind: 'malformed'; readonly message: string };

/** Digits that are looked at; a longer text is out of range anyway, once its leading zeros are off. */
const DIGITS_MAX = 20;

const withoutLeadingZeros = (digits: string): string => digits.replace(/^0+(?=\d)/, '');

/**
 * An int64 as text; at most Number.MAX_SAFE_INTEGER away from zero, which is further than any time or count reaches.
 */
export function parseInt64(text: string): ParsedWholeNumber {
  const match = /^([+-]?)(\d+)$/.exec(text);
  if (match === null) return refused('ParseInt', text, 'invalid syntax');
  const [, sign = '', written = ''] = match;
  const digits = withoutLeadingZeros(written);
  const most = INT64_TEXT_MAX + (sign === '-' ? 1n : 0n);
  if (digits.length > DIGITS_MAX || BigInt(digits) > most) return refused('ParseInt', text, 'value out of range');
  const magnitude = Math.min(Number(digits), Number.MAX_SAFE_INTEGER);
  return { kind: 'parsed', value: sign === '-' && magnitude > 0 ? -magnitude : magnitude };
}

/** A uint64 as text, such as a resourceVersion; at most Number.MAX_SAFE_INTEGER. */
export function parseUint64(text: string): ParsedWholeNumber {
  if (!/^\d+$/.test(text)) return refused('ParseUint', text, 'invalid syntax');
  const digits = withoutLeadingZeros(text);
  if (digits.length > DIGITS_MAX || BigInt(digits) > UINT64_TEXT_MAX) {
    return refused('ParseUint', text, 'value out of range');
  }
  return { kind: 'parsed', value: Math.min(Number(digits), Number.MAX_SAFE_INTEGER) };
}

const refused = (how: string, text: string, why: string): ParsedWholeNumber => ({
  kind: 'malformed',
  message: `strconv.${how}: parsing ${JSON.stringify(text)}: ${why}`,
});
