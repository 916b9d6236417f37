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
