import { describe, expect, it } from 'vitest';
import type { FleetState } from '../../shared/fleet/fleet-store.ts';
import { type GateRecord, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { decideTick, gateTransition, isQuiet, limitsByProfile, type MonitorWorld } from './decide-tick.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const LAST_TICK_MS = NOW_MS - 5_000;

const gate = (parts: Partial<GateRecord> = {}): GateRecord => ({
  ...UNTRIED_GATE,
  lastTickAtMs: LAST_TICK_MS,
  freshSinceMs: NOW_MS - 3_600_000,
  goodSinceMs: NOW_MS - 3_600_000,
  provenAtMs: LAST_TICK_MS,
  ...parts,
});
const state = (parts: Partial<FleetState> = {}): FleetState => ({
  slot: 1,
  fence: 1,
  gate: gate(),
  disruption: NO_DISRUPTION,
  claimedAtMs: LAST_TICK_MS,
  claimId: 'c',
  nodes: 0,
  sent: undefined,
  lookFailedAtMs: undefined,
  ...parts,
});
const world = (stored: FleetState, parts: Partial<MonitorWorld> = {}): MonitorWorld => ({
  records: { state: stored, zones: [], queue: [] },
  nodes: [],
  probes: [],
  reports: [],
  ...parts,
});
const policy = { ...defaultPolicy, ingestGate: 'off' as const };
const decide = (stored: FleetState = state(), parts: Partial<MonitorWorld> = {}) =>
  decideTick(world(stored, parts), stored, { nowMs: NOW_MS, policy });
const alive = aNode({ nodeName: 'alive', zone: 'a', renewedAtMs: NOW_MS });
const silent = aNode({ nodeName: 'silent', zone: 'a', renewedAtMs: NOW_MS - 60_000 });
const zones = [
  { zone: 'a', state: 'Normal' as const, limiter: { tatMs: undefined, ratePerSecond: 0.1 }, createdAtMs: 0 },
];
const acts = ({ drafts }: ReturnType<typeof decide>) => drafts.map(({ act }) => act);

describe('a tick', () => {
  it('decides on the zones, the queue and the nodes that it read', () => {
    const records = { state: state(), zones, queue: [{ zone: 'a', nodeName: 'gone', uid: 'u', addedAtMs: 0 }] };
    const { outcome, before, drafts } = decide(records.state, { records, nodes: [alive, silent] });
    expect(outcome.decisions.map((each) => [each.kind, 'nodeName' in each ? each.nodeName : ''])).toEqual([
      ['dequeue', 'gone'],
      ['markUnknown', 'silent'],
      ['enqueue', 'silent'],
    ]);
    expect(isQuiet(outcome)).toBe(false);
    expect([before, drafts]).toEqual([records.state, []]);
  });

  it('is quiet without a decision, and has no record to write', () => {
    const decided = decide(state(), { records: { state: state(), zones, queue: [] }, nodes: [alive] });
    expect([isQuiet(decided.outcome), acts(decided), decided.disruption]).toEqual([true, [], NO_DISRUPTION]);
  });

  it('marks no node while its gate is closed, and records that it closed', () => {
    const late = state({ gate: gate({ lastTickAtMs: NOW_MS - 30_000 }) });
    const decided = decide(late, { records: { state: late, zones, queue: [] }, nodes: [alive, silent] });
    expect(decided.gate.reasons).toEqual(['missedTicks']);
    expect(decided.outcome.decisions).toEqual([]);
    expect(acts(decided)).toEqual(['GateClosed']);
  });

  it('records total disruption when it begins and ends', () => {
    const dark = { ...silent, ready: 'Unknown' as const, suspect: true, markedAtMs: NOW_MS - 20_000 };
    const begun = decide(state(), { records: { state: state(), zones, queue: [] }, nodes: [dark] });
    expect(begun.disruption).toMatchObject({ total: true, sinceMs: NOW_MS, startedAtMs: NOW_MS });
    expect(acts(begun)).toEqual(['TotalDisruptionEntered']);
    const total = state({ disruption: begun.disruption });
    const over = decide(total, { records: { state: total, zones, queue: [] }, nodes: [dark, alive] });
    expect(over.disruption).toMatchObject({ total: false, sinceMs: NOW_MS, freshSinceMs: NOW_MS });
    expect(acts(over)).toEqual(['TotalDisruptionLeft']);
  });

  it('forgets starts of total disruption that no longer count', () => {
    const remembered = (earlierStartsMs: readonly number[] | undefined) =>
      decide(state({ disruption: { ...NO_DISRUPTION, earlierStartsMs } })).disruption.earlierStartsMs;
    expect(remembered([NOW_MS - 3_600_000, NOW_MS - 100_000_000])).toEqual([NOW_MS - 3_600_000]);
    expect(remembered([NOW_MS - 100_000_000])).toBeUndefined();
    expect(remembered(undefined)).toBeUndefined();
  });
});

describe('the gate', () => {
  const closed = { reasons: ['failingPath'] as const };
  it.each<[string, Partial<GateRecord>, Partial<GateRecord>, 'state' | 'reasons' | undefined]>([
    ['stays open', {}, {}, undefined],
    ['closes', {}, { ...closed, sinceMs: NOW_MS }, 'state'],
    ['opens', { ...closed, sinceMs: NOW_MS - 60_000 }, { sinceMs: NOW_MS }, 'state'],
    ['stays closed', { ...closed, sinceMs: NOW_MS - 60_000 }, { ...closed, sinceMs: NOW_MS - 60_000 }, undefined],
    [
      'is closed for another reason',
      { ...closed, sinceMs: NOW_MS - 60_000 },
      { reasons: ['failingPath', 'missedTicks'], sinceMs: NOW_MS - 60_000 },
      'reasons',
    ],
    ['only has a new time', {}, { sinceMs: NOW_MS }, undefined],
    [
      'closed in a tick that did not finish',
      { ...closed, sinceMs: LAST_TICK_MS + 1 },
      { ...closed, sinceMs: LAST_TICK_MS + 1 },
      'state',
    ],
    [
      'closed in a tick that finished',
      { ...closed, sinceMs: LAST_TICK_MS },
      { ...closed, sinceMs: LAST_TICK_MS },
      undefined,
    ],
    [
      'closed before any tick finished',
      { ...closed, sinceMs: 1, lastTickAtMs: undefined },
      { ...closed, sinceMs: 1 },
      'state',
    ],
    ['never changed, and no tick finished', { lastTickAtMs: undefined }, {}, undefined],
  ])('that %s', (_text, before, after, expected) => {
    expect(gateTransition({ gate: gate(after), before: state({ gate: gate(before) }) })).toBe(expected);
  });
});

it('the limits of a node are those of its profile, or of the policy if that is unknown', () => {
  const cell = { name: 'cell', nodeSelector: {}, beatIntervalSeconds: 60, nodeMonitorGracePeriodSeconds: 240 };
  const limitsOf = limitsByProfile({ ...defaultPolicy, profiles: [cell] });
  const ofProfile = (profile: string | undefined) =>
    limitsOf(aNode({ nodeName: 'n', ...(profile === undefined ? {} : { profile }) }));
  expect(ofProfile('cell')).toEqual({ profile: 'cell', beatIntervalSeconds: 60, graceSeconds: 240 });
  const ofDefault = { profile: 'default', beatIntervalSeconds: 10, graceSeconds: 40 };
  expect([ofProfile(undefined), ofProfile('default'), ofProfile('former')]).toEqual([ofDefault, ofDefault, ofDefault]);
});
