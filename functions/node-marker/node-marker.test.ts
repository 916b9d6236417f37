/** A mass failure from the tick of node-monitor through the queue to the marks. */
import { describe, expect, it } from 'vitest';
import type { PartOutcome } from '../../server/fleet-controllers.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { flapHistoryOf } from '../../shared/fleet/silences/flapping.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import {
  type ControlledFleet,
  type FleetOptions,
  START_MS,
  settledFleet,
} from '../../test/support/controlled-fleet.ts';

const POLICY = { nodesMarkedPerTickMax: 2 };

interface TestQueue {
  readonly bodies: string[];
  /** Messages of the next calls that the queue does not accept. */
  refuses: boolean;
}

/** Zone `a` of this size beats until 0 s; node a-0 beats on. The clock is at 45 s: the others are due. */
async function darkFleet(size: number, options: FleetOptions = {}) {
  const queue: TestQueue = { bodies: [], refuses: false };
  const partQueue = {
    async send(bodies: readonly string[]) {
      if (queue.refuses) return bodies.map((_, index) => index);
      queue.bodies.push(...bodies);
      return [];
    },
    async postpone() {},
  };
  const { fleet, names } = await settledFleet(
    { a: size },
    { partQueue, ...options, policy: { ...POLICY, ...options.policy } },
  );
  await fleet.run(0, 40, () => fleet.beat('a-0'));
  fleet.at(45);
  await fleet.beat('a-0');
  const work = async (receives = 1): Promise<PartOutcome[]> => {
    const outcomes: PartOutcome[] = [];
    for (let count = 0; queue.bodies.length > 0 && count < 100; count += 1) {
      outcomes.push(await fleet.controllers.onMarkPart({ body: queue.bodies.shift()!, receives }));
    }
    return outcomes;
  };
  return { fleet, names, queue, work, dark: names.slice(1) };
}

const unknownOf = async (fleet: ControlledFleet, names: readonly string[]): Promise<string[]> => {
  const ready = await Promise.all(names.map((name) => fleet.ready(name)));
  return names.filter((_, index) => ready[index] === 'Unknown');
};
const markDecisions = async (fleet: ControlledFleet) =>
  (await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000 })).decisions.filter(
    ({ record }) => record.act === 'MarkUnknown',
  );
const nodeEvents = async (fleet: ControlledFleet) =>
  (await fleet.events('NodeNotReady')).filter(
    ({ involvedObject }) => (involvedObject as { kind: string }).kind === 'Node',
  );
const tick = (fleet: ControlledFleet) => fleet.controllers.tickNodeMonitor(fleet.slot());

