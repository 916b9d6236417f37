import { describe, expect, it } from 'vitest';
import { UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import { replayed } from '../../test/support/replayed.ts';
import { heldText, rolloutHeldDraft, rolloutReplay } from './decisions.ts';
import { lastHoldEndedMs, workloadHold } from './hold.rule.ts';

const NOW_MS = 600_000;
const about = { kind: 'Deployment', namespace: 'web', name: 'd', uid: 'u' } as const;
const profile = {
  name: 'edge',
  nodeSelector: {},
  nodeMonitorGracePeriodSeconds: 30,
} as unknown as Policy['profiles'][0];
const policy: Policy = { ...defaultPolicy, profiles: [profile] };
const ticking = { ...UNTRIED_GATE, lastTickAtMs: NOW_MS };
const total = { ...NO_DISRUPTION, total: true, sinceMs: 1_000 };

describe('what holds a rollout', () => {
  const at = { nowMs: NOW_MS, policy: defaultPolicy };

  it.each([
    ['nothing', ticking, NO_DISRUPTION, undefined],
    ['total disruption', ticking, total, { kind: 'totalDisruption', sinceMs: 1_000 }],
    [
      'a stored reason, before total disruption',
      { ...ticking, reasons: ['failingPath'] as const, sinceMs: 5 },
      total,
      { kind: 'gate', reasons: ['failingPath'], sinceMs: 5 },
    ],
    [
      'missed ticks, since the last one',
      { ...ticking, lastTickAtMs: 7, sinceMs: 5 },
      NO_DISRUPTION,
      { kind: 'gate', reasons: ['missedTicks'], sinceMs: 7 },
    ],
  ])('%s', (_what, gate, disruption, hold) => {
    expect(workloadHold({ gate, disruption }, at)).toEqual(hold);
  });

  it('ended when nodes had a full grace period for the last time', () => {
    const ended = (gateMs: number, disruptionMs: number) =>
      lastHoldEndedMs({
        gate: { ...ticking, freshSinceMs: gateMs },
        disruption: { ...NO_DISRUPTION, freshSinceMs: disruptionMs },
      });
    expect([ended(1, 2), ended(2, 1)]).toEqual([2, 2]);
  });
});

describe('the record of a rollout that is held', () => {
  const names = Array.from({ length: 11 }, (_, index) => `p${index}`);

  it.each([
    [
      'gate',
      { gate: { ...ticking, lastTickAtMs: 7 }, disruption: NO_DISRUPTION },
      'the safety gate is closed since 1970-01-01T00:00:00Z (node-monitor missed ticks)',
    ],
    [
      'totalDisruption',
      { gate: ticking, disruption: total },
      'every zone is in FullDisruption since 1970-01-01T00:00:01Z',
    ],
  ])('for %s has what the rule read, the shortest grace period, ten names, and replays', (kind, state, cause) => {
    const hold = workloadHold(state, { nowMs: NOW_MS, policy });
    const draft = rolloutHeldDraft(about, hold!, { state, held: names, policy, nowMs: NOW_MS });
    expect(draft).toEqual({
      act: 'RolloutHeld',
      about,
      atMs: NOW_MS,
      reason: `${cause}: the rollout waits with p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 1 more`,
      rule: 'rolloutHold',
      inputs: {
        reasons: [],
        lastTickAtMs: state.gate.lastTickAtMs,
        totalDisruption: state.disruption.total,
        policy: { tickGate: 'on', nodeMonitorPeriodSeconds: 5, nodeMonitorGracePeriodSeconds: 30 },
        held: names.slice(0, 10),
      },
      outcome: { held: kind },
    });
    expect(replayed(draft, rolloutReplay)).toEqual({ held: kind });
    const released = { ...draft, inputs: { ...draft.inputs, lastTickAtMs: NOW_MS, totalDisruption: false } };
    expect(replayed(released as typeof draft, rolloutReplay)).toEqual({ held: 'nothing' });
  });

  it('names ten without a number of others, and no time before the first tick', () => {
    expect(heldText({ kind: 'totalDisruption', sinceMs: 0 }, names.slice(0, 10))).toBe(
      'every zone is in FullDisruption: the rollout waits with p0, p1, p2, p3, p4, p5, p6, p7, p8, p9',
    );
  });
});
