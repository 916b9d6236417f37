import { expect, it } from 'vitest';
import { answered, timedOut } from '../../test/support/agent-api.ts';
import { finalPodDeletion, isPodMissing, podPath, podStatusReport } from './pod-requests.ts';

const pod = { metadata: { name: 'w b', namespace: 's p', uid: 'u1' } };

it('names the pod in its path and by its uid', () => {
  expect(podPath(pod)).toBe('/api/v1/namespaces/s%20p/pods/w%20b');
  expect(podStatusReport(pod, { phase: 'Running' })).toEqual({
    method: 'PATCH',
    path: '/api/v1/namespaces/s%20p/pods/w%20b/status',
    body: { metadata: { uid: 'u1' }, status: { phase: 'Running' } },
    contentType: 'application/strategic-merge-patch+json',
  });
  expect(finalPodDeletion(pod)).toEqual({
    method: 'DELETE',
    path: '/api/v1/namespaces/s%20p/pods/w%20b',
    body: { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid: 'u1' } },
  });
});

it('knows from the answer that the pod no longer exists', () => {
  expect([404, 409, 200, 403, 500].map((status) => isPodMissing(answered(status)))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(isPodMissing(timedOut)).toBe(false);
});

it('removes the conditions of resizes that have ended, stored or reported', () => {
  const conditions = (...types: string[]) => ({ conditions: types.map((type) => ({ type, status: 'True' })) });
  const stored = { ...pod, status: conditions('Ready', 'PodResizePending', 'Own') };
  const report = podStatusReport(stored, conditions('Ready'), conditions('Ready', 'PodResizeInProgress'));
  expect(report.body.status).toEqual({
    conditions: [
      { type: 'Ready', status: 'True' },
      { $patch: 'delete', type: 'PodResizePending' },
      { $patch: 'delete', type: 'PodResizeInProgress' },
    ],
  });
});
