/**
 * People who taint a node with NoExecute by hand, as `kubectl taint` does, and lift the taint after a while; and pods that
 * tolerate every such taint for some seconds. No client writes the time of a taint: the server sets it.
 */
import type { Taint } from '../shared/kube/types.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { EndpointRequest } from './endpoint.ts';
import type { Send } from './faults/faulty-network.ts';
import type { VirtualTime } from './virtual-time.ts';

export const BY_HAND: Taint = { key: 'sim.nodekeeper.dev/repair', value: 'yes', effect: 'NoExecute' };
/** With which machines register that lie about its time. */
export const BY_MACHINE: Taint = { key: 'sim.nodekeeper.dev/new', effect: 'NoExecute' };
const MEAN_MS = { taint: 60_000, pod: 20_000 } as const;
const PODS_A_NODE_MAX = 5;
const TOLERATED_MAX_SECONDS = 240;

export function taintByHand(options: {
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly tell: (subject: string, text: string) => void;
}): void {
  const { time, fraction, send, view, tell } = options;
  let pods = 0;
  const ask = (request: Omit<EndpointRequest, 'who'>) => send({ who: OPERATOR, ...request }, { isGone: () => false });
  const oneNode = () => [...view.nodes.values()][Math.floor(fraction() * view.nodes.size)];

  async function taint(): Promise<void> {
    const node = oneNode();
    if (node === undefined) return;
    const taints = node.spec?.taints ?? [];
    const others = taints.filter(({ key }) => key !== BY_HAND.key);
    const isThere = others.length < taints.length;
    tell(node.metadata.name ?? '', `a person ${isThere ? 'lifts' : 'sets'} ${BY_HAND.key}`);
    await ask({
      method: 'PATCH',
      path: `/api/v1/nodes/${node.metadata.name}`,
      body: {
        metadata: { resourceVersion: node.metadata.resourceVersion },
        spec: { taints: isThere ? others : [...others, BY_HAND] },
      },
      contentType: 'application/merge-patch+json',
    });
  }

  async function bind(): Promise<void> {
    const node = oneNode()?.metadata.name;
    const tolerationSeconds = Math.floor(fraction() * TOLERATED_MAX_SECONDS);
    if (node === undefined || [...view.podsOf(node)].length >= PODS_A_NODE_MAX) return;
    pods += 1;
    await ask({
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

  async function everyNow(meanMs: number, what: () => Promise<void>): Promise<void> {
    for (;;) {
      await time.sleep(1_000 - Math.log(1 - fraction()) * meanMs);
      await what();
    }
  }
  void everyNow(MEAN_MS.taint, taint);
  void everyNow(MEAN_MS.pod, bind);
}
