import { expect, it } from 'vitest';
import { StoreFault } from '../../../shared/store/item-store.ts';
import type { ObjectStore } from '../../../shared/store/object-store.ts';
import { listAttachments } from './list-attachments.ts';

/** A list of so many pages with one object each, and the requests for them. */
function paged(pages: number) {
  const asked: unknown[] = [];
  const objects = {
    async list(request: Parameters<ObjectStore['list']>[0]) {
      asked.push(request);
      const page = asked.length;
      return { objects: [{ metadata: { name: `va-${page}` } }], ...(page < pages && { next: `p${page}` }) };
    },
  } as unknown as ObjectStore;
  return { objects, asked };
}

it('the attachments of all pages are read, each page after the one before', async () => {
  const { objects, asked } = paged(3);
  expect((await listAttachments(objects)).map(({ metadata }) => metadata.name)).toEqual(['va-1', 'va-2', 'va-3']);
  expect(asked).toEqual([
    { resource: 'volumeattachments', limit: 1_000 },
    { resource: 'volumeattachments', limit: 1_000, continueAfter: 'p1' },
    { resource: 'volumeattachments', limit: 1_000, continueAfter: 'p2' },
  ]);
});

it('a hundred pages are read at most', async () => {
  expect(await listAttachments(paged(100).objects)).toHaveLength(100);
  await expect(listAttachments(paged(101).objects)).rejects.toThrow(StoreFault);
});
