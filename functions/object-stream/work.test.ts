import { describe, expect, it } from 'vitest';
import { COUNTERS } from '../../shared/fleet/nodes/health.ts';
import type { ItemKey } from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';
import { controlledFleet } from '../../test/support/controlled-fleet.ts';

describe('a change of a Node', () => {
  it('emits its registration and its removal once, however often the records are delivered', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.streams();
    const uid = (await fleet.node('n1'))?.metadata.uid;
    await fleet.removeNode('n1');
    await fleet.streams();
    const records = fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('o#nodes#'));
    await fleet.controllers.onObjectRecords(records);
    await fleet.controllers.onObjectRecords(records);
    const events = (await fleet.events()).map((event) => [event['reason'], event['message'], event['count']]);
    expect(events.sort()).toEqual([
      ['RegisteredNode', 'Node n1 event: Registered Node n1 in Controller', 1],
      ['RemovingNode', 'Node n1 event: Removing Node n1 from Controller', 1],
    ]);
    for (const event of await fleet.events()) {
      expect(event).toMatchObject({ metadata: { namespace: 'default' }, involvedObject: { uid } });
    }
  });

  it('keeps events for an hour', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.streams();
    const stored = fleet.tables.items('objects').filter(({ pk }) => String(pk).startsWith('o#events#'));
    expect(stored.map(({ ttl }) => ttl)).toEqual([fleet.nowMs() / 1_000 + 3_600]);
  });

  it('emits the registration of a Node that is created again under its name', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.streams();
    await fleet.removeNode('n1');
    await fleet.register('n1');
    await fleet.streams();
    expect(await fleet.events('RegisteredNode')).toHaveLength(2);
  });

  it('removes the taint of creation at the first Ready, and does nothing after its own write', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.streams();
    expect(await fleet.taints('n1')).toEqual(['not-ready:NoSchedule']);
    await fleet.post('n1');
    expect(await fleet.streams()).toBe(2);
    expect(await fleet.taints('n1')).toEqual([]);
  });

  it('deletes nothing for a node that registers', async () => {
    const deleted: ItemKey[] = [];
    const fleet = controlledFleet({
      between: (tables) => ({
        ...tables,
        write: (write) => {
          if (write.kind === 'delete') deleted.push(write.key);
          return tables.write(write);
        },
      }),
    });
    await fleet.register('n1');
    await fleet.post('n1');
    await fleet.streams();
    expect(await fleet.taints('n1')).toEqual([]);
    expect(deleted).toEqual([]);
  });

  it('follows conditions, cordon and labels in one write', async () => {
    const fleet = controlledFleet();
    await fleet.register('n1', {
      labels: { 'kubernetes.io/os': 'linux', 'failure-domain.beta.kubernetes.io/zone': 'z' },
    });
    await fleet.post('n1');
    await fleet.streams();
    await fleet.changeNode('n1', (node) => ({ ...node, spec: { ...node.spec, unschedulable: true } }));
    await fleet.post('n1', 'False', [{ type: 'DiskPressure', status: 'True' }]);
    await fleet.streams();
    expect(await fleet.taints('n1')).toEqual([
      'disk-pressure:NoSchedule',
      'not-ready:NoSchedule',
      'unschedulable:NoSchedule',
    ]);
    expect((await fleet.node('n1'))?.metadata.labels).toMatchObject({
      'beta.kubernetes.io/os': 'linux',
      'topology.kubernetes.io/zone': 'z',
    });
  });

  it('does not change taints that it does not own', async () => {
    const fleet = controlledFleet();
    const taints = [{ key: 'example.com/mine', effect: 'NoSchedule' as const }];
    await fleet.register('n1', { taints });
    await fleet.post('n1');
    await fleet.streams();
    expect((await fleet.node('n1'))?.spec?.taints).toEqual(taints);
  });
});

describe('a change of a Pod', () => {
  async function fleetWithPod() {
    const fleet = controlledFleet();
    await fleet.register('n1');
    await fleet.post('n1');
    await fleet.addPod('p', 'n1');
    await fleet.streams();
    const version = async () =>
      COUNTERS.podsVersion.of((await fleet.tables.get(healthKey('n1'), { consistent: true })) ?? {});
    return { fleet, version };
  }

  it('raises the pods version of its node when it is bound, changed or removed', async () => {
    const { fleet, version } = await fleetWithPod();
    expect(await version()).toBe(1);
    await fleet.changePod('p', (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: { a: 'b' } } }));
    await fleet.streams();
    expect(await version()).toBe(2);
    await fleet.removePod('p');
    await fleet.streams();
    expect(await version()).toBe(3);
  });

  it('does not raise it when only its status changed', async () => {
    const { fleet, version } = await fleetWithPod();
    await fleet.changePod('p', (pod) => ({ ...pod, status: { ...pod.status, podIP: '10.0.0.7' } }));
    await fleet.streams();
    expect(await version()).toBe(1);
  });

  it('costs one write for all pods of a node, and creates no row for a missing node', async () => {
    const { fleet, version } = await fleetWithPod();
    for (const name of ['q', 'r', 's']) await fleet.addPod(name, 'n1');
    await fleet.addPod('t', 'nowhere');
    await fleet.streams();
    expect(await version()).toBe(2);
    expect(await fleet.tables.get(healthKey('nowhere'), { consistent: true })).toBeUndefined();
  });
});
