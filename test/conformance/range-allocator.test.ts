/** Area RA: pod CIDRs of nodes. */
import { describe, expect, it } from 'vitest';
import { cidrStore } from '../../functions/object-stream/cidr-store.ts';
import { allocateForNode } from '../../functions/object-stream/node-cidrs.rule.ts';
import { type CidrSet, releaseBlocks } from '../../shared/fleet/cidrs/cidr-set.ts';
import { blocksOfNode, type CidrPolicy, createCidrSets } from '../../shared/fleet/cidrs/cluster-cidrs.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { cidr, occupy } from '../support/cidr-sets.ts';
import { controlledFleet } from '../support/controlled-fleet.ts';

function start(clusterCIDRs: string[], over: Partial<CidrPolicy> = {}): readonly CidrSet[] {
  const creation = createCidrSets({ ...defaultPolicy, clusterCIDRs, ...over });
  if (creation.kind !== 'created') throw new Error(JSON.stringify(creation));
  return creation.sets;
}

/** Nodes with these CIDRs, in this order, on the controllers; what a node has when the streams are quiet. */
async function clusterOf(
  clusterCIDRs: string[],
  nodes: Readonly<Record<string, readonly string[]>>,
  over: Partial<CidrPolicy> = {},
) {
  const fleet = controlledFleet({ policy: { clusterCIDRs, ...over } });
  for (const [name, podCIDRs] of Object.entries(nodes)) {
    await fleet.register(name);
    const [podCIDR] = podCIDRs;
    if (podCIDR === undefined) continue;
    await fleet.changeNode(name, (node) => ({ ...node, spec: { ...node.spec, podCIDR, podCIDRs: [...podCIDRs] } }));
  }
  await fleet.streams();
  return { fleet, given: async (name: string) => (await fleet.node(name))?.spec?.podCIDRs };
}

/** podCIDRs a new node gets, or the reason of its event. */
function add(sets: readonly CidrSet[], nodeName = 'node0') {
  const outcome = allocateForNode(sets, nodeName);
  if (outcome.kind === 'allocated') return { sets: outcome.sets, got: outcome.podCIDRs };
  return { sets, got: outcome.event.reason };
}

function occupyAll(sets: readonly CidrSet[], texts: readonly string[]): readonly CidrSet[] {
  const [first, ...others] = sets;
  if (first === undefined) return [];
  return [texts.reduce((set, text) => occupy(set, cidr(text)), first), ...others];
}

const release = (sets: readonly CidrSet[], podCIDR: string): readonly CidrSet[] =>
  blocksOfNode(sets, { nodeName: 'old', podCIDRs: [podCIDR] }).reduce<readonly CidrSet[]>(
    (all, entry) =>
      entry.kind === 'fault'
        ? all
        : all.map((set, index) => (index === entry.index ? releaseBlocks(set, [entry.blocks]) : set)),
    sets,
  );

