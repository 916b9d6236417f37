import { expect, it } from 'vitest';
import { type ChunkHold, HeldChunks } from './held-chunks.ts';

it.each<[ChunkHold, number, number]>([
  ['none', 0, 3],
  ['one-chunk', 1, 2],
  ['16-kb', 16_384, 2],
  ['100-kb', 102_400, 2],
])('%s delivers two chunks when %d bytes follow', (hold, bytes, chunks) => {
  const held = new HeldChunks(hold);
  const delivered = [held.add(new Uint8Array(10)), held.add(new Uint8Array(20))].flat();
  delivered.push(...held.add(new Uint8Array(Math.max(1, bytes))));
  expect(delivered).toHaveLength(chunks);
  expect(held.rest()).toHaveLength(3 - chunks);
  expect(held.rest()).toEqual([]);
});

it.each<[ChunkHold, number]>([
  ['16-kb', 16_383],
  ['100-kb', 102_399],
])('%s holds a chunk while %d bytes follow', (hold, bytes) => {
  const held = new HeldChunks(hold);
  expect([held.add(new Uint8Array(10)), held.add(new Uint8Array(bytes))].flat()).toEqual([]);
  expect(held.rest()).toHaveLength(2);
});
