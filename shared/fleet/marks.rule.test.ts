import { describe, expect, it } from 'vitest';
import { aNode, anEmptyWorld, RuledFleet } from '../../test/support/ruled-fleet.ts';
import { fullLimiter } from '../../test/support/token-bucket.ts';
import { defined } from '../defined.ts';
import { UNTRIED_GATE } from './gate.ts';
import { decideMonitor, type MonitorWorld } from './marks.rule.ts';
import type { NodeHealth } from './nodes/health.ts';
import { defaultPolicy } from './policy.ts';
import { packedFlaps } from './silences/flapping.ts';

const fleetOf = (...nodes: Parameters<typeof aNode>[0][]) => new RuledFleet(nodes.map(aNode));
const kindsOf = (outcome: { decisions: readonly { kind: string }[] }) => outcome.decisions.map(({ kind }) => kind);

describe('decideMonitor', () => {
  it('decides nothing for an empty or a quiet fleet', () => {
    expect(decideMonitor(anEmptyWorld(), { nowMs: 0, policy: defaultPolicy }).decisions).toEqual([]);
    const fleet = fleetOf({ nodeName: 'a' }, { nodeName: 'b', zone: 'z' });
    fleet.pass(0);
    expect(fleet.pass(5_000).decisions).toEqual([]);
  });

  it('marks and enqueues with the reason, in the pass that detects a silent node', () => {
    const fleet = fleetOf({ nodeName: 'a', renewedAtMs: 3_000 }, { nodeName: 'b', renewedAtMs: 40_000 });
    fleet.pass(0);
    expect(fleet.pass(45_000).decisions).toEqual([
      expect.objectContaining({
        kind: 'markUnknown',
        nodeName: 'a',
        uid: 'uid-a',
        from: 'True',
        silentSeconds: 42,
        graceSeconds: 40,
        markPods: true,
      }),
      {
        kind: 'enqueue',
        nodeName: 'a',
        uid: 'uid-a',
        zone: '',
        taint: 'unreachable',
        addedAtMs: 45_000,
        silentSeconds: 42,
      },
    ]);
  });

  it.each<[string, Partial<NodeHealth>, number, number]>([
    ['its startup grace period', {}, 0, 60],
    ['the longer grace period after a sign of life', { renewedAtMs: 1_200_000 }, 0, 120],
    ['the longer grace period after an outage', {}, 1_200_000, 120],
  ])('marks a node that never posted a status with %s', (_, parts, freshSinceMs, graceSeconds) => {
    const createdAtMs = 1_000_000;
    const node = { ...aNode({ nodeName: 'a', createdAtMs, renewedAtMs: undefined, ...parts }), ready: undefined };
    const world = { ...anEmptyWorld(), nodes: [node], gate: { ...UNTRIED_GATE, freshSinceMs } };
    const policy = { ...defaultPolicy, nodeMonitorGracePeriodSeconds: 120 };
    const marksAt = (nowMs: number) =>
      decideMonitor(world, { nowMs, policy }).decisions.filter(({ kind }) => kind === 'markUnknown');
    const deadlineMs = Math.max(createdAtMs, parts.renewedAtMs ?? 0, freshSinceMs) + graceSeconds * 1_000;
    expect(marksAt(deadlineMs)).toEqual([]);
    expect(marksAt(deadlineMs + 1)).toMatchObject([{ graceSeconds }]);
  });

  it('lifts and dequeues before it marks', () => {
    const fleet = fleetOf(
      { nodeName: 'a', noExecute: { notReady: false, unreachable: true }, renewedAtMs: 45_000 },
      { nodeName: 'b', renewedAtMs: 0 },
      { nodeName: 'c', renewedAtMs: 45_000 },
    );
    expect(kindsOf(fleet.pass(45_000))).toEqual(['lift', 'markUnknown', 'createZone', 'enqueue']);
  });

  it('keeps the position of a waiting node', () => {
    const fleet = fleetOf(
      { nodeName: 'a', ready: 'False', renewedAtMs: 60_000 },
      { nodeName: 'b', renewedAtMs: 60_000 },
    );
    fleet.pass(0);
    fleet.pass(5_000);
    expect(fleet.queued()).toMatchObject([{ nodeName: 'a', addedAtMs: 0 }]);
  });

  it('moves a waiting node with its zone label', () => {
    const fleet = fleetOf({ nodeName: 'a', ready: 'False', zone: 'x' }, { nodeName: 'b', zone: 'x' });
    fleet.pass(0);
    fleet.change('a', { zone: 'y' });
    expect(kindsOf(fleet.pass(5_000))).toContain('dequeue');
    expect(fleet.queued()).toMatchObject([{ nodeName: 'a', zone: 'y', addedAtMs: 5_000 }]);
  });

  it('drops the queue entry of a Node that no longer exists or was created again', () => {
    const fleet = fleetOf({ nodeName: 'a', ready: 'False' }, { nodeName: 'b' });
    fleet.pass(0);
    fleet.remove('a');
    fleet.add(aNode({ nodeName: 'a', uid: 'another', ready: undefined, createdAtMs: 3_000 }));
    fleet.pass(5_000);
    expect(fleet.queued()).toEqual([]);
  });

  it('does not queue a node that sends heartbeats again after its mark, and dequeues it', () => {
    const fleet = fleetOf({ nodeName: 'a' }, { nodeName: 'b', renewedAtMs: 200_000 });
    fleet.pass(0);
    fleet.pass(45_000);
    expect(fleet.queued()).toHaveLength(1);
    fleet.renew('a', 47_000);
    expect(fleet.pass(50_000).decisions).toMatchObject([{ kind: 'dequeue', reason: 'returning' }]);
    expect(fleet.pass(55_000).decisions).toEqual([]);
    // Silent again, still without status: back in the queue.
    expect(kindsOf(fleet.pass(90_000))).toEqual(['enqueue']);
  });

  it('queues a node with heartbeats if its own status is Unknown', () => {
    const fleet = fleetOf({ nodeName: 'a', ready: 'Unknown', statusAtMs: 0, renewedAtMs: 0 }, { nodeName: 'b' });
    fleet.pass(0);
    expect(fleet.queued()).toHaveLength(1);
  });

  it('taints excluded nodes like others, at the usual rate, although their zone has no state', () => {
    const fleet = fleetOf(
      { nodeName: 'a', ready: 'False', excluded: true, zone: 'x' },
      { nodeName: 'b', ready: 'False', excluded: true, zone: 'x' },
      { nodeName: 'c', zone: 'y' },
    );
    fleet.run(0, 5_000);
    expect(fleet.zone('x')).toMatchObject({ state: undefined, limiter: { ratePerSecond: 0.1 } });
    expect(fleet.taintings.map(({ nodeName }) => nodeName)).toEqual(['a']);
  });

  it('keeps the limiter of a zone without nodes until it is full again', () => {
    const fleet = fleetOf({ nodeName: 'a', ready: 'False', zone: 'x' }, { nodeName: 'c', zone: 'y' });
    fleet.run(0, 0);
    fleet.remove('a');
    fleet.pass(5_000);
    expect(fleet.zone('x')).toMatchObject({ state: undefined, limiter: { tatMs: 10_000 } });
    fleet.pass(10_000);
    expect(fleet.zone('x')).toBeUndefined();
  });

  it('changes the rate of a zone when its size passes the threshold and its state stays', () => {
    const nodes = Array.from({ length: 51 }, (_, index) =>
      aNode({ nodeName: `n-${index}`, ready: index < 40 ? 'False' : 'True', renewedAtMs: 100_000 }),
    );
    const fleet = new RuledFleet(nodes);
    fleet.pass(0);
    expect(fleet.zone('')?.limiter.ratePerSecond).toBe(0.01);
    fleet.remove('n-0');
    expect(fleet.pass(5_000).decisions).toContainEqual({
      kind: 'setZoneRate',
      zone: '',
      fromPerSecond: 0.01,
      toPerSecond: 0,
      state: 'PartialDisruption',
      size: 50,
    });
  });
});

