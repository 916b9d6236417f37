/** Works of one record that fail for a while: L12, and what may happen between the parked row and its last retry. */
import { describe, expect, it } from 'vitest';
import { COUNTERS } from '../../shared/fleet/nodes/health.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { type ItemKey, type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';
import type { ItemChangeRecord } from '../../shared/ticks/item-change.ts';
import { parkedStore } from '../../shared/ticks/parked-store.ts';
import { PARKED_AGE_MAX_MS, ROW_AGE_MAX_MS } from '../../shared/ticks/parking.rule.ts';
import {
  type ControlledFleet,
  controlledFleet,
  type FleetOptions,
  settledFleet,
} from '../../test/support/controlled-fleet.ts';
import { dyingStore } from '../../test/support/failing-store.ts';

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

/** Throttles the items that `isHot` names, and transactions that contain one of them. */
const throttled =
  (isHot: (key: Pick<ItemKey, 'pk' | 'sk'>) => boolean) =>
  (items: ItemStore): ItemStore => {
    const refuse = () => Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }));
    return {
      ...items,
      get: (key, options) => (isHot(key) ? refuse() : items.get(key, options)),
      query: (request) => (isHot({ pk: request.pk, sk: '' }) ? refuse() : items.query(request)),
      write: (write, options) => (isHot(write.key) ? refuse() : items.write(write, options)),
      transact: (writes) => (writes.some(({ key }) => isHot(key)) ? refuse() : items.transact(writes)),
    };
  };

/** A settled zone. The Nodes in `hot` are throttled for the controllers. */
async function fleetWithHotNodes(options: FleetOptions = {}) {
  const hot = new Set<string>();
  const between = throttled(({ pk, sk }) => pk.startsWith('o#nodes#') && hot.has(sk));
  const { fleet } = await settledFleet({ a: 3 }, { between, mayPostpone: true, ...options });
  return { fleet, hot, between };
}

const cordon = (fleet: ControlledFleet, name: string) =>
  fleet.changeNode(name, (node: KubeNode) => ({ ...node, spec: { ...node.spec, unschedulable: true } }));

/** Cordons Nodes, and returns the records of these changes. */
async function cordonRecords(fleet: ControlledFleet, ...names: string[]): Promise<readonly ItemChangeRecord[]> {
  await fleet.streams();
  const seen = fleet.tables.changes('objects').at(-1)?.sequence;
  for (const name of names) await cordon(fleet, name);
  return fleet.tables.changes('objects', seen).filter(({ key }) => key.pk.startsWith('o#nodes#'));
}

const givenUp = (fleet: ControlledFleet) =>
  fleet.metrics.filter(({ name }) => name === 'stream_records_given_up_total');
const rowsOf = (fleet: ControlledFleet) => parkedStore(fleet.tables).list();
const CORDONED = ['unschedulable:NoSchedule'];

