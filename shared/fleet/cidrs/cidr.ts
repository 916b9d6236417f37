/**
 * IP addresses and CIDRs as numbers. Parses the same texts as Go's net.ParseCIDR: host bits are cleared, and IPv4 has
 * no leading zeros. Formats IPv6 in the short form of RFC 5952.
 */
export type IpFamily = 4 | 6;

export interface IpAddress {
  readonly family: IpFamily;
  readonly value: bigint;
}

export interface Cidr {
  readonly family: IpFamily;
  /** The first address of the block: its host bits are zero. */
  readonly first: bigint;
  readonly prefix: number;
}

export const addressBits = (family: IpFamily): 32 | 128 => (family === 4 ? 32 : 128);

function parseIpv4(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let value = 0n;
  for (const part of parts) {
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return value;
}

/** The 16-bit groups before or after `::`, undefined if malformed. An IPv4 address at the end is two groups. */
function ipv6Groups(text: string, mayEndInIpv4: boolean): bigint[] | undefined {
  if (text === '') return [];
  const groups: bigint[] = [];
  const parts = text.split(':');
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(BigInt(`0x${part}`));
      continue;
    }
    const tail = mayEndInIpv4 && index === parts.length - 1 ? parseIpv4(part) : undefined;
    if (tail === undefined) return undefined;
    groups.push(tail >> 16n, tail & 0xffffn);
  }
  return groups;
}

function parseIpv6(text: string): bigint | undefined {
  const sides = text.split('::');
  if (sides.length > 2) return undefined;
  const head = ipv6Groups(sides[0] ?? '', sides.length === 1);
  const tail = sides.length === 2 ? ipv6Groups(sides[1] ?? '', true) : [];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (sides.length === 1 ? missing !== 0 : missing < 1) return undefined;
  const groups = [...head, ...Array<bigint>(missing).fill(0n), ...tail];
  return groups.reduce((value, group) => (value << 16n) | group, 0n);
}

/** Parses an address without zone id; undefined if malformed. */
export function parseAddress(text: string): IpAddress | undefined {
  const family: IpFamily = text.includes(':') ? 6 : 4;
  const value = family === 4 ? parseIpv4(text) : parseIpv6(text);
  return value === undefined ? undefined : { family, value };
}

const maskOf = (family: IpFamily, prefix: number): bigint => {
  const hostBits = BigInt(addressBits(family) - prefix);
  return ((1n << BigInt(prefix)) - 1n) << hostBits;
};

/** The CIDR with this prefix length that contains the address. */
export const cidrOf = (address: IpAddress, prefix: number): Cidr => ({
  family: address.family,
  first: address.value & maskOf(address.family, prefix),
  prefix,
});

/** Parses `address/prefix`; undefined if malformed. */
export function parseCidr(text: string): Cidr | undefined {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
  if (match === null) return undefined;
  const address = parseAddress(match[1] ?? '');
  const prefix = Number(match[2]);
  if (address === undefined || prefix > addressBits(address.family)) return undefined;
  return cidrOf(address, prefix);
}

export function formatAddress({ family, value }: IpAddress): string {
  if (family === 4) {
    return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.');
  }
  const groups = Array.from({ length: 8 }, (_, index) => Number((value >> BigInt(112 - 16 * index)) & 0xffffn));
  // `::` replaces the longest run of at least two zero groups, the first one of equal length.
  let longest = { start: 0, length: 1 };
  for (let start = 0; start < 8; start += 1) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length += 1;
    if (length > longest.length) longest = { start, length };
  }
  const hex = (part: number[]): string => part.map((group) => group.toString(16)).join(':');
  if (longest.length < 2) return hex(groups);
  return `${hex(groups.slice(0, longest.start))}::${hex(groups.slice(longest.start + longest.length))}`;
}

export const formatCidr = ({ family, first, prefix }: Cidr): string =>
  `${formatAddress({ family, value: first })}/${prefix}`;

export const lastAddress = ({ family, first, prefix }: Cidr): bigint =>
  first + (1n << BigInt(addressBits(family) - prefix)) - 1n;

/** Whether two blocks share an address; one then contains the other. */
export const overlaps = (a: Cidr, b: Cidr): boolean =>
  a.family === b.family && a.first <= lastAddress(b) && b.first <= lastAddress(a);
