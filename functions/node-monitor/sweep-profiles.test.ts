import { beforeEach, expect, it } from 'vitest';
import { nodeRef } from '../../shared/fleet/nodes/change-node.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type WorkDependencies, workDependencies } from '../../shared/ticks/dependencies.ts';
import { monitorDependencies } from './dependencies.ts';
import { sweepProfiles } from './sweep-profiles.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const PROFILE = 'nodekeeper.dev/profile';
const policy = {
  ...defaultPolicy,
  profiles: [
    { name: 'slow', nodeSelector: { matchLabels: { speed: 'slow' } } },
  ] as unknown as typeof defaultPolicy.profiles,
};

let tables: MemoryItemStore;
/** Names of each read of Nodes. */
let reads: string[][];
let refused: Set<string>;
let dependencies: WorkDependencies;

beforeEach(() => {
  tables = memoryItemStore();
  reads = [];
  refused = new Set();
  const items: ItemStore = {
    ...tables,
    transact: (writes) =>
      writes.some(({ key }) => key.pk.startsWith('o#nodes#') && refused.has(key.sk))
        ? Promise.reject(new StoreFault('rejected', 'bad', { retryable: false }))
        : tables.transact(writes),
  };
  const silent = () => {};
  dependencies = workDependencies({
    items,
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => 'u', fraction: () => 0 },
    policy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
  });
});

const createNode = (name: string, labels: Record<string, string>) =>
  dependencies.objects.commit({
    writes: [{ kind: 'create', ref: nodeRef(name), object: { kind: 'Node', metadata: { name, uid: name, labels } } }],
  });
const profileOf = async (name: string) =>
  (await dependencies.objects.get(nodeRef(name)))?.metadata.annotations?.[PROFILE];
const STORED = { of: 'x', sinceMs: 1, round: 1, after: '' } as const;
const progress = () => tables.items('control').find(({ of }) => of !== undefined);

/** A part of these names. Its progress has the number that was evaluated as its name. */
async function sweep(names: readonly string[], hasTime: () => boolean = () => true) {
  const { objects } = dependencies;
  const recording = {
    ...objects,
    getMany: (refs: Parameters<typeof objects.getMany>[0]) => {
      reads.push(refs.map(({ name }) => name));
      return objects.getMany(refs);
    },
  } as typeof objects;
  const next = (evaluated: number, failed: boolean) =>
    ({ ...STORED, after: String(evaluated), ...(failed && { failed }) }) as const;
  return sweepProfiles(
    monitorDependencies({ ...dependencies, objects: recording }, {}),
    { stored: undefined, part: { names, next } },
    { nowMs: NOW_MS, budget: { hasTime } },
  );
}

it('Nodes get the profile of their labels, and lose another one', async () => {
  await createNode('a', { speed: 'slow' });
  await createNode('b', { speed: 'fast' });
  expect(await sweep(['a', 'b', 'gone'])).toEqual([]);
  expect([await profileOf('a'), await profileOf('b')]).toEqual(['slow', undefined]);
  expect(progress()).toMatchObject({ after: '3' });
  expect(progress()).not.toHaveProperty('failed');
});

it('Nodes are read a hundred at a time, and what there is no time for is left', async () => {
  const names = Array.from({ length: 250 }, (_, index) => `n${String(index).padStart(3, '0')}`);
  await createNode('n150', { speed: 'slow' });
  await sweep(names);
  expect(reads.map((each) => each.length)).toEqual([100, 100, 50]);
  expect(progress()).toMatchObject({ after: '250' });
  expect(await profileOf('n150')).toBe('slow');
});

it('what there is no time for is not evaluated', async () => {
  const names = Array.from({ length: 250 }, (_, index) => `n${String(index).padStart(3, '0')}`);
  let looks = 0;
  await sweep(names, () => looks++ < 2);
  expect(reads.map((each) => each.length)).toEqual([100, 100]);
  expect(progress()).toMatchObject({ after: '200' });
});

it('Nodes of one read are evaluated again if not all can be written in time', async () => {
  await createNode('a', { speed: 'slow' });
  let looks = 0;
  await sweep(['a'], () => looks++ < 1);
  expect(await profileOf('a')).toBeUndefined();
  expect(progress()).toBeUndefined();
});

it('nothing is stored without time for a read, and the end of a round without Nodes is', async () => {
  await sweep(['a'], () => false);
  expect(progress()).toBeUndefined();
  await sweep([]);
  expect(progress()).toMatchObject({ after: '0' });
});

it('a Node that cannot be written is a fault, and the others are written', async () => {
  await createNode('a', { speed: 'slow' });
  await createNode('bad', { speed: 'slow' });
  refused.add('bad');
  expect(await sweep(['a', 'bad'])).toHaveLength(1);
  expect([await profileOf('a'), await profileOf('bad')]).toEqual(['slow', undefined]);
  expect(progress()).toMatchObject({ after: '2', failed: true });
});
