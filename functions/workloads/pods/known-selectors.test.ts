import { expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { ListRequest, ObjectStore } from '../../../shared/store/object-store.ts';
import { knownSelectors } from './known-selectors.ts';

function world() {
  const lists: ListRequest[] = [];
  const state = { nowMs: 1_000_000, isBroken: false };
  const object = (namespace: string): KubeObject => ({ metadata: { name: 'a', namespace } });
  const objects: Partial<ObjectStore> = {
    async list(request) {
      lists.push(request);
      if (state.isBroken) throw new Error('the table is away');
      return { objects: [object('one'), object('two')] };
    },
  };
  const known = knownSelectors(objects as ObjectStore, { nowMs: () => state.nowMs }, 'services');
  return { known, lists, state };
}

it('objects that select pods are listed once in 30 seconds, for all namespaces', async () => {
  const { known, lists, state } = world();
  expect(await known.in('one')).toEqual([{ metadata: { name: 'a', namespace: 'one' } }]);
  expect(await known.in('three')).toEqual([]);
  state.nowMs += 29_999;
  await known.in('two');
  expect(lists).toHaveLength(1);
  expect(lists[0]).toMatchObject({ resource: 'services' });
  expect(lists[0]?.namespace ?? '').toBe('');
  state.nowMs += 1;
  await known.in('two');
  expect(lists).toHaveLength(2);
});

it('one that was written is listed at once', async () => {
  const { known, lists } = world();
  await known.in('one');
  known.forget();
  await known.in('one');
  expect(lists).toHaveLength(2);
});

it('a list that failed is repeated by the next caller', async () => {
  const { known, lists, state } = world();
  state.isBroken = true;
  await expect(known.in('one')).rejects.toThrow('the table is away');
  state.isBroken = false;
  expect(await known.in('one')).toHaveLength(1);
  expect(lists).toHaveLength(2);
});
