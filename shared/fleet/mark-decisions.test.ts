import { describe, expect, it } from 'vitest';
import { replayed } from '../../test/support/replayed.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { decideGate, hasOtherReasons, UNTRIED_GATE } from './gate.ts';
import {
  disruptionDraft,
  flappingDraft,
  gateDraft,
  markDraft,
  nodeMonitorReplay,
  refusalDraft,
  type ZoneDecision,
  zoneDraft,
} from './mark-decisions.ts';
import type { MonitorDecision } from './marks.rule.ts';
import { defaultPolicy, type Policy } from './policy.ts';
import type { ZoneState } from './zone-state.ts';

const NOW_MS = 1_000_000;
const ABOUT = { kind: 'Node', name: 'n', uid: 'uid-n' };
const metrics = (zone: string, size: number, unhealthy: number) =>
  ({ zone, size, unhealthy }) as unknown as Parameters<typeof disruptionDraft>[1]['zones'][0];

describe('the record of a mark', () => {
  const edge = {
    name: 'edge',
    nodeSelector: {},
    nodeMonitorGracePeriodSeconds: 90,
  } as unknown as Policy['profiles'][0];
  const policy: Policy = { ...defaultPolicy, profiles: [edge] };
  const seen = aNode({ nodeName: 'n', zone: 'a', renewedAtMs: 100_000, suspect: true });
  const decided = (graceSeconds: number) =>
    ({
      kind: 'markUnknown',
      nodeName: 'n',
      uid: 'uid-n',
      silentSeconds: 900,
      graceSeconds,
      freshSinceMs: 7,
    }) as Extract<MonitorDecision, { kind: 'markUnknown' }>;

  it('has all that the rule read, the count of its zone, and replays', () => {
    const at = { nowMs: NOW_MS, policy, zone: metrics('a', 5, 2) };
    const draft = markDraft(decided(40), seen, at);
    const { nodeName: _name, uid: _uid, suspect: _suspect, ...health } = seen;
    expect(draft).toEqual({
      act: 'MarkUnknown',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'No heartbeat or status for 900 s (grace period 40 s); 2 of 5 nodes in its zone are not ready',
      rule: 'silence',
      inputs: {
        health,
        freshSinceMs: 7,
        zoneCount: { size: 5, notReady: 2 },
        policy: { nodeMonitorGracePeriodSeconds: 40, nodeStartupGracePeriodSeconds: 60, beatIntervalSeconds: 10 },
      },
      outcome: { mark: true, silentSeconds: 900, graceSeconds: 40 },
    });
    expect(replayed(draft, nodeMonitorReplay)).toEqual(draft.outcome);
  });

  it('names a profile and has its grace period; without a zone it has no count', () => {
    const ofEdge = { ...seen, profile: 'edge' };
    const draft = markDraft(decided(90), ofEdge, { nowMs: NOW_MS, policy, zone: undefined });
    expect(draft.reason).toBe('No heartbeat or status for 900 s (grace period 90 s of profile edge)');
    expect('zoneCount' in draft.inputs).toBe(false);
    expect(draft.inputs).toMatchObject({ policy: { nodeMonitorGracePeriodSeconds: 90 } });
    expect(replayed(draft, nodeMonitorReplay)).toEqual({ mark: true, silentSeconds: 900, graceSeconds: 90 });
  });

  it('replays to nothing for a node that was not silent', () => {
    const draft = markDraft(decided(40), seen, { nowMs: NOW_MS, policy, zone: undefined });
    const heard = { ...draft, inputs: { ...draft.inputs, freshSinceMs: NOW_MS } } as typeof draft;
    expect(replayed(heard, nodeMonitorReplay)).toEqual({ kind: 'nothing' });
  });
});

