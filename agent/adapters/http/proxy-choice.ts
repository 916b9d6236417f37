/**
 * The proxy for a server, from HTTPS_PROXY and NO_PROXY (golang.org/x/net/http/httpproxy, as in kubectl and kubelets).
 * Exceptions are `*`, host names (including subdomains), `.suffix` (only subdomains), addresses and CIDRs, each with an
 * optional port. Connections to loopback never use a proxy.
 */
import { BlockList, isIP } from 'node:net';

export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/** Undefined: a direct connection. Throws a TypeError if the URL of the proxy is malformed. */
export function proxyFor(server: URL, environment: ProxyEnvironment): URL | undefined {
  const given = either(environment, 'HTTPS_PROXY');
  if (given === '') return undefined;
  const host = bareHost(server.hostname).toLowerCase();
  if (isLoopback(host)) return undefined;
  const port = server.port === '' ? '443' : server.port;
  const exceptions = either(environment, 'NO_PROXY').split(',');
  if (exceptions.some((text) => isException(text.trim().toLowerCase(), host, port))) return undefined;
  const proxy = new URL(given.includes('://') ? given : `http://${given}`);
  if (proxy.protocol !== 'http:' && proxy.protocol !== 'https:') {
    throw new TypeError(`HTTPS_PROXY names a proxy of kind ${proxy.protocol} that is not supported`);
  }
  return proxy;
}

const either = (environment: ProxyEnvironment, name: string): string =>
  environment[name] || environment[name.toLowerCase()] || '';

/** URLs write IPv6 addresses in brackets. */
export const bareHost = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1');

const familyOf = (host: string): 'ipv4' | 'ipv6' => (isIP(host) === 6 ? 'ipv6' : 'ipv4');

function isLoopback(host: string): boolean {
  if (host === 'localhost') return true;
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(host, familyOf(host));
}

function isException(text: string, host: string, port: string): boolean {
  if (text === '') return false;
  if (text === '*') return true;
  const [network, prefix] = text.split('/') as [string, string?];
  if (prefix !== undefined) return isWithin(host, network, prefix);
  if (isIP(bareHost(text)) !== 0) return bareHost(text) === host;
  const match = /(.*):(\d+)$/.exec(text);
  const name = bareHost(match?.[1] ?? text);
  if (match !== null && match[2] !== port) return false;
  if (name.startsWith('.')) return host.endsWith(name);
  return host === name || host.endsWith(`.${name}`);
}

function isWithin(host: string, network: string, prefix: string): boolean {
  const bits = Number(prefix);
  if (!/^\d{1,3}$/.test(prefix) || bits > (isIP(network) === 6 ? 128 : 32)) return false;
  if (isIP(network) === 0 || isIP(network) !== isIP(host)) return false;
  const list = new BlockList();
  list.addSubnet(network, bits, familyOf(network));
  return list.check(host, familyOf(host));
}
