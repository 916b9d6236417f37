/** Sets of IP addresses of one family as ranges: in order, without overlap. */
import { parseIp } from './ip-address.ts';

/** As nftables names it. */
export type Family = 'ip' | 'ip6';

/** The first and the last address. */
export type AddressRange = readonly [bigint, bigint];

const BITS: Readonly<Record<Family, number>> = { ip: 32, ip6: 128 };

/** Undefined: it is no address of this family. */
export function addressOf(text: string, family: Family): bigint | undefined {
  const parsed = parseIp(text);
  if (parsed === undefined || parsed.bytes.length * 8 !== BITS[family]) return undefined;
  return parsed.bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

/** Undefined: it is no CIDR of this family. */
function rangeOfCidr(cidr: string, family: Family): AddressRange | undefined {
  const [text = '', length = ''] = cidr.split('/');
  const address = addressOf(text, family);
  const bits = BITS[family];
  if (address === undefined || !/^\d{1,3}$/.test(length) || Number(length) > bits) return undefined;
  const size = 1n << BigInt(bits - Number(length));
  const first = (address / size) * size;
  return [first, first + size - 1n];
}

/** Those of this family. */
export const rangesOf = (cidrs: readonly string[], family: Family): readonly AddressRange[] =>
  cidrs.map((cidr) => rangeOfCidr(cidr, family)).filter((range) => range !== undefined);

export function unionOf(ranges: readonly AddressRange[]): readonly AddressRange[] {
  const union: [bigint, bigint][] = [];
  for (const [first, last] of ranges.toSorted(([one], [other]) => Number(one - other))) {
    const previous = union.at(-1);
    if (previous === undefined || first > previous[1] + 1n) union.push([first, last]);
    else if (last > previous[1]) previous[1] = last;
  }
  return union;
}

/** The addresses of `range` that are in none of `others`. */
export function without(range: AddressRange, others: readonly AddressRange[]): readonly AddressRange[] {
  const left: AddressRange[] = [];
  let first = range[0];
  for (const [from, to] of unionOf(others)) {
    if (to < first || from > range[1]) continue;
    if (from > first) left.push([first, from - 1n]);
    first = to + 1n;
  }
  return first > range[1] ? left : [...left, [first, range[1]]];
}

export const isIn = (ranges: readonly AddressRange[], address: bigint): boolean =>
  ranges.some(([first, last]) => first <= address && address <= last);

export function textOf(address: bigint, family: Family): string {
  const hex = address.toString(16).padStart(BITS[family] / 4, '0');
  const text =
    family === 'ip'
      ? hex
          .match(/../g)!
          .map((byte) => Number.parseInt(byte, 16))
          .join('.')
      : hex.match(/..../g)!.join(':');
  return parseIp(text)!.text;
}