describe('decideMonitor, one pass with every decision', () => {
  const nowMs = 1_000_000;
  const untilMs = nowMs + 60_000;
  const alive = { zone: 'x', renewedAtMs: nowMs };
  const silent = { zone: 'x', renewedAtMs: 900_000 };
  const unreachable = { notReady: false, unreachable: true };
  const flaps = packedFlaps({ isFlapping: false, marksSeconds: [900, 800, 700] }, defaultPolicy)!;
  const flapping = packedFlaps({ isFlapping: true, marksSeconds: [990] }, defaultPolicy)!;
  const nodes = [
    { nodeName: 'back', ...alive, noExecute: unreachable },
    { nodeName: 'drop', ...alive, podsToMark: true },
    { nodeName: 'ends', ...alive, plannedUntilMs: nowMs },
    { nodeName: 'flap', ...alive, flaps },
    { nodeName: 'flapping', ...alive, flaps: flapping },
    { nodeName: 'late', zone: 'x', renewedAtMs: nowMs - 12_600 },
    { nodeName: 'lost', ...silent, podsToMark: true },
    { nodeName: 'more', ...silent, ready: 'Unknown', markedAtMs: 950_000, podsToMark: true, noExecute: unreachable },
    { nodeName: 'none', ...silent, ready: undefined, podsToMark: true, createdAtMs: 990_000, renewedAtMs: undefined },
    { nodeName: 'plan', ...alive, ready: 'False', plannedUntilMs: untilMs },
    { nodeName: 'plan2', ...alive, ready: 'False', plannedUntilMs: untilMs },
    { nodeName: 'swap', ...alive, ready: 'False', noExecute: unreachable },
    { nodeName: 'tainted', ...alive, ready: 'False', noExecute: { notReady: true, unreachable: false } },
    { nodeName: 'zone', zone: 'new', renewedAtMs: nowMs },
    { nodeName: 'spare', zone: 'spares', renewedAtMs: nowMs, excluded: true },
  ] satisfies Parameters<typeof aNode>[0][];
  const limiter = (ratePerSecond: number, tatMs?: number) => ({ ...fullLimiter(ratePerSecond), ...defined({ tatMs }) });
  const world = anEmptyWorld({
    nodes: nodes.map(aNode),
    zones: [
      { zone: 'x', state: 'FullDisruption', limiter: limiter(0) },
      { zone: 'spares', state: undefined, limiter: limiter(0.1) },
      { zone: 'full', state: 'Normal', limiter: limiter(0.1, nowMs) },
      { zone: 'leaving', state: 'Normal', limiter: limiter(0.1, nowMs + 1) },
      { zone: 'waits', state: undefined, limiter: limiter(0.1, nowMs + 1) },
    ],
    queue: ['back', 'plan', 'tainted', 'absent'].map((nodeName) => ({
      nodeName,
      uid: `uid-${nodeName}`,
      zone: 'x',
      addedAtMs: 980_000,
    })),
  });
  const policy = { ...defaultPolicy, beatIntervalSeconds: 10 };

  it('decides in order: recovery, marks, zones, taints, the rest', () => {
    const { decisions } = decideMonitor(world, { nowMs, policy });
    const texts = decisions.map((decision) => {
      const { kind } = decision;
      const reason = 'reason' in decision ? ` ${decision.reason}` : '';
      return `${kind} ${'nodeName' in decision ? decision.nodeName : 'zone' in decision ? decision.zone : ''}${reason}`;
    });
    expect(texts).toEqual([
      'lift back ready',
      'dequeue absent nodeGone',
      'dequeue back ready',
      'dropPodsToMark drop',
      'endSilence ends',
      'dequeue plan plannedSilence',
      'dequeue tainted tainted',
      'markUnknown lost',
      'setZoneState leaving',
      'createZone new',
      'setZoneState x',
      'setZoneRate x',
      'dropZone full',
      'swap swap',
      'enqueue lost',
      'markPods more',
      'setFlapping flap',
    ]);
    expect(decisions).toContainEqual({
      kind: 'dequeue',
      nodeName: 'back',
      uid: 'uid-back',
      zone: 'x',
      reason: 'ready',
      addedAtMs: 980_000,
    });
    expect(decisions).toContainEqual({
      kind: 'createZone',
      zone: 'new',
      state: 'Normal',
      size: 1,
      notReady: 0,
      ratePerSecond: 0.1,
    });
    expect(decisions).toContainEqual({
      kind: 'setZoneState',
      zone: 'x',
      from: 'FullDisruption',
      to: 'Normal',
      size: 11,
      notReady: 5,
    });
    expect(decisions).toContainEqual({
      kind: 'markPods',
      nodeName: 'more',
      uid: 'uid-more',
      zone: 'x',
      ready: 'Unknown',
    });
  });

  it('counts what its metrics show', () => {
    const { decisions: _decisions, ...metrics } = decideMonitor(world, { nowMs, policy });
    expect(metrics).toEqual({
      zoneMetrics: [
        { zone: 'full', size: 0, healthPercent: 100, unhealthy: 0 },
        { zone: 'leaving', size: 0, healthPercent: 100, unhealthy: 0 },
        { zone: 'new', size: 1, healthPercent: 100, unhealthy: 0 },
        { zone: 'spares', size: 0, healthPercent: 100, unhealthy: 0 },
        { zone: 'x', size: 11, healthPercent: (100 * 6) / 11, unhealthy: 5 },
      ],
      gate: { kind: 'open' },
      // late, lost and more.
      lateNodes: 3,
      accused: [],
      // Of back, drop, ends, flap, flapping, late, zone and spare.
      beats: { owed: 8, received: 7 },
      plannedNodes: new Map([['x', 2]]),
      flappingNodes: new Map([['x', 1]]),
      withheldMarks: 0,
      beyondQueue: new Map(),
    });
  });
});

