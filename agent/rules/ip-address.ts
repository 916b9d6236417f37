/** IP addresses as Go reads and prints them: leading zeros in IPv4 parts are tolerated, IPv6 is printed compressed. */
export interface IpAddress {
  readonly family: 4 | 6;
  /** In canonical form. */
  readonly text: string;
  /** 4 or 16. */
  readonly bytes: readonly number[];
}

function ipv4Bytes(text: string): number[] | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  const bytes = parts.map((part) => (/^\d{1,10}$/.test(part) ? Number(part) : 256));
  return bytes.every((byte) => byte <= 255) ? bytes : undefined;
}

/** The bytes of one side of `::`; undefined if a group is malformed. */
function groupBytes(text: string, dottedEnd: boolean): number[] | undefined {
  if (text === '') return [];
  const groups = text.split(':');
  const bytes: number[] = [];
  for (const [index, group] of groups.entries()) {
    if (dottedEnd && index === groups.length - 1 && group.includes('.')) {
      const tail = ipv4Bytes(group);
      if (tail === undefined) return undefined;
      bytes.push(...tail);
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 255);
    }
  }
  return bytes;
}

function ipv6Bytes(text: string): number[] | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [left = '', right] = halves;
  if (right === undefined) {
    const bytes = groupBytes(left, true);
    return bytes?.length === 16 ? bytes : undefined;
  }
  const head = groupBytes(left, false);
  const tail = groupBytes(right, true);
  if (head === undefined || tail === undefined || head.length + tail.length > 14) return undefined;
  return [...head, ...new Array<number>(16 - head.length - tail.length).fill(0), ...tail];
}

function ipv6Text(bytes: readonly number[]): string {
  const groups = Array.from({ length: 8 }, (_, index) => ((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0));
  // The longest run of zeros, the first of equally long ones, of two groups or more (RFC 5952).
  let start = -1;
  let length = 1;
  for (let from = 0; from < 8; from += 1) {
    let until = from;
    while (until < 8 && groups[until] === 0) until += 1;
    if (until - from > length) {
      start = from;
      length = until - from;
    }
  }
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':');
  if (start === -1) return hex(groups);
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

/**
 * Undefined if the text is not an address. An IPv4-mapped IPv6 address becomes IPv4. Zones (`%eth0`) are not accepted.
 */
export function parseIp(text: string): IpAddress | undefined {
  const four = ipv4Bytes(text);
  if (four !== undefined) return { family: 4, text: four.join('.'), bytes: four };
  if (!text.includes(':')) return undefined;
  const bytes = ipv6Bytes(text);
  if (bytes === undefined) return undefined;
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (mapped) return { family: 4, text: bytes.slice(12).join('.'), bytes: bytes.slice(12) };
  return { family: 6, text: ipv6Text(bytes), bytes };
}

export const isUnspecified = ({ bytes }: IpAddress): boolean => bytes.every((byte) => byte === 0);

export const isLoopback = ({ family, bytes }: IpAddress): boolean =>
  family === 4 ? bytes[0] === 127 : bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1;

export const isMulticast = ({ family, bytes }: IpAddress): boolean =>
  family === 4 ? ((bytes[0] ?? 0) & 0xf0) === 0xe0 : bytes[0] === 0xff;

export const isLinkLocalUnicast = ({ family, bytes }: IpAddress): boolean =>
  family === 4 ? bytes[0] === 169 && bytes[1] === 254 : bytes[0] === 0xfe && ((bytes[1] ?? 0) & 0xc0) === 0x80;
