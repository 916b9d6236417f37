import { describe, expect, it } from 'vitest';
import { aTaint } from '../../../test/support/eviction-world.ts';
import { TAINT_NOT_READY, TAINT_UNREACHABLE } from '../taints/taint.ts';
import { type NodeSigns, removalVerdict } from './removal-time.rule.ts';

const silent: NodeSigns = { ready: 'Unknown', createdAtMs: 0, renewedAtMs: 40_000, statusAtMs: 10_000 };
const verdict = (more: Partial<Parameters<typeof removalVerdict>[0]> = {}) =>
  removalVerdict({
    offlineStopMs: 700_000,
    taints: [aTaint(TAINT_UNREACHABLE)],
    signs: silent,
    freshSinceMs: 0,
    ...more,
  });

describe('the removal of a terminating pod that must not run twice', () => {
  it('is due when its machine has stopped it, by the last heartbeat that the cluster received', () => {
    expect(verdict()).toMatchObject({
      kind: 'due',
      atMs: 740_000,
      reason: 'no heartbeat or status since 1970-01-01T00:00:40Z, and the machine has stopped the pod after 700 s',
    });
  });

  it.each([
    ['a later status post', { statusAtMs: 50_000 }, 750_000],
    ['no heartbeat and no status, but its creation', { renewedAtMs: undefined, statusAtMs: undefined }, 700_000],
  ])('counts from %s', (_, signs, atMs) => {
    expect(verdict({ signs: { ...silent, ...signs } as NodeSigns })).toMatchObject({ kind: 'due', atMs });
  });

  it('counts anew after an outage of the controller, which may be a step of its clock', () => {
    expect(verdict({ freshSinceMs: 90_000 })).toMatchObject({
      kind: 'due',
      atMs: 790_000,
      reason: expect.stringContaining('(counted from 1970-01-01T00:01:30Z, after a controller outage)'),
    });
    expect(verdict({ freshSinceMs: 30_000 })).toMatchObject({ atMs: 740_000 });
  });

  it.each([
    ['is Ready again', { signs: { ...silent, ready: 'True' as const } }],
    ['reports that it is not ready', { signs: { ...silent, ready: 'False' as const } }],
    ['has no digest', { signs: undefined }],
    ['is not tainted yet', { taints: [] }],
    ['has another taint alone', { taints: [aTaint(TAINT_NOT_READY)] }],
  ])('is never due while its node %s', (_, more) => {
    expect(verdict(more)).toMatchObject({ kind: 'none' });
  });
});
