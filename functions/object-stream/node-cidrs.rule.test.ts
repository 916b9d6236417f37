import { describe, expect, it } from 'vitest';
import { blocksOfNode, createCidrSets, refusedClaim } from '../../shared/fleet/cidrs/cluster-cidrs.ts';
import { occupyNode } from './node-cidrs.rule.ts';

const policy = {
  clusterCIDRs: ['10.0.0.0/16', 'fd00::/48'],
  serviceClusterIPRanges: [],
  nodeCIDRMaskSizeIPv4: 24,
  nodeCIDRMaskSizeIPv6: 64,
};
const sets = () => {
  const creation = createCidrSets(policy);
  if (creation.kind !== 'created') throw new Error(creation.kind);
  return creation.sets;
};

describe('createCidrSets', () => {
  it('is off without cluster CIDRs', () => {
    expect(createCidrSets({ ...policy, clusterCIDRs: [] })).toEqual({ kind: 'off' });
  });

  it('reports every fault of the configuration', () => {
    expect(
      createCidrSets({
        ...policy,
        clusterCIDRs: ['10.0.0.0/16', '10.1.0.0/28', 'junk'],
        serviceClusterIPRanges: ['also junk'],
      }),
    ).toEqual({
      kind: 'refused',
      reasons: [
        'cluster CIDR "junk" is not a CIDR',
        'service range "also junk" is not a CIDR',
        'of two cluster CIDRs one must be IPv4 and one IPv6',
        'cluster CIDR 10.1.0.0/28 with node mask 24: a node’s block is larger than the cluster',
      ],
    });
  });
});

it.each([
  [['10.0.0.0/16', 'fd00::/48', '10.1.0.0/16'], 'at most two cluster CIDRs'],
  [['10.0.0.0/16', '10.1.0.0/16'], 'of two cluster CIDRs one must be IPv4 and one IPv6'],
  [['fd00::/48', 'fd01::/48'], 'of two cluster CIDRs one must be IPv4 and one IPv6'],
])('the cluster CIDRs %j are refused: %s', (clusterCIDRs, reason) => {
  expect(createCidrSets({ ...policy, clusterCIDRs })).toEqual({ kind: 'refused', reasons: [reason] });
});

describe('blocksOfNode', () => {
  it('returns a fault of the node for each CIDR that cannot be read, and blocks for all others', () => {
    const of = (nodeName: string, ...podCIDRs: string[]) =>
      blocksOfNode(sets(), { nodeName, podCIDRs }).map((entry) =>
        entry.kind === 'fault' ? `${entry.fault.nodeName}: ${entry.fault.reason}` : `${entry.cidr} in ${entry.index}`,
      );
    expect(of('bad', 'junk', 'fd00::/64')).toEqual(['bad: pod CIDR "junk" is not a CIDR', 'fd00::/64 in 1']);
    expect(of('outside', '192.168.0.0/24')).toEqual([
      'outside: pod CIDR 192.168.0.0/24 is not in cluster CIDR 10.0.0.0/16',
    ]);
    expect(of('many', '10.0.1.0/24', 'fd00:0:0:1::/64', '10.0.2.0/24')).toEqual([
      '10.0.1.0/24 in 0',
      'fd00:0:0:1::/64 in 1',
      'many: pod CIDR 10.0.2.0/24 is number 3, there are 2 cluster CIDRs',
    ]);
  });
});

it.each([
  [['10.0.1.0/24', 'fd00::/64'], undefined],
  [[], undefined],
  [['10.0.1.0/25'], undefined],
  [['10.0.1.0/24', 'fd00::/63'], "pod CIDR fd00::/63 is larger than a node's block, which has prefix length 64"],
  [['10.0.2.0/23'], "pod CIDR 10.0.2.0/23 is larger than a node's block, which has prefix length 24"],
  [['junk'], 'pod CIDR "junk" is not a CIDR'],
])('a node that sets %j on itself: %s', (podCIDRs, refused) => {
  expect(refusedClaim(sets(), podCIDRs)).toBe(refused);
});

describe('occupyNode', () => {
  it('marks the readable CIDRs', () => {
    const marked = occupyNode(sets(), { nodeName: 'n', podCIDRs: ['junk', 'fd00::/64'] });
    expect(marked.map(({ usedCount }) => usedCount)).toEqual([0, 1]);
  });
});
