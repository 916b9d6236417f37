import { describe, expect, it } from 'vitest';
import type { TransactWrite } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';
import { type PackedSection, packSection, readSections, sectionWrites } from './section-store.ts';

const NOW_MS = 1_700_000_000_500;
const OWNER = 'customresourcedefinitions#things.example.com';

/** A text that is hardly compressed: of pseudorandom characters. */
function incompressible(bytes: number): string {
  let state = 1;
  return Array.from({ length: bytes }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return String.fromCharCode(32 + ((state >>> 16) % 90));
  }).join('');
}

const writesFor = (next: readonly PackedSection[], previous: readonly PackedSection[] = []) =>
  sectionWrites(OWNER, { next, previous, nowMs: NOW_MS });
const keysOf = (writes: readonly TransactWrite[]) => writes.map(({ kind, key }) => [kind, key.sk]);

describe('sections of an object', () => {
  it('are read as they were written, in parts of one item', async () => {
    const items = memoryItemStore();
    const [small, empty, large] = [
      packSection('v1', 'schema'),
      packSection('v2', ''),
      packSection('v3', incompressible(900_000)),
    ];
    expect([small.parts, empty.parts, large.parts]).toEqual([1, 1, 3]);
    const writes = writesFor([small, empty, large]);
    expect(writes).toHaveLength(5);
    expect(await items.transact(writes)).toEqual({ kind: 'written' });
    const texts = await readSections(items, OWNER, [large, small, empty]);
    expect([...texts]).toEqual([
      ['v3', incompressible(900_000)],
      ['v1', 'schema'],
      ['v2', ''],
    ]);
  });

  it('have the same name for the same text, of 128 bits', () => {
    expect(packSection('v1', 'schema').hash).toBe(packSection('v2', 'schema').hash);
    expect(packSection('v1', 'schema').hash).toMatch(/^[0-9a-f]{32}$/);
  });

  it('with the content of another one are stored once', async () => {
    const items = memoryItemStore();
    const [one, other] = [packSection('v1', 'schema'), packSection('v2', 'schema')];
    const writes = writesFor([one, other]);
    expect(writes).toHaveLength(1);
    await items.transact(writes);
    expect([...(await readSections(items, OWNER, [one, other])).values()]).toEqual(['schema', 'schema']);
  });

  it('that stay are not written, and those that are dropped expire after the change log and a late reader', () => {
    const [kept, before, after] = [packSection('v1', 'a'), packSection('v2', 'b'), packSection('v2', 'c')];
    const writes = writesFor([kept, after], [kept, before]);
    expect(keysOf(writes)).toEqual([
      ['put', `${after.hash}-00`],
      ['update', `${before.hash}-00`],
    ]);
    expect(writes[1]).toMatchObject({ set: { ttl: 1_700_000_001 + 3_600 + 900 } });
    expect(writesFor([kept], [kept])).toEqual([]);
  });

  it('that return after they were dropped lose their expiry', async () => {
    const items = memoryItemStore();
    const [a, b] = [packSection('v1', 'a'), packSection('v1', 'b')];
    await items.transact(writesFor([a]));
    await items.transact(writesFor([b], [a]));
    await items.transact(writesFor([a], [b]));
    const [write] = writesFor([a]);
    expect(await items.get(write!.key, { consistent: true })).not.toHaveProperty('ttl');
  });

  it('that are absent or damaged are a fault', async () => {
    const items = memoryItemStore();
    const section = packSection('v1', 'schema');
    await expect(readSections(items, OWNER, [section])).rejects.toMatchObject({
      code: 'rejected',
      message: 'a part of an object is absent',
    });
    const [write] = writesFor([{ ...section, bytes: Uint8Array.of(255, 255, 255) }]);
    await items.write(write as Extract<TransactWrite, { kind: 'put' }>);
    const damaged = readSections(items, OWNER, [section]);
    await expect(damaged).rejects.toMatchObject({ code: 'rejected', message: 'a part of an object is damaged' });
    await expect(damaged).rejects.toHaveProperty('cause');
  });

  it('that would become larger than 16 MB are a fault', async () => {
    const items = memoryItemStore();
    const section = packSection('v1', ' '.repeat(16 * 1_024 * 1_024 + 1));
    await items.transact(writesFor([section]));
    await expect(readSections(items, OWNER, [section])).rejects.toMatchObject({
      message: 'a part of an object is damaged',
    });
  });

  it('are read consistently: the object that names them may have been written a moment ago', async () => {
    const items = memoryItemStore();
    const section = packSection('v1', 'schema');
    await items.transact(writesFor([section]));
    const asked: unknown[] = [];
    await readSections(
      {
        getMany: (keys, options) => {
          asked.push(options);
          return items.getMany(keys, options);
        },
      },
      OWNER,
      [section],
    );
    expect(asked).toEqual([{ consistent: true }]);
  });
});
