import { describe, expect, it } from 'vitest';
import { evictionTimerStore } from '../../shared/fleet/eviction-timer-store.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { TickFault } from '../../shared/ticks/tick.ts';
import { type ControlledFleet, START_MS, settledFleet } from '../support/controlled-fleet.ts';

const beatAll =
  (fleet: ControlledFleet, ...names: string[]) =>
  (seconds: number): Promise<unknown> =>
    seconds % 10 === 0 ? fleet.beat(...names) : Promise.resolve();

const requestsOf = (fleet: ControlledFleet) =>
  fleet.consumed().requests.map(({ operation, readUnits, writeUnits }) => [operation, readUnits, writeUnits]);

describe('a tick of evictor', () => {
  it('costs two and a half read units where no node waits and nothing is due, and emits no metric', async () => {
    const { fleet, ofZone } = await settledFleet({ a: 3 });
    await fleet.run(0, 25, beatAll(fleet, ...ofZone('a')));
    fleet.at(30);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    fleet.consumed();
    fleet.metrics.splice(0);
    const report = await fleet.controllers.tickEvictor(fleet.slot());
    expect(report).toEqual({ kind: 'ran', tainted: 0, holds: new Map(), nextTokenAtMs: undefined });
    // Control records, parked works of object-stream, due timers.
    expect(requestsOf(fleet)).toEqual([
      ['Query', 1, 0],
      ['Query', 0.5, 0],
      ['Query', 1, 0],
    ]);
    expect(fleet.metrics).toEqual([]);
  });

  it('claims its slot when a node waits, and the loser does nothing', async () => {
    const { fleet, ofZone } = await settledFleet({ a: 3, b: 3 });
    await fleet.run(0, 40, beatAll(fleet, ...ofZone('b'), 'a-0'));
    fleet.at(45);
    await fleet.beat(...ofZone('b'), 'a-0');
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    expect(await fleet.controllers.tickEvictor(fleet.slot())).toMatchObject({ kind: 'ran', tainted: 1 });
    fleet.consumed();
    expect((await fleet.controllers.tickEvictor(fleet.slot())).kind).toBe('lost');
    expect(requestsOf(fleet).map(([operation]) => operation)).toEqual(['Query', 'Query', 'Query', 'UpdateItem']);
  });

  it('does not read what is due while the safety gate is closed', async () => {
    const { fleet, ofZone } = await settledFleet({ a: 3 });
    await fleet.run(0, 20, beatAll(fleet, ...ofZone('a')));
    // No tick of node-monitor since: evictor finds by itself that its data is stale.
    fleet.at(120);
    fleet.consumed();
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(requestsOf(fleet)).toEqual([
      ['Query', 1, 0],
      ['Query', 0.5, 0],
    ]);
  });

  it('claims its slot for a due pod, and to clear the hold of a zone in which no node waits', async () => {
    const { fleet, ofZone } = await settledFleet({ a: 3 });
    await fleet.addPod('p', 'a-2');
    await fleet.run(0, 20, beatAll(fleet, ...ofZone('a')));
    await fleet.changeNode('a-2', (node) => ({
      ...node,
      spec: { ...node.spec, taints: [{ key: 'by-hand', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' }] },
    }));
    const due = { nodeName: 'a-2', timers: [], version: 0, dueMs: undefined, parts: [] };
    const podUid = (await fleet.pod('p'))?.metadata.uid ?? '';
    const timer = { namespace: 'default', name: 'p', podUid, atMs: fleet.nowMs() };
    await evictionTimerStore(fleet.tables).replace(due, [timer]);
    fleet.at(20.5);
    fleet.consumed();
    await fleet.controllers.tickEvictor(fleet.slot() + 1);
    expect(requestsOf(fleet)[3]).toEqual(['UpdateItem', 0, 1]);
    const [zone] = (await fleet.records()).zones;
    await fleetStore(fleet.tables).setHold(zone!.zone, zone!.hold, 'rate 0.1');
    fleet.at(25);
    await fleet.controllers.tickEvictor(fleet.slot() + 1);
    expect((await fleet.records()).zones[0]?.hold).toBeUndefined();
  });
});

describe('zones and the limiter', () => {
  it('taints the nodes of a failing zone one by one, each zone at its own rate', async () => {
    const { fleet, ofZone } = await settledFleet({ a: 4, b: 3, c: 2 });
    await fleet.run(0, 45, beatAll(fleet, ...ofZone('c'), 'a-0', 'b-0'));
    const tainted = async () => {
      const names: string[] = [];
      for (const name of [...ofZone('a'), ...ofZone('b')]) {
        if ((await fleet.taints(name)).includes('unreachable:NoExecute')) names.push(name);
      }
      return names;
    };
    // 3 of 4 are not ready: partial disruption of a small zone, never; 2 of 3: normal.
    const { zones } = await fleet.records();
    expect(zones.map(({ zone, state, limiter }) => [zone, state, limiter.ratePerSecond])).toEqual([
      ['a', 'PartialDisruption', 0],
      ['b', 'Normal', 0.1],
      ['c', 'Normal', 0.1],
    ]);
    expect(await tainted()).toEqual(['b-1']);
    await fleet.run(50, 50, beatAll(fleet, ...ofZone('c'), 'a-0', 'b-0'));
    expect(await tainted()).toEqual(['b-1']);
    await fleet.run(55, 70, beatAll(fleet, ...ofZone('c'), 'a-0', 'b-0'));
    expect(await tainted()).toEqual(['b-1', 'b-2']);
    expect(fleet.metrics.filter(({ name }) => name === 'node_collector_evictions_total')).toEqual([
      { name: 'node_collector_evictions_total', value: 1, unit: 'Count', zone: 'b' },
      { name: 'node_collector_evictions_total', value: 1, unit: 'Count', zone: 'b' },
    ]);
  });

  it('cancels all evictions when all zones are fully disrupted, and starts a new grace period when one recovers', async () => {
    const { fleet, names, ofZone } = await settledFleet({ a: 2, b: 2 });
    await fleet.run(0, 40);
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    await fleet.run(45, 60);
    for (const name of names) expect(await fleet.taints(name)).toEqual(['unreachable:NoSchedule']);
    const dark = await fleet.records();
    expect(dark.state.disruption).toMatchObject({ total: true, sinceMs: START_MS + 45_000 });
    expect(dark.queue).toEqual([]);
    expect(dark.zones.map(({ limiter }) => limiter.ratePerSecond)).toEqual([0, 0]);
    for (const name of ofZone('a')) {
      fleet.at(61);
      await fleet.beat(name);
      await fleet.post(name);
    }
    await fleet.streams();
    await fleet.run(65, 65, () => fleet.beat(...ofZone('a')));
    const back = await fleet.records();
    expect(back.state.disruption).toMatchObject({ total: false, freshSinceMs: START_MS + 65_000 });
    // Still Unknown: they wait for a limiter that starts without tokens.
    expect(back.queue.map(({ nodeName }) => nodeName)).toEqual(['b-0', 'b-1']);
    await fleet.run(70, 70, () => fleet.beat(...ofZone('a')));
    expect(await fleet.taints('b-0')).toEqual(['unreachable:NoSchedule']);
    await fleet.run(75, 75, () => fleet.beat(...ofZone('a')));
    expect(await fleet.taints('b-0')).toContain('unreachable:NoExecute');
    expect(await fleet.taints('b-1')).toEqual(['unreachable:NoSchedule']);
  });

  it('reaches a rate above one per period, by processing queues between the ticks', async () => {
    const policy = { nodeEvictionRatePerSecond: 1, unhealthyZoneThreshold: 1 };
    const { fleet, ofZone } = await settledFleet({ a: 8, b: 1 }, { policy });
    await fleet.run(0, 40, beatAll(fleet, 'a-0', ...ofZone('b')));
    fleet.at(45);
    await fleet.beat('a-0', ...ofZone('b'));
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    const taintedAtSeconds: number[] = [];
    let report = await fleet.controllers.tickEvictor(fleet.slot());
    for (let seconds = 45; report.kind === 'ran' && report.nextTokenAtMs !== undefined && seconds < 60; ) {
      if (report.tainted > 0) taintedAtSeconds.push(seconds);
      seconds = (report.nextTokenAtMs - START_MS) / 1_000;
      fleet.at(seconds);
      report = await fleet.controllers.processQueuesBetweenTicks();
      if (report.nextTokenAtMs === undefined && report.tainted > 0) taintedAtSeconds.push(seconds);
    }
    expect(taintedAtSeconds).toEqual([45, 46, 47, 48, 49, 50, 51]);
  });

  it('waits inside its slot for tokens of this slot, and for no later one', async () => {
    const policy = { nodeEvictionRatePerSecond: 0.5, unhealthyZoneThreshold: 1 };
    const waits: number[] = [];
    const { fleet, ofZone } = await settledFleet({ a: 8, b: 1 }, { policy });
    await fleet.run(0, 40, beatAll(fleet, 'a-0', ...ofZone('b')));
    fleet.at(45);
    await fleet.beat('a-0', ...ofZone('b'));
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    const controllers = fleet.makeControllers(fleet.tables, async (milliseconds) => {
      waits.push(milliseconds);
      fleet.at(fleet.seconds() + milliseconds / 1_000);
    });
    const report = await controllers.runEvictorSlot(fleet.slot());
    expect(report).toMatchObject({ kind: 'ran', tainted: 3 });
    expect(waits).toEqual([2_000, 2_000]);
  });

  it.each(['parked', 'evictions-due'])(
    'L12 taints at the rate of the zone within its slot while partition %s is throttled, and reports the fault',
    async (throttled) => {
      const policy = { nodeEvictionRatePerSecond: 0.5, unhealthyZoneThreshold: 1 };
      const { fleet, ofZone } = await settledFleet({ a: 8, b: 1 }, { policy });
      await fleet.run(0, 40, beatAll(fleet, 'a-0', ...ofZone('b')));
      fleet.at(45);
      await fleet.beat('a-0', ...ofZone('b'));
      await fleet.controllers.tickNodeMonitor(fleet.slot());
      const items: ItemStore = {
        ...fleet.tables,
        query: async (request) => {
          if (request.pk === throttled) throw new StoreFault('throttled', throttled, { retryable: true });
          return fleet.tables.query(request);
        },
      };
      const controllers = fleet.makeControllers(items, async (milliseconds) => {
        fleet.at(fleet.seconds() + milliseconds / 1_000);
      });
      await expect(controllers.runEvictorSlot(fleet.slot())).rejects.toThrow(TickFault);
      const taints = await Promise.all(ofZone('a').map((name) => fleet.taints(name)));
      expect(taints.filter((each) => each.includes('unreachable:NoExecute'))).toHaveLength(3);
    },
  );

  it('removes NoExecute taints when total disruption is entered', async () => {
    const { fleet, ofZone } = await settledFleet({ a: 3, b: 1 });
    await fleet.run(0, 60, beatAll(fleet, ...ofZone('b'), 'a-0', 'a-1'));
    expect(await fleet.taints('a-2')).toContain('unreachable:NoExecute');
    await fleet.run(65, 110);
    expect((await fleet.records()).state.disruption.total).toBe(true);
    expect(await fleet.taints('a-2')).toEqual(['unreachable:NoSchedule']);
  });

  it('swaps the taint at once when an unreachable node reports that it is not ready', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    const others = beatAll(fleet, 'a-0', 'a-1');
    await fleet.run(0, 60, others);
    const before = (await fleet.node('a-2'))?.spec?.taints?.find(({ effect }) => effect === 'NoExecute')?.timeAdded;
    fleet.at(62);
    await fleet.beat('a-2');
    await fleet.post('a-2', 'False');
    await fleet.streams();
    expect(await fleet.taints('a-2')).toEqual(['not-ready:NoSchedule', 'unreachable:NoExecute']);
    await fleet.run(65, 65, others);
    expect(await fleet.taints('a-2')).toEqual(['not-ready:NoExecute', 'not-ready:NoSchedule']);
    const after = (await fleet.node('a-2'))?.spec?.taints?.find(({ effect }) => effect === 'NoExecute')?.timeAdded;
    expect(after).toBe(before);
  });
});

describe('pods of a tainted node', () => {
  /** a-2 stops sending heartbeats, is marked at 45 s and tainted in the same tick. */
  async function tainted(...pods: { name: string; seconds?: number }[]) {
    const { fleet } = await settledFleet({ a: 3 });
    for (const { name, seconds } of pods) {
      const key = 'node.kubernetes.io/unreachable';
      await fleet.addPod(name, 'a-2', {
        tolerations:
          seconds === undefined ? [{ operator: 'Exists' }] : [{ key, operator: 'Exists', tolerationSeconds: seconds }],
      });
    }
    const others = beatAll(fleet, 'a-0', 'a-1');
    await fleet.run(0, 45, others);
    return { fleet, others };
  }
  const deleted = async (fleet: ControlledFleet, name: string) =>
    (await fleet.pod(name))?.metadata.deletionTimestamp !== undefined;

  /** A tick of evictor, with a callback after it has decided on pods and before it writes the first of them. */
  async function evictedWhile(fleet: ControlledFleet, happens: () => Promise<void>): Promise<void> {
    let once = true;
    const racing = fleet.makeControllers({
      ...fleet.tables,
      async transact(writes) {
        if (once && writes.some(({ key }) => key.pk.startsWith('o#pods#'))) {
          once = false;
          await happens();
        }
        return fleet.tables.transact(writes);
      },
    });
    await racing.tickEvictor(fleet.slot());
    expect(once).toBe(false);
  }

  it('are deleted when their toleration time is over, within two periods, with one event', async () => {
    const { fleet, others } = await tainted({ name: 'p', seconds: 60 }, { name: 'daemon' });
    expect(await fleet.timers('a-2')).toMatchObject([{ name: 'p', atMs: START_MS + 105_000 }]);
    await fleet.run(50, 100, others);
    expect(await deleted(fleet, 'p')).toBe(false);
    await fleet.run(105, 120, others);
    expect(await deleted(fleet, 'p')).toBe(true);
    expect(await deleted(fleet, 'daemon')).toBe(false);
    const pod = await fleet.pod('p');
    expect(pod?.metadata.deletionGracePeriodSeconds).toBe(30);
    expect(pod?.status?.['conditions']).toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }),
    );
    const events = await fleet.events('TaintManagerEviction');
    expect(events.map((event) => [event['message'], event['count']])).toEqual([
      ['Marking for deletion Pod default/p', 1],
    ]);
    expect(await fleet.timers('a-2')).toEqual([]);
    expect(fleet.metrics.filter(({ name }) => name === 'taint_eviction_controller_pod_deletions_total')).toHaveLength(
      1,
    );
  });

  it('are deleted also by a tick that cannot clear the hold of a zone in which no node waits', async () => {
    const { fleet, others } = await tainted({ name: 'p', seconds: 60 });
    await fleet.run(50, 100, others);
    await fleetStore(fleet.tables).setHold('a', undefined, 'never');
    const { zones, queue } = await fleet.records();
    expect([queue, zones[0]?.hold]).toEqual([[], 'never']);
    const failing = fleet.makeControllers({
      ...fleet.tables,
      write: (write) =>
        write.kind === 'update' && write.remove?.includes('hold')
          ? Promise.reject(new StoreFault('throttled', 'not now', { retryable: true }))
          : fleet.tables.write(write),
    });
    fleet.at(105);
    await expect(failing.tickEvictor(fleet.slot())).rejects.toThrow('evictor could not finish its tick');
    expect(await deleted(fleet, 'p')).toBe(true);
  });

  it('are kept when the taint is removed in time, with an event', async () => {
    const { fleet, others } = await tainted({ name: 'p', seconds: 60 });
    await fleet.run(50, 80, others);
    fleet.at(82);
    await fleet.beat('a-2');
    await fleet.post('a-2');
    await fleet.streams();
    expect(await fleet.timers('a-2')).toEqual([]);
    await fleet.run(85, 140, async () => fleet.beat('a-0', 'a-1', 'a-2'));
    expect(await deleted(fleet, 'p')).toBe(false);
    const events = await fleet.events('TaintManagerEviction');
    expect(events.map((event) => event['message'])).toEqual(['Cancelling deletion of Pod default/p']);
  });

  it.each([30, 0])(
    'are kept when the node recovers between decision and deletion, with %i s of grace',
    async (terminationGracePeriodSeconds) => {
      const { fleet, others } = await tainted({ name: 'p', seconds: 60 });
      await fleet.changePod('p', (pod) => ({ ...pod, spec: { ...pod.spec, terminationGracePeriodSeconds } }));
      await fleet.run(50, 100, others);
      fleet.at(105);
      await fleet.beat('a-0', 'a-1');
      await evictedWhile(fleet, async () => {
        await fleet.beat('a-2');
        await fleet.post('a-2');
        await fleet.streams();
      });
      expect(await fleet.taints('a-2')).toEqual([]);
      const pod = await fleet.pod('p');
      expect(pod?.metadata.deletionTimestamp).toBeUndefined();
      expect(JSON.stringify(pod?.status)).not.toContain('DisruptionTarget');
      const events = await fleet.events('TaintManagerEviction');
      expect(events.map((event) => event['message'])).toEqual(['Cancelling deletion of Pod default/p']);
    },
  );

  it('are kept when they tolerate the taint between decision and deletion', async () => {
    const { fleet, others } = await tainted({ name: 'p', seconds: 60 });
    await fleet.run(50, 100, others);
    fleet.at(105);
    await fleet.beat('a-0', 'a-1');
    await evictedWhile(fleet, async () => {
      const tolerations = [{ operator: 'Exists' }];
      await fleet.changePod('p', (pod) => ({ ...pod, spec: { ...pod.spec, tolerations } }));
    });
    expect(await deleted(fleet, 'p')).toBe(false);
    expect(await fleet.timers('a-2')).toEqual([]);
  });

  it('get another timer when their toleration changes', async () => {
    const { fleet, others } = await tainted({ name: 'p', seconds: 300 });
    fleet.at(52);
    await fleet.changePod('p', (pod) => ({
      ...pod,
      spec: {
        ...pod.spec,
        tolerations: [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', tolerationSeconds: 20 }],
      },
    }));
    await fleet.streams();
    expect(await fleet.timers('a-2')).toMatchObject([{ name: 'p', atMs: START_MS + 65_000 }]);
    await fleet.run(55, 65, others);
    expect(await deleted(fleet, 'p')).toBe(true);
  });

  it('are deleted at once when they do not tolerate it, also when they are bound later', async () => {
    const { fleet } = await tainted();
    fleet.at(47);
    await fleet.addPod('p', 'a-2', { tolerations: [] });
    await fleet.streams();
    expect(await deleted(fleet, 'p')).toBe(true);
  });

  it('are set not ready when they are bound to a node that is not', async () => {
    const { fleet } = await tainted();
    fleet.at(47);
    await fleet.addPod('p', 'a-2');
    await fleet.streams();
    expect((await fleet.pod('p'))?.status?.['conditions']).toMatchObject([{ type: 'Ready', status: 'False' }]);
    expect((await fleet.events('NodeNotReady')).map((event) => event['message']).sort()).toEqual([
      'Node a-2 status is now: NodeNotReady',
      'Node is not ready',
    ]);
  });

  it('may have a timer days ahead', async () => {
    const days = 3 * 86_400;
    const { fleet } = await tainted({ name: 'p', seconds: days });
    fleet.at(45 + days - 5);
    await fleet.beat('a-0', 'a-1');
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(await deleted(fleet, 'p')).toBe(false);
    expect(await fleet.timers('a-2')).toMatchObject([{ atMs: START_MS + (45 + days) * 1_000 }]);
  });

  it('are decided again when another process wrote their timers in between', async () => {
    const { fleet } = await tainted({ name: 'p', seconds: 300 });
    const store = evictionTimerStore(fleet.tables);
    let once = true;
    const racing = fleet.makeControllers({
      ...fleet.tables,
      async transact(writes) {
        if (once && writes.some(({ key }) => key.pk === 'evictions#a-2')) {
          once = false;
          // Decided before the toleration changed, written after.
          const stored = await store.read('a-2');
          await store.replace(stored, stored.timers);
        }
        return fleet.tables.transact(writes);
      },
    });
    fleet.at(47);
    await fleet.changePod('p', (pod) => ({
      ...pod,
      spec: { ...pod.spec, tolerations: [{ operator: 'Exists', tolerationSeconds: 60 }] },
    }));
    const records = fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('o#pods#'));
    expect((await racing.onObjectRecords(records.slice(-1))).faults).toEqual([]);
    expect(once).toBe(false);
    expect(await fleet.timers('a-2')).toMatchObject([{ name: 'p', atMs: START_MS + 105_000 }]);
  });

  it('lose their timers when the Node is deleted', async () => {
    const { fleet } = await tainted({ name: 'p', seconds: 60 });
    fleet.at(47);
    await fleet.removeNode('a-2');
    await fleet.streams();
    expect(await fleet.timers('a-2')).toEqual([]);
    expect(fleet.tables.items('control').filter(({ pk }) => pk === 'evictions-due')).toEqual([]);
    expect(await deleted(fleet, 'p')).toBe(false);
  });

  it('lose the timer of a pod that is deleted through the API', async () => {
    const { fleet } = await tainted({ name: 'p', seconds: 60 });
    fleet.at(47);
    await fleet.removePod('p');
    await fleet.streams();
    expect(await fleet.timers('a-2')).toEqual([]);
  });
});

