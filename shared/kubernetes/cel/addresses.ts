/** `ip()`, `cidr()` and `url()` of Kubernetes (k8s.io/apiserver, pkg/cel/library/{ip,cidr,urls}.go). */

import { addressFamily } from '../validate-addresses.ts';
import { type Declaration, declare, readsFirst, readsFirstTwice } from './functions.ts';
import { CelFailure, CelMap, CelOpaque, type CelValue } from './values.ts';

const IP = 'net.IP';
const CIDR = 'net.CIDR';
const URL_TYPE = 'kubernetes.URL';

class CelAddress extends CelOpaque {
  readonly typeName = IP;
  readonly bits: 32 | 128;
  readonly number: bigint;
  constructor(bits: 32 | 128, number: bigint) {
    super();
    this.bits = bits;
    this.number = number;
  }
  equals(other: CelOpaque): boolean {
    return other instanceof CelAddress && this.bits === other.bits && this.number === other.number;
  }
}

const ipv4Number = (text: string): bigint => text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);

function ipv6Number(text: string): bigint {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const low = dotted === null ? 0n : ipv4Number(dotted[2] as string);
  const plain = dotted === null ? text : `${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}`;
  const [head = '', tail] = plain.split('::');
  const groups = (half: string): string[] => (half === '' ? [] : half.split(':'));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n);
}

const isMapped = ({ bits, number }: CelAddress): boolean => bits === 128 && number >> 32n === 0xffffn;

/** A text is why it is no address. */
function parseAddress(text: string): CelAddress | string {
  if (text.includes('%')) return `IP address ${JSON.stringify(text)} with zone value is not allowed`;
  const family = addressFamily(text, 'ip');
  if (family === undefined) {
    return `IP Address ${JSON.stringify(text)} parse error during conversion from string: ParseAddr(${JSON.stringify(text)}): unable to parse IP`;
  }
  const address = family === 'IPv4' ? new CelAddress(32, ipv4Number(text)) : new CelAddress(128, ipv6Number(text));
  return isMapped(address) ? `IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed` : address;
}

