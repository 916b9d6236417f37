import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type CidrSetKey, cidrStore, takeBlockWrite } from './cidr-store.ts';

const SET: CidrSetKey = '10.0.0.0/16#24';
const owner = (name: string) => ({ nodeName: name, uid: `u-${name}` });
const block = (number: number) => ({ first: number, last: number });

describe('the blocks of a cluster CIDR', () => {
  it('have one owner each, also when they are written with the Node', async () => {
    const items = memoryItemStore();
    const store = cidrStore(items);
    const claim = async (name: string) => (await items.write(takeBlockWrite(SET, 3, owner(name)))).kind;
    expect([await claim('a'), await claim('a'), await claim('b')]).toEqual(['written', 'written', 'refused']);
    expect(await store.occupy(SET, block(3), owner('a'))).toBe('known');
    expect(await store.occupy(SET, block(3), owner('b'))).toBe('taken');
    expect(await store.occupy(SET, block(4), owner('b'))).toBe('written');
    expect(await store.occupy('10.1.0.0/16#24', block(3), owner('b'))).toBe('written');
    expect((await store.read(SET)).taken).toEqual([
      { first: 3, last: 3, ...owner('a') },
      { first: 4, last: 4, ...owner('b') },
    ]);
  });

  it('are freed by their owner alone, once', async () => {
    const store = cidrStore(memoryItemStore());
    await store.occupy(SET, block(3), owner('a'));
    const free = (uid: string) => store.release(SET, block(3), uid);
    expect([await free('u-b'), await free('u-a'), await free('u-a')]).toEqual(['notTheirs', 'written', 'notTheirs']);
    expect((await store.read(SET)).taken).toEqual([]);
  });

  it('of a wide CIDR are one range for each owner', async () => {
    const store = cidrStore(memoryItemStore());
    const wide = { first: 2, last: 9 };
    await store.occupy(SET, block(1), owner('a'));
    expect(await store.occupy(SET, wide, owner('a'))).toBe('written');
    expect(await store.occupy(SET, wide, owner('b'))).toBe('written');
    expect(await store.readRanges(SET)).toEqual([
      { ...wide, ...owner('a') },
      { ...wide, ...owner('b') },
    ]);
    expect((await store.read(SET)).taken).toHaveLength(3);
    expect(await store.release(SET, wide, 'u-a')).toBe('written');
    expect(await store.readRanges(SET)).toEqual([{ ...wide, ...owner('b') }]);
  });

  it('are searched from the cursor, and counted once', async () => {
    const store = cidrStore(memoryItemStore());
    expect(await store.read(SET)).toEqual({ taken: [], cursor: 0, counted: false });
    await store.moveCursor(SET, 17);
    expect(await store.read(SET)).toEqual({ taken: [], cursor: 17, counted: false });
    await store.setCounted(SET, 5);
    expect(await store.read(SET)).toEqual({ taken: [], cursor: 17, counted: true });
  });

  it.each(['b#x', 'r#x#1#u', 'r#1#x#u'])('with the key %s are refused', async (sk) => {
    const items = memoryItemStore();
    await items.write({ kind: 'put', key: { table: 'control', pk: `cidr#${SET}`, sk }, item: { node: 'n', uid: 'u' } });
    await expect(cidrStore(items).read(SET)).rejects.toMatchObject({ retryable: false });
  });
});
