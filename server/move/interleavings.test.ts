/**
 * Commands of one move that run at once, in any order of their requests, with lost answers, and killed at any request:
 * a destination is never open while its source accepts writes.
 *
 * Over tables: nothing locks them, so every command can run beside every other one.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { ARRIVAL_KEY, arrivalOf, FENCE_KEY } from '../../shared/store/move-rows.ts';
import { rowSums } from './copy-rows.ts';
import { abandonMove, type MoveDestination, moveCluster } from './move.ts';
import { openArrival } from './open-arrival.ts';
import { tableSource } from './table-source.ts';

const RUNS = 1_000;
const NOW_MS = 1_790_000_000_000;
const CONSISTENT = { consistent: true } as const;
const ADDRESS = { endpoint: 'https://192.0.2.9:6443' };
const COMMANDS = ['move', 'move --open', 'serve', 'abandon', 'abandon without destination'] as const;
/** Starts of a destination until it is ready. */
const STARTS_MAX = 12;

/** What happens to a command: when it begins, after which request it is killed, and which one is sent twice. */
const fates = fc.record({
  waits: fc.nat(40),
  command: fc.constantFrom(...COMMANDS),
  killedAfter: fc.option(fc.nat(20), { nil: Number.POSITIVE_INFINITY }),
  repeated: fc.option(fc.nat(20), { nil: -1 }),
});
const UNDISTURBED = { command: 'move --open', waits: 0, killedAfter: Number.POSITIVE_INFINITY, repeated: -1 } as const;
type Fate = typeof fates extends fc.Arbitrary<infer Value> ? Value : never;

const destinationOf = (items: ItemStore): MoveDestination => ({ name: 'aws', items, complete: async () => {} });

async function places() {
  const [from, to] = [memoryItemStore(), memoryItemStore()];
  for (const sk of ['a', 'b', 'c']) {
    await from.write({ kind: 'put', key: { table: 'objects', pk: 'p', sk }, item: { sk } });
  }
  await from.write({ kind: 'put', key: { table: 'control', pk: 'fleet', sk: 'state' }, item: { slot: 5, doneAt: 9 } });
  const isFenced = async (): Promise<boolean> => (await from.get(FENCE_KEY, CONSISTENT)) !== undefined;
  const isOpen = async (): Promise<boolean> => arrivalOf(await to.get(ARRIVAL_KEY, CONSISTENT))?.phase === 'open';
  return { from, to, isFenced, isOpen };
}

async function run(command: Fate['command'], moveId: string, from: ItemStore, to: ItemStore): Promise<void> {
  const source = tableSource(from, async () => {});
  const destination = destinationOf(to);
  const move = { source, destination, moveId, nowMs: () => NOW_MS };
  const open = () => openArrival({ items: to, fence: () => undefined }, 'aws');
  switch (command) {
    case 'move':
      await moveCluster(move);
      return;
    case 'move --open':
      await moveCluster(move);
      await open();
      await moveCluster({ ...move, address: ADDRESS });
      return;
    case 'serve':
      for (let starts = 0; starts < STARTS_MAX; starts += 1) await open().catch(() => {});
      return;
    case 'abandon':
      return abandonMove(source, destination);
    case 'abandon without destination':
      return abandonMove(source, undefined);
  }
}

it('a destination is open only while its source is fenced, in any order of requests', async () => {
  const seen = { opened: 0, lifted: 0 };
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(fates, { minLength: 1, maxLength: 4 }), async (scheduler, others) => {
      const { from, to, isFenced, isOpen } = await places();
      const broken: string[] = [];
      /** The requests of one command: each arrives, and is answered, when the scheduler says so. */
      const requests = (name: string, { killedAfter, repeated }: Fate) => {
        let count = 0;
        const sent = async <T>(request: () => Promise<T>): Promise<T> => {
          const number = count;
          count += 1;
          const arrives = () => scheduler.schedule(Promise.resolve(), name);
          const answer = async (): Promise<T> => {
            await arrives();
            if (number > killedAfter) throw new Error('killed');
            const found = await request();
            if ((await isOpen()) && !(await isFenced())) broken.push(`${name}, request ${number}`);
            return found;
          };
          let found = await answer();
          if (number === repeated) found = await answer();
          await arrives();
          if (number === killedAfter) throw new Error('killed');
          return found;
        };
        return (items: ItemStore): ItemStore =>
          ({
            ...items,
            get: (...args: Parameters<ItemStore['get']>) => sent(() => items.get(...args)),
            scan: (...args: Parameters<ItemStore['scan']>) => sent(() => items.scan(...args)),
            write: (...args: Parameters<ItemStore['write']>) => sent(() => items.write(...args)),
            transact: (...args: Parameters<ItemStore['transact']>) => sent(() => items.transact(...args)),
          }) as ItemStore;
      };
      const running = [UNDISTURBED, ...others].map(async (fate, index) => {
        const { command, waits } = fate;
        for (let waited = 0; waited < waits; waited += 1) await scheduler.schedule(Promise.resolve(), 'begins later');
        const wired = requests(`${index}: ${command}`, fate);
        return run(command, `m${index}`, wired(from), wired(to));
      });
      await scheduler.waitFor(Promise.allSettled(running));
      expect(broken).toEqual([]);

      // Then one command, undisturbed, ends it in one of two ways.
      if (await isOpen()) {
        seen.opened += 1;
        await expect(run('abandon', 'later', from, to)).rejects.toThrow('was opened');
        expect(await isFenced()).toBe(true);
        expect(await rowSums(to, 0)).toMatchObject({ objects: (await rowSums(from, 0)).objects });
      } else {
        seen.lifted += 1;
        if (await isFenced()) await run('abandon', 'later', from, to);
        expect(await isFenced()).toBe(false);
        await run('serve', 'later', from, to);
        if (arrivalOf(await to.get(ARRIVAL_KEY, CONSISTENT)) !== undefined) expect(await isOpen()).toBe(false);
      }
    }),
    { numRuns: RUNS },
  );
  // Neither of the two ends is rare here.
  expect(Math.min(seen.opened, seen.lifted)).toBeGreaterThan(RUNS / 50);
});
