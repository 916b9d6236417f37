import { describe, expect, it } from 'vitest';
import { allocateForNode, createCidrSets, occupyNodes } from './cidr-allocation.ts';

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

  it('tells every fault of the configuration', () => {
    expect(
      createCidrSets({
        ...policy,
        clusterCIDRs: ['10.0.0.0/16', '10.1.0.0/28', 'junk'],
        serviceClusterIPRanges: ['also junk'],
      }),
    ).toEqual({
      kind: 'refused',
      reasons: [
        'cluster CIDR "junk" is no CIDR',
        'service range "also junk" is no CIDR',
        'two cluster CIDRs must be one of each family',
        'cluster CIDR 10.1.0.0/28 with node mask 24: a node’s block is larger than the cluster',
      ],
    });
  });
});

describe('occupyNodes', () => {
  it('reports each bad CIDR on its node and marks all others', () => {
    const { sets: marked, faults } = occupyNodes(sets(), [
      { nodeName: 'bad', podCIDRs: ['junk', 'fd00::/64'] },
      { nodeName: 'outside', podCIDRs: ['192.168.0.0/24'] },
      { nodeName: 'many', podCIDRs: ['10.0.1.0/24', 'fd00:0:0:1::/64', '10.0.2.0/24'] },
      { nodeName: 'good', podCIDRs: ['10.0.3.0/24'] },
    ]);
    expect(faults.map(({ nodeName, reason }) => `${nodeName}: ${reason}`)).toEqual([
      'bad: pod CIDR "junk" is no CIDR',
      'outside: pod CIDR 192.168.0.0/24 is not in cluster CIDR 10.0.0.0/16',
      'many: pod CIDR 10.0.2.0/24 is number 3, there are 2 cluster CIDRs',
    ]);
    expect(faults[0]?.event).toEqual({
      type: 'Warning',
      reason: 'InvalidPodCIDR',
      message: 'Node bad: pod CIDR "junk" is no CIDR',
      source: 'cidrAllocator',
    });
    expect(marked.map(({ usedCount }) => usedCount)).toEqual([2, 2]);
  });
});

describe('allocateForNode', () => {
  it('marks what the node has instead of taking more', () => {
    const outcome = allocateForNode(sets(), { nodeName: 'n', podCIDRs: ['10.0.7.0/24'] });
    expect(outcome).toMatchObject({ kind: 'occupied', faults: [] });
  });
});
