/**
 * People who taint a node with NoExecute by hand, as `kubectl taint` does, and remove the taint later. Some pods
 * tolerate every such taint for some seconds. No client writes the time of a taint: the server sets it.
 */
import type { Taint } from '../shared/kinds/types.ts';
import { type PeopleOptions, patchNode, repeatRandomly, sendAsOperator } from './people.ts';
import { oneOf } from './seeded-random.ts';

export const BY_HAND: Taint = { key: 'sim.nodekeeper.dev/repair', value: 'yes', effect: 'NoExecute' };
/** Machines with a wrong clock register with it. */
export const BY_MACHINE: Taint = { key: 'sim.nodekeeper.dev/new', effect: 'NoExecute' };
const MEAN_MS = { taint: 60_000, pod: 20_000 } as const;
const PODS_A_NODE_MAX = 5;
const TOLERATED_MAX_SECONDS = 240;

export function taintByHand(options: PeopleOptions): void {
  const { fraction, send, view, log } = options;
  let pods = 0;
  const oneNode = () => oneOf([...view.nodes.values()], fraction);

  async function taint(): Promise<void> {
    const node = oneNode();
    if (node === undefined) return;
    const taints = node.spec?.taints ?? [];
    const others = taints.filter(({ key }) => key !== BY_HAND.key);
    const isThere = others.length < taints.length;
    const { name = '', resourceVersion } = node.metadata;
    log(name, `a person ${isThere ? 'removes' : 'sets'} ${BY_HAND.key}`);
    await patchNode(send, name, {
      metadata: { resourceVersion },
      spec: { taints: isThere ? others : [...others, BY_HAND] },
    });
  }

  async function bind(): Promise<void> {
    const node = oneNode()?.metadata.name;
    const tolerationSeconds = Math.floor(fraction() * TOLERATED_MAX_SECONDS);
    if (node === undefined || [...view.podsOf(node)].length >= PODS_A_NODE_MAX) return;
    pods += 1;
    await sendAsOperator(send, {
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `patient-${pods}`, namespace: 'default' },
        spec: {
          nodeName: node,
          tolerations: [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds }],
          terminationGracePeriodSeconds: 5,
          containers: [{ name: 'main', image: 'registry.example/main:1' }],
        },
      },
    });
  }

  void repeatRandomly(options, { leastMs: 1_000, meanMs: MEAN_MS.taint }, taint);
  void repeatRandomly(options, { leastMs: 1_000, meanMs: MEAN_MS.pod }, bind);
}
