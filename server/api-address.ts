/** The address of the API for the Endpoints of the Service `kubernetes`. */
import { isIPv4 } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import { isLoopback } from './options.ts';

const ALL_ADDRESSES: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/**
 * Undefined on loopback, which no other machine reaches, and for a name or an address of IPv6: Services have addresses
 * of IPv4. A listener on all addresses has the first of the machine.
 *
 * @param host of `--listen`
 */
export function apiAddressOf(
  host: string,
  port: number,
  interfaces: NodeJS.Dict<readonly NetworkInterfaceInfo[]>,
): { readonly ip: string; readonly port: number } | undefined {
  if (isLoopback(host)) return undefined;
  const addresses = Object.values(interfaces).flatMap((each) => each ?? []);
  const first = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  const ip = ALL_ADDRESSES.has(host) ? first : host;
  return ip !== undefined && isIPv4(ip) ? { ip, port } : undefined;
}