describe('a record of a throttled Node', () => {
  it('does not delay the records behind it, and its work is done after the throttling ended', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    const records = await cordonRecords(fleet, 'a-0', 'a-1');
    hot.add('a-0');
    const outcome = await fleet.controllers.onObjectRecords(records);
    expect(outcome).toMatchObject({ faults: [], postponed: [{ code: 'throttled' }] });
    expect(outcome.failedFrom).toBeUndefined();
    expect(await fleet.taints('a-1')).toEqual(CORDONED);
    expect(fleet.metrics).toContainEqual(
      expect.objectContaining({ name: 'stream_record_works_postponed_total', value: 1 }),
    );
    for (const seconds of [5, 10, 15, 20]) {
      fleet.at(seconds);
      await fleet.tick();
      expect(await fleet.taints('a-0')).toEqual([]);
    }
    hot.clear();
    fleet.at(30);
    await fleet.tick();
    expect(await fleet.taints('a-0')).toEqual(CORDONED);
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('does not delay the retry of another Node', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    await cordonRecords(fleet, 'a-0', 'a-1');
    for (const name of ['a-0', 'a-1']) hot.add(name);
    await fleet.streams();
    hot.delete('a-1');
    fleet.at(5);
    await fleet.tick();
    expect(await fleet.taints('a-1')).toEqual(CORDONED);
    expect((await rowsOf(fleet)).map(({ id }) => id.split('#')[1])).toEqual(['a-0']);
  });

  it('is retried in place once: contention with one commit does not park it', async () => {
    const { fleet } = await settledFleet({ a: 2 });
    const records = await cordonRecords(fleet, 'a-0');
    let refusals = 1;
    const contended: ItemStore = {
      ...fleet.tables,
      transact(writes) {
        if (refusals === 0) return fleet.tables.transact(writes);
        refusals -= 1;
        return Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }));
      },
    };
    const outcome = await fleet.makeControllers(contended).onObjectRecords(records);
    expect(outcome).toEqual({ faults: [], postponed: [] });
    expect(await fleet.taints('a-0')).toEqual(CORDONED);
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('is parked once when it is delivered again, by one process or by two at once', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    const records = await cordonRecords(fleet, 'a-0', 'a-1');
    hot.add('a-0');
    await fleet.controllers.onObjectRecords(records);
    const [first] = await rowsOf(fleet);
    fleet.at(3);
    await Promise.all([fleet.controllers.onObjectRecords(records), fleet.controllers.onObjectRecords(records)]);
    const rows = await rowsOf(fleet);
    expect(rows).toEqual([{ ...first, version: 3 }]);
    expect(rows[0]).toMatchObject({ works: ['node'], tries: 0 });
  });

  it('is reported as failed when its row cannot be written: then the table is unavailable for every record', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    const records = await cordonRecords(fleet, 'a-1', 'a-0');
    const isDown = throttled(({ pk, sk }) => pk === 'parked' || (pk.startsWith('o#nodes#') && sk === 'a-0'));
    const outcome = await fleet.makeControllers(isDown(fleet.tables)).onObjectRecords(records);
    expect(outcome.failedFrom).toBe(records.findIndex(({ key }) => key.sk === 'a-0'));
    expect(outcome.faults).toHaveLength(1);
    expect(await fleet.taints('a-1')).toEqual(CORDONED);
  });

  it('loses nothing when its process is killed at any call, and delivered again', async () => {
    let calls = 1;
    for (let atCall = 1; atCall <= calls; atCall += 1) {
      for (const lastHappens of [true, false]) {
        const { fleet, hot, between } = await fleetWithHotNodes();
        const records = await cordonRecords(fleet, 'a-0', 'a-1');
        hot.add('a-0');
        const killed = dyingStore(fleet.tables, atCall, lastHappens);
        await fleet.makeControllers(between(killed.items)).onObjectRecords(records);
        calls = Math.max(calls, killed.calls());
        // Not acknowledged: delivered again, for the last time.
        await fleet.streams();
        hot.clear();
        fleet.at(5);
        await fleet.tick();
        for (const name of ['a-0', 'a-1']) expect(await fleet.taints(name), `${name} ${atCall}`).toEqual(CORDONED);
        expect(await rowsOf(fleet)).toEqual([]);
      }
    }
  });

  it('is given up, counted and logged when it fails for half an hour', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    const records = await cordonRecords(fleet, 'a-0');
    hot.add('a-0');
    await fleet.controllers.onObjectRecords(records);
    fleet.at(PARKED_AGE_MAX_MS / 1_000 - 5);
    await fleet.tick();
    expect(givenUp(fleet)).toEqual([]);
    fleet.at(PARKED_AGE_MAX_MS / 1_000 + 5);
    await fleet.tick();
    expect(givenUp(fleet)).toMatchObject([{ value: 1 }]);
    expect(fleet.told).toContainEqual(
      expect.objectContaining({
        level: 'error',
        message: 'works of a stream record were given up',
        fields: expect.objectContaining({ works: ['node'], tries: 2 }),
      }),
    );
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('is retried after evictor or object-stream did not run for longer than that', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    const records = await cordonRecords(fleet, 'a-0');
    hot.add('a-0');
    await fleet.controllers.onObjectRecords(records);
    hot.clear();
    // evictor runs, and nothing receives the retries that it starts.
    fleet.at(PARKED_AGE_MAX_MS / 1_000 + 5);
    await fleet.controllers.tickEvictor(fleet.slot());
    fleet.at(PARKED_AGE_MAX_MS / 1_000 + 60);
    await fleet.controllers.tickEvictor(fleet.slot());
    await fleet.streams();
    expect(await fleet.taints('a-0')).toEqual(CORDONED);
    expect(givenUp(fleet)).toEqual([]);
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('is given up without the works that were parked for the same Node later', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    const records = await cordonRecords(fleet, 'a-0');
    hot.add('a-0');
    await fleet.controllers.onObjectRecords(records);
    const [row] = await rowsOf(fleet);
    fleet.at(PARKED_AGE_MAX_MS / 1_000 - 5);
    const { name = '', uid = '' } = (await fleet.node('a-0'))?.metadata ?? {};
    const object = { resource: 'nodes', namespace: '', name, uid, resourceVersion: 1, text: row!.text };
    await parkedStore(fleet.tables).park(object, ['cloudWatch'], fleet.nowMs());
    fleet.at(PARKED_AGE_MAX_MS / 1_000 + 5);
    await fleet.tick();
    expect(await rowsOf(fleet)).toMatchObject([{ works: ['cloudWatch'] }]);
    hot.clear();
    fleet.at(PARKED_AGE_MAX_MS / 1_000 + 15);
    await fleet.tick();
    expect(await rowsOf(fleet)).toEqual([]);
    expect(givenUp(fleet)).toHaveLength(1);
  });

  it('is given up if two hours of retries end without a result', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    const records = await cordonRecords(fleet, 'a-0');
    hot.add('a-0');
    await fleet.controllers.onObjectRecords(records);
    for (let seconds = 10; seconds < ROW_AGE_MAX_MS / 1_000; seconds += 10) {
      fleet.at(seconds);
      await fleet.controllers.tickEvictor(fleet.slot());
    }
    expect(givenUp(fleet)).toEqual([]);
    fleet.at(ROW_AGE_MAX_MS / 1_000 + 10);
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(givenUp(fleet)).toHaveLength(1);
    expect(await rowsOf(fleet)).toEqual([]);
  });
});