describe('the queue of a zone', () => {
  const nowMs = 1_000_000;
  const policy = { ...defaultPolicy, nodesQueuedPerZoneMax: 3 };
  const marked = (nodeName: string, markedAtMs: number, zone = 'x') =>
    aNode({ nodeName, zone, ready: 'Unknown', markedAtMs, renewedAtMs: 100_000 });
  const outcomeOf = (nodes: readonly NodeHealth[], queued: readonly string[]) => {
    const queue = queued.map((nodeName) => ({ nodeName, uid: `uid-${nodeName}`, zone: 'x', addedAtMs: 0 }));
    const alive = ['x', 'y'].map((zone) => aNode({ nodeName: `alive-${zone}`, zone, renewedAtMs: nowMs }));
    const { decisions, beyondQueue } = decideMonitor(anEmptyWorld({ nodes: [...nodes, ...alive], queue }), {
      nowMs,
      policy,
    });
    const entering = decisions.flatMap((decision) => (decision.kind === 'enqueue' ? [decision.nodeName] : []));
    return { entering, beyondQueue };
  };

  it('has places for those that waited longest, by their marks and then by name; another zone has its own', () => {
    const nodes = [marked('d', 300_000), marked('c', 200_000), marked('b', 200_000), marked('z', 900_000, 'y')];
    expect(outcomeOf([...nodes, marked('a', 400_000), marked('q', 150_000)], ['q'])).toEqual({
      entering: ['b', 'c', 'z'],
      beyondQueue: new Map([['x', { nodes: 2, sinceMs: 300_000 }]]),
    });
  });

  it('has the place of a node that leaves it in this pass', () => {
    const nodes = ['a', 'b', 'c', 'd'].map((nodeName) => marked(nodeName, 200_000));
    const back = aNode({ nodeName: 'back', zone: 'x', renewedAtMs: nowMs });
    expect(outcomeOf([...nodes, back], ['a', 'b', 'back']).entering).toEqual(['c']);
  });

  it('lets every node enter that reports NotReady, and one that this pass marks waits for a place', () => {
    const nodes = ['a', 'b', 'c'].map((nodeName) => marked(nodeName, 200_000));
    const notReady = aNode({ nodeName: 'reports', zone: 'x', ready: 'False', renewedAtMs: nowMs });
    const silent = aNode({ nodeName: 'silent', zone: 'x', renewedAtMs: 900_000 });
    expect(outcomeOf([...nodes, notReady, silent], ['a', 'b', 'c'])).toEqual({
      entering: ['reports'],
      beyondQueue: new Map([['x', { nodes: 1, sinceMs: nowMs }]]),
    });
  });
});

