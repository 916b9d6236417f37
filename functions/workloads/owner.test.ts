import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { controllerReference, isNewWithout, refOfObject, syncUnlessOvertaken, withOwners } from './owner.ts';

const object = { metadata: { namespace: 'd', name: 'x', uid: 'u' } } as KubeObject;

it('a sync is repeated while others overtake it, four times at most', async () => {
  const run = async (overtaken: number) => {
    let attempts = 0;
    const outcome = await syncUnlessOvertaken('Job', async () => {
      attempts += 1;
      return attempts <= overtaken ? 'overtaken' : { lookAgainAtMs: 7 };
    }).catch((fault: unknown) => fault);
    return { outcome, attempts };
  };
  expect(await run(0)).toEqual({ outcome: { lookAgainAtMs: 7 }, attempts: 1 });
  expect(await run(3)).toEqual({ outcome: { lookAgainAtMs: 7 }, attempts: 4 });
  const failed = await run(4);
  expect([failed.attempts, failed.outcome instanceof StoreFault]).toEqual([4, true]);
  expect(failed.outcome).toMatchObject({ retryable: true });
});

it('an owner that was never synced needs what it may adopt', () => {
  const synced = { ...object, status: { observedGeneration: 1 } } as KubeObject;
  expect([isNewWithout(undefined, object), isNewWithout(undefined, synced)]).toEqual([true, false]);
  expect([isNewWithout([], object), isNewWithout([], synced)]).toEqual([false, false]);
  expect(isNewWithout(undefined, { ...object, status: {} })).toBe(true);
});

it.each([
  ['ReplicaSet', 'apps/v1'],
  ['DaemonSet', 'apps/v1'],
  ['StatefulSet', 'apps/v1'],
  ['ReplicationController', 'v1'],
  ['Job', 'batch/v1'],
  ['CronJob', 'batch/v1'],
] as const)('a %s controls what it owns, as %s', (kind, apiVersion) => {
  expect(controllerReference(kind, object)).toEqual({
    apiVersion,
    kind,
    name: 'x',
    uid: 'u',
    controller: true,
    blockOwnerDeletion: true,
  });
});

it('an object without owners has no field for them', () => {
  const owned = withOwners(object, [controllerReference('Job', object)]);
  expect(owned.metadata.ownerReferences).toHaveLength(1);
  expect(withOwners(owned, [])).toEqual(object);
});

it('a reference has the place of its object', () => {
  expect(refOfObject('jobs', object)).toEqual({ resource: 'jobs', namespace: 'd', name: 'x' });
  expect(refOfObject('nodes', { metadata: {} })).toEqual({ resource: 'nodes', namespace: '', name: '' });
});
