import { afterEach, expect, it, vi } from 'vitest';
import { listAndWatch } from './watch.ts';

afterEach(() => vi.unstubAllGlobals());

/** The list has `pages` pages, and the target reads two at most. The watch after them ends the test. */
async function listed(pages: number): Promise<readonly boolean[]> {
  const ends: boolean[] = [];
  const ending = new AbortController();
  vi.stubGlobal('fetch', async (url: string) => {
    if (url.includes('watch=1')) {
      ending.abort();
      throw new Error('ended');
    }
    const page = Number(new URLSearchParams(url.split('?')[1]).get('continue') ?? 1);
    const metadata = page < pages ? { continue: String(page + 1) } : {};
    return new Response(JSON.stringify({ items: [{}], metadata }));
  });
  await listAndWatch(
    {
      path: '/api/v1/nodes',
      pagesMax: 2,
      onListStart: () => {},
      onListPage: () => {},
      onListEnd: (isCut) => void ends.push(isCut),
      onChange: () => {},
      onState: () => {},
    },
    ending.signal,
  );
  return ends;
}

it('reports a list that has more pages than are read', async () => {
  expect(await listed(3)).toEqual([true]);
});

it('reports a list that was read as a whole, with as many pages as are read', async () => {
  expect(await listed(2)).toEqual([false]);
  expect(await listed(1)).toEqual([false]);
});