describe('decideMonitor in total disruption', () => {
  const dark = () =>
    fleetOf({ nodeName: 'a', ready: 'False', zone: 'x' }, { nodeName: 'b', zone: 'y', renewedAtMs: 20_000 });

  it('empties the queue, removes taints and sets every rate to 0', () => {
    const fleet = dark();
    fleet.run(0, 0);
    expect(fleet.taints('a')).toEqual(['notReady']);
    fleet.post('b', 'False', 5_000);
    const outcome = fleet.pass(5_000);
    expect(kindsOf(outcome)).toEqual(['enterTotalDisruption', 'setZoneState', 'setZoneRate', 'setZoneRate', 'lift']);
    expect(fleet.world.zones.map(({ limiter }) => limiter.ratePerSecond)).toEqual([0, 0]);
    expect(fleet.taints('a')).toEqual([]);
    expect(fleet.queued()).toEqual([]);
  });

  it('completes what a killed pass left', () => {
    const fleet = dark();
    fleet.post('b', 'False', 0);
    fleet.pass(0);
    fleet.change('a', { noExecute: { notReady: true, unreachable: false } });
    expect(fleet.pass(5_000).decisions).toMatchObject([{ kind: 'lift', reason: 'totalDisruption' }]);
  });

  it('does not count the marks that it makes', () => {
    const silent = aNode({ nodeName: 'a', zone: 'a', renewedAtMs: 0 });
    const marksAt = (total: boolean) =>
      decideMonitor(
        anEmptyWorld({
          nodes: [silent, aNode({ nodeName: 'b', zone: 'a', ready: total ? 'Unknown' : 'True', renewedAtMs: 60_000 })],
          disruption: { total, sinceMs: 0, freshSinceMs: 0, startedAtMs: 0 },
        }),
        { nowMs: 60_000, policy: defaultPolicy },
      ).decisions.flatMap((decision) => (decision.kind === 'markUnknown' ? [decision.flaps] : []));
    expect(marksAt(true)).toEqual([undefined]);
    expect(marksAt(false)).toEqual([expect.any(Uint8Array)]);
  });

  it('marks no node in the pass that leaves it, not even an excluded one', () => {
    const fleet = fleetOf({ nodeName: 'a', ready: 'False' }, { nodeName: 'spare', excluded: true });
    fleet.pass(0);
    fleet.post('a', 'True', 60_000);
    const outcome = fleet.pass(60_000);
    expect(kindsOf(outcome)).toContain('leaveTotalDisruption');
    expect(fleet.node('spare').ready).toBe('True');
    fleet.renew('a', 100_000);
    fleet.pass(100_000);
    expect(fleet.node('spare').ready).toBe('True');
    fleet.pass(105_000);
    expect(fleet.node('spare').ready).toBe('Unknown');
  });
});

