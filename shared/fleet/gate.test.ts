import { describe, expect, it } from 'vitest';
import {
  decideGate,
  firstProbes,
  type GateRecord,
  gateOf,
  gateVerdict,
  gateVerdictFor,
  needsAllProbes,
  PROBES_PER_TICK_MAX,
  pathIsFailing,
  UNTRIED_GATE,
} from './gate.ts';
import { defaultPolicy, type Policy } from './policy.ts';

const policy = defaultPolicy;
/** Ticks every 5 s, one probe each; returns the records by second. */
function ticks(outcomes: Record<number, boolean>, start: GateRecord = { ...UNTRIED_GATE, lastTickAtMs: -5_000 }) {
  const records: Record<number, GateRecord> = {};
  let record = start;
  for (const [second, accepted] of Object.entries(outcomes)) {
    const nowMs = Number(second) * 1_000;
    record = decideGate(record, { nowMs, probes: [{ sentAtMs: nowMs, accepted }], policy });
    records[Number(second)] = record;
  }
  return records;
}
const kinds = (records: Record<number, GateRecord>) => Object.values(records).map((record) => gateVerdict(record).kind);

describe('the gate against a failing path', () => {
  it('closes when half of the probes of two heartbeat intervals are refused, and not before', () => {
    const records = ticks({ 0: true, 5: true, 10: true, 15: true, 20: false, 25: false });
    expect(gateVerdict(records[20] as GateRecord).kind).toBe('open');
    expect(gateVerdict(records[25] as GateRecord)).toEqual({
      kind: 'holding',
      reasons: ['failingPath'],
      sinceMs: 25_000,
    });
  });

  it('opens when more than half are accepted again, with a new grace period from the first accepted probe', () => {
    const records = ticks({ 0: false, 5: false, 10: false, 15: false, 20: true, 25: true, 30: true });
    expect(kinds(records)).toEqual(['holding', 'holding', 'holding', 'holding', 'holding', 'holding', 'open']);
    expect(records[25]?.freshSinceMs).toBe(0);
    expect(records[30]?.freshSinceMs).toBe(20_000);
    expect(records[30]?.sinceMs).toBe(30_000);
  });

  it('counts the new grace period from the first probe accepted after the last refused one', () => {
    const records = ticks({ 0: false, 5: false, 10: true, 15: false, 20: true, 25: true });
    expect(records[25]?.freshSinceMs).toBe(20_000);
  });

  it('does not open by chance: it stays closed until no probe was lost for one heartbeat interval', () => {
    const records = ticks({
      0: false,
      5: false,
      10: true,
      15: true,
      20: true,
      25: false,
      30: true,
      35: true,
      40: true,
    });
    expect(gateVerdict(records[20] as GateRecord).kind).toBe('open');
    const lossy = ticks({ 0: false, 5: false, 10: true, 15: false, 20: true, 22: true, 24: true });
    expect(gateVerdict(lossy[24] as GateRecord).kind).toBe('holding');
  });

  it('drops probes from the future', () => {
    const records = ticks({ 1000: false, 1005: false });
    const after = decideGate(records[1005] as GateRecord, {
      nowMs: 500_000,
      probes: [{ sentAtMs: 500_000, accepted: true }],
      policy,
    });
    expect(after.probes).toEqual([{ sentAtMs: 500_000, accepted: true }]);
  });

  it('sends one probe per tick in steady state, more where ticks are few, and all after a failed one', () => {
    expect(firstProbes(policy)).toBe(1);
    expect(firstProbes({ ...policy, nodeMonitorPeriodSeconds: 10 })).toBe(2);
    expect(firstProbes({ ...policy, nodeMonitorPeriodSeconds: 20 })).toBe(PROBES_PER_TICK_MAX);
    const calm = { probes: [{ sentAtMs: 0, accepted: true }] };
    expect(needsAllProbes(calm, [true])).toBe(false);
    expect(needsAllProbes(calm, [false])).toBe(true);
    expect(needsAllProbes({ probes: [{ sentAtMs: 0, accepted: false }] }, [true])).toBe(true);
  });

  it('does not count as failing without probes', () => {
    expect(pathIsFailing([])).toBe(false);
    let record = UNTRIED_GATE;
    for (let nowMs = 0; nowMs <= 300_000; nowMs += 5_000) record = decideGate(record, { nowMs, probes: [], policy });
    expect(gateVerdict(record).kind).toBe('open');
  });

  it('is closed while a short grace period contains no good run of a whole heartbeat interval', () => {
    // Period 15 s, beat 20 s, grace 40 s: an outage from 166 s to 186 s swallows the beats at 166 s and 186 s, and one
    // probe of three.
    const tight = {
      ...policy,
      nodeMonitorPeriodSeconds: 15,
      beatIntervalSeconds: 20,
      nodeMonitorGracePeriodSeconds: 40,
    };
    let record: GateRecord = UNTRIED_GATE;
    const held: number[] = [];
    for (let nowMs = 0; nowMs <= 300_000; nowMs += 15_000) {
      const accepted = nowMs < 166_000 || nowMs >= 186_000;
      record = decideGate(record, { nowMs, probes: [{ sentAtMs: nowMs, accepted }], policy: tight });
      if (record.reasons.includes('failingPath')) held.push(nowMs);
    }
    expect(held).toEqual([195_000, 210_000]);
    expect(record.freshSinceMs).toBe(195_000);
  });

  it('can be disabled', () => {
    const record = decideGate(UNTRIED_GATE, {
      nowMs: 0,
      probes: [{ sentAtMs: 0, accepted: false }],
      policy: { ...policy, ingestGate: 'off', tickGate: 'off' },
    });
    expect(gateVerdict(record).kind).toBe('open');
    expect(record.freshSinceMs).toBe(0);
  });
});