describe('a retry', () => {
  /** A parked row with a started retry, and the record that starts it. */
  async function startedRetry() {
    const { fleet, hot } = await fleetWithHotNodes();
    await cordonRecords(fleet, 'a-0');
    hot.add('a-0');
    await fleet.streams();
    fleet.at(5);
    await fleet.controllers.tickEvictor(fleet.slot());
    const started = fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('r#'));
    hot.clear();
    return { fleet, started };
  }

  it('is started once by two ticks at once, and counted once', async () => {
    const { fleet, hot } = await fleetWithHotNodes();
    const records = await cordonRecords(fleet, 'a-0');
    hot.add('a-0');
    await fleet.controllers.onObjectRecords(records);
    fleet.at(5);
    await Promise.all([
      fleet.controllers.tickEvictor(fleet.slot()),
      fleet.makeControllers(fleet.tables).tickEvictor(fleet.slot()),
    ]);
    expect(await rowsOf(fleet)).toMatchObject([{ tries: 1, dueMs: fleet.nowMs() + 5_000 }]);
  });

  it('does its work once when it is delivered twice, at once and late', async () => {
    const { fleet, started } = await startedRetry();
    expect(started).toHaveLength(1);
    await Promise.all([fleet.controllers.onObjectRecords(started), fleet.controllers.onObjectRecords(started)]);
    expect(await fleet.taints('a-0')).toEqual(CORDONED);
    fleet.consumed();
    expect(await fleet.controllers.onObjectRecords(started)).toEqual({ faults: [], postponed: [] });
    expect(fleet.consumed().writes).toBe(0);
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('keeps the works that were parked while it ran', async () => {
    const { fleet, started } = await startedRetry();
    const [row] = await rowsOf(fleet);
    let isParked = false;
    const between: ItemStore = {
      ...fleet.tables,
      async write(write, options) {
        if (write.kind === 'delete' && write.key.pk === 'parked' && !isParked) {
          isParked = true;
          const { name = '', uid = '' } = (await fleet.node('a-0'))?.metadata ?? {};
          const object = { resource: 'nodes', namespace: '', name, uid, resourceVersion: 1, text: row!.text };
          await parkedStore(fleet.tables).park(object, ['cloudWatch'], fleet.nowMs());
        }
        return fleet.tables.write(write, options);
      },
    };
    await fleet.makeControllers(between).onObjectRecords(started);
    expect((await rowsOf(fleet)).map(({ works }) => works.toSorted())).toEqual([['cloudWatch', 'node']]);
    fleet.at(15);
    await fleet.tick();
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('is repeated when its process is killed at any call', async () => {
    let calls = 1;
    for (let atCall = 1; atCall <= calls; atCall += 1) {
      for (const lastHappens of [true, false]) {
        const { fleet, started } = await startedRetry();
        const killed = dyingStore(fleet.tables, atCall, lastHappens);
        await fleet.makeControllers(killed.items).onObjectRecords(started);
        calls = Math.max(calls, killed.calls());
        fleet.at(15);
        await fleet.tick();
        expect(await fleet.taints('a-0'), String(atCall)).toEqual(CORDONED);
        expect(await rowsOf(fleet)).toEqual([]);
      }
    }
  });

  it('begins although the other works of its batch were slow', async () => {
    const { fleet, started } = await startedRetry();
    const seen = fleet.tables.changes('objects').at(-1)?.sequence;
    await cordon(fleet, 'a-1');
    const records = fleet.tables.changes('objects', seen).filter(({ key }) => key.pk.startsWith('o#nodes#'));
    const startSeconds = fleet.seconds();
    const slow: ItemStore = {
      ...fleet.tables,
      transact(writes) {
        if (writes.some(({ key }) => key.sk === 'a-1')) fleet.at(startSeconds + 3);
        return fleet.tables.transact(writes);
      },
    };
    await fleet.makeControllers(slow).onObjectRecords([...records, ...started]);
    expect(await fleet.taints('a-1')).toEqual(CORDONED);
    expect(await fleet.taints('a-0')).toEqual(CORDONED);
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('finds nothing to do where the Node was deleted meanwhile', async () => {
    const { fleet, started } = await startedRetry();
    await fleet.removeNode('a-0');
    expect(await fleet.controllers.onObjectRecords(started)).toEqual({ faults: [], postponed: [] });
    expect(await rowsOf(fleet)).toEqual([]);
    expect(await fleet.node('a-0')).toBeUndefined();
  });
});

describe('works of a deleted object', () => {
  it('release the pod CIDRs of a deleted Node, and not those of a new Node of its name', async () => {
    let isDown = false;
    const { fleet } = await settledFleet(
      { a: 1 },
      {
        policy: { clusterCIDRs: ['10.96.0.0/16'] },
        between: throttled(({ pk }) => isDown && pk.startsWith('cidr#')),
        mayPostpone: true,
      },
    );
    const blocks = () =>
      fleet.tables
        .items('control')
        .filter(({ pk, sk }) => String(pk).startsWith('cidr#') && String(sk).startsWith('b#'))
        .map(({ uid }) => uid);
    const first = (await fleet.node('a-0'))?.metadata.uid;
    expect(JSON.stringify(fleet.tables.items('control'))).toContain(first);
    isDown = true;
    await fleet.removeNode('a-0');
    await fleet.streams();
    expect((await rowsOf(fleet)).map(({ works }) => works)).toEqual([['cidrs']]);
    isDown = false;
    await fleet.register('a-0', { zone: 'a' });
    await fleet.streams();
    fleet.at(5);
    await fleet.tick();
    const second = await fleet.node('a-0');
    expect(second?.spec?.podCIDRs).toHaveLength(1);
    const held = JSON.stringify(fleet.tables.items('control').filter(({ pk }) => String(pk).startsWith('cidr#')));
    expect(held).not.toContain(first);
    expect(held).toContain(second?.metadata.uid);
    expect(blocks().length).toBeGreaterThan(0);
    expect(await rowsOf(fleet)).toEqual([]);
  });

  it('remove the timers of a pod after its node was deleted as well', async () => {
    let isDown = false;
    const { fleet } = await settledFleet(
      { a: 2 },
      { between: throttled(({ pk }) => isDown && pk === 'evictions#a-0'), mayPostpone: true },
    );
    const toleration = { key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 } as const;
    await fleet.addPod('p', 'a-0', { tolerations: [toleration] });
    await fleet.streams();
    const taint = { key: 'k', effect: 'NoExecute' as const };
    await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [taint] } }));
    await fleet.streams();
    expect(await fleet.timers('a-0')).toHaveLength(1);
    isDown = true;
    await fleet.removePod('p');
    await fleet.removeNode('a-0');
    await fleet.streams();
    const ids = (await rowsOf(fleet)).map(({ id, works }) => [id, works]);
    // One row of the node's name for both records.
    expect(ids).toEqual([['nodes#a-0#', ['evictions']]]);
    isDown = false;
    fleet.at(5);
    await fleet.tick();
    expect(await fleet.timers('a-0')).toEqual([]);
    expect(await rowsOf(fleet)).toEqual([]);
    expect(fleet.told.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

it('a pod that other commits keep changing is parked, and marked not ready by the retry', async () => {
  const contended = { is: false };
  let changes = 0;
  const { fleet } = await settledFleet(
    { a: 2 },
    {
      mayPostpone: true,
      between: (items) => ({
        ...items,
        async transact(writes) {
          if (contended.is && writes.some(({ key }) => key.pk.startsWith('o#pods#'))) {
            changes += 1;
            await fleet.changePod('p', (pod) => ({
              ...pod,
              metadata: { ...pod.metadata, annotations: { changes: String(changes) } },
            }));
          }
          return items.transact(writes);
        },
      }),
    },
  );
  await fleet.post('a-0', 'False');
  await fleet.streams();
  const seen = fleet.tables.changes('objects').at(-1)?.sequence;
  await fleet.addPod('p', 'a-0');
  const records = fleet.tables.changes('objects', seen).filter(({ key }) => key.pk.startsWith('o#pods#'));
  contended.is = true;
  const outcome = await fleet.controllers.onObjectRecords(records);
  expect(outcome).toMatchObject({ faults: [], postponed: [{ code: 'throttled' }] });
  expect((await rowsOf(fleet)).map(({ works }) => works)).toEqual([['boundPods']]);
  contended.is = false;
  fleet.at(5);
  await fleet.tick();
  expect(await rowsOf(fleet)).toEqual([]);
  const conditions = (await fleet.pod('p'))?.status?.['conditions'];
  expect(conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'False' }));
});
