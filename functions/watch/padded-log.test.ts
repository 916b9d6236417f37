import { createGunzip, gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { paddedLog } from './padded-log.ts';
import { storedGzip } from './stored-gzip.ts';

async function* parts(...sizes: readonly number[]) {
  for (const [index, size] of sizes.entries()) yield Buffer.alloc(size, 65 + index);
}

async function collected(output: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return chunks;
}

it.each([1, 16_384, 102_400])('a padding of %d bytes does not change the output', async (paddingBytes) => {
  const chunks = await collected(paddedLog(parts(1, 262_144, 65_535, 65_536), storedGzip(), paddingBytes));
  const output = Buffer.concat((await collected(parts(1, 262_144, 65_535, 65_536))) as Uint8Array[]);
  expect(gunzipSync(Buffer.concat(chunks)).equals(output)).toBe(true);
  expect(chunks.filter(({ length }) => length >= paddingBytes).length).toBeGreaterThanOrEqual(5);
});

it('an empty output has bytes', async () => {
  const chunks = await collected(paddedLog(parts(), storedGzip(), 1));
  expect(gunzipSync(Buffer.concat(chunks))).toHaveLength(0);
});

it('a decoder returns a part as soon as its padding arrives', async () => {
  const decoder = createGunzip();
  const received: string[] = [];
  decoder.on('data', (part: Buffer) => received.push(part.toString()));
  const frames = storedGzip();
  const write = (chunk: Uint8Array) => new Promise((resolve) => decoder.write(chunk, resolve));
  await write(frames.head());
  await write(frames.frame(Buffer.from('first\n')));
  await write(frames.padding(1));
  expect(received.join('')).toBe('first\n');
});
