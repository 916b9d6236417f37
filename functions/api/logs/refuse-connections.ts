/**
 * exec, attach, port-forward and the proxies. Clients upgrade the connection to WebSocket or SPDY for them. API Gateway
 * HTTP APIs and Lambda function URLs cannot do that, so they end with one sentence. kubectl prints it as it is.
 * Source of the checks before it: pkg/registry/core/pod/strategy.go (streamLocation).
 */

import { findResource } from '../../../shared/kinds/registry.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ServeDependencies } from '../dependencies.ts';

const CONNECTIONS: Readonly<Record<string, readonly string[]>> = {
  pods: ['attach', 'exec', 'portforward', 'proxy'],
  nodes: ['proxy'],
  services: ['proxy'],
};

export const isConnection = ({ group, resource, subresource }: ResourceTarget): boolean =>
  group === '' && (CONNECTIONS[resource] ?? []).includes(subresource);

/** Always rejects. @throws StatusError 404, 400 for a pod without a node, 405 */
export async function refuseConnection(dependencies: ServeDependencies, target: ResourceTarget): Promise<never> {
  const descriptor = findResource(target.group, target.version, target.resource);
  if (descriptor === undefined) throw status.unknownPath();
  const found = await dependencies
    .storageOf(descriptor)
    .get(descriptor.namespaced ? target.namespace : '', target.name);
  if (found === undefined) throw status.notFound(descriptor, target.name);
  if (target.resource === 'pods' && ((found as KubePod).spec?.nodeName ?? '') === '') {
    throw status.badRequest(`pod ${target.name} does not have a host assigned`);
  }
  throw status.notServed(
    `${target.resource}/${target.subresource} is not served: this API cannot upgrade a connection to WebSocket or ` +
      'SPDY; use "kubectl logs" to read output, or sign in to the machine',
  );
}