it('decideMonitor queues all nodes that report NotReady at once, more than a call may have arguments', () => {
  const notReady = Array.from({ length: 130_000 }, (_, index) => aNode({ nodeName: `n${index}`, ready: 'False' }));
  const nodes = [...notReady, aNode({ nodeName: 'ready' })];
  const { decisions } = decideMonitor(anEmptyWorld({ nodes }), { nowMs: 1_000, policy: defaultPolicy });
  expect(decisions.filter(({ kind }) => kind === 'enqueue')).toHaveLength(130_000);
});

describe('decideMonitor for a node with three marks', () => {
  const nowMs = 1_000_000;
  const flaps = packedFlaps({ isFlapping: false, marksSeconds: [900, 800, 700] }, defaultPolicy)!;
  const kindsIn = (over: Partial<MonitorWorld>, ready: 'True' | 'Unknown' = 'True') => {
    const nodes = [aNode({ nodeName: 'a', ready, flaps, renewedAtMs: nowMs })];
    return kindsOf(decideMonitor(anEmptyWorld({ nodes, ...over }), { nowMs, policy: defaultPolicy }));
  };

  it('begins flapping, not in total disruption and not while the gate of its profile is closed', () => {
    expect(kindsIn({})).toContain('setFlapping');
    const disruption = { total: true, sinceMs: 990_000, freshSinceMs: 0, startedAtMs: 990_000 };
    expect(kindsIn({ disruption }, 'Unknown')).not.toContain('setFlapping');
    const gate = { ...UNTRIED_GATE, reasons: ['missedTicks'] as const, sinceMs: nowMs };
    expect(kindsIn({ gate })).not.toContain('setFlapping');
  });

  it('does not begin in the pass that marks it again', () => {
    const nodes = [aNode({ nodeName: 'a', flaps, renewedAtMs: 0 }), aNode({ nodeName: 'b', renewedAtMs: nowMs })];
    const { decisions } = decideMonitor(anEmptyWorld({ nodes }), { nowMs, policy: defaultPolicy });
    expect(kindsOf({ decisions })).toContain('markUnknown');
    expect(kindsOf({ decisions })).not.toContain('setFlapping');
  });

  it('does not end in the pass that marks it in total disruption, evaluated again, but in the next', () => {
    const flapping = packedFlaps({ isFlapping: true, marksSeconds: [nowMs / 1_000 - 600] }, defaultPolicy)!;
    const nodes = [aNode({ nodeName: 'a', ready: 'Unknown', markedAtMs: nowMs, flaps: flapping, renewedAtMs: 0 })];
    const disruption = { total: true, sinceMs: nowMs, freshSinceMs: 0, startedAtMs: nowMs };
    const kindsAt = (atMs: number) =>
      kindsOf(decideMonitor(anEmptyWorld({ nodes, disruption }), { nowMs: atMs, policy: defaultPolicy }));
    expect(kindsAt(nowMs)).not.toContain('setFlapping');
    expect(kindsAt(nowMs + 5_000)).toContain('setFlapping');
  });
});

describe('decideMonitor under the gate', () => {
  const holding = {
    ...UNTRIED_GATE,
    lastTickAtMs: 100_000,
    reasons: ['failingPath'] as const,
    sinceMs: 90_000,
  };
  const world = anEmptyWorld({
    gate: holding,
    nodes: [
      aNode({ nodeName: 'silent' }),
      aNode({ nodeName: 'back', renewedAtMs: 99_000, noExecute: { notReady: false, unreachable: true } }),
    ],
  });

  it('marks no node, and reports how many silent nodes it withheld', () => {
    const outcome = decideMonitor(world, { nowMs: 100_000, policy: defaultPolicy });
    expect(outcome.withheldMarks).toBe(1);
    expect(kindsOf(outcome)).not.toContain('markUnknown');
    expect(outcome.gate).toEqual({ kind: 'holding', reasons: ['failingPath'], sinceMs: 90_000 });
  });

  it('continues recovery', () => {
    const outcome = decideMonitor(world, { nowMs: 100_000, policy: defaultPolicy });
    expect(outcome.decisions[0]).toMatchObject({ kind: 'lift', nodeName: 'back', reason: 'ready' });
  });
});
