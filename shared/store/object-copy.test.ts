import { describe, expect, it } from 'vitest';
import { memoryObjects } from '../../test/support/memory-objects.ts';
import type { KubeObject } from '../kinds/types.ts';
import { objectCopy } from './object-copy.ts';

/** A copy of the name and a label of `things`. */
function copied() {
  const cluster = memoryObjects();
  const state = { lists: 0, isFailing: false, duringList: async (): Promise<void> => {} };
  const copy = objectCopy({
    items: cluster.items,
    clock: cluster.options.clock,
    resource: 'things',
    keep: ({ metadata }) => `${metadata.name} ${metadata.labels?.['v'] ?? '-'}`,
    async listAll() {
      state.lists += 1;
      if (state.isFailing) throw new Error('no list');
      await state.duringList();
      return (await cluster.store.list({ resource: 'things' })).objects;
    },
  });
  const get = async (name: string) =>
    (await cluster.store.get({ resource: 'things', namespace: '', name })) as KubeObject;
  return {
    ...cluster,
    ...copy,
    state,
    async label(name: string, v: string) {
      const previous = await get(name);
      const object = { ...previous, metadata: { ...previous.metadata, labels: { v } } };
      await cluster.commit({ kind: 'update', ref: { resource: 'things', namespace: '', name }, object, previous });
    },
    async remove(name: string) {
      const ref = { resource: 'things', namespace: '', name };
      await cluster.commit({ kind: 'delete', ref, previous: await get(name) });
    },
  };
}

describe('a copy of all objects', () => {
  it('lists once, then follows what is created, changed and deleted', async () => {
    const { read, create, label, remove, state } = copied();
    await create('a');
    await create('b');
    expect(await read()).toEqual(['a -', 'b -']);
    await create('c');
    await label('a', '1');
    await label('a', '2');
    await remove('b');
    const changed = await read();
    expect(changed.toSorted()).toEqual(['a 2', 'c -']);
    // A reader compares by identity what it derived from it.
    expect(await read()).toBe(changed);
    expect(state.lists).toBe(1);
  });

  it('keeps the newer version of an object that changed between its cursors and its list', async () => {
    const { read, create, label, remove, state } = copied();
    await create('a');
    await create('b');
    state.duringList = async () => {
      await label('a', '1');
      await remove('b');
      await create('b');
      await label('a', '2');
    };
    expect((await read()).toSorted()).toEqual(['a 2', 'b -']);
    state.duringList = async () => {};
    expect((await read()).toSorted()).toEqual(['a 2', 'b -']);
    await remove('a');
    expect(await read()).toEqual(['b -']);
    expect(state.lists).toBe(1);
  });

  it('keeps the newer version of an object that was renewed without an entry in the log', async () => {
    const { read, create, label, items, state } = copied();
    await create('a');
    state.duringList = async () => {
      await label('a', '1');
      const key = { table: 'objects', pk: 'o#things#00', sk: 'a' } as const;
      const renewed = '{"metadata":{"name":"a","labels":{"v":"2"}}}';
      await items.write({ kind: 'update', key, set: { rv: Number.MAX_SAFE_INTEGER, o: renewed } });
    };
    expect(await read()).toEqual(['a 2']);
    expect(await read()).toEqual(['a 2']);
  });

  it('lists again when asked to, and when what changed may have expired', async () => {
    const { read, list, create, pass, state } = copied();
    await create('a');
    await read();
    expect([await list(), state.lists]).toEqual([['a -'], 2]);
    pass(3_600_001);
    await create('b');
    expect([(await read()).toSorted(), state.lists]).toEqual([['a -', 'b -'], 3]);
    await create('c');
    expect([(await read()).toSorted(), state.lists]).toEqual([['a -', 'b -', 'c -'], 3]);
  });

  it('answers calls during a read by one read that begins later', async () => {
    const { read, list, create, state } = copied();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    state.duringList = () => held;
    const first = read();
    const [second, third] = [list(), read()];
    expect(second).toBe(third);
    await create('a');
    release();
    expect([await first, await second, state.lists]).toEqual([['a -'], ['a -'], 2]);
    const fourth = read();
    expect(fourth).not.toBe(second);
    expect([await fourth, state.lists]).toEqual([['a -'], 2]);
  });

  it('that could not be read is read by the next call, also by one that waits', async () => {
    const { read, create, state } = copied();
    await create('a');
    state.isFailing = true;
    const first = read();
    const second = read();
    await expect(first).rejects.toThrow('no list');
    await expect(second).rejects.toThrow('no list');
    state.isFailing = false;
    expect([await read(), state.lists]).toEqual([['a -'], 3]);
  });
});
