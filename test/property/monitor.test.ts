/** L1, L2, L3, L4, L5 and L10 at the level of the rules, on virtual time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { decideMonitor, type MonitorWorld } from '../../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';
import { aNode, applyMonitor, RuledFleet } from '../support/ruled-fleet.ts';

const seconds = (value: number) => value * 1_000;

/** Settings within their ranges: grace period at least two heartbeats and two periods, startup at least one period. */
const timing: fc.Arbitrary<Partial<Policy>> = fc
  .record({
    period: fc.constantFrom(5, 10, 15, 20, 30, 60),
    beat: fc.constantFrom(2, 5, 10, 20, 30),
    slack: fc.integer({ min: 0, max: 60 }),
    startupSlack: fc.integer({ min: 0, max: 60 }),
  })
  .map(({ period, beat, slack, startupSlack }) => ({
    nodeMonitorPeriodSeconds: period,
    beatIntervalSeconds: beat,
    nodeMonitorGracePeriodSeconds: Math.max(2 * beat, 2 * period) + slack,
    nodeStartupGracePeriodSeconds: period + startupSlack,
  }));

describe('L1 and L2', () => {
  it('L1 never marks, queues or taints a node with a heartbeat at least every grace period minus one tick', () => {
    fc.assert(
      fc.property(
        timing,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 40 }),
        fc.nat({ max: 59_999 }),
        fc.constantFrom<ConditionStatus | undefined>('True', undefined),
        fc.boolean(),
        (timed, shares, phaseMs, ready, byStatus) => {
          const policy = { ...defaultPolicy, ...timed };
          const longestMs = seconds(policy.nodeMonitorGracePeriodSeconds - policy.nodeMonitorPeriodSeconds);
          const periodMs = seconds(policy.nodeMonitorPeriodSeconds);
          const fleet = new RuledFleet([aNode({ nodeName: 'n', ready, renewedAtMs: 0 })], timed);
          const beats: number[] = [];
          for (const share of shares) beats.push((beats.at(-1) ?? 0) + Math.floor(share * longestMs));
          let tickMs = phaseMs % periodMs;
          for (const [index, beatMs] of [...beats, (beats.at(-1) ?? 0) + longestMs].entries()) {
            for (; tickMs < beatMs; tickMs += periodMs) fleet.run(tickMs, tickMs);
            // A status post keeps the current Ready status: this node never posts Ready in the startup variant.
            if (byStatus && index % 2 === 0) fleet.change('n', { statusAtMs: beatMs });
            else fleet.renew('n', beatMs);
          }
          expect(fleet.node('n').ready).toBe(ready);
          expect(fleet.decisions.filter(({ decision }) => decision.kind === 'markUnknown')).toEqual([]);
          expect(fleet.queued()).toEqual([]);
          expect(fleet.taintings).toEqual([]);
        },
      ),
    );
  });

  it('L2 marks a silent node after its grace period, and at most one tick after that', () => {
    fc.assert(
      fc.property(timing, fc.nat({ max: 1_000_000 }), fc.nat({ max: 59_999 }), (timed, lastBeatMs, phaseMs) => {
        const policy = { ...defaultPolicy, ...timed };
        const periodMs = seconds(policy.nodeMonitorPeriodSeconds);
        const graceMs = seconds(policy.nodeMonitorGracePeriodSeconds);
        const fleet = new RuledFleet([aNode({ nodeName: 'n', renewedAtMs: lastBeatMs })], timed);
        const first = lastBeatMs + (phaseMs % periodMs);
        fleet.run(first, lastBeatMs + graceMs + 2 * periodMs);
        const mark = fleet.decisions.find(({ decision }) => decision.kind === 'markUnknown');
        expect(mark?.atMs).toBeGreaterThan(lastBeatMs + graceMs);
        expect(mark?.atMs).toBeLessThanOrEqual(lastBeatMs + graceMs + periodMs);
      }),
    );
  });
});

