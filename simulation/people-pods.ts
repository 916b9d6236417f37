/**
 * People who create pods without a node, which the scheduler binds, and delete some of them. They also set what the nodes
 * offer: little, and sometimes less than before. Some pods keep away from others in their zone.
 */
import { ZONE_LABEL } from '../shared/domain/zones/zone.ts';
import type { KubeNode } from '../shared/kube/types.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointRequest } from './endpoint.ts';
import type { Send } from './faults/faulty-network.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Name prefix of the pods. */
const PREFIX = 'wanted';
const MEAN_MS = { create: 4_000, remove: 5_000, offer: 8_000, cordon: 8_000 } as const;
const PODS_MAX = 40;
/** Cores of a node. */
const CORES = [1, 2] as const;
const REQUESTS = ['250m', '500m', '1'] as const;
const MERGE = 'application/merge-patch+json';

export function wantPods(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
}): void {
  const { time, fraction, send, view } = options;
  let created = 0;
  const ask = (request: Omit<EndpointRequest, 'who'>) => send({ who: OPERATOR, ...request }, { isGone: () => false });
  const oneOf = <T>(list: readonly T[]): T | undefined => list[Math.floor(fraction() * list.length)];
  const wanted = () => [...view.pods.values()].filter(({ metadata }) => metadata.name?.startsWith(PREFIX) === true);
  const patch = (name: string, body: object, subresource = '') =>
    ask({ method: 'PATCH', path: `/api/v1/nodes/${name}${subresource}`, body, contentType: MERGE });

  async function create(): Promise<void> {
    if (wanted().length >= PODS_MAX) return;
    created += 1;
    const alone = fraction() < 0.3 ? { alone: `g${created % 3}` } : undefined;
    const required = { topologyKey: ZONE_LABEL, labelSelector: { matchLabels: alone } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [required] } };
    await ask({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `${PREFIX}-${created}`, namespace: 'default', ...(alone && { labels: alone }) },
        spec: {
          terminationGracePeriodSeconds: 5,
          containers: [
            { name: 'main', image: 'registry.example/main:1', resources: { requests: { cpu: oneOf(REQUESTS)! } } },
          ],
          ...(alone && { affinity }),
        },
      },
    });
  }

  async function remove(): Promise<void> {
    const name = oneOf(wanted())?.metadata.name;
    if (name !== undefined) await ask({ method: 'DELETE', path: `/api/v1/namespaces/default/pods/${name}` });
  }

  /** What the machine reports itself stays. */
  async function offer(): Promise<void> {
    const nodes = [...view.nodes.values()];
    const unset = nodes.filter((node: KubeNode) => node.status?.allocatable === undefined);
    for (const node of unset.length > 0 ? unset : [oneOf(nodes)]) {
      if (node === undefined) return;
      const allocatable = { cpu: String(oneOf(CORES)), memory: '4Gi', pods: '10' };
      await patch(node.metadata.name ?? '', { status: { allocatable } }, '/status');
    }
  }

  async function cordon(): Promise<void> {
    const node = oneOf([...view.nodes.values()]);
    if (node !== undefined) {
      await patch(node.metadata.name ?? '', { spec: { unschedulable: node.spec?.unschedulable !== true } });
    }
  }

  async function everyNow(meanMs: number, what: () => Promise<void>): Promise<void> {
    for (;;) {
      await time.sleep(500 - Math.log(1 - fraction()) * meanMs);
      await what();
    }
  }
  void everyNow(MEAN_MS.create, create);
  void everyNow(MEAN_MS.remove, remove);
  void everyNow(MEAN_MS.offer, offer);
  void everyNow(MEAN_MS.cordon, cordon);
}
