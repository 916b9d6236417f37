import { describe, expect, it } from 'vitest';
import { accusationVerdict, type Testimony, testimoniesOf, type Witness } from './accusation.rule.ts';
import type { NodeHealth } from './nodes/health.ts';
import { defaultPolicy } from './policy.ts';
import type { SilenceReport } from './silent-machines.ts';

const NOW_MS = 1_000_000;
const at = { nowMs: NOW_MS, policy: defaultPolicy, pathFailedAtMs: undefined };

const witness = (nodeName: string, role: Witness['role'], more: Partial<Witness> = {}): Witness => ({
  nodeName,
  role,
  sinceMs: NOW_MS - 5_000,
  receivedAtMs: NOW_MS - 1_000,
  renewedAtMs: NOW_MS - 1_000,
  intervalSeconds: 10,
  ...more,
});
const verdictOf = (witnesses: readonly Witness[], more: Partial<Testimony> = {}) =>
  accusationVerdict({ witnesses, machines: 3, accused: 1, ...more }, { spokeAtMs: NOW_MS - 10_000 }, at);

describe('an accusation', () => {
  it('counts from the time at which a relay and a second witness agree', () => {
    const hub = witness('hub', 'hub', { sinceMs: NOW_MS - 7_000 });
    const machine = witness('m', 'machine', { sinceMs: NOW_MS - 6_000 });
    expect(verdictOf([machine, hub])).toEqual({ kind: 'counts', sinceMs: NOW_MS - 6_000, by: [hub, machine] });
    const second = witness('hub-2', 'hub', { sinceMs: NOW_MS - 4_000 });
    expect(verdictOf([second, hub])).toEqual({ kind: 'counts', sinceMs: NOW_MS - 4_000, by: [hub, second] });
    expect(verdictOf([second, machine])).toMatchObject({ sinceMs: NOW_MS - 4_000, by: [second, machine] });
  });

  it.each([
    ['one relay', [witness('hub', 'hub')]],
    ['two machines', [witness('a', 'machine'), witness('b', 'machine')]],
  ])('of %s alone does not count', (_, witnesses) => {
    expect(verdictOf(witnesses)).toEqual({ kind: 'tooFewWitnesses' });
  });

  const other = witness('m', 'machine');
  it.each<[string, Partial<Witness>, Partial<Witness>]>([
    ['was received 30 s ago', { receivedAtMs: NOW_MS - 30_000 }, { receivedAtMs: NOW_MS - 30_001 }],
    ['began after the last heartbeat of the accused', { sinceMs: NOW_MS - 9_999 }, { sinceMs: NOW_MS - 10_000 }],
    [
      'is of a machine with a heartbeat within its interval and a period',
      { renewedAtMs: NOW_MS - 15_000 },
      { renewedAtMs: NOW_MS - 15_001 },
    ],
    [
      'is of a machine with a longer interval',
      { renewedAtMs: NOW_MS - 35_000, intervalSeconds: 30 },
      { renewedAtMs: NOW_MS - 35_001, intervalSeconds: 30 },
    ],
  ])('counts with a report that %s, and not with a later one', (_, valid, invalid) => {
    expect(verdictOf([witness('hub', 'hub', valid), other]).kind).toBe('counts');
    expect(verdictOf([witness('hub', 'hub', invalid), other]).kind).toBe('tooFewWitnesses');
  });

  it('does not count with a reporter that has no heartbeat', () => {
    const { renewedAtMs: _, ...silent } = witness('hub', 'hub');
    expect(verdictOf([silent, other]).kind).toBe('tooFewWitnesses');
  });

  it('does not count while a heartbeat of ours has failed since the last one of the accused', () => {
    const witnesses = [witness('hub', 'hub'), other];
    expect(verdictOf(witnesses, { pathFailedAtMs: NOW_MS - 10_001 }).kind).toBe('counts');
    expect(verdictOf(witnesses, { pathFailedAtMs: NOW_MS - 10_000 })).toEqual({ kind: 'pathFailed' });
  });

  it('does not count while more than a third of the zone is accused', () => {
    expect(verdictOf([witness('hub', 'hub'), other], { machines: 6, accused: 2 }).kind).toBe('counts');
    expect(verdictOf([witness('hub', 'hub'), other], { machines: 5, accused: 2 })).toEqual({ kind: 'tooManyAccused' });
  });
});

const node = (nodeName: string, more: Partial<NodeHealth> = {}): NodeHealth => ({
  nodeName,
  uid: nodeName,
  zone: 'a',
  ready: 'True',
  excluded: false,
  suspect: false,
  noExecute: { notReady: false, unreachable: false },
  createdAtMs: 0,
  renewedAtMs: NOW_MS - 2_000,
  podsToMark: false,
  ...more,
});
const report = (reporter: string, names: readonly string[], more: Partial<SilenceReport> = {}): SilenceReport => ({
  reporter,
  role: 'hub',
  receivedAtMs: NOW_MS - 1_000,
  sinceMs: new Map(names.map((name) => [name, NOW_MS - 4_000])),
  withdrawnAtMs: new Map(),
  ...more,
});

describe('the testimony about a machine', () => {
  const nodes = [node('hub'), node('m'), node('x'), node('other', { zone: 'b' })];

  it('is of the machines of its zone that report it, and counts the machines that are accused', () => {
    const found = testimoniesOf(nodes, [report('hub', ['x', 'other', 'nobody', 'hub']), report('other', ['x'])], at);
    expect([...found]).toEqual([
      [
        'x',
        { witnesses: [expect.objectContaining({ nodeName: 'hub', sinceMs: NOW_MS - 4_000 })], machines: 3, accused: 1 },
      ],
    ]);
  });

  it('counts reports that were withdrawn within 30 s, and none that is older', () => {
    const withdrawnAtMs = new Map([
      ['m', NOW_MS - 30_000],
      ['hub', NOW_MS - 30_001],
    ]);
    expect(testimoniesOf(nodes, [report('hub', ['x'], { withdrawnAtMs })], at).get('x')).toMatchObject({ accused: 2 });
    expect(testimoniesOf(nodes, [report('hub', ['x'], { receivedAtMs: NOW_MS - 30_001 })], at).size).toBe(0);
  });

  it('leaves out machines with a promise of silence', () => {
    const planned = [...nodes.filter(({ nodeName }) => nodeName !== 'x'), node('x', { plannedUntilMs: NOW_MS + 1 })];
    expect(testimoniesOf(planned, [report('hub', ['x'])], at).size).toBe(0);
    expect(testimoniesOf(planned, [report('hub', ['m'])], at).get('m')).toMatchObject({ machines: 2, accused: 1 });
  });
});