describe('the record of a flapping node', () => {
  const policy: Policy = { ...defaultPolicy, flapThreshold: 3, flapWindowSeconds: 600, flapStableSeconds: 300 };
  const marksSeconds = [900, 800, 700];
  const draftOf = (verdict: object, isFlapping: boolean, nowMs: number) =>
    flappingDraft(
      { kind: 'setFlapping', nodeName: 'n', uid: 'uid-n', verdict, ownFaultsAtMs: [] } as never,
      { isFlapping, marksSeconds },
      { nowMs, policy },
    );
  const inputs = (isFlapping: boolean) => ({
    isFlapping,
    marksSeconds,
    ownFaultsAtMs: [],
    policy: {
      flapThreshold: 3,
      flapWindowSeconds: 600,
      flapStableSeconds: 300,
      nodeMonitorGracePeriodSeconds: 40,
      profiles: [],
    },
  });

  it('that begins has the marks and the taint, and replays', () => {
    const verdict = { kind: 'begin', marksSeconds };
    const draft = draftOf(verdict, false, NOW_MS);
    expect(draft).toEqual({
      act: 'FlappingBegan',
      about: ABOUT,
      atMs: NOW_MS,
      reason: `Marked Unknown 3 times in 200 s (threshold 3 within 600 s): taint nodekeeper.dev/flapping:${policy.flapEffect} until 300 s pass without a mark`,
      rule: 'flapping',
      inputs: inputs(false),
      outcome: verdict,
    });
    expect(replayed(draft, nodeMonitorReplay)).toEqual(verdict);
  });

  it('that ends has the last mark, and replays', () => {
    const verdict = { kind: 'end', sinceSeconds: 900 };
    const draft = draftOf(verdict, true, 1_200_000);
    expect(draft).toEqual({
      act: 'FlappingEnded',
      about: ABOUT,
      atMs: 1_200_000,
      reason: 'No mark for 300 s: taint nodekeeper.dev/flapping removed',
      rule: 'flapping',
      inputs: inputs(true),
      outcome: verdict,
    });
    expect(replayed(draft, nodeMonitorReplay)).toEqual(verdict);
    expect(replayed(draftOf(verdict, true, 1_199_999), nodeMonitorReplay)).toEqual({ kind: 'nothing' });
  });

  it('that ends without a mark that counts has no time of one', () => {
    const draft = draftOf({ kind: 'end', sinceSeconds: undefined }, true, NOW_MS);
    expect(Object.keys(draft.outcome)).toEqual(['kind']);
  });
});

describe('the record of the safety gate', () => {
  const policy = defaultPolicy;
  const before = { ...UNTRIED_GATE, lastTickAtMs: NOW_MS - 20_001, provenAtMs: NOW_MS - 20_001 };
  const probes = [{ sentAtMs: NOW_MS, accepted: true }];
  const closed = decideGate(before, { nowMs: NOW_MS, probes, policy });

  it('that closes has what was withheld, all that the rule read, and replays', () => {
    const draft = gateDraft(before, closed, { nowMs: NOW_MS, probes, policy, withheldMarks: 3 });
    expect(draft).toEqual({
      act: 'GateClosed',
      about: { kind: 'Fleet', name: 'fleet' },
      atMs: NOW_MS,
      reason:
        'safety gate closed: node-monitor missed ticks; no node is newly marked, tainted or evicted; silent nodes not marked: 3',
      rule: 'gate',
      inputs: {
        before,
        probes,
        withheldMarks: 3,
        policy: {
          nodeMonitorPeriodSeconds: 5,
          nodeMonitorGracePeriodSeconds: 40,
          beatIntervalSeconds: 10,
          ingestGate: 'on',
          tickGate: 'on',
          profiles: [],
        },
      },
      outcome: { reasons: ['missedTicks'], sinceMs: NOW_MS, freshSinceMs: NOW_MS },
    });
    expect(replayed(draft, nodeMonitorReplay)).toEqual(draft.outcome);
    const none = gateDraft(before, closed, { nowMs: NOW_MS, probes, policy, withheldMarks: 0 });
    expect(none.reason).toMatch(/tainted or evicted$/);
  });

  it('that opens says from when nodes have a full grace period', () => {
    const nowMs = NOW_MS + 5_000;
    const at = { nowMs, probes: [{ sentAtMs: nowMs, accepted: true }], policy };
    const stored = { ...closed, lastTickAtMs: NOW_MS };
    const draft = gateDraft(stored, decideGate(stored, at), { ...at, withheldMarks: 0 });
    expect(draft).toMatchObject({
      act: 'GateOpened',
      reason: 'safety gate open; every node has a full grace period from 1970-01-01T00:16:40Z',
      outcome: { reasons: [] },
    });
    expect(replayed(draft, nodeMonitorReplay)).toEqual(draft.outcome);
  });

  it('is none while its reasons stay', () => {
    expect(hasOtherReasons(closed, { reasons: [...closed.reasons] })).toBe(false);
    expect(hasOtherReasons(before, closed)).toBe(true);
    expect(hasOtherReasons(closed, before)).toBe(true);
  });
});

