/** Default routes in the tables of the kernel (proc(5): /proc/net/route; net/ipv6/route.c: /proc/net/ipv6_route). */
const UP = 0x1;
const REJECT = 0x200;

interface Route {
  readonly interfaceName: string;
  readonly metric: number;
}

/** @param flags hexadecimal, of a route */
const isUsable = (flags: string | undefined): boolean => (Number(`0x${flags}`) & (UP | REJECT)) === UP;

/** Iface Destination Gateway Flags RefCnt Use Metric Mask …, numbers but the metric in hexadecimal. */
function parseV4(line: string): Route | undefined {
  const [interfaceName, destination, , flags, , , metric, mask] = line.split('\t');
  if (interfaceName === undefined || destination !== '00000000' || mask !== '00000000') return undefined;
  return isUsable(flags) ? { interfaceName, metric: Number(metric) } : undefined;
}

/** Destination, its prefix length, source, its prefix length, next hop, metric, references, use, flags, interface. */
function parseV6(line: string): Route | undefined {
  const [destination, prefixLength, , , , metric, , , flags, interfaceName] = line.split(/\s+/);
  if (interfaceName === undefined || destination !== '0'.repeat(32) || prefixLength !== '00') return undefined;
  return isUsable(flags) ? { interfaceName, metric: Number(`0x${metric}`) } : undefined;
}

/** Interfaces with a default route that is up, the lowest metric first. */
export function defaultRouteInterfaces(table: string, family: 4 | 6): string[] {
  const routes = table
    .split('\n')
    .map((line) => (family === 4 ? parseV4(line) : parseV6(line)))
    .filter((route) => route !== undefined);
  return routes.sort((left, right) => left.metric - right.metric).map(({ interfaceName }) => interfaceName);
}