describe('range allocator', () => {
  it('RA-01 starts with a node without CIDR', async () => {
    const { fleet, given } = await clusterOf(['10.10.0.0/16'], { node0: [] });
    expect([await given('node0'), await fleet.events('InvalidPodCIDR')]).toEqual([['10.10.0.0/24'], []]);
  });

  it('RA-03 starts with a node that has a CIDR with host bits', async () => {
    const { fleet, given } = await clusterOf(['10.10.0.0/16'], { node0: ['10.10.0.1/24'], node1: [] });
    expect([await given('node1'), await fleet.events('InvalidPodCIDR')]).toEqual([['10.10.1.0/24'], []]);
  });

  it('RA-05 (ours, D8) starts although a node’s CIDR is out of range, and reports it on that node', async () => {
    const { fleet, given } = await clusterOf(['10.10.0.0/16'], { node0: ['172.10.0.1/24'], node1: [] });
    expect(await fleet.events('InvalidPodCIDR')).toMatchObject([
      {
        involvedObject: { name: 'node0' },
        message: 'Node node0: pod CIDR 172.10.0.1/24 is not in cluster CIDR 10.10.0.0/16',
      },
    ]);
    expect(await given('node1')).toEqual(['10.10.0.0/24']);
  });

  it('RA-07 (ours, D8) marks the good CIDR of a dual-stack node and reports the bad one', async () => {
    const { fleet, given } = await clusterOf(
      ['10.10.0.0/16', 'ace:cab:deca::/8'],
      { node0: ['172.10.0.1/24', 'a00::/86'], node1: [] },
      { nodeCIDRMaskSizeIPv6: 24 },
    );
    expect(await fleet.events('InvalidPodCIDR')).toMatchObject([
      { message: 'Node node0: pod CIDR 172.10.0.1/24 is not in cluster CIDR 10.10.0.0/16' },
    ]);
    expect(await given('node1')).toEqual(['10.10.0.0/24', 'a00:100::/24']);
  });

  it('RA-09 assigns the first block', () => {
    expect(add(start(['127.123.234.0/24'], { nodeCIDRMaskSizeIPv4: 30 })).got).toEqual(['127.123.234.0/30']);
  });

  it('RA-11 passes over the service range and what is occupied', () => {
    const sets = start(['127.123.234.0/24'], {
      nodeCIDRMaskSizeIPv4: 30,
      serviceClusterIPRanges: ['127.123.234.0/26'],
    });
    const occupied = occupyAll(
      sets,
      [64, 68, 72, 80].map((last) => `127.123.234.${last}/30`),
    );
    expect(add(occupied).got).toEqual(['127.123.234.76/30']);
  });

  it('RA-13 assigns one block of each set, in their order', () => {
    const sets = start(['ace:cab:deca::/84', '127.0.0.0/8'], {
      nodeCIDRMaskSizeIPv6: 98,
      nodeCIDRMaskSizeIPv4: 24,
      serviceClusterIPRanges: ['127.123.234.0/26'],
    });
    expect(add(sets).got).toEqual(['ace:cab:deca::/98', '127.0.0.0/24']);
  });

  it('RA-15 fills the gap between nodes that have theirs', async () => {
    const { given } = await clusterOf(['10.10.0.0/22'], {
      node0: ['10.10.0.0/24'],
      node1: ['10.10.2.0/24'],
      node2: [],
    });
    expect(await given('node2')).toEqual(['10.10.1.0/24']);
  });

  it('RA-17 assigns a block that was released', () => {
    const full = occupyAll(start(['127.123.234.0/28'], { nodeCIDRMaskSizeIPv4: 30 }), ['127.123.234.0/28']);
    expect(add(full).got).toBe('CIDRNotAvailable');
    const sets = release(full, '127.123.234.4/30');
    expect(add(sets).got).toEqual(['127.123.234.4/30']);
  });

  it('RA-19 (ours, D8) three failed dual-stack allocations use no block of the set with free blocks', () => {
    const sets = start(['10.0.0.0/16', 'fd00::/64'], { nodeCIDRMaskSizeIPv6: 64 });
    const v6Full = add(sets).sets;
    let tried = occupyAll(v6Full, ['10.0.0.0/17', '10.0.128.0/18', '10.0.192.0/19', '10.0.224.0/20']);
    tried = occupyAll(tried, ['10.0.240.0/22', '10.0.244.0/23']);
    expect((tried[0]?.size ?? 0) - (tried[0]?.usedCount ?? 0)).toBe(10);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const outcome = add(tried);
      expect(outcome.got).toBe('CIDRNotAvailable');
      tried = outcome.sets;
    }
    expect((tried[0]?.size ?? 0) - (tried[0]?.usedCount ?? 0)).toBe(10);
  });

  it('RA-20 reports a Node that others write all the time, and assigns its block later', async () => {
    let isContended = true;
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      transact: async (writes) =>
        isContended && writes.some(({ key }) => key.pk.startsWith('cidr#'))
          ? { kind: 'contended' }
          : items.transact(writes),
    });
    const fleet = controlledFleet({ policy: { clusterCIDRs: ['10.0.0.0/16'] }, between });
    await fleet.register('node0');
    await expect(fleet.streams()).rejects.toMatchObject({ code: 'throttled', retryable: true });
    const [event, ...others] = await fleet.events('CIDRAssignmentFailed');
    expect(event).toMatchObject({ type: 'Warning', message: 'Node node0 status is now: CIDRAssignmentFailed' });
    expect(others).toEqual([]);
    expect((await cidrStore(fleet.tables).read('10.0.0.0/16#24')).taken).toEqual([]);
    isContended = false;
    await fleet.changeNode('node0', (node) => ({ ...node, metadata: { ...node.metadata, labels: { a: 'b' } } }));
    await fleet.streams();
    expect((await fleet.node('node0'))?.spec?.podCIDRs).toEqual(['10.0.0.0/24']);
  });

  it('RA-21 a write that timed out keeps its block if it happened, and is tried again', async () => {
    for (const happened of [true, false]) {
      const fleet = controlledFleet({ policy: { clusterCIDRs: ['10.0.0.0/16'] } });
      await fleet.register('node0');
      const records = fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('o#nodes#'));
      const slow = fleet.makeControllers({
        ...fleet.tables,
        transact: async (writes) => {
          const outcome = happened ? await fleet.tables.transact(writes) : undefined;
          if (outcome !== undefined && outcome.kind !== 'written') return outcome;
          throw new StoreFault('timeout', 'no answer in time', { retryable: true });
        },
      });
      // A work is run once more in place: then it finds what the first write did.
      expect((await slow.onObjectRecords(records)).postponed.length > 0).toBe(!happened);
      const { taken } = await cidrStore(fleet.tables).read('10.0.0.0/16#24');
      expect(taken.map(({ first }) => first)).toEqual(happened ? [0] : []);
      await fleet.streams();
      expect((await fleet.node('node0'))?.spec?.podCIDRs).toEqual(['10.0.0.0/24']);
    }
  });

  it('RA-23 assigns the block of a deleted node again after a round', async () => {
    const { fleet, given } = await clusterOf(['10.10.0.0/16'], { gone: ['10.10.5.0/24'] });
    await fleet.removeNode('gone');
    await fleet.streams();
    for (let index = 0; index < 256; index += 1) await fleet.register(`node${index}`);
    await fleet.streams();
    const all = await Promise.all(Array.from({ length: 256 }, (_, index) => given(`node${index}`)));
    expect(new Set(all.flat()).size).toBe(256);
    expect(all.flat()).toContain('10.10.5.0/24');
  });

  it('RA-25 a service range wider than the cluster leaves nothing', () => {
    expect(add(start(['10.10.0.0/16'], { serviceClusterIPRanges: ['10.0.0.0/8'] })).got).toBe('CIDRNotAvailable');
  });

  it('RA-27 the default masks are 24 and 64', () => {
    expect(add(start(['10.0.0.0/16', '2001:db8::/48'])).got).toEqual(['10.0.0.0/24', '2001:db8::/64']);
  });
});
