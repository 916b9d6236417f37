import { beforeEach, describe, expect, it } from 'vitest';
import type { Item, ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { ARRIVAL_KEY, arrivalOf, type Fence, isInState } from '../../shared/store/move-rows.ts';
import { rowSums } from './copy-rows.ts';
import { abandonMove, type MoveDestination, type MoveOptions, type MoveSource, moveCluster } from './move.ts';
import { openArrival } from './open-arrival.ts';
import { tableSource } from './table-source.ts';

const NOW_MS = 1_790_000_000_000;
const STEPS = ['fenced', 'copying', 'copied', 'compared', 'completed', 'ready at the source', 'ready', 'announced'];
const ADDRESS = { endpoint: 'https://192.0.2.9:6443', certificateAuthority: 'PEM' };

let rows: ItemStore;
let fence: Fence | undefined;
let waiting: number;
let arrived: ItemStore;
let completed: number;

beforeEach(async () => {
  rows = memoryItemStore();
  arrived = memoryItemStore();
  fence = undefined;
  waiting = 0;
  completed = 0;
  const put = (table: 'objects' | 'health' | 'control', pk: string, sk: string, item: Item) =>
    rows.write({ kind: 'put', key: { table, pk, sk }, item });
  for (let index = 0; index < 1_200; index += 1) {
    await put('objects', `o#configmaps#0${index % 7}`, `default/c${index}`, {
      text: `é${index}`,
      bytes: new Uint8Array([index % 256]),
      nested: { list: [1, 'two', true], index },
    });
  }
  await put('health', 's01', 'n1', { renewedAt: 7 });
  await put('control', 'fleet', 'state', { slot: 5, doneAt: 9 });
  await put('control', 'ticket-keys', 'old', { ttl: NOW_MS / 1_000 + 10 });
});

const source: MoveSource = {
  fence: async () => fence,
  async setFence(next, expected) {
    if (!isInState(fence, expected)) return false;
    fence = next;
    return true;
  },
  rows: async () => ({ items: rows, waiting, close: async () => {} }),
};
const destinationOf = (name = '/new'): MoveDestination => ({
  name,
  items: arrived,
  async complete() {
    completed += 1;
  },
});
const move = (more: Partial<MoveOptions> = {}) =>
  moveCluster({ source, destination: destinationOf(), moveId: 'm1', nowMs: () => NOW_MS, ...more });
const phase = async () => arrivalOf(await arrived.get(ARRIVAL_KEY, { consistent: true }))?.phase;
const state = () => arrived.get({ table: 'control', pk: 'fleet', sk: 'state' }, { consistent: true });
const open = () => openArrival({ items: arrived, fence: () => undefined }, '/new');

class Killed extends Error {}
const killedAfter = (killed: string) => (step: string) => {
  if (step === killed) throw new Killed(step);
};

describe('a move', () => {
  it('copies every row, compares them, and informs clients, in this order', async () => {
    const steps: string[] = [];
    const moved = await move({ address: ADDRESS, onStep: (step) => steps.push(step) });
    expect(steps).toEqual(STEPS);
    expect(moved).toMatchObject({ phase: 'ready', sums: { objects: { rows: 1_200 }, health: { rows: 1 } } });
    expect(await rowSums(arrived, 0)).toEqual(await rowSums(rows, 0));
    expect(fence).toEqual({ moveId: 'm1', to: '/new', sinceMs: NOW_MS, isReady: true, address: ADDRESS });
    expect(completed).toBe(1);
  });

  it('to a place where some objects have no effect is refused while there are any', async () => {
    const unserved = { resources: ['webhooks'], why: 'no webhook is called there' };
    const destination = { ...destinationOf(), unserved };
    const key = { table: 'objects', pk: 'o#webhooks#00', sk: 'w' } as const;
    await rows.write({ kind: 'put', key, item: {} });
    await expect(move({ destination })).rejects.toThrow(
      'there are webhooks, such as w, and no webhook is called there',
    );
    await rows.write({ kind: 'delete', key });
    expect(await move({ destination })).toMatchObject({ phase: 'ready' });
  });

  it.each(STEPS)('that is killed after the step "%s" is finished by the same command', async (step) => {
    await expect(move({ address: ADDRESS, onStep: killedAfter(step) })).rejects.toThrow(Killed);
    expect(fence).toBeDefined();
    const moved = await move({ address: ADDRESS, moveId: 'm2' });
    expect(moved.phase).toBe('ready');
    expect(fence).toMatchObject({ moveId: 'm1', address: ADDRESS });
    expect(await rowSums(arrived, 0)).toEqual(await rowSums(rows, 0));
  });

  it.each(STEPS)('that is killed after the step "%s" can be abandoned, and is never opened', async (step) => {
    await expect(move({ address: ADDRESS, onStep: killedAfter(step) })).rejects.toThrow(Killed);
    await abandonMove(source, destinationOf());
    expect(fence).toBeUndefined();
    if ((await phase()) === undefined) return;
    await expect(open()).rejects.toThrow('was abandoned');
    await expect(move()).rejects.toThrow('was abandoned: delete it');
  });

  it('is never abandoned once the destination was opened', async () => {
    await move();
    await open();
    await expect(abandonMove(source, destinationOf())).rejects.toThrow('was opened: it is the cluster now');
    expect(fence).toBeDefined();
    await move({ address: ADDRESS });
    expect(fence).toMatchObject({ address: ADDRESS });
  });

  it('is not abandoned without its destination, unless that was never complete', async () => {
    await expect(move({ onStep: killedAfter('copied') })).rejects.toThrow(Killed);
    await abandonMove(source, undefined);
    expect(fence).toBeUndefined();
    arrived = memoryItemStore();
    await move();
    await expect(abandonMove(source, undefined)).rejects.toThrow('may have been opened');
    expect(fence).toBeDefined();
  });

  it('is decided by one write: opened or abandoned, never both', async () => {
    await move();
    const outcomes = await Promise.allSettled([open(), abandonMove(source, destinationOf())]);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(fence === undefined).toBe((await phase()) === 'abandoned');
  });

  it('leaves every node a full grace period at the destination, once', async () => {
    await move();
    await open();
    expect(await state()).toEqual({ pk: 'fleet', sk: 'state', slot: 5 });
    await arrived.write({ kind: 'update', key: { table: 'control', pk: 'fleet', sk: 'state' }, set: { doneAt: 3 } });
    await open();
    expect(await state()).toMatchObject({ doneAt: 3 });
    expect(await phase()).toBe('open');
  });

  it('has one destination, although two commands begin at once', async () => {
    const other = memoryItemStore();
    const places = [destinationOf(), { ...destinationOf('/other'), items: other }];
    const outcomes = await Promise.allSettled(
      places.map((destination, index) => move({ destination, moveId: `m${index}`, address: ADDRESS })),
    );
    const [refused] = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(String(refused?.reason)).toContain('another command has changed the move');
    const phases = await Promise.all(
      [arrived, other].map(async (items) => arrivalOf(await items.get(ARRIVAL_KEY, { consistent: true }))?.phase),
    );
    expect(phases.filter((each) => each !== undefined)).toEqual(['ready']);
  });

  it('that was abandoned by another command while it copies fences nothing again', async () => {
    const placing = { ...destinationOf(), complete: () => abandonMove(source, destinationOf()) };
    await expect(move({ destination: placing })).rejects.toThrow('another command has changed the move');
    expect(fence).toBeUndefined();
  });

  it.each(['the destination is empty', 'the destination is not there'])(
    'is not abandoned by a command that read long ago that %s',
    async (answer) => {
      const tables = tableSource(rows, async () => {});
      await expect(move({ source: tables, onStep: killedAfter('fenced') })).rejects.toThrow(Killed);
      const { promise: delay, resolve: release } = Promise.withResolvers<void>();
      const delayed = async <T>(reading: Promise<T>): Promise<T> => {
        const found = await reading;
        await delay;
        return found;
      };
      const abandoning =
        answer === 'the destination is empty'
          ? abandonMove(tables, {
              ...destinationOf(),
              items: { ...arrived, get: (key, options) => delayed(arrived.get(key, options)) },
            })
          : abandonMove({ ...tables, fence: () => delayed(tables.fence()) }, undefined);
      await move({ source: tables });
      await open();
      release();
      await expect(abandoning).rejects.toThrow('another command has changed the move');
      expect(await tables.fence()).toMatchObject({ moveId: 'm1', isReady: true });
      expect(await phase()).toBe('open');
    },
  );

  it('that was abandoned without its destination while it copies is never opened', async () => {
    const placing = { ...destinationOf(), complete: () => abandonMove(source, undefined) };
    await expect(move({ destination: placing })).rejects.toThrow('another command has changed the move');
    expect(fence).toBeUndefined();
    await expect(open()).rejects.toThrow('is not complete');
  });

  it('is opened by two commands at once, by one of them', async () => {
    await move();
    await Promise.all([open(), open()]);
    expect(await phase()).toBe('open');
  });

  it('begins neither twice nor into a store with rows, and changes nothing then', async () => {
    await arrived.write({ kind: 'put', key: { table: 'health', pk: 's01', sk: 'n1' }, item: { a: 1 } });
    await expect(move()).rejects.toThrow('/new is not empty');
    expect(fence).toBeUndefined();
    arrived = memoryItemStore();
    await move();
    await expect(move({ destination: destinationOf('/other') })).rejects.toThrow('is being moved to /new already');
    fence = undefined;
    await expect(move({ moveId: 'm9' })).rejects.toThrow('is the destination of another move');
    expect(fence).toBeUndefined();
  });

  it('does not leave changes behind that functions have not processed', async () => {
    waiting = 3;
    await expect(move()).rejects.toThrow('3 changes are not processed');
    await expect(open()).rejects.toThrow('is not complete');
  });

  it('finds a row that arrived otherwise, and one that is missing', async () => {
    const writing: ItemStore = {
      ...arrived,
      write: (write, options) => {
        const isDamaged = write.kind === 'put' && write.key.sk === 'default/c77';
        return arrived.write(isDamaged ? { ...write, item: { text: 'other' } } : write, options);
      },
    };
    await expect(move({ destination: { ...destinationOf(), items: writing } })).rejects.toThrow(
      'rows of objects differ',
    );
    const losing: ItemStore = {
      ...arrived,
      scan: async (request) => {
        const page = await arrived.scan(request);
        return { ...page, items: page.items.filter(({ sk }) => sk !== 'default/c78') };
      },
    };
    await expect(move({ destination: { ...destinationOf(), items: losing } })).rejects.toThrow('1199 rows of 1200');
    expect(await phase()).toBe('copying');
  });

  it('compares no row that may expire meanwhile', async () => {
    const expiring: ItemStore = {
      ...arrived,
      scan: async (request) => {
        const page = await arrived.scan(request);
        return { ...page, items: page.items.filter(({ pk }) => pk !== 'ticket-keys') };
      },
    };
    await move({ destination: { ...destinationOf(), items: expiring } });
    expect(await phase()).toBe('ready');
  });
});
