/**
 * Deletes everything from a cluster that a case could have created: nodes, pods, budgets, events, attachments, leases,
 * further namespaces and priority classes.
 */
import type { ApiClient } from '../../../demo/fleet/api-client.ts';
import { isNamespaceContent } from '../../../shared/kinds/stored-resource.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { AnswerError, answerOf } from '../command.ts';

const KEPT_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
const KEPT_PRIORITY_CLASSES = ['system-cluster-critical', 'system-node-critical'];

/** In this order: objects that others refer to are deleted last. */
const RESOURCES = [
  { group: '/apis/apps/v1', resource: 'daemonsets', namespaced: true },
  { group: '/apis/apps/v1', resource: 'deployments', namespaced: true },
  { group: '/apis/apps/v1', resource: 'replicasets', namespaced: true },
  { group: '/apis/apps/v1', resource: 'statefulsets', namespaced: true },
  { group: '/apis/batch/v1', resource: 'cronjobs', namespaced: true },
  { group: '/apis/batch/v1', resource: 'jobs', namespaced: true },
  { group: '/api/v1', resource: 'replicationcontrollers', namespaced: true },
  { group: '/api/v1', resource: 'configmaps', namespaced: true },
  { group: '/api/v1', resource: 'secrets', namespaced: true },
  { group: '/api/v1', resource: 'pods', namespaced: true },
  { group: '/apis/policy/v1', resource: 'poddisruptionbudgets', namespaced: true },
  { group: '/apis/policy/v1beta1', resource: 'poddisruptionbudgets', namespaced: true },
  { group: '/apis/storage.k8s.io/v1', resource: 'volumeattachments', namespaced: false },
  { group: '/api/v1', resource: 'nodes', namespaced: false },
  { group: '/apis/coordination.k8s.io/v1', resource: 'leases', namespaced: true },
  { group: '/apis/scheduling.k8s.io/v1', resource: 'priorityclasses', namespaced: false },
  { group: '/api/v1', resource: 'namespaces', namespaced: false },
  { group: '/api/v1', resource: 'events', namespaced: true },
] as const;

/** Times a resource is listed again until nothing is left. */
const ROUNDS_MAX = 50;
const PAUSE_MS = 200;
const MERGE = 'application/merge-patch+json';

const isKept = (resource: string, { metadata }: KubeObject): boolean =>
  (resource === 'namespaces' && KEPT_NAMESPACES.includes(metadata.name ?? '')) ||
  isNamespaceContent(resource, metadata.name ?? '') ||
  (resource === 'priorityclasses' && KEPT_PRIORITY_CLASSES.includes(metadata.name ?? '')) ||
  (resource === 'leases' && metadata.namespace === 'kube-system');

const nameOf = ({ metadata }: KubeObject): string => metadata.name ?? '';

/** @throws AnswerError when the server did not delete everything */
export async function emptyCluster(client: ApiClient): Promise<void> {
  for (const { group, resource, namespaced } of RESOURCES) {
    const pathOf = ({ metadata: { name, namespace } }: KubeObject): string =>
      `${group}/${namespaced ? `namespaces/${namespace}/` : ''}${resource}/${name}`;
    for (let round = 0; ; round += 1) {
      const listed = await answerOf(client, { method: 'GET', path: `${group}/${resource}` }, [200, 404]);
      const items = listed.status === 404 ? [] : (listed.body as { items: KubeObject[] }).items;
      const left = items.filter((item) => !isKept(resource, item));
      if (left.length === 0) break;
      if (round === ROUNDS_MAX) throw new AnswerError(`${resource} remain: ${left.map(nameOf).join(', ')}`);
      if (round > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      await Promise.all(left.map((item) => remove(client, resource, item, pathOf(item))));
    }
  }
  // The recorded server has the same: pods have no volume with a token.
  await answerOf(client, {
    method: 'PATCH',
    path: '/api/v1/namespaces/default/serviceaccounts/default',
    body: { automountServiceAccountToken: false },
    contentType: MERGE,
  });
}

async function remove(client: ApiClient, resource: string, { metadata }: KubeObject, path: string): Promise<void> {
  if ((metadata.finalizers ?? []).length > 0) {
    const body = { metadata: { finalizers: null } };
    await answerOf(client, { method: 'PATCH', path, body, contentType: MERGE }, [200, 404]);
  }
  const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, propagationPolicy: 'Background' };
  await answerOf(client, { method: 'DELETE', path, body }, [200, 202, 404, 409]);
  if (resource !== 'namespaces') return;
  // No controller runs here. It would remove the finalizer of the namespace.
  const finalized = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: metadata.name }, spec: {} };
  await answerOf(client, { method: 'PUT', path: `${path}/finalize`, body: finalized }, [200, 404, 409]);
}
