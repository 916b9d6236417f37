import { expect, it } from 'vitest';
import { aPod, aTaint, tolerating } from '../../test/support/eviction-world.ts';
import { decidePodEvictions, type EvictionWorld } from './eviction.rule.ts';
import { podEvictionDraft } from './eviction-decisions.ts';
import { defaultPolicy } from './policy.ts';

const NOW_MS = 1_000_000;
const KEY = 'example.com/maintenance';

/** The record of the only decision about a pod that tolerates the taint for so long; undefined: not at all. */
function draftOf(toleratedSeconds: number | undefined) {
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
  return podEvictionDraft(decision!, { ...world, pod, timer: undefined }, NOW_MS, defaultPolicy);
}

it('the record of an eviction that is scheduled holds its time', () => {
  const { outcome, reason } = draftOf(60);
  expect(outcome).toMatchObject({ kind: 'schedule', atMs: NOW_MS + 60_000 });
  expect(reason).toMatch(/, eviction due at 1970-01-01T00:17:40Z$/);
});

it('the record of an eviction that is done holds no later time', () => {
  const { outcome } = draftOf(undefined);
  expect(outcome).toMatchObject({ kind: 'delete' });
  expect(Object.keys(outcome as object)).toEqual(['kind', 'why']);
});

it('the record has the signs of life of the node only for a pod that its machine stops offline', () => {
  const inputsOf = (more: object) => {
    const pod = { ...aPod('web', []), ...more };
    const world: EvictionWorld = {
      nodeName: 'node1',
      taints: [aTaint(KEY, NOW_MS / 1_000)],
      pods: [pod],
      timers: [],
      gate: { kind: 'open' },
      freshSinceMs: 0,
      signs: { createdAtMs: 1, renewedAtMs: 2 },
    };
    const [decision] = decidePodEvictions(world, NOW_MS, defaultPolicy);
    return podEvictionDraft(decision!, { ...world, pod, timer: undefined }, NOW_MS, defaultPolicy).inputs;
  };
  expect(JSON.stringify(inputsOf({}))).not.toContain('renewedAtMs');
  expect(JSON.stringify(inputsOf({ offlineStopMs: 5_000 }))).toContain('"renewedAtMs":2');
});
