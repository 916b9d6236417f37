import { describe, expect, it } from 'vitest';
import { StoreFault } from '../../shared/store/item-store.ts';
import { objectText } from '../../shared/store/object-record.ts';
import { type ControlledFleet, controlledFleet } from '../../test/support/controlled-fleet.ts';
import { dyingStore } from '../../test/support/failing-store.ts';
import { cidrStore } from './cidr-store.ts';

const DUAL = { clusterCIDRs: ['10.0.0.0/16', '2001:db8::/48'] };
/** Four blocks of 4 addresses. */
const FOUR = { clusterCIDRs: ['10.0.0.0/28'], nodeCIDRMaskSizeIPv4: 30 };

const cidrsOf = async (fleet: ControlledFleet, name: string) => (await fleet.node(name))?.spec?.podCIDRs;
const give = (fleet: ControlledFleet, name: string, podCIDRs: string[]) =>
  fleet.changeNode(name, (node) => ({ ...node, spec: { ...node.spec, podCIDR: podCIDRs[0]!, podCIDRs } }));

describe('pod CIDRs', () => {
  it('are not assigned while no cluster CIDR is configured', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.streams();
    expect(await cidrsOf(fleet, 'n1')).toBeUndefined();
    expect(fleet.tables.items('control').filter(({ pk }) => String(pk).startsWith('cidr#'))).toEqual([]);
  });

  it('are one block of each cluster CIDR, in their order; podCIDR is the first', async () => {
    const fleet = controlledFleet({ policy: DUAL });
    await fleet.register('n1');
    await fleet.register('n2');
    await fleet.streams();
    expect((await fleet.node('n1'))?.spec).toMatchObject({
      podCIDR: '10.0.0.0/24',
      podCIDRs: ['10.0.0.0/24', '2001:db8::/64'],
    });
    expect(await cidrsOf(fleet, 'n2')).toEqual(['10.0.1.0/24', '2001:db8:0:1::/64']);
  });

  it('stay as a Node brought them, and are assigned to no other Node', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('n1');
    await give(fleet, 'n1', ['10.0.0.4/30']);
    await fleet.streams();
    for (const name of ['n2', 'n3', 'n4']) {
      await fleet.register(name);
      await fleet.streams();
    }
    expect(await Promise.all(['n1', 'n2', 'n3', 'n4'].map((name) => cidrsOf(fleet, name)))).toEqual([
      ['10.0.0.4/30'],
      ['10.0.0.0/30'],
      ['10.0.0.8/30'],
      ['10.0.0.12/30'],
    ]);
  });

  it('that cover many blocks keep all of them from other Nodes', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('n1');
    await give(fleet, 'n1', ['10.0.0.0/29']);
    await fleet.register('n2');
    await fleet.streams();
    expect(await cidrsOf(fleet, 'n2')).toEqual(['10.0.0.8/30']);
  });

  it('include those that nodes had before allocation was switched on', async () => {
    const fleet = controlledFleet();
    await fleet.register('old');
    await give(fleet, 'old', ['10.0.0.0/30']);
    await fleet.streams();
    const later = controlledFleet({ policy: FOUR, between: () => fleet.tables });
    await fleet.register('new');
    const records = fleet.tables.changes('objects').filter(({ newImage }) => newImage?.['sk'] === 'new');
    await later.controllers.onObjectRecords(records);
    expect(await cidrsOf(fleet, 'new')).toEqual(['10.0.0.4/30']);
  });

  it('rotate: a freed block is not assigned again before the others', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('n1');
    await fleet.streams();
    await fleet.removeNode('n1');
    await fleet.streams();
    const given: (readonly string[] | undefined)[] = [];
    for (const name of ['n2', 'n3', 'n4', 'n5']) {
      await fleet.register(name);
      await fleet.streams();
      given.push(await cidrsOf(fleet, name));
    }
    expect(given.flat()).toEqual(['10.0.0.4/30', '10.0.0.8/30', '10.0.0.12/30', '10.0.0.0/30']);
  });

  it('of a deleted Node are freed, even when the record that assigned them is delivered again', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('n1');
    await fleet.streams();
    const given = fleet.tables.changes('objects').filter(({ newImage }) => newImage?.['sk'] === 'n1');
    await fleet.removeNode('n1');
    await fleet.streams();
    await fleet.controllers.onObjectRecords(given);
    expect(fleet.tables.items('control').filter(({ sk }) => String(sk).startsWith('b#'))).toEqual([]);
  });

  it('run out: the node gets an event, and a block once one is free and the node changes', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    for (const name of ['n1', 'n2', 'n3', 'n4', 'n5']) {
      await fleet.register(name);
      await fleet.streams();
    }
    expect(await cidrsOf(fleet, 'n5')).toBeUndefined();
    expect((await fleet.events('CIDRNotAvailable')).map(({ involvedObject }) => involvedObject)).toMatchObject([
      { name: 'n5' },
    ]);
    await fleet.removeNode('n3');
    await fleet.streams();
    await fleet.post('n5');
    await fleet.streams();
    expect(await cidrsOf(fleet, 'n5')).toEqual(['10.0.0.8/30']);
  });

  it('of a full IPv6 set use up no block of the IPv4 set (D8)', async () => {
    const fleet = controlledFleet({
      policy: { clusterCIDRs: ['10.0.0.0/28', 'fd00::/64'], nodeCIDRMaskSizeIPv4: 30, nodeCIDRMaskSizeIPv6: 64 },
    });
    await fleet.register('n1');
    await fleet.register('n2');
    await fleet.streams();
    const four = await cidrStore(fleet.tables).read('10.0.0.0/28#30');
    expect(four.taken).toHaveLength(1);
  });

  it('that are invalid are reported on that node and affect no other (D8)', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('bad');
    await give(fleet, 'bad', ['192.168.0.0/24']);
    await fleet.register('good');
    await fleet.streams();
    await fleet.post('bad');
    await fleet.streams();
    expect(await cidrsOf(fleet, 'good')).toEqual(['10.0.0.0/30']);
    expect(await fleet.events('InvalidPodCIDR')).toMatchObject([{ involvedObject: { name: 'bad' }, count: 1 }]);
  });

  it('that two Nodes bring are reported on the second', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    for (const name of ['n1', 'n2']) {
      await fleet.register(name);
      await give(fleet, name, ['10.0.0.0/30']);
      await fleet.streams();
    }
    expect(await fleet.events('InvalidPodCIDR')).toMatchObject([{ involvedObject: { name: 'n2' } }]);
  });

  it('of a later node are not freed when the deletion of an earlier one is repeated', async () => {
    const fleet = controlledFleet({ policy: { clusterCIDRs: ['10.0.0.0/30'], nodeCIDRMaskSizeIPv4: 30 } });
    await fleet.register('n1');
    await fleet.streams();
    await fleet.removeNode('n1');
    await fleet.streams();
    await fleet.register('n2');
    await fleet.streams();
    const deletion = fleet.tables.changes('objects').filter(({ type, key }) => type === 'REMOVE' && key.sk === 'n1');
    await fleet.controllers.onObjectRecords(deletion);
    await fleet.register('n3');
    await fleet.streams();
    expect([await cidrsOf(fleet, 'n2'), await cidrsOf(fleet, 'n3')]).toEqual([['10.0.0.0/30'], undefined]);
  });

  it('are neither lost nor assigned twice by a process that is killed at any of its calls', async () => {
    for (const lastHappens of [false, true]) {
      for (let atCall = 1; atCall < 14; atCall += 1) {
        const fleet = controlledFleet({ policy: FOUR });
        await fleet.register('n1');
        const records = fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('o#nodes#'));
        await fleet.makeControllers(dyingStore(fleet.tables, atCall, lastHappens).items).onObjectRecords(records);
        await fleet.streams();
        await fleet.register('n2');
        await fleet.streams();
        const nodes = await Promise.all(['n1', 'n2'].map((name) => cidrsOf(fleet, name)));
        expect(new Set(nodes.flat()).size).toBe(2);
        const { taken } = await cidrStore(fleet.tables).read('10.0.0.0/28#30');
        expect(taken.map(({ nodeName }) => nodeName).sort()).toEqual(['n1', 'n2']);
      }
    }
  });

  it('are reported with upstream’s metrics', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('n1');
    await fleet.streams();
    const told = Object.fromEntries(fleet.metrics.map(({ name, value }) => [name, value]));
    expect(told).toMatchObject({
      node_ipam_controller_cidrset_cidrs_allocations_total: 1,
      node_ipam_controller_cidrset_usage_cidrs: 0.25,
      node_ipam_controller_cidrset_allocation_tries_per_request: 0,
      node_ipam_controller_cirdset_max_cidrs: 4,
    });
  });

  it('count blocks that nodes brought as allocated, each once', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('n1');
    await give(fleet, 'n1', ['10.0.0.0/29']);
    await fleet.streams();
    await fleet.register('n2');
    await fleet.streams();
    const records = fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('o#nodes#'));
    await fleet.controllers.onObjectRecords(records);
    const counted = fleet.metrics.filter(({ name }) => name.endsWith('cidrs_allocations_total'));
    expect(counted.reduce((sum, { value }) => sum + value, 0)).toBe(3);
  });

  it('that cannot be written into a Node are reported on it, and the next node gets its own CIDR', async () => {
    const fleet = controlledFleet({ policy: FOUR });
    await fleet.register('n1');
    await fleet.changeNode('n1', (node) => {
      const annotations = { padding: 'x'.repeat(120_000 - 40 - objectText(node).length) };
      return { ...node, metadata: { ...node.metadata, annotations } };
    });
    await fleet.register('n2');
    await fleet.streams();
    expect(await cidrsOf(fleet, 'n2')).toBeDefined();
    expect(await cidrsOf(fleet, 'n1')).toBeUndefined();
    const [event] = await fleet.events('CIDRAssignmentFailed');
    expect(event).toMatchObject({ message: 'Node n1 status is now: CIDRAssignmentFailed', type: 'Warning' });
  });
});

describe('the store of blocks', () => {
  it('refuses an item without its blocks', async () => {
    const fleet = controlledFleet();
    const key = { table: 'control', pk: 'cidr#10.0.0.0/28#30', sk: 'b#nonsense' } as const;
    await fleet.tables.write({ kind: 'put', key, item: {} });
    await expect(cidrStore(fleet.tables).read('10.0.0.0/28#30')).rejects.toBeInstanceOf(StoreFault);
  });
});