describe('L3 and L4', () => {
  const fates = fc.array(
    fc.record({
      atSecond: fc.nat({ max: 900 }),
      node: fc.nat({ max: 11 }),
      ready: fc.constantFrom<ConditionStatus>('True', 'False', 'Unknown'),
    }),
    { maxLength: 80 },
  );

  /** Twelve healthy nodes in three zones; random status changes, a tick every 5 s, two evictors. */
  function tell(steps: readonly { atSecond: number; node: number; ready: ConditionStatus }[]) {
    const nodes = Array.from({ length: 12 }, (_, index) =>
      aNode({ nodeName: `n-${index}`, zone: `z-${index % 3}`, renewedAtMs: seconds(10_000) }),
    );
    const fleet = new RuledFleet(nodes, { nodeEvictionRatePerSecond: 0.1 });
    const totals: { fromMs: number; toMs: number }[] = [];
    for (let nowMs = 0; nowMs <= seconds(1_000); nowMs += 5_000) {
      for (const { atSecond, node, ready } of steps) {
        if (seconds(atSecond) > nowMs - 5_000 && seconds(atSecond) <= nowMs) fleet.post(`n-${node}`, ready, nowMs);
      }
      fleet.pass(nowMs);
      const { total } = fleet.world.disruption;
      const last = totals.at(-1);
      if (total && (last === undefined || last.toMs < nowMs - 5_000)) totals.push({ fromMs: nowMs, toMs: nowMs });
      else if (total && last !== undefined) last.toMs = nowMs;
      if (total) {
        expect(fleet.queued()).toEqual([]);
        for (const health of fleet.world.nodes) expect(fleet.taints(health.nodeName)).toEqual([]);
      }
      fleet.evict(nowMs);
      fleet.evict(nowMs);
      for (const health of fleet.world.nodes) if (!total) expect(fleet.isSettled(health.nodeName)).toBe(true);
    }
    return { fleet, totals };
  }

  it('L3 limits the taints of every zone, L4 taints no node while all zones are fully disrupted, and slowly after', () => {
    fc.assert(
      fc.property(fates, (steps) => {
        const { fleet, totals } = tell(steps);
        for (const zone of ['z-0', 'z-1', 'z-2']) {
          const times = fleet.taintings.filter((tainting) => tainting.zone === zone).map(({ atMs }) => atMs);
          for (let index = 1; index < times.length; index += 1) {
            expect((times[index] as number) - (times[index - 1] as number)).toBeGreaterThanOrEqual(10_000);
          }
        }
        for (const { atMs } of fleet.taintings) {
          for (const { fromMs, toMs } of totals) {
            expect(atMs >= fromMs && atMs <= toMs).toBe(false);
            // Left in the tick after toMs; its limiters start without tokens.
            expect(atMs > toMs && atMs < toMs + 5_000 + 10_000).toBe(false);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('L4 starts a new grace period for every node when total disruption is left', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 20, max: 200 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
        (zones, darkTicks, spares) => {
          // Spares are excluded and silent. They are evaluated like others, and have been silent as long as the outage.
          const fleet = new RuledFleet(
            [
              ...Array.from({ length: zones }, (_, index) =>
                aNode({ nodeName: `n-${index}`, zone: `z-${index}`, ready: 'False', renewedAtMs: seconds(1e6) }),
              ),
              ...spares.map((beats, index) =>
                aNode({ nodeName: `s-${index}`, excluded: true, ...(beats ? { renewedAtMs: seconds(1e6) } : {}) }),
              ),
            ],
            { nodeMonitorGracePeriodSeconds: 1_200 },
          );
          fleet.pass(0);
          const backMs = darkTicks * 5_000;
          for (let nowMs = 5_000; nowMs < backMs; nowMs += 5_000) fleet.pass(nowMs);
          fleet.post('n-0', 'True', backMs);
          fleet.run(backMs, backMs + seconds(1_300));
          const marks = fleet.decisions.filter(({ decision }) => decision.kind === 'markUnknown');
          expect(marks.map(({ atMs }) => atMs)).toEqual(
            spares.filter((beats) => !beats).map(() => backMs + seconds(1_205)),
          );
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe('L5', () => {
  it('marks no node over controller outages of any kind and length, if the nodes send heartbeats', () => {
    const outages = fc.array(
      fc.record({
        kind: fc.constantFrom('path', 'ticks', 'both'),
        quietMs: fc.integer({ min: 1, max: 200_000 }),
        lengthMs: fc.integer({ min: 1, max: 200_000 }),
      }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(
        timing,
        outages,
        fc.nat({ max: 59_999 }),
        fc.array(fc.nat({ max: 59_999 }), { minLength: 1, maxLength: 5 }),
        (timed, spans, tickPhaseMs, beatPhases) => {
          const policy = { ...defaultPolicy, ...timed };
          const periodMs = seconds(policy.nodeMonitorPeriodSeconds);
          const beatMs = seconds(policy.beatIntervalSeconds);
          const down: { kind: string; fromMs: number; toMs: number }[] = [];
          let endMs = 2 * periodMs;
          for (const { kind, quietMs, lengthMs } of spans) {
            // One outage at a time: between two of them every node has a grace period. A second one of a millisecond,
            // hidden between two probes and at the moment of a heartbeat, cannot be detected.
            const fromMs = endMs + seconds(policy.nodeMonitorGracePeriodSeconds) + quietMs;
            endMs = fromMs + lengthMs;
            down.push({ kind, fromMs, toMs: endMs });
          }
          endMs += 3 * seconds(policy.nodeMonitorGracePeriodSeconds);
          const broken = (what: 'path' | 'ticks', nowMs: number) =>
            down.some(
              ({ kind, fromMs, toMs }) => (kind === what || kind === 'both') && nowMs >= fromMs && nowMs < toMs,
            );
          const nodes = beatPhases.map((_, index) => aNode({ nodeName: `n-${index}`, renewedAtMs: 0 }));
          const fleet = new RuledFleet(nodes, { ...timed, tickGate: 'on', ingestGate: 'on' });
          const happenings = [
            ...beatPhases.flatMap((phase, index) =>
              Array.from({ length: Math.ceil(endMs / beatMs) }, (_, beat) => ({
                atMs: (phase % beatMs) + beat * beatMs,
                beats: `n-${index}`,
              })),
            ),
            ...Array.from({ length: Math.ceil(endMs / periodMs) }, (_, tick) => ({
              atMs: (tickPhaseMs % periodMs) + tick * periodMs,
              beats: undefined,
            })),
          ].sort((a, b) => a.atMs - b.atMs || Number(a.beats === undefined) - Number(b.beats === undefined));
          for (const { atMs, beats } of happenings) {
            if (beats !== undefined) {
              if (!broken('path', atMs)) fleet.renew(beats, atMs);
            } else if (!broken('ticks', atMs)) {
              fleet.pass(atMs, [{ sentAtMs: atMs, accepted: !broken('path', atMs) }]);
              fleet.evict(atMs);
            }
          }
          expect(fleet.decisions.filter(({ decision }) => decision.kind === 'markUnknown')).toEqual([]);
          expect(fleet.taintings).toEqual([]);
          expect(fleet.gateKind()).toBe('open');
        },
      ),
      { numRuns: 300 },
    );
  });

  it('marks a node that does not recover within the grace period and one tick of the return', () => {
    fc.assert(
      fc.property(fc.integer({ min: 20, max: 500 }), fc.constantFrom('path', 'ticks'), (ticks, kind) => {
        const fleet = new RuledFleet(
          [aNode({ nodeName: 'dead' }), aNode({ nodeName: 'alive', renewedAtMs: seconds(1e6) })],
          { tickGate: 'on', ingestGate: 'on' },
        );
        const backMs = ticks * 5_000;
        for (let nowMs = 0; nowMs <= backMs + 120_000; nowMs += 5_000) {
          const out = nowMs >= 20_000 && nowMs < backMs;
          if (out && kind === 'ticks') continue;
          fleet.pass(nowMs, [{ sentAtMs: nowMs, accepted: !out }]);
        }
        const mark = fleet.decisions.find(({ decision }) => decision.kind === 'markUnknown');
        expect(mark?.atMs).toBe(backMs + 45_000);
      }),
      { numRuns: 30 },
    );
  });
});

describe('L10', () => {
  const NOW = 1_000_000;
  const time = fc.integer({ min: NOW - 200_000, max: NOW });
  const maybeTime = fc.option(time, { nil: undefined });
  const digest: fc.Arbitrary<Omit<NodeHealth, 'nodeName'>> = fc.record({
    uid: fc.constantFrom('u1', 'u2'),
    zone: fc.constantFrom('', 'a', 'r/b'),
    ready: fc.constantFrom<ConditionStatus | undefined>('True', 'False', 'Unknown', undefined),
    excluded: fc.boolean(),
    suspect: fc.boolean(),
    noExecute: fc.record({ notReady: fc.boolean(), unreachable: fc.boolean() }),
    createdAtMs: time,
    renewedAtMs: maybeTime,
    statusAtMs: maybeTime,
    markedAtMs: maybeTime,
    podsToMark: fc.constantFrom(undefined, true),
  });
  const world: fc.Arbitrary<MonitorWorld> = fc.record({
    nodes: fc
      .array(digest, { maxLength: 15 })
      .map((digests) => digests.map((health, index) => ({ ...health, nodeName: `n-${index}` }))),
    zones: fc.uniqueArray(
      fc.record({
        zone: fc.constantFrom('', 'a', 'r/b', 'gone'),
        state: fc.constantFrom(undefined, 'Initial', 'Normal', 'PartialDisruption', 'FullDisruption'),
        limiter: fc.record({
          tatMs: fc.option(fc.integer({ min: NOW - 20_000, max: NOW + 20_000 }), { nil: undefined }),
          ratePerSecond: fc.constantFrom(0, 0.01, 0.1, 1),
        }),
      }),
      { selector: ({ zone }) => zone },
    ),
    queue: fc.uniqueArray(
      fc.record({
        nodeName: fc.nat({ max: 18 }).map((index) => `n-${index}`),
        uid: fc.constantFrom('u1', 'u2'),
        zone: fc.constantFrom('', 'a', 'r/b', 'gone'),
        addedAtMs: time,
      }),
      { selector: ({ nodeName }) => nodeName, maxLength: 12 },
    ),

    disruption: fc.record({ total: fc.boolean(), sinceMs: time, freshSinceMs: fc.constantFrom(0, NOW - 30_000) }),
    gate: fc.constantFrom(
      { ...UNTRIED_GATE, lastTickAtMs: NOW },
      { ...UNTRIED_GATE, lastTickAtMs: NOW, reasons: ['failingPath'] as const, sinceMs: NOW - 1 },
    ),
  });
  const at = {
    nowMs: NOW,
    policy: { ...defaultPolicy, largeClusterSizeThreshold: 5, nodesQueuedPerZoneMax: 2 },
  };

  it('decides nothing after its decisions were applied', () => {
    fc.assert(
      fc.property(world, (before) => {
        const after = applyMonitor(before, decideMonitor(before, at).decisions, NOW);
        expect(decideMonitor(after, at).decisions).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  it('decides nothing more after a tick that was killed anywhere and a complete one', () => {
    fc.assert(
      fc.property(world, fc.nat(), (before, cut) => {
        const { decisions } = decideMonitor(before, at);
        const halfWay = applyMonitor(before, decisions.slice(0, cut % (decisions.length + 1)), NOW);
        const healed = applyMonitor(halfWay, decideMonitor(halfWay, at).decisions, NOW);
        expect(decideMonitor(healed, at).decisions).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  it('does not depend on the order of nodes, zones or queue', () => {
    fc.assert(
      fc.property(
        world.chain((before) =>
          fc.tuple(
            fc.constant(before),
            fc.shuffledSubarray([...before.nodes], { minLength: before.nodes.length }),
            fc.shuffledSubarray([...before.zones], { minLength: before.zones.length }),
            fc.shuffledSubarray([...before.queue], { minLength: before.queue.length }),
          ),
        ),
        ([before, nodes, zones, queue]) => {
          const shuffled: MonitorWorld = { ...before, nodes, zones, queue };
          expect(decideMonitor(shuffled, at)).toEqual(decideMonitor(before, at));
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