describe('a tick with many silent nodes', () => {
  it('sends them in parts, and node-marker marks them with taint, event and decision', async () => {
    const { fleet, queue, work, dark, names } = await darkFleet(9);
    expect(await tick(fleet)).toMatchObject({ marked: 0, sent: 8, left: 0 });
    expect(await unknownOf(fleet, names)).toEqual([]);
    expect(queue.bodies.length).toBeGreaterThanOrEqual(3);
    const outcomes = await work();
    expect(outcomes.every(({ kind }) => kind === 'done')).toBe(true);
    expect(await unknownOf(fleet, names)).toEqual(dark);
    expect(await fleet.taints('a-1')).toEqual(['unreachable:NoSchedule']);
    const events = await fleet.events('NodeNotReady');
    expect(events.map(({ involvedObject }) => (involvedObject as { name: string }).name).sort()).toEqual(dark);
    expect(await markDecisions(fleet)).toHaveLength(dark.length);
    const detection = fleet.metrics.find(({ name }) => name === 'detection_seconds');
    expect(detection?.value).toBe(45);
  });

  it('has them counted as marks of their nodes, not by a part that the gate kept from marking', async () => {
    const { fleet, work, dark } = await darkFleet(9);
    await tick(fleet);
    await work();
    for (const name of dark) {
      const { marksSeconds } = flapHistoryOf((await fleet.health(name))?.flaps, fleet.nowMs(), fleet.policy);
      expect(marksSeconds).toEqual([START_MS / 1_000 + 45]);
    }
    const held = await darkFleet(9);
    await tick(held.fleet);
    // No tick for 25 s: the gate is closed for node-marker.
    held.fleet.at(70);
    expect((await held.work()).map(({ kind }) => kind)).not.toContain('done');
    for (const name of held.dark) expect((await held.fleet.health(name))?.flaps).toBeUndefined();
  });

  it('marks few nodes itself, and writes no message', async () => {
    const { fleet, queue, names } = await darkFleet(3);
    expect(await tick(fleet)).toMatchObject({ marked: 2, sent: 0 });
    expect(queue.bodies).toEqual([]);
    expect(await unknownOf(fleet, names)).toHaveLength(2);
  });

  it('marks the nodes itself that the queue does not accept', async () => {
    const { fleet, queue, dark, names } = await darkFleet(9);
    queue.refuses = true;
    expect(await tick(fleet)).toMatchObject({ marked: 8, sent: 0, left: 0 });
    expect(await unknownOf(fleet, names)).toEqual(dark);
  });

  it('sends a node once while its part is valid, and again after that', async () => {
    const { fleet, queue } = await darkFleet(9);
    const sent: number[] = [];
    for (let seconds = 45; seconds <= 60; seconds += 5) {
      fleet.at(seconds);
      await fleet.beat('a-0');
      const report = await tick(fleet);
      sent.push(report.kind === 'ran' ? report.sent : -1);
    }
    expect(sent).toEqual([8, 0, 0, 8]);
    expect(queue.bodies.length).toBeLessThanOrEqual(2 * 8);
  });

  it('sends the nodes again at the next tick if it dies before it finishes', async () => {
    let isDead = false;
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      write: (write, ...rest) =>
        isDead && write.kind === 'update' && write.set?.['sent'] !== undefined
          ? Promise.reject(new StoreFault('timeout', 'the process is dead', { retryable: true }))
          : items.write(write, ...rest),
    });
    const { fleet } = await darkFleet(9, { between });
    isDead = true;
    await expect(tick(fleet)).rejects.toThrow();
    isDead = false;
    fleet.at(50);
    await fleet.beat('a-0');
    expect(await tick(fleet)).toMatchObject({ sent: 8 });
  });

  it('decides zone state and eviction rate on all silent nodes, and queues a node after its mark', async () => {
    const { fleet, work } = await darkFleet(9);
    await tick(fleet);
    expect((await fleet.records()).zones).toMatchObject([{ zone: 'a', state: 'PartialDisruption' }]);
    expect((await fleet.records()).queue).toEqual([]);
    await work();
    fleet.at(50);
    await fleet.beat('a-0');
    await tick(fleet);
    expect((await fleet.records()).queue).toHaveLength(8);
  });
});

