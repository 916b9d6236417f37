/** Targets of probes and hooks. Source: upstream pkg/kubelet/prober/prober.go (extractPort), lifecycle/handlers.go. */
import type { Container, LifecycleHandler } from '../../shared/kinds/types.ts';
import type { HttpTarget } from '../ports/probe-client.ts';

export type PortNumber =
  | { readonly kind: 'port'; readonly port: number }
  | { readonly kind: 'failed'; readonly message: string };

const PORT_MAX = 65_535;

/** A number, or the name of a port of the container. */
export function portNumber(port: number | string | undefined, { ports = [] }: Container): PortNumber {
  const named = ports.find(({ name }) => name === port)?.containerPort;
  const number = typeof port === 'number' ? port : (named ?? Number(port || Number.NaN));
  if (Number.isInteger(number) && number > 0 && number <= PORT_MAX) return { kind: 'port', port: number };
  if (Number.isNaN(number)) return { kind: 'failed', message: `couldn't find port: ${port}` };
  return { kind: 'failed', message: `invalid port number: ${number}` };
}

export type HttpTargetResult =
  | { readonly kind: 'target'; readonly target: HttpTarget }
  | { readonly kind: 'failed'; readonly message: string };

/** @param podIp the host of a handler that names none */
export function httpTarget(
  { host = '', port, path = '/', scheme, httpHeaders = [] }: NonNullable<LifecycleHandler['httpGet']>,
  container: Container,
  podIp: string,
): HttpTargetResult {
  const number = portNumber(port, container);
  if (number.kind === 'failed') return number;
  return {
    kind: 'target',
    target: {
      scheme: scheme?.toUpperCase() === 'HTTPS' ? 'https' : 'http',
      host: host || podIp,
      port: number.port,
      path,
      headers: httpHeaders.map(({ name = '', value = '' }) => [name, value] as const),
    },
  };
}
