/** IP addresses and CIDRs as texts. Strict, as new Kubernetes is: no leading zeros, no IPv4-mapped IPv6. */
export type AddressFamily = 'IPv4' | 'IPv6';

const isIPv4 = (text: string): boolean => {
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
};

function isIPv6(text: string): boolean {
  const halves = text.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const last = groups.at(-1);
  let count = groups.length;
  if (last?.includes('.')) {
    if (!isIPv4(last)) return false;
    groups.pop();
    count += 1;
  }
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return false;
  return halves.length === 2 ? count <= 7 : count === 8;
}

/** The family of an address or CIDR; undefined when the text is none. */
export function addressFamily(text: string, form: 'ip' | 'cidr'): AddressFamily | undefined {
  let address = text;
  let prefix: number | undefined;
  if (form === 'cidr') {
    const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
    if (match === null) return undefined;
    address = match[1] ?? '';
    prefix = Number(match[2]);
  }
  if (isIPv4(address)) return prefix === undefined || prefix <= 32 ? 'IPv4' : undefined;
  if (isIPv6(address)) return prefix === undefined || prefix <= 128 ? 'IPv6' : undefined;
  return undefined;
}

const IP_TEXT = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';

/** Addresses that stand for no other machine: Endpoints and external addresses must not have them. */
const SPECIAL: readonly (readonly [RegExp, string])[] = [
  [/^127\.|^(0*:)*:?0*1$/, 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  [/^169\.254\.|^fe[89ab][0-9a-f]:/i, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
  [/^224\.0\.0\.|^ff.2:/i, 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'],
];

export const addressErrors = (text: string): string[] => (addressFamily(text, 'ip') === undefined ? [IP_TEXT] : []);

/** @returns errors of an address of another machine */
export function peerAddressErrors(text: string): string[] {
  const errors = addressErrors(text);
  if (errors.length > 0) return errors;
  if (/^[0:.]+$/.test(text)) return [`may not be unspecified (${text})`];
  return SPECIAL.filter(([range]) => range.test(text)).map(([, error]) => error);
}

const CIDR_TEXT = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

export const cidrErrors = (text: string): string[] => (addressFamily(text, 'cidr') === undefined ? [CIDR_TEXT] : []);

/** The bits of an address. @param text a valid address */
function bitsOf(text: string): string {
  if (isIPv4(text)) return octets(text);
  const [head = '', tail] = text.split('::');
  const groups = (part: string): string =>
    part
      .split(':')
      .filter((group) => group !== '')
      .map((group) => (group.includes('.') ? octets(group) : Number.parseInt(group, 16).toString(2).padStart(16, '0')))
      .join('');
  const [front, back] = [groups(head), groups(tail ?? '')];
  return front + back.padStart(128 - front.length, '0');
}

const octets = (text: string): string =>
  text
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('');

/** True when the first CIDR is a part of the second, and not all of it. Both are valid. */
export function isStrictSubset(inner: string, outer: string): boolean {
  const [[address = '', length = ''], [range = '', prefix = '']] = [inner.split('/'), outer.split('/')];
  return (
    addressFamily(address, 'ip') === addressFamily(range, 'ip') &&
    Number(prefix) < Number(length) &&
    bitsOf(address).startsWith(bitsOf(range).slice(0, Number(prefix)))
  );
}
