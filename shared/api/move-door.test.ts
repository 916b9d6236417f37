import { expect, it } from 'vitest';
import type { HttpRequest, HttpResponse } from '../kubernetes/http.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { FENCE_KEY, type Fence, fenceItem } from '../store/move-rows.ts';
import { answerOfFence, behindFence } from './move-door.ts';

const FENCE: Fence = { moveId: 'm', to: '/new', sinceMs: 1, isReady: true };
const MOVED: Fence = { ...FENCE, address: { endpoint: 'https://new.example' } };
const statusOf = (method: string, fence: Fence | undefined, path = '/api/v1/nodes', isDraining = false) =>
  answerOfFence({ method, path }, { fence, isDraining })?.status;

it('reads are served while rows are copied, writes are not; then everything is answered with the new address', () => {
  expect([statusOf('GET', undefined), statusOf('POST', undefined)]).toEqual([undefined, undefined]);
  expect([statusOf('GET', FENCE), statusOf('POST', FENCE)]).toEqual([undefined, 503]);
  expect([statusOf('GET', undefined, '/x', true), statusOf('PATCH', undefined, '/x', true)]).toEqual([undefined, 503]);
  expect([statusOf('GET', MOVED), statusOf('POST', MOVED)]).toEqual([421, 421]);
  expect(statusOf('GET', MOVED, '/readyz')).toBeUndefined();
  expect(answerOfFence({ method: 'POST', path: '/x' }, { fence: FENCE, isDraining: false })?.headers).toMatchObject({
    'retry-after': '10',
  });
});

it('a function reads the fence first, then every five seconds, and answers while it cannot be read', async () => {
  const items = memoryItemStore();
  let nowMs = 0;
  let reads = 0;
  let isBroken = true;
  const serve = behindFence(async () => ({ status: 200, headers: {}, body: '' }) satisfies HttpResponse, {
    items: {
      async get(key, options) {
        reads += 1;
        if (isBroken) throw new Error('throttled');
        return items.get(key, options);
      },
    },
    nowMs: () => nowMs,
  });
  const ask = async () => (await serve({ method: 'GET', path: '/api/v1/nodes' } as HttpRequest)).status;
  expect([await ask(), reads]).toEqual([200, 1]);
  isBroken = false;
  expect([await ask(), await ask(), reads]).toEqual([200, 200, 2]);
  await items.write({ kind: 'put', key: FENCE_KEY, item: fenceItem(MOVED) });
  nowMs = 4_999;
  expect([await ask(), reads]).toEqual([200, 2]);
  nowMs = 5_000;
  expect([await ask(), await ask(), reads]).toEqual([421, 421, 3]);
});
