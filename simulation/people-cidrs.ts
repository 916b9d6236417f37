/** Pod CIDRs in a simulation: cluster CIDRs of few blocks, and people who set the CIDRs of waiting Nodes. */
import type { Policy } from '../shared/domain/policy.ts';
import { OPERATOR } from './access.ts';
import type { ClusterView } from './cluster-view.ts';
import type { Send } from './faults/faulty-network.ts';
import type { VirtualTime } from './virtual-time.ts';

const NODE_PREFIX = 24;
const NODE_PREFIX_IPV6 = 64;
const NETWORK = '10.244';
/** In no cluster CIDR. */
const FOREIGN = '192.168.77.0/24';
const SETS_MEAN_MS = 120_000;

/** About as many blocks as Nodes: in some seeds they run out. */
export function cidrPolicyOf(fraction: () => number, nodes: number): Partial<Policy> {
  const bits = Math.floor(Math.log2(nodes)) + (fraction() < 0.6 ? 0 : 1);
  const cluster = `${NETWORK}.0.0/${NODE_PREFIX - bits}`;
  const other = `fd00:10:244::/${NODE_PREFIX_IPV6 - bits - Math.floor(fraction() * 2)}`;
  return { clusterCIDRs: fraction() < 0.3 ? [cluster, other] : [cluster] };
}

/** At times a person sets the CIDRs of a Node without any: those of another Node, unknown ones, or several. */
export function givePodCidrs(options: {
  readonly policy: Policy;
  readonly time: VirtualTime;
  readonly fraction: () => number;
  readonly send: Send;
  readonly view: ClusterView;
  readonly tell: (subject: string, text: string) => void;
}): void {
  const { policy, time, fraction, send, view, tell } = options;
  const blocks = 2 ** (NODE_PREFIX - Number(policy.clusterCIDRs[0]!.split('/')[1]));
  const blockAt = (index: number): string => `${NETWORK}.${index}.0/${NODE_PREFIX}`;

  function choice(): string {
    const what = fraction();
    const index = Math.floor(fraction() * blocks);
    if (what < 0.4) return FOREIGN;
    if (what < 0.8 || blocks < 4) return blockAt(index);
    return `${NETWORK}.${index - (index % 2)}.0/${NODE_PREFIX - 1}`;
  }

  async function live(): Promise<void> {
    for (;;) {
      await time.sleep(1_000 - Math.log(1 - fraction()) * SETS_MEAN_MS);
      const waiting = [...view.nodes.values()].filter(({ spec }) => (spec?.podCIDRs ?? []).length === 0);
      const node = waiting[Math.floor(fraction() * waiting.length)];
      const cidr = choice();
      if (node === undefined) continue;
      const name = node.metadata.name!;
      tell(name, `a person sets pod CIDR ${cidr}`);
      await send(
        {
          who: OPERATOR,
          method: 'PATCH',
          path: `/api/v1/nodes/${name}`,
          body: { spec: { podCIDR: cidr, podCIDRs: [cidr] } },
          contentType: 'application/merge-patch+json',
        },
        { isGone: () => false },
      );
    }
  }
  void live();
}
