import { describe, expect, it } from 'vitest';
import { asRemoved, renamedPath } from './renamed-versions.ts';

describe('versions that Kubernetes 1.25 removed', () => {
  it.each([
    ['/apis/batch/v1beta1', '/apis/batch/v1'],
    ['/apis/batch/v1beta1/namespaces/a/cronjobs?watch=true', '/apis/batch/v1/namespaces/a/cronjobs?watch=true'],
    ['/apis/discovery.k8s.io/v1beta1/endpointslices', '/apis/discovery.k8s.io/v1/endpointslices'],
  ])('%s is served as %s', (removed, served) => {
    expect(renamedPath(removed)?.path).toBe(served);
  });

  it.each(['/apis/batch/v1/jobs', '/apis/batch/v1beta10', '/apis/policy/v1beta1/poddisruptionbudgets', '/api/v1/pods'])(
    '%s stays',
    (path) => {
      expect(renamedPath(path)).toBeUndefined();
    },
  );

  it('are named in answers', () => {
    const item = '{"apiVersion":"batch/v1","spec":{"note":"see batch/v1"}}';
    expect(asRemoved(item, 'batch')).toBe('{"apiVersion":"batch/v1beta1","spec":{"note":"see batch/v1"}}');
  });
});