describe('a part', () => {
  it('marks no node that has sent a heartbeat or a status since the decision', async () => {
    const { fleet, work, names } = await darkFleet(9);
    await tick(fleet);
    fleet.at(46);
    await fleet.beat('a-1');
    await fleet.post('a-2');
    fleet.at(47);
    await work();
    expect(await unknownOf(fleet, names)).toEqual(names.slice(3));
  });

  it('marks no node that sends a heartbeat between the read and the mark', async () => {
    let beforeMark: (() => Promise<unknown>) | undefined;
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      async transact(writes) {
        const run = beforeMark;
        beforeMark = undefined;
        await run?.();
        return items.transact(writes);
      },
    });
    const { fleet, work, names } = await darkFleet(9, { between });
    await tick(fleet);
    beforeMark = () => fleet.beat(...names);
    await work();
    expect(await unknownOf(fleet, names)).toEqual([]);
  });

  it('that arrives after its deadline marks nothing, and reads nothing', async () => {
    const { fleet, work, names } = await darkFleet(9);
    await tick(fleet);
    fleet.at(60);
    fleet.consumed();
    const outcomes = await work();
    expect(outcomes.every((outcome) => outcome.kind === 'dropped' && outcome.reason === 'expired')).toBe(true);
    expect(fleet.consumed().requests).toEqual([]);
    expect(await unknownOf(fleet, names)).toEqual([]);
  });

  it('that arrives while the gate is closed marks nothing', async () => {
    let accepted = true;
    const probe = {
      beat: async () => (accepted ? { kind: 'accepted' as const } : { kind: 'failed' as const, reason: '' }),
    };
    const { fleet, queue, work, names } = await darkFleet(9, { probe });
    await tick(fleet);
    expect(queue.bodies.length).toBeGreaterThan(0);
    accepted = false;
    fleet.at(50);
    await fleet.beat('a-0');
    await tick(fleet);
    const outcomes = await work();
    expect(outcomes.every((outcome) => outcome.kind === 'dropped' && outcome.reason === 'gate')).toBe(true);
    expect(await unknownOf(fleet, names)).toEqual([]);
  });

  it('that arrives when ticks are missing marks nothing', async () => {
    const { fleet, names, queue } = await darkFleet(9, { policy: { nodeMonitorPeriodSeconds: 30 } });
    fleet.at(60);
    await fleet.beat('a-0');
    await tick(fleet);
    expect(queue.bodies.length).toBeGreaterThan(0);
    fleet.at(60 + 46);
    const part = { ...JSON.parse(queue.bodies[0]!), untilMs: fleet.nowMs() + 1_000 };
    const outcome = await fleet.controllers.onMarkPart({ body: JSON.stringify(part), receives: 1 });
    expect(outcome).toEqual({ kind: 'dropped', reason: 'gate' });
    expect(await unknownOf(fleet, names)).toEqual([]);
  });

  it('grants the new grace period of a gate that closed and opened since', async () => {
    const { fleet, queue, names } = await darkFleet(9);
    await tick(fleet);
    const state = fleet.tables.items('control').find(({ sk }) => sk === 'state')!;
    const gate = { ...JSON.parse(String(state['gate'])), freshSinceMs: fleet.nowMs() };
    await fleet.tables.write({
      kind: 'update',
      key: { table: 'control', pk: 'fleet', sk: 'state' },
      set: { gate: JSON.stringify(gate) },
    });
    for (const body of queue.bodies) await fleet.controllers.onMarkPart({ body, receives: 1 });
    expect(await unknownOf(fleet, names)).toEqual([]);
  });

  it('that is delivered twice marks and reports each node once', async () => {
    const { fleet, queue, work, dark } = await darkFleet(9);
    await tick(fleet);
    queue.bodies.push(...queue.bodies);
    await work();
    await work(2);
    expect(await fleet.events('NodeNotReady')).toHaveLength(dark.length);
    expect(await markDecisions(fleet)).toHaveLength(dark.length);
  });

  it('of a process that died after the marks sends its follow-up at the next delivery', async () => {
    const { fleet, queue, work, dark } = await darkFleet(9);
    await fleet.addPod('web', 'a-1');
    await tick(fleet);
    const parts = [...queue.bodies];
    for (const body of queue.bodies.splice(0)) {
      await fleet.controllers.onMarkPart({ body, receives: 1 });
    }
    // What the process sent is lost, as if it had died before.
    queue.bodies.splice(0);
    expect(await nodeEvents(fleet)).toEqual([]);
    for (const body of parts) await fleet.controllers.onMarkPart({ body, receives: 2 });
    await work();
    expect(await nodeEvents(fleet)).toHaveLength(dark.length);
    const ready = (await fleet.pod('web'))?.status?.['conditions'] as { type: string; status: string }[];
    expect(ready.find(({ type }) => type === 'Ready')?.status).toBe('False');
  });

  it('records the events of its nodes in one commit, in one shard', async () => {
    const eventHeads: string[][] = [];
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      transact: (writes) => {
        const heads = writes.flatMap(({ key }) => (key.pk.startsWith('h#events#') ? [key.pk] : []));
        if (heads.length > 0) eventHeads.push(heads);
        return items.transact(writes);
      },
    });
    const { fleet, queue, work, dark } = await darkFleet(60, { between });
    await tick(fleet);
    for (const body of queue.bodies.splice(0)) await fleet.controllers.onMarkPart({ body, receives: 1 });
    const followUps = queue.bodies.length;
    eventHeads.splice(0);
    await work();
    expect(await nodeEvents(fleet)).toHaveLength(dark.length);
    expect(followUps).toBeLessThan(dark.length / 4);
    expect(eventHeads.map((heads) => heads.length)).toEqual(Array.from({ length: followUps }, () => 1));
  });

  it('with a node that cannot be written marks the others, and is tried again', async () => {
    let isThrottled = false;
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      transact: (writes) =>
        isThrottled && writes.some(({ key }) => key.pk.startsWith('o#nodes#') && key.sk === 'a-1')
          ? Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }))
          : items.transact(writes),
    });
    const { fleet, queue, names } = await darkFleet(9, { between });
    await tick(fleet);
    isThrottled = true;
    const outcomes = [];
    for (const body of queue.bodies.splice(0)) outcomes.push(await fleet.controllers.onMarkPart({ body, receives: 1 }));
    expect(await unknownOf(fleet, names)).toEqual(names.slice(2));
    expect(outcomes.filter(({ kind }) => kind === 'failed')).toMatchObject([{ retrySeconds: 1 }]);
    const last = await fleet.controllers.onMarkPart({ body: partOfOne(fleet), receives: 4 });
    expect(last).toMatchObject({ kind: 'failed', retrySeconds: undefined });
  });

  it('leaves the pods of its nodes to the follow-up, and a tick does not repeat them meanwhile', async () => {
    const { fleet, queue, work, dark } = await darkFleet(9);
    for (const name of dark) await fleet.addPod(`on-${name}`, name);
    await tick(fleet);
    for (const body of queue.bodies.splice(0)) await fleet.controllers.onMarkPart({ body, receives: 1 });
    expect((await fleet.health('a-1'))?.podsToMark).toBe(true);
    fleet.at(50);
    await fleet.beat('a-0');
    await tick(fleet);
    expect((await fleet.health('a-1'))?.podsToMark).toBe(true);
    await work();
    const left = await Promise.all(dark.map(async (name) => (await fleet.health(name))?.podsToMark));
    expect(left.filter((each) => each === true)).toEqual([]);
  });

  it('repeats the pods of a lost follow-up in a tick', async () => {
    const { fleet, queue, dark } = await darkFleet(9);
    for (const name of dark) await fleet.addPod(`on-${name}`, name);
    await tick(fleet);
    for (const body of queue.bodies.splice(0)) await fleet.controllers.onMarkPart({ body, receives: 1 });
    queue.bodies.splice(0);
    for (let seconds = 50; seconds <= 110; seconds += 5) {
      fleet.at(seconds);
      await fleet.beat('a-0');
      await tick(fleet);
    }
    const left = await Promise.all(dark.map(async (name) => (await fleet.health(name))?.podsToMark));
    expect(left.filter((each) => each === true)).toEqual([]);
  });
});

