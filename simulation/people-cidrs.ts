/** Pod CIDRs in a simulation: cluster CIDRs of few blocks, and people who set the CIDRs of waiting Nodes. */
import type { Policy } from '../shared/fleet/policy.ts';
import { type PeopleOptions, patchNode, repeatRandomly } from './people.ts';
import { oneOf } from './seeded-random.ts';

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
export function givePodCidrs(options: PeopleOptions & { readonly policy: Policy }): void {
  const { policy, fraction, send, view, log } = options;
  const blocks = 2 ** (NODE_PREFIX - Number(policy.clusterCIDRs[0]!.split('/')[1]));
  const blockAt = (index: number): string => `${NETWORK}.${index}.0/${NODE_PREFIX}`;

  function choice(): string {
    const what = fraction();
    const index = Math.floor(fraction() * blocks);
    if (what < 0.4) return FOREIGN;
    if (what < 0.8 || blocks < 4) return blockAt(index);
    return `${NETWORK}.${index - (index % 2)}.0/${NODE_PREFIX - 1}`;
  }

  async function assign(): Promise<void> {
    const node = oneOf(
      [...view.nodes.values()].filter(({ spec }) => (spec?.podCIDRs ?? []).length === 0),
      fraction,
    );
    const cidr = choice();
    if (node === undefined) return;
    const name = node.metadata.name!;
    log(name, `a person sets pod CIDR ${cidr}`);
    await patchNode(send, name, { spec: { podCIDR: cidr, podCIDRs: [cidr] } });
  }
  void repeatRandomly(options, { leastMs: 1_000, meanMs: SETS_MEAN_MS }, assign);
}
