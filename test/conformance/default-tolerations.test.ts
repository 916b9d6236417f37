/** Area DT: default tolerations on create and update of a pod, by the API. */
import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { apiInMemory, pod, podsIn } from '../support/api-in-memory.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const of = (key: string, tolerationSeconds: number): Toleration => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});

/** The tolerations of a pod that was created with these, and again when it was updated as it was stored. */
async function withDefaults(tolerations: readonly Toleration[], policy = defaultPolicy): Promise<Toleration[]> {
  const api = apiInMemory({ policy });
  const created = await api.send('POST', podsIn('default'), { body: pod('p', { spec: { tolerations } }) });
  expect(created.code).toBe(201);
  const updated = await api.send('PUT', `${podsIn('default')}/p`, { body: created.body });
  expect(updated.code).toBe(200);
  expect(updated.body.spec.tolerations).toEqual(created.body.spec.tolerations);
  return created.body.spec.tolerations;
}

describe('default tolerations', () => {
  it('DT-01 any pod without tolerations gets not-ready, then unreachable, 300 s each', async () => {
    expect(await withDefaults([])).toEqual([of(NOT_READY, 300), of(UNREACHABLE, 300)]);
  });

  it('DT-03 keeps not-ready 700 s and appends unreachable', async () => {
    expect(await withDefaults([of(NOT_READY, 700)])).toEqual([of(NOT_READY, 700), of(UNREACHABLE, 300)]);
  });

  it('DT-05 leaves a pod that has both', async () => {
    const both = [of(NOT_READY, 700), of(UNREACHABLE, 700)];
    expect(await withDefaults(both)).toEqual(both);
  });

  it('DT-07 leaves a pod that tolerates everything for 700 s', async () => {
    const all: Toleration[] = [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 700 }];
    expect(await withDefaults(all)).toEqual(all);
  });

  it('DT-09 another effect does not count', async () => {
    const noSchedule: Toleration = { key: NOT_READY, operator: 'Exists', effect: 'NoSchedule' };
    expect(await withDefaults([noSchedule])).toEqual([noSchedule, of(NOT_READY, 300), of(UNREACHABLE, 300)]);
  });

  it('DT-11 (ours, podEvictionTimeoutSeconds) the seconds are one setting for both', async () => {
    expect(await withDefaults([], { ...defaultPolicy, podEvictionTimeoutSeconds: 30 })).toEqual([
      of(NOT_READY, 30),
      of(UNREACHABLE, 30),
    ]);
  });
});
