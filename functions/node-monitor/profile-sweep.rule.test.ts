import { describe, expect, it } from 'vitest';
import { DEPLOYED_WITHIN_MS } from '../../shared/fleet/gate.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { profileSweepPart, type SweepProgress } from './profile-sweep.rule.ts';

const NOW_MS = 10_000_000;
const profilesOf = (name: string) =>
  [{ name, nodeSelector: { matchLabels: { pool: name } } }] as unknown as Policy['profiles'];
const policyOf = (profiles: Policy['profiles']) => ({ ...defaultPolicy, profiles, nodeMonitorPeriodSeconds: 5 });
const policy = policyOf(profilesOf('edge'));
const names = (count: number) => Array.from({ length: count }, (_, index) => `n${String(index).padStart(5, '0')}`);
const part = (stored: SweepProgress | undefined, nodes: readonly string[], nowMs = NOW_MS) =>
  profileSweepPart(stored, { nowMs, policy, nodeNames: () => nodes });
const started = part(undefined, [])!.next(0, false);
const of = started.of;
const ofRound = (round: 1 | 2 | 3, over: Partial<SweepProgress> = {}): SweepProgress => ({
  of,
  sinceMs: NOW_MS,
  round,
  after: '',
  ...over,
});

describe('the Nodes that are evaluated after a change of profiles', () => {
  it('are all, in the order of their names, then again two minutes after the change, then none', () => {
    const first = part(undefined, ['b', '0', 'a']);
    expect(first?.names).toEqual(['0', 'a', 'b']);
    const second = first!.next(3, false);
    expect(second).toEqual(ofRound(2));
    expect(part(second, ['a'], NOW_MS + DEPLOYED_WITHIN_MS - 1)).toBeUndefined();
    const last = part(second, ['b', 'a'], NOW_MS + DEPLOYED_WITHIN_MS);
    expect(last?.names).toEqual(['a', 'b']);
    const done = last!.next(2, false);
    expect(done).toEqual(ofRound(3));
    expect(part(done, ['a'], NOW_MS + 1e9)).toBeUndefined();
  });

  it('are none where there never were profiles; and all where profiles are removed or replaced', () => {
    const without = policyOf([]);
    const at = { nowMs: NOW_MS, nodeNames: () => ['a'] };
    expect(profileSweepPart(undefined, { ...at, policy: without })).toBeUndefined();
    expect(profileSweepPart(ofRound(3), { ...at, policy: without })?.next(1, false)).toEqual(ofRound(2, { of: '' }));
    const other = policyOf(profilesOf('core'));
    const replaced = profileSweepPart(ofRound(3, { sinceMs: 1 }), { ...at, policy: other })!.next(1, false);
    expect(replaced).toMatchObject({ sinceMs: NOW_MS, round: 2 });
    expect(new Set([of, replaced.of, '']).size).toBe(3);
  });

  it('depend on names and selectors of the profiles, not on their other fields', () => {
    const changed = policyOf([
      { ...profilesOf('edge')[0]!, nodeMonitorGracePeriodSeconds: 99 } as Policy['profiles'][0],
    ]);
    expect(profileSweepPart(ofRound(3), { nowMs: NOW_MS, policy: changed, nodeNames: () => ['a'] })).toBeUndefined();
  });

  it('are at least a hundred per tick, and in a large fleet a part of four minutes', () => {
    expect(part(undefined, names(101))?.names).toEqual(names(100));
    expect(part(undefined, names(4_800))?.names).toHaveLength(100);
    expect(part(undefined, names(4_801))?.names).toHaveLength(101);
  });

  it('continue after the last one that was evaluated', () => {
    const sweep = part(undefined, names(150))!;
    const next = sweep.next(40, false);
    expect(next).toEqual(ofRound(1, { after: 'n00039' }));
    expect(part(next, names(150))?.names[0]).toBe('n00040');
    expect(part(next, names(150))!.next(0, false)).toEqual(next);
    expect(part(next, names(150))!.next(100, false)).toEqual(ofRound(1, { after: 'n00139' }));
    expect(part(next, names(140))!.next(100, false)).toEqual(ofRound(2));
  });

  it('are evaluated a minute later once more where one failed in the second round, for an hour', () => {
    const second = ofRound(2, { sinceMs: NOW_MS - DEPLOYED_WITHIN_MS });
    const failing = part(second, names(101))!.next(100, true);
    expect(failing).toEqual({ ...second, after: 'n00099', failed: true });
    const again = part(failing, names(101))!.next(1, false);
    expect(again).toEqual({ ...second, againAtMs: NOW_MS + 60_000 });
    expect(part(again, ['a'], NOW_MS + 59_999)).toBeUndefined();
    expect(part(again, ['a'], NOW_MS + 60_000)?.names).toEqual(['a']);
    expect(part(again, names(101), NOW_MS + 60_000)!.next(1, false)).toEqual({ ...again, after: 'n00000' });
    const end = second.sinceMs + 3_600_000;
    expect(part(second, ['a'], end - 1)!.next(1, true)).toEqual({ ...second, againAtMs: end - 1 + 60_000 });
    expect(part(second, ['a'], end)!.next(1, true)).toEqual({ ...second, round: 3 });
  });

  it('are not evaluated once more for a failure in the first round', () => {
    expect(part(undefined, ['a'])!.next(1, true)).toEqual(ofRound(2));
  });
});