describe('the record of total disruption', () => {
  const decision = (kind: 'enterTotalDisruption' | 'leaveTotalDisruption') =>
    ({ kind, zones: 2, disruption: {} }) as unknown as Extract<MonitorDecision, { kind: typeof kind }>;
  const FULL = [metrics('a', 2, 2), metrics('b', 3, 3), metrics('', 0, 0)];

  it.each([
    [
      'enterTotalDisruption',
      'TotalDisruptionEntered',
      FULL,
      'all zones (2) are in full disruption: a fault of the controller is likely, all evictions stop',
      { FullDisruption: 2 },
    ],
    [
      'leaveTotalDisruption',
      'TotalDisruptionLeft',
      [metrics('a', 2, 2), metrics('b', 3, 1)],
      'not all zones (2) are in full disruption any more: every node has a new grace period',
      { FullDisruption: 1, Normal: 1 },
    ],
  ] as const)('%s counts the zones with nodes by their state, and replays', (kind, act, zones, reason, counts) => {
    const isTotal = kind === 'enterTotalDisruption';
    const draft = disruptionDraft(decision(kind), { nowMs: NOW_MS, policy: defaultPolicy, zones });
    expect(draft).toEqual({
      act,
      about: { kind: 'Fleet', name: 'fleet' },
      atMs: NOW_MS,
      reason,
      rule: 'disruption',
      inputs: { total: !isTotal, zones: counts },
      outcome: { total: isTotal },
    });
    expect(replayed(draft, nodeMonitorReplay)).toEqual({ total: isTotal });
  });

  it('replays to what was before where the zones do not change it', () => {
    const of = (total: boolean, zones: object) => {
      const draft = disruptionDraft(decision('enterTotalDisruption'), { nowMs: 0, policy: defaultPolicy, zones: FULL });
      return replayed({ ...draft, inputs: { total, zones } } as typeof draft, nodeMonitorReplay);
    };
    expect(of(true, { FullDisruption: 1 })).toEqual({ total: true });
    expect(of(false, { Normal: 1, FullDisruption: 1 })).toEqual({ total: false });
    expect(of(false, { Normal: 0, FullDisruption: 1 })).toEqual({ total: true });
  });
});