describe('the gate', () => {
  const failing = { kind: 'failed', reason: 'answered 503' } as const;
  const accepted = { kind: 'accepted' } as const;

  it('stops marks and evictions while probes fail, and starts a new grace period afterwards', async () => {
    let broken = false;
    const { fleet, names } = await settledFleet(
      { a: 3 },
      { probe: { beat: async () => (broken ? failing : accepted) } },
    );
    await fleet.run(0, 60, (seconds) => (seconds % 10 === 0 ? fleet.beat(...names) : Promise.resolve()));
    broken = true;
    await fleet.run(65, 130);
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    expect((await fleet.records()).state.gate.reasons).toEqual(['failingPath']);
    expect(fleet.metrics.findLast(({ name }) => name === 'withheld_marks')?.value).toBe(3);
    broken = false;
    await fleet.run(135, 160, () => fleet.beat('a-0', 'a-1'));
    expect((await fleet.records()).state.gate.reasons).toEqual([]);
    expect(await fleet.ready('a-2')).toBe('True');
    await fleet.run(165, 195, () => fleet.beat('a-0', 'a-1'));
    expect(await fleet.ready('a-2')).toBe('Unknown');
  });

  it('closes after missing ticks, and every node that sends heartbeats again is kept', async () => {
    const { fleet, names } = await settledFleet({ a: 3 });
    await fleet.run(0, 30, () => fleet.beat(...names));
    await fleet.run(300, 335, (seconds) => (seconds >= 320 ? fleet.beat(...names) : Promise.resolve()));
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
  });

  it('closes when ticks are claimed but never complete', async () => {
    const { fleet, names } = await settledFleet({ a: 3 });
    await fleet.run(0, 30, () => fleet.beat(...names));
    for (let seconds = 35; seconds <= 300; seconds += 5) {
      fleet.at(seconds);
      const key = { table: 'control', pk: 'fleet', sk: 'state' } as const;
      await fleet.tables.write({
        kind: 'update',
        key,
        set: { slot: fleet.slot(), at: fleet.nowMs() },
        add: { fence: 1 },
      });
    }
    await fleet.run(305, 305);
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    expect((await fleet.records()).state.gate.reasons).toEqual(['missedTicks']);
  });

  it('keeps pods of a due node while evictor finds that node-monitor misses ticks', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    await fleet.addPod('p', 'a-2', {
      tolerations: [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', tolerationSeconds: 30 }],
    });
    await fleet.run(0, 60, beatAll(fleet, 'a-0', 'a-1'));
    fleet.at(90);
    await fleet.controllers.tickEvictor(fleet.slot());
    expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeUndefined();
  });
});
