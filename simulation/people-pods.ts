/**
 * People who create pods without a node, which the scheduler binds, and delete some of them. They also set what the
 * nodes offer: little, and sometimes less than before. Some pods keep away from others in their zone.
 */
import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import type { KubeNode } from '../shared/kinds/types.ts';
import { type PeopleOptions, patchNode, repeatRandomly, sendAsOperator } from './people.ts';
import { oneOf } from './seeded-random.ts';

/** Name prefix of the pods. */
const PREFIX = 'wanted';
const MEAN_MS = { create: 4_000, remove: 5_000, offer: 8_000, cordon: 8_000 } as const;
const PODS_MAX = 40;
/** Cores of a node. */
const CORES = [1, 2] as const;
const REQUESTS = ['250m', '500m', '1'] as const;

export function wantPods(options: Omit<PeopleOptions, 'log'>): void {
  const { fraction, send, view } = options;
  let created = 0;
  const wanted = () => [...view.pods.values()].filter(({ metadata }) => metadata.name?.startsWith(PREFIX) === true);

  async function create(): Promise<void> {
    if (wanted().length >= PODS_MAX) return;
    created += 1;
    const alone = fraction() < 0.3 ? { alone: `g${created % 3}` } : undefined;
    const required = { topologyKey: ZONE_LABEL, labelSelector: { matchLabels: alone } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [required] } };
    await sendAsOperator(send, {
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `${PREFIX}-${created}`, namespace: 'default', ...(alone && { labels: alone }) },
        spec: {
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: 'main',
              image: 'registry.example/main:1',
              resources: { requests: { cpu: oneOf(REQUESTS, fraction)! } },
            },
          ],
          ...(alone && { affinity }),
        },
      },
    });
  }

  async function remove(): Promise<void> {
    const name = oneOf(wanted(), fraction)?.metadata.name;
    if (name !== undefined)
      await sendAsOperator(send, { method: 'DELETE', path: `/api/v1/namespaces/default/pods/${name}` });
  }

  /** What the machine reports itself stays. */
  async function offer(): Promise<void> {
    const nodes = [...view.nodes.values()];
    const unset = nodes.filter((node: KubeNode) => node.status?.allocatable === undefined);
    for (const node of unset.length > 0 ? unset : [oneOf(nodes, fraction)]) {
      if (node === undefined) return;
      const allocatable = { cpu: String(oneOf(CORES, fraction)), memory: '4Gi', pods: '10' };
      await patchNode(send, node.metadata.name ?? '', { status: { allocatable } }, '/status');
    }
  }

  async function cordon(): Promise<void> {
    const node = oneOf([...view.nodes.values()], fraction);
    if (node !== undefined) {
      await patchNode(send, node.metadata.name ?? '', { spec: { unschedulable: node.spec?.unschedulable !== true } });
    }
  }

  const acts = { create, remove, offer, cordon };
  for (const name of ['create', 'remove', 'offer', 'cordon'] as const) {
    void repeatRandomly(options, { leastMs: 500, meanMs: MEAN_MS[name] }, acts[name]);
  }
}