describe('the record of a zone', () => {
  const policy: Policy = {
    ...defaultPolicy,
    nodeEvictionRatePerSecond: 0.1,
    secondaryNodeEvictionRatePerSecond: 0.01,
    largeClusterSizeThreshold: 4,
  };
  const set = (from: ZoneState | undefined, to: ZoneState | undefined) =>
    ({ kind: 'setZoneState', zone: 'a', from, to, size: 0, notReady: 0 }) as ZoneDecision;
  const created = (state: ZoneState | undefined, ratePerSecond = 0.1) =>
    ({ kind: 'createZone', zone: '', state, size: 0, notReady: 0, ratePerSecond }) as ZoneDecision;
  const rate = (state: ZoneState | undefined) =>
    ({ kind: 'setZoneRate', zone: 'a', fromPerSecond: 0.1, toPerSecond: 0, state, size: 5 }) as ZoneDecision;

  it.each<[ZoneDecision, ReturnType<typeof metrics> | undefined, boolean, string, object]>([
    [
      created('Normal'),
      metrics('', 2, 1),
      false,
      'zone "" (nodes without a zone label) is new: Normal, 1 of 2 nodes are not ready',
      { state: 'Normal', ratePerSecond: 0.1 },
    ],
    [
      created(undefined),
      undefined,
      false,
      'zone "" (nodes without a zone label) is new: empty, 0 of 0 nodes are not ready',
      { ratePerSecond: 0.1 },
    ],
    [
      set(undefined, 'FullDisruption'),
      metrics('a', 2, 2),
      false,
      'empty to FullDisruption: 2 of 2 nodes are not ready',
      { state: 'FullDisruption', ratePerSecond: 0.1 },
    ],
    [
      set('Normal', 'PartialDisruption'),
      metrics('a', 5, 4),
      false,
      'Normal to PartialDisruption: 4 of 5 nodes are not ready',
      { state: 'PartialDisruption', ratePerSecond: 0.01 },
    ],
    [
      set('Normal', 'PartialDisruption'),
      metrics('a', 5, 4),
      true,
      'Normal to PartialDisruption: 4 of 5 nodes are not ready',
      { state: 'PartialDisruption', ratePerSecond: 0 },
    ],
    [
      set('Normal', undefined),
      metrics('a', 0, 0),
      false,
      'Normal to empty: 0 of 0 nodes are not ready',
      { ratePerSecond: 0.1 },
    ],
    [
      rate('PartialDisruption'),
      metrics('a', 4, 3),
      false,
      'one taint every 10 s to no taints: PartialDisruption, 3 of 4 nodes are not ready',
      { state: 'PartialDisruption', ratePerSecond: 0 },
    ],
    [
      rate('FullDisruption'),
      metrics('a', 2, 2),
      true,
      'one taint every 10 s to no taints: total disruption, 2 of 2 nodes are not ready',
      { state: 'FullDisruption', ratePerSecond: 0 },
    ],
    [
      rate(undefined),
      metrics('a', 0, 0),
      true,
      'one taint every 10 s to no taints: total disruption, 0 of 0 nodes are not ready',
      { ratePerSecond: 0 },
    ],
  ])(
    '%j with %j, total disruption %j, has its counts and its rate, and replays',
    (decision, zone, totalDisruption, reason, outcome) => {
      const draft = zoneDraft(decision, { nowMs: NOW_MS, policy, totalDisruption, zone });
      expect(draft).toEqual({
        act: decision.kind === 'setZoneRate' ? 'ZoneRateSet' : 'ZoneStateSet',
        about: { kind: 'Zone', name: decision.zone },
        atMs: NOW_MS,
        reason,
        rule: 'zone',
        inputs: {
          ready: (zone?.size ?? 0) - (zone?.unhealthy ?? 0),
          notReady: zone?.unhealthy ?? 0,
          totalDisruption,
          policy: {
            unhealthyZoneThreshold: policy.unhealthyZoneThreshold,
            nodeEvictionRatePerSecond: 0.1,
            secondaryNodeEvictionRatePerSecond: 0.01,
            largeClusterSizeThreshold: 4,
            fullDisruption: policy.fullDisruption,
          },
        },
        outcome,
      });
      expect('state' in draft.outcome).toBe('state' in outcome);
      expect(replayed(draft, nodeMonitorReplay)).toEqual(outcome);
    },
  );

  it('names the state of a zone with another rate, or that it is empty', () => {
    const reasonOf = (decision: ZoneDecision) =>
      zoneDraft(decision, { nowMs: 0, policy, totalDisruption: false, zone: undefined }).reason;
    expect(reasonOf(rate(undefined))).toContain(': empty, ');
    expect(reasonOf(rate('Normal'))).toContain(': Normal, ');
  });
});

describe('the record of refused requests', () => {
  it.each([
    ['system:node:n', 'rate', { kind: 'Node', name: 'n' }, 'the rate of requests of one identity'],
    ['jane', 'time', { kind: 'Object', name: 'jane' }, 'its share of the time of a function'],
  ])('of %s over its %s', (username, over, about, limit) => {
    const draft = refusalDraft({ kind: 'person', username, over, count: 4 }, { minuteMs: 60_000, nowMs: NOW_MS });
    expect(draft).toEqual({
      act: 'RequestsRefused',
      about,
      atMs: NOW_MS,
      reason: `4 requests of ${username} were refused in the minute from 1970-01-01T00:01:00Z: over ${limit}; requests of others were served`,
      rule: 'refusals',
      inputs: { kind: 'person', over, minuteMs: 60_000, count: 4 },
      outcome: { kind: 'recorded', refused: 4 },
    });
    expect(replayed(draft, nodeMonitorReplay)).toEqual(draft.outcome);
  });

  it('of none is nothing', () => {
    const draft = refusalDraft({ kind: 'node', username: 'x', over: 'rate', count: 0 }, { minuteMs: 0, nowMs: 0 });
    expect(draft.outcome).toEqual({ kind: 'nothing' });
    expect(replayed(draft, nodeMonitorReplay)).toEqual({ kind: 'nothing' });
  });
});
