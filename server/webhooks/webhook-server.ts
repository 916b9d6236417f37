/** Where a webhook is. */

import type { ReadDependencies } from '../../shared/api/call.ts';
import { endpoints, services } from '../../shared/kinds/services/serve.ts';
import type { KubeEndpoints, KubeService, ServiceReference, WebhookClientConfig } from '../../shared/kinds/types.ts';
import { CallFault, type WebhookServer } from './webhook-client.ts';

const PORT = 443;

/** @param query of the request @throws CallFault */
export async function webhookServer(
  { url, service, caBundle }: WebhookClientConfig,
  query: string,
  parts: Pick<ReadDependencies, 'storageOf' | 'random'>,
): Promise<WebhookServer> {
  const ca = caBundle && { ca: Buffer.from(caBundle, 'base64').toString('utf8') };
  if (service === undefined) return { url: requested(new URL(url ?? ''), query), ...ca };
  const { name, namespace, path = '', port = PORT } = service;
  const [found, of] = await Promise.all([
    parts.storageOf(services).get(namespace, name),
    parts.storageOf(endpoints).get(namespace, name),
  ]);
  const ready = readyAddresses(service, found, of);
  const endpoint = ready[Math.floor(parts.random.fraction() * ready.length)];
  if (endpoint === undefined) throw new CallFault(`no endpoints available for service ${JSON.stringify(name)}`);
  return { url: requested(new URL(`https://${name}.${namespace}.svc:${port}/${path}`), query), endpoint, ...ca };
}

/** As client-go joins paths: without empty segments. */
function requested(url: URL, query: string): URL {
  url.pathname = url.pathname.split('/').filter(Boolean).join('/');
  url.search = query;
  return url;
}

/** Addresses and ports of the pods behind a port of a Service. @throws CallFault */
export function readyAddresses(
  { name, port = PORT }: ServiceReference,
  service: KubeService | undefined,
  of: KubeEndpoints | undefined,
): readonly { readonly address: string; readonly port: number }[] {
  if (service === undefined) throw new CallFault(`service ${JSON.stringify(name)} not found`);
  const served = (service.spec?.ports ?? []).find((each) => each.port === port && (each.protocol ?? 'TCP') === 'TCP');
  if (served === undefined) throw new CallFault(`no service port ${port} found for service ${JSON.stringify(name)}`);
  return (of?.subsets ?? []).flatMap(({ addresses = [], ports = [] }) =>
    ports
      .filter((each) => (each.name ?? '') === (served.name ?? ''))
      .flatMap((each) => addresses.map(({ ip }) => ({ address: ip, port: each.port ?? 0 }))),
  );
}