/** The canonical text (RFC 5952). */
function addressText({ bits, number }: CelAddress): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((number >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  const text = groups.join(':');
  const runs = [...text.matchAll(/\b0(?::0)+\b/g)].sort((one, other) => other[0].length - one[0].length);
  const [longest] = runs;
  if (longest === undefined) return text;
  const before = text.slice(0, longest.index).replace(/:$/, '');
  const after = text.slice(longest.index + longest[0].length).replace(/^:/, '');
  return `${before}::${after}`;
}

const addressOf = (text: string): CelValue => {
  const parsed = parseAddress(text);
  return typeof parsed === 'string' ? new CelFailure(parsed) : parsed;
};

function isCanonical(text: string): CelValue {
  const parsed = parseAddress(text);
  return typeof parsed === 'string' ? new CelFailure(parsed) : addressText(parsed) === text;
}

const prefixOf = ({ bits, number }: CelAddress, length: number): bigint => number >> BigInt(bits - length);

const isLoopback = (each: CelAddress): boolean => (each.bits === 32 ? prefixOf(each, 8) === 127n : each.number === 1n);
const isMulticast = (each: CelAddress): boolean =>
  prefixOf(each, each.bits === 32 ? 4 : 8) === (each.bits === 32 ? 14n : 255n);
const isLinkLocalMulticast = (each: CelAddress): boolean =>
  each.bits === 32 ? prefixOf(each, 24) === 0xe00000n : (prefixOf(each, 16) & 0xff0fn) === 0xff02n;
const isLinkLocalUnicast = (each: CelAddress): boolean =>
  each.bits === 32 ? prefixOf(each, 16) === 0xa9fen : prefixOf(each, 10) === 0x3fan;
const isUnspecified = ({ number }: CelAddress): boolean => number === 0n;
const isBroadcast = ({ bits, number }: CelAddress): boolean => bits === 32 && number === 0xffff_ffffn;

const isGlobalUnicast = (each: CelAddress): boolean =>
  ![isUnspecified, isBroadcast, isLoopback, isMulticast, isLinkLocalUnicast].some((is) => is(each));

const property = (name: string, holds: (address: CelAddress) => boolean): Declaration =>
  declare(name, `${IP} -> bool`, holds);

const addresses: readonly Declaration[] = [
  declare('ip', `string -> ${IP}`, addressOf, readsFirst),
  declare('isIP', 'string -> bool', (text: string) => typeof parseAddress(text) !== 'string', readsFirst),
  declare('ip.isCanonical', 'string -> bool', isCanonical, readsFirstTwice),
  declare('.family', `${IP} -> int`, ({ bits }: CelAddress) => (bits === 32 ? 4n : 6n)),
  declare('string', `${IP} -> string`, addressText),
  property('.isUnspecified', isUnspecified),
  property('.isLoopback', isLoopback),
  property('.isLinkLocalMulticast', isLinkLocalMulticast),
  property('.isLinkLocalUnicast', isLinkLocalUnicast),
  property('.isGlobalUnicast', isGlobalUnicast),
];

class CelCidr extends CelOpaque {
  readonly typeName = CIDR;
  readonly address: CelAddress;
  readonly length: number;
  constructor(address: CelAddress, length: number) {
    super();
    this.address = address;
    this.length = length;
  }
  equals(other: CelOpaque): boolean {
    return other instanceof CelCidr && this.length === other.length && this.address.equals(other.address);
  }
}

function parseCidr(text: string): CelCidr | undefined {
  if (addressFamily(text, 'cidr') === undefined) return undefined;
  const [address = '', length] = text.split('/');
  const parsed = parseAddress(address);
  return typeof parsed === 'string' ? undefined : new CelCidr(parsed, Number(length));
}

const CIDR_FAULT = 'network address parse error during conversion from string';

const cidrOf = (text: string): CelValue =>
  parseCidr(text) ??
  new CelFailure(`${CIDR_FAULT}: ${CIDR_FAULT}: netip.ParsePrefix(${JSON.stringify(text)}): unable to parse CIDR`);

const containsAddress = ({ address, length }: CelCidr, other: CelAddress): boolean =>
  address.bits === other.bits && prefixOf(address, length) === prefixOf(other, length);

const containsCidr = (one: CelCidr, other: CelCidr): boolean =>
  one.length <= other.length && containsAddress(one, other.address);

const masked = ({ address: { bits, number }, length }: CelCidr): CelValue => {
  const host = BigInt(bits - length);
  return new CelCidr(new CelAddress(bits, (number >> host) << host), length);
};

/** Costs count the bytes of a CIDR's address. */
const bytesCost = (cidr: CelValue | undefined, times: number): number =>
  Math.ceil((cidr instanceof CelCidr ? cidr.address.bits / 8 : 1) * times * 0.1);
const textCost = (value: CelValue | undefined): number =>
  typeof value === 'string' ? Math.ceil(value.length * 0.1) : 0;
const containsCost = ([cidr, other]: readonly CelValue[]): number => bytesCost(cidr, 2) + textCost(other);
const containsCidrCost = (args: readonly CelValue[]): number => containsCost(args) + bytesCost(args[0], 1) + 1;

/** A text as an address or CIDR. */
const withText =
  <T extends CelOpaque>(parse: (text: string) => CelValue, holds: (cidr: CelCidr, other: T) => boolean) =>
  (cidr: CelCidr, text: string): CelValue => {
    const other = parse(text);
    return other instanceof CelFailure ? other : holds(cidr, other as T);
  };

const cidrs: readonly Declaration[] = [
  declare('cidr', `string -> ${CIDR}`, cidrOf, readsFirst),
  declare('isCIDR', 'string -> bool', (text: string) => parseCidr(text) !== undefined, readsFirst),
  declare('.containsIP', `${CIDR},${IP} -> bool`, containsAddress, containsCost),
  declare('.containsIP', `${CIDR},string -> bool`, withText(addressOf, containsAddress), containsCost),
  declare('.containsCIDR', `${CIDR},${CIDR} -> bool`, containsCidr, containsCidrCost),
  declare('.containsCIDR', `${CIDR},string -> bool`, withText(cidrOf, containsCidr), containsCidrCost),
  declare('.ip', `${CIDR} -> ${IP}`, ({ address }: CelCidr) => address),
  declare('.prefixLength', `${CIDR} -> int`, ({ length }: CelCidr) => BigInt(length)),
  declare('.masked', `${CIDR} -> ${CIDR}`, masked),
  declare('string', `${CIDR} -> string`, ({ address, length }: CelCidr) => `${addressText(address)}/${length}`),
];

interface UrlParts {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

class CelUrl extends CelOpaque {
  readonly typeName = URL_TYPE;
  readonly text: string;
  readonly parts: UrlParts;
  constructor(text: string, parts: UrlParts) {
    super();
    this.text = text;
    this.parts = parts;
  }
  equals(other: CelOpaque): boolean {
    return other instanceof CelUrl && this.text === other.text;
  }
}

const REFERENCE = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;
const AUTHORITY = /^(?:[^@]*@)?((?:\[[0-9A-Fa-f:.]+(?:%25[^\]]*)?\]|[^:\s<>"[\]]*)(?::(\d*))?)$/;

/** An absolute URI or an absolute path, as Go's url.ParseRequestURI. undefined: the text is neither. */
function parseUrl(text: string): UrlParts | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses them
  if (text === '' || /[\x00-\x1f\x7f]/.test(text) || /%(?![0-9A-Fa-f]{2})/.test(text.split(/[?#]/, 1)[0] as string)) {
    return undefined;
  }
  const [, scheme = '', authority = '', path = '', query = ''] = REFERENCE.exec(text) ?? [];
  if (scheme === '' && !text.startsWith('/')) return undefined;
  // Without a scheme a double slash belongs to the path.
  if (scheme === '') return { scheme, host: '', path: authority + path, query };
  const host = AUTHORITY.exec(authority.slice(2))?.[1];
  if (host === undefined) return undefined;
  return { scheme: scheme.toLowerCase(), host, path: authority === '' && !path.startsWith('/') ? '' : path, query };
}

/** Whether a text is a URI, for the format of this name. */
export const isUri = (text: string): boolean => parseUrl(text) !== undefined;

function urlOf(text: string): CelValue {
  const parts = parseUrl(text);
  if (parts !== undefined) return new CelUrl(text, parts);
  const why = `parse ${JSON.stringify(text)}: invalid URI for request`;
  return new CelFailure(`URL parse error during conversion from string: ${why}`);
}

function queryOf({ parts: { query } }: CelUrl): CelValue {
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(query)) values.set(name, [...(values.get(name) ?? []), value]);
  return CelMap.of([...values]);
}

const hostname = ({ parts: { host } }: CelUrl): string => host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
const escapedPath = (path: string): string => path.replace(/[^A-Za-z0-9%\-._~$&+,/:;=@!'()*]+/g, encodeURIComponent);

const urls: readonly Declaration[] = [
  declare('url', `string -> ${URL_TYPE}`, urlOf, readsFirst),
  declare('isURL', 'string -> bool', isUri),
  declare('.getScheme', `${URL_TYPE} -> string`, ({ parts }: CelUrl) => parts.scheme),
  declare('.getHost', `${URL_TYPE} -> string`, ({ parts }: CelUrl) => parts.host),
  declare('.getHostname', `${URL_TYPE} -> string`, hostname),
  declare('.getPort', `${URL_TYPE} -> string`, ({ parts }: CelUrl) => /:(\d+)$/.exec(parts.host)?.[1] ?? ''),
  declare('.getEscapedPath', `${URL_TYPE} -> string`, ({ parts }: CelUrl) => escapedPath(parts.path)),
  declare('.getQuery', `${URL_TYPE} -> map<string,list<string>>`, queryOf),
];

export const addressFunctions: readonly Declaration[] = [...addresses, ...cidrs, ...urls];
