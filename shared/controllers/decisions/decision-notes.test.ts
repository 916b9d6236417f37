import { expect, it } from 'vitest';
import { aPod, aTaint, tolerating } from '../../../test/support/eviction-world.ts';
import { defaultPolicy } from '../../domain/policy.ts';
import { decidePodEvictions, type EvictionWorld } from '../pod-evictor/rule.ts';
import { podEvictionNote } from './decision-notes.ts';

const NOW_MS = 1_000_000;
const KEY = 'example.com/maintenance';

/** The note of the only decision about a pod that tolerates the taint for so long; undefined: not at all. */
function noteOf(toleratedSeconds: number | undefined) {
  const pod = aPod('web', toleratedSeconds === undefined ? [] : [tolerating(KEY, toleratedSeconds)]);
  const world: EvictionWorld = {
    nodeName: 'node1',
    taints: [aTaint(KEY, NOW_MS / 1_000)],
    pods: [pod],
    timers: [],
    gate: { kind: 'open' },
    freshSinceMs: 0,
  };
  const [decision] = decidePodEvictions(world, NOW_MS, defaultPolicy);
  return podEvictionNote(decision!, { ...world, pod, timer: undefined }, NOW_MS, defaultPolicy);
}

it('the note of an eviction that is scheduled holds its time', () => {
  const { outcome, reason } = noteOf(60);
  expect(outcome).toMatchObject({ kind: 'schedule', atMs: NOW_MS + 60_000 });
  expect(reason).toMatch(/, to go at 1970-01-01T00:17:40Z$/);
});

it('the note of an eviction that is done holds no later time', () => {
  const { outcome } = noteOf(undefined);
  expect(outcome).toMatchObject({ kind: 'delete' });
  expect(Object.keys(outcome as object)).toEqual(['kind', 'why']);
});