describe('the gate after missing ticks', () => {
  it('is closed for the tick that detects the gap, with a new grace period from it, and open at the next', () => {
    const records = ticks({ 0: true, 300: true, 305: true });
    expect(gateVerdict(records[300] as GateRecord)).toMatchObject({ kind: 'holding', reasons: ['missedTicks'] });
    expect(records[300]?.freshSinceMs).toBe(300_000);
    expect(gateVerdict(records[305] as GateRecord).kind).toBe('open');
    expect(records[305]?.freshSinceMs).toBe(300_000);
  });

  it('is open at the first tick ever, and no earlier silence counts', () => {
    const accepted = { nowMs: 700_000, probes: [{ sentAtMs: 700_000, accepted: true }] };
    const record = decideGate(UNTRIED_GATE, { ...accepted, policy });
    expect(gateVerdict(record).kind).toBe('open');
    expect(record.freshSinceMs).toBe(700_000);
    expect(decideGate(UNTRIED_GATE, { ...accepted, policy: { ...policy, tickGate: 'off' } }).freshSinceMs).toBe(0);
  });

  it('closes when no tick has finished for half a grace period after the first, until one has', () => {
    const unfinished = (record: GateRecord, second: number): GateRecord => {
      const nowMs = second * 1_000;
      const probes = [{ sentAtMs: nowMs, accepted: true }];
      return { ...decideGate(record, { nowMs, probes, policy }), lastTickAtMs: undefined };
    };
    const records: GateRecord[] = [];
    for (const second of [100, 105, 110, 115, 120, 125, 130]) {
      records.push(unfinished(records.at(-1) ?? UNTRIED_GATE, second));
    }
    expect(kinds({ ...records })).toEqual(['open', 'open', 'open', 'open', 'open', 'holding', 'holding']);
    expect(records.map(({ freshSinceMs }) => freshSinceMs / 1_000)).toEqual([100, 100, 100, 100, 100, 125, 130]);
    const finished = { ...(records[6] as GateRecord), lastTickAtMs: 130_000 };
    const next = decideGate(finished, { nowMs: 135_000, probes: [{ sentAtMs: 135_000, accepted: true }], policy });
    expect(gateVerdict(next).kind).toBe('open');
  });

  it('stays open over late and lost ticks, up to half a grace period', () => {
    const records = ticks({ 0: true, 5: true, 10: true, 28: true, 33: true, 38: true, 43: true });
    expect(new Set(kinds(records))).toEqual(new Set(['open']));
    expect(records[43]?.freshSinceMs).toBe(records[0]?.freshSinceMs);
  });

  it('closes when late ticks follow each other and leave no proven stretch of a heartbeat interval', () => {
    const records = ticks({ 0: true, 5: true, 10: true, 28: true, 46: true });
    expect(gateVerdict(records[28] as GateRecord).kind).toBe('open');
    expect(gateVerdict(records[46] as GateRecord)).toMatchObject({ kind: 'holding', reasons: ['failingPath'] });
  });

  it('closes after one gap of less than half a grace period, where that is three heartbeat intervals', () => {
    // The last heartbeat before the gap may be 41.6 s old, and the first one after it may come 40 s after its end.
    const cell: Policy = { ...policy, beatIntervalSeconds: 40, nodeMonitorGracePeriodSeconds: 120 };
    const held: number[] = [];
    let record: GateRecord = UNTRIED_GATE;
    for (const second of [0, 58, 63, 68, 73, 78, 83, 88, 93, 98, 103]) {
      const nowMs = second * 1_000;
      record = decideGate(record, { nowMs, probes: [{ sentAtMs: nowMs, accepted: true }], policy: cell });
      if (gateVerdict(record).kind === 'holding') held.push(second);
    }
    expect(held).toEqual([78, 83, 88, 93]);
  });

  it('stays closed while the path is failing, and counts from the later of both', () => {
    const records = ticks({ 0: true, 300: false, 305: true, 310: true });
    expect(kinds(records)).toEqual(['open', 'holding', 'holding', 'open']);
    expect(records[310]?.freshSinceMs).toBe(305_000);
  });

  it('is closed for a controller that runs before node-monitor after an outage', () => {
    const record = ticks({ 0: true })[0] as GateRecord;
    expect(gateVerdictFor(record, { nowMs: 20_000, policy }).kind).toBe('open');
    expect(gateVerdictFor(record, { nowMs: 20_001, policy })).toEqual({
      kind: 'holding',
      reasons: ['missedTicks'],
      sinceMs: 0,
    });
    expect(gateVerdictFor(record, { nowMs: 25_000, policy: { ...policy, tickGate: 'off' } }).kind).toBe('open');
  });
});

