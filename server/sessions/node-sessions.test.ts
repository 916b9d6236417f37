import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { UserInfo } from '../../shared/access/user-info.ts';
import { NodeSessions } from './node-sessions.ts';

const USER: UserInfo = { username: 'system:node:n1', groups: ['system:nodes'] };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Its agent answers pings. */
function line() {
  const closed = Promise.withResolvers<void>();
  let onPong = (): void => {};
  let isEnded = false;
  const destroy = (): void => {
    isEnded = true;
    closed.resolve();
  };
  return {
    isEnded: () => isEnded,
    socket: {
      send: async () => true,
      close: destroy,
      destroy,
      ping: () => onPong(),
      onPong(listener: () => void) {
        onPong = listener;
      },
      closed: closed.promise,
      [Symbol.asyncIterator]: () => ({
        next: () => closed.promise.then(() => ({ done: true as const, value: undefined })),
      }),
    },
  };
}

it.each([
  ['has its key stays', async () => true, false],
  ['has lost its key ends', async () => false, true],
  ['may have its key, where the store does not answer, stays', () => Promise.reject(new Error('no answer')), false],
])('the line of a node that %s', async (_what, hasItsKey, ends) => {
  const sessions = new NodeSessions({ uuid: () => 'u', monotonicMs: () => performance.now(), hasItsKey });
  const opened = line();
  sessions.addLine('n1', USER, opened.socket);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(opened.isEnded()).toBe(ends);
  expect(sessions.lines).toBe(ends ? 0 : 1);
  sessions.stop();
});
