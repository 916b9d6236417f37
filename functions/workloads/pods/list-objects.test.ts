import { expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { ListRequest, ObjectStore } from '../../../shared/store/object-store.ts';
import { listObjects } from './list-objects.ts';

/** Pages of one object each. */
function paged(pages: number) {
  const requests: ListRequest[] = [];
  const objects = {
    async list(request: ListRequest) {
      requests.push(request);
      const object = { metadata: { name: String(requests.length) } } as KubeObject;
      return { objects: [object], ...(requests.length < pages ? { next: `after-${requests.length}` } : {}) };
    },
  } as unknown as ObjectStore;
  return { objects, requests };
}

it('all pages are read, each after the one before', async () => {
  const { objects, requests } = paged(3);
  const found = await listObjects({ objects }, 'pods', 'd');
  expect(found.map(({ metadata }) => metadata.name)).toEqual(['1', '2', '3']);
  expect(requests).toEqual([
    { resource: 'pods', namespace: 'd', limit: 500 },
    { resource: 'pods', namespace: 'd', limit: 500, continueAfter: 'after-1' },
    { resource: 'pods', namespace: 'd', limit: 500, continueAfter: 'after-2' },
  ]);
});

it('at most 200 pages are read', async () => {
  expect(await listObjects(paged(200), 'pods', '')).toHaveLength(200);
  const { objects, requests } = paged(201);
  await expect(listObjects({ objects }, 'pods', '')).rejects.toMatchObject({ retryable: false });
  expect(requests).toHaveLength(200);
});