describe('the gate of each profile', () => {
  const cell = {
    name: 'cell',
    nodeSelector: { matchLabels: { link: 'cell' } },
    beatIntervalSeconds: 60,
    nodeMonitorGracePeriodSeconds: 240,
  };
  const fast = {
    name: 'fast',
    nodeSelector: { matchLabels: { link: 'fibre' } },
    beatIntervalSeconds: 5,
    nodeMonitorGracePeriodSeconds: 15,
  };
  const mixed = { ...policy, profiles: [cell, fast] };
  function run(untilSeconds: number, accepted: (second: number) => boolean | undefined, by: Policy = mixed) {
    let record: GateRecord = UNTRIED_GATE;
    const records: GateRecord[] = [];
    for (let second = 0; second <= untilSeconds; second += 5) {
      const outcome = accepted(second);
      if (outcome === undefined) continue;
      const nowMs = second * 1_000;
      record = decideGate(record, { nowMs, probes: [{ sentAtMs: nowMs, accepted: outcome }], policy: by });
      records.push(record);
    }
    return { record, records };
  }
  const closed = (record: GateRecord) =>
    ['fast', undefined, 'cell'].map((name) => gateOf(record, name).reasons.length > 0);

  it('closes by the heartbeat interval of the profile', () => {
    const { records } = run(600, (second) => second < 400 || second > 460);
    const at = (second: number) => closed(records[second / 5]!);
    // [fast, default, cell]: half of the probes of two intervals failed, of 120 s at most.
    expect(at(400)).toEqual([true, false, false]);
    expect(at(405)).toEqual([true, true, false]);
    expect(at(455)).toEqual([true, true, true]);
    expect(at(470)).toEqual([false, true, true]);
    expect(at(475)).toEqual([false, false, true]);
    expect(at(525)).toEqual([false, false, false]);
  });

  it('has a full grace period of each profile from the first probe accepted after an outage', () => {
    const { record } = run(600, (second) => second < 400 || second > 460);
    for (const name of ['fast', undefined, 'cell']) expect(gateOf(record, name).freshSinceMs).toBe(465_000);
  });

  it('closes after one failed tick where two lost heartbeats exceed the grace period with jitter and clocks', () => {
    // The last good tick is 9.6 s before the tick after the outage. A heartbeat 5.2 s before it is 14.8 s old then.
    let { record } = run(400, () => true);
    const tick = (nowMs: number, accepted: boolean) => {
      const probes = Array.from({ length: 3 }, () => ({ sentAtMs: nowMs, accepted }));
      record = decideGate(record, { nowMs, probes, policy: mixed });
      return closed(record);
    };
    for (const nowMs of [405_000, 410_000, 415_000, 420_000]) tick(nowMs, true);
    expect(tick(424_300, false)).toEqual([false, false, false]);
    // [fast, default, cell]
    expect(tick(429_600, true)).toEqual([true, false, false]);
    expect(gateOf(record, 'fast').reasons).toEqual(['failingPath']);
    expect(tick(434_800, true)).toEqual([false, false, false]);
    expect(gateOf(record, 'fast').freshSinceMs).toBe(429_600);
  });

  it('closes for missed ticks only where half a grace period is at risk', () => {
    // [fast, default, cell]: gaps of over 7.5 s, 20 s, 120 s.
    const closedAfter = (gap: number) =>
      closed(run(400 + gap, (second) => second <= 400 || second >= 400 + gap || undefined).record);
    expect(closedAfter(5)).toEqual([false, false, false]);
    expect(closedAfter(10)).toEqual([true, false, false]);
    expect(closedAfter(25)).toEqual([true, true, false]);
    expect(closedAfter(125)).toEqual([true, true, true]);
  });

  it('is closed as a whole while one profile is, and reports when that began', () => {
    const { records } = run(600, (second) => second < 400 || second > 460);
    expect(gateVerdict(records[80]!)).toMatchObject({ kind: 'holding', sinceMs: 400_000 });
    expect(gateVerdict(records[104]!)).toMatchObject({ kind: 'holding', sinceMs: 400_000 });
    expect(gateVerdict(records[105]!)).toEqual({ kind: 'open' });
    expect(records[105]?.sinceMs).toBe(525_000);
  });

  it('starts a grace period 120 s and one old interval after it became shorter, or the profile was removed', () => {
    const { record } = run(600, () => true);
    const at = { nowMs: 605_000, probes: [{ sentAtMs: 605_000, accepted: true }] };
    const shorter = { ...cell, beatIntervalSeconds: 10, nodeMonitorGracePeriodSeconds: 40 };
    const next = decideGate(record, { ...at, policy: { ...mixed, profiles: [shorter, fast] } });
    // The nodes of every profile: one may have had the old interval under another profile.
    for (const name of ['cell', 'fast', undefined]) expect(gateOf(next, name).freshSinceMs).toBe(785_000);
    const removed = decideGate(record, { ...at, policy: { ...mixed, profiles: [fast] } });
    for (const name of ['fast', undefined]) expect(gateOf(removed, name).freshSinceMs).toBe(785_000);
    const other = { ...cell, name: 'radio' };
    const kept = decideGate(record, { ...at, policy: { ...mixed, profiles: [shorter, fast, other] } });
    expect(['cell', 'fast', undefined].map((name) => gateOf(kept, name).freshSinceMs)).toEqual([785_000, 0, 0]);
    const after = decideGate(next, { ...at, nowMs: 610_000, policy: { ...mixed, profiles: [shorter, fast] } });
    expect(gateOf(after, 'cell').freshSinceMs).toBe(785_000);
  });

  it('equals the gate of a policy with only its times', () => {
    const outcomes = (second: number) => (second % 85 === 0 ? undefined : second % 70 < 45 || second > 700);
    const { records } = run(900, outcomes);
    for (const profile of [cell, fast]) {
      const { beatIntervalSeconds, nodeMonitorGracePeriodSeconds } = profile;
      const alone = run(900, outcomes, { ...policy, beatIntervalSeconds, nodeMonitorGracePeriodSeconds });
      // The record of a profile begins with a grace period of its own.
      records.forEach((record, index) => {
        const { reasons, freshSinceMs, sinceMs } = gateOf(record, profile.name);
        expect({ reasons, freshSinceMs, sinceMs }).toEqual({
          reasons: alone.records[index]?.reasons,
          freshSinceMs: alone.records[index]?.freshSinceMs,
          sinceMs: alone.records[index]?.sinceMs,
        });
      });
    }
  });
});
