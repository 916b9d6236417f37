import type { Http2ServerRequest } from 'node:http2';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { readBody } from './http-body.ts';

const LIMITS = { bytesMax: 10, timeoutMs: 10_000 };
const request = () => new PassThrough() as unknown as Http2ServerRequest & PassThrough;

it('a body that was read leaves nothing that waits for the close of its request', async () => {
  const sent = request();
  const reading = readBody(sent, LIMITS);
  sent.end('text');
  expect(String(await reading)).toBe('text');
  expect([sent.listenerCount('data'), sent.listenerCount('close')]).toEqual([0, 0]);
});

it('a body ends at its limit, and by what decides on its parts', async () => {
  const long = request();
  const reading = readBody(long, LIMITS);
  long.write('more than ten');
  expect(await reading).toBe('tooLarge');
  const refused = request();
  const deciding = readBody(refused, { ...LIMITS, admit: (bytes) => (bytes > 1 ? ('crowded' as const) : undefined) });
  refused.write('a');
  refused.write('bc');
  expect(await deciding).toBe('crowded');
});

it('a body rejects when its client leaves before it is whole', async () => {
  const sent = request();
  const reading = readBody(sent, LIMITS);
  sent.write('a');
  sent.destroy();
  await expect(reading).rejects.toThrow('the client left before its body was whole');
});