/** A part of node a-1, as the tick sent it. */
const partOfOne = (fleet: ControlledFleet): string =>
  JSON.stringify({
    part: 'nodes',
    slot: fleet.slot(),
    fence: 1,
    decidedAtMs: fleet.nowMs(),
    untilMs: fleet.nowMs() + 15_000,
    ready: ['a-1'],
    notReady: [],
    zones: [],
  });

describe('the outcome of a part', () => {
  it('that cannot be read is no fault of the queue', async () => {
    const { fleet } = await darkFleet(3);
    for (const body of ['', '{}', '{"part":"other"}', '[]']) {
      expect(await fleet.controllers.onMarkPart({ body, receives: 1 })).toEqual({ kind: 'malformed' });
    }
  });

  it.each([
    [1, 1],
    [2, 2],
    [3, 4],
    [4, undefined],
    [5, undefined],
  ])('that failed at delivery %i is repeated after %s s', async (receives, retrySeconds) => {
    const { fleet } = await darkFleet(3);
    const down = new StoreFault('throttled', 'down', { retryable: true });
    const broken = fleet.makeControllers({ ...fleet.tables, getMany: () => Promise.reject(down) });
    expect(await broken.onMarkPart({ body: partOfOne(fleet), receives })).toEqual({
      kind: 'failed',
      faults: [down],
      retrySeconds,
    });
  });

  it('without time of its caller is a failure, and nothing is marked', async () => {
    const { fleet, names } = await darkFleet(3);
    const outcome = await fleet.controllers.onMarkPart({ body: partOfOne(fleet), receives: 1, budgetMs: 0 });
    expect(outcome).toEqual({ kind: 'failed', faults: [], retrySeconds: 1 });
    expect(await unknownOf(fleet, names)).toEqual([]);
  });

  it('after its deadline, delivered again, reads and marks no node that was not marked before', async () => {
    const { fleet, names, queue } = await darkFleet(3);
    const body = partOfOne(fleet);
    fleet.at(60);
    expect(await fleet.controllers.onMarkPart({ body, receives: 2 })).toEqual({ kind: 'dropped', reason: 'expired' });
    expect(await unknownOf(fleet, names)).toEqual([]);
    expect(queue.bodies).toEqual([]);
  });
});
