import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { gunzip, gzip, gzipInThread } from './gzip.ts';

const BYTES_MAX = 100_000;

describe('bytes of a client', () => {
  it('are decompressed up to the limit', () => {
    for (const length of [0, 1, BYTES_MAX]) {
      expect(gunzip(gzip('x'.repeat(length)), BYTES_MAX)).toHaveLength(length);
    }
  });

  it('are refused as soon as their output exceeds the limit, however small they are', () => {
    const bomb = gzipSync(Buffer.alloc(128 * 1_024 * 1_024));
    expect(bomb.length).toBeLessThan(200_000);
    const before = process.memoryUsage().arrayBuffers;
    for (let turn = 0; turn < 20; turn += 1) expect(gunzip(bomb, BYTES_MAX)).toBeUndefined();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1_024 * 1_024);
  });

  it('count together, if they are several members', () => {
    const half = gzip('x'.repeat(BYTES_MAX / 2));
    expect(gunzip(Buffer.concat([half, half]), BYTES_MAX)).toHaveLength(BYTES_MAX);
    expect(gunzip(Buffer.concat([half, half, gzip('x')]), BYTES_MAX)).toBeUndefined();
  });

  it.each([
    ['no gzip', Buffer.from('hello')],
    ['nothing', new Uint8Array()],
    ['a half', gzip('hello').subarray(0, 12)],
    ['a wrong check sum', gzip('hello').map((byte, index, all) => (index === all.length - 5 ? byte ^ 1 : byte))],
  ])('that are %s are refused', (_what, bytes) => {
    expect(gunzip(bytes, BYTES_MAX)).toBeUndefined();
  });
});

it('a thread compresses a long text, also where a part ends within a character', async () => {
  for (const text of ['', 'x', `x${'\u{1f600}'.repeat(300_000)}`]) {
    const bytes = gunzipSync(await gzipInThread(text));
    expect(bytes.equals(Buffer.from(text))).toBe(true);
  }
});
