import { EventEmitter } from 'node:events';
import type { Http2ServerResponse } from 'node:http2';
import { afterEach, expect, it, vi } from 'vitest';
import { lastPart } from './http-response.ts';

afterEach(() => void vi.useRealTimers());

const responseOf = (accepts: boolean) => {
  const written: (string | Buffer)[] = [];
  const stream = { close() {}, destroy: vi.fn() };
  const write = (part: string | Buffer) => written.push(part) > 0 && accepts;
  const response = Object.assign(new EventEmitter(), { write, stream }) as unknown as Http2ServerResponse;
  return { response, written, stream };
};

it.each([
  ['text', '\u{1f600}'.repeat(70_000), (parts: readonly (string | Buffer)[]) => parts.join('')],
  ['bytes', Buffer.alloc(200_000, 'ab'), (parts: readonly (string | Buffer)[]) => Buffer.concat(parts as Buffer[])],
])('writes a long body of %s in parts', async (_what, body, joined) => {
  const { response, written } = responseOf(true);
  const last = await lastPart(response, body);
  expect(written.length).toBeGreaterThan(1);
  expect(joined([...written, last])).toEqual(body);
});

it.each([
  ['text', 'x'.repeat(200_000)],
  ['bytes', Buffer.alloc(200_000)],
])('cuts off a client that accepts nothing of a body of %s for 30 s', async (_what, body) => {
  vi.useFakeTimers();
  const { response, written, stream } = responseOf(false);
  const last = lastPart(response, body);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await last).toBe('');
  expect([written.length, stream.destroy.mock.calls.length]).toEqual([1, 1]);
});
