import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { deletionWrite } from './deletion-write.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const object = (metadata: object = {}, spec: object = {}): KubeObject =>
  ({ metadata: { name: 'x', ...metadata }, spec }) as KubeObject;
const ref = (resource: string) => ({ resource, namespace: 'd', name: 'x' });
const write = (resource: string, of: KubeObject, previous?: KubeObject) => {
  const done = deletionWrite(ref(resource), of, NOW_MS, previous);
  return done.kind === 'delete'
    ? done
    : { kind: done.kind, metadata: done.object.metadata, previous: done.kind === 'update' ? done.previous : undefined };
};

it('a pod is deleted with its own grace period', () => {
  const patient = object({}, { nodeName: 'n', terminationGracePeriodSeconds: 40 });
  expect(write('pods', patient)).toMatchObject({
    kind: 'update',
    metadata: { deletionGracePeriodSeconds: 40, deletionTimestamp: '2026-01-01T00:00:40Z' },
    previous: patient,
  });
  const quick = object({}, { nodeName: 'n', terminationGracePeriodSeconds: 0 });
  expect(write('pods', quick)).toEqual({ kind: 'delete', ref: ref('pods'), previous: quick });
  expect(write('jobs', patient)).toEqual({ kind: 'delete', ref: ref('jobs'), previous: patient });
});

it('an object with a finalizer is marked as deleted', () => {
  const guarded = object({ finalizers: ['f'] });
  expect(write('jobs', guarded)).toMatchObject({
    kind: 'update',
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['f'] },
  });
  expect(write('jobs', object({ finalizers: [] })).kind).toBe('delete');
});

it('a write that changes the object has the stored one before it', () => {
  const stored = object({ finalizers: ['f'] });
  expect(write('jobs', object(), stored)).toEqual({ kind: 'delete', ref: ref('jobs'), previous: stored });
  expect(write('jobs', object({ finalizers: ['g'] }), stored)).toMatchObject({ kind: 'update', previous: stored });
});
