/**
 * L9: list, watch, resume ends with exactly the server's state, and each watcher receives every log entry after its
 * last list, once and in order.
 *
 * Commits have one or several objects, so log items have one or several changes. Writers choose versions and are then
 * delayed, killed before or after their commit, or get no response. Clocks differ.
 * Watchers end their reads anywhere, resume from any event they have received, and sometimes list again. The schedule
 * comes from a seed, so a failure can be replayed:
 *
 *   RACE_SEED=… RACE_WRITES=1000 vitest run test/contract/change-log-race.test.ts
 */
import { describe, expect, it } from 'vitest';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { changeLog } from '../../shared/store/change-log.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { logPartition } from '../../shared/store/layout.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { logEntries } from '../../shared/store/object-record.ts';
import { objectStore } from '../../shared/store/object-store.ts';
import { startEngine } from '../support/engine.ts';
import { stateOf, turns, unreliable, writeOnce } from '../support/racing-writers.ts';
import { randomFrom } from '../support/seeded.ts';

const WRITERS = 16;
const WATCHERS = 8;
const SHARDS = 4;
const RESOURCE = 'things';
const READS_MAX = 200_000;

interface Race {
  readonly items: ItemStore;
  readonly seed: number;
  readonly writes: number;
  readonly turnsMax: number;
}

interface Watched {
  readonly seen: ReadonlyMap<string, string>;
  /** Versions received since the last list. */
  readonly received: readonly number[];
  readonly listedAt: number;
}

/** Every version in the log, as it is when all is over. */
async function versionsLogged(items: ItemStore): Promise<number[]> {
  const versions: number[] = [];
  for (let shard = 0; shard < SHARDS; shard += 1) {
    let after = '';
    for (;;) {
      const page = await items.query({
        table: 'objects',
        pk: logPartition(RESOURCE, shard),
        consistent: true,
        ...(after === '' ? {} : { after }),
      });
      for (const item of page.items) {
        versions.push(...logEntries(RESOURCE, item).map(({ resourceVersion }) => resourceVersion));
      }
      if (page.next === undefined) break;
      after = page.next;
    }
  }
  return versions.sort((one, other) => one - other);
}

async function race({ items, seed, writes, turnsMax }: Race): Promise<{ committed: number; events: number }> {
  const random = randomFrom(seed);
  let elapsedMs = 0;
  const clockOf = (skewMs: number) => ({
    nowMs: () => {
      elapsedMs += random() < 0.3 ? 1 : 0;
      return 1_795_197_000_000 + elapsedMs + skewMs;
    },
  });
  const open = (skewMs: number, kills: number) => {
    const options = {
      items: unreliable(items, random, { turnsMax, kills }),
      clock: clockOf(skewMs),
      shardsOf: () => SHARDS,
      pause: () => turns(random, turnsMax),
      random,
    };
    return { objects: objectStore(options), log: changeLog(options) };
  };

  let running = WRITERS;
  let committed = 0;
  const writer = async (index: number): Promise<void> => {
    const { objects } = open(Math.floor((random() - 0.5) * 1_000), 0.05);
    for (let write = 0; write < writes; write += 1) {
      try {
        if (await writeOnce(objects, RESOURCE, { random, mark: `${index}-${write}` })) committed += 1;
      } catch (error) {
        if (!(error instanceof StoreFault)) throw error;
      }
    }
    running -= 1;
  };

  let events = 0;
  const watcher = async (): Promise<Watched> => {
    const { objects, log } = open(Math.floor((random() - 0.5) * 1_000), 0);
    let seen = new Map<string, string>();
    let received: number[] = [];
    const list = async (): Promise<number> => {
      const version = await log.currentVersion(RESOURCE);
      seen = new Map();
      received = [];
      let continueAfter: string | undefined;
      do {
        const page = await objects.list({
          resource: RESOURCE,
          limit: 7,
          ...(continueAfter === undefined ? {} : { continueAfter }),
        });
        for (const object of page.objects) seen.set(object.metadata.name!, stateOf(object));
        continueAfter = page.next;
      } while (continueAfter !== undefined);
      return version;
    };
    let listedAt = await list();
    let cursor = listedAt;
    for (let reads = 0; reads < READS_MAX; reads += 1) {
      const over = running === 0;
      const limit = 1 + Math.floor(random() * 12);
      const outcome = await log.readChanges({ resource: RESOURCE, after: cursor, limit, eager: random() < 0.5 });
      if (outcome.kind === 'expired') throw new Error('expired within the retention');
      let last = cursor;
      let cut = false;
      for (const change of outcome.changes) {
        expect(change.resourceVersion).toBeGreaterThan(last);
        last = change.resourceVersion;
        received.push(last);
        events += 1;
        if (change.type === 'DELETED') seen.delete(change.ref.name);
        else seen.set(change.ref.name, stateOf(change.object));
        // The connection breaks here: resume from the last event seen.
        cut = random() < 0.05;
        if (cut) break;
      }
      cursor = cut ? last : outcome.through;
      if (over && !cut && outcome.changes.length === 0) return { seen, received, listedAt };
      if (random() < 0.01) {
        listedAt = await list();
        cursor = listedAt;
      }
      await turns(random, turnsMax);
    }
    throw new Error('the watcher did not catch up');
  };

  const [finals] = await Promise.all([
    Promise.all(Array.from({ length: WATCHERS }, watcher)),
    Promise.all(Array.from({ length: WRITERS }, (_, index) => writer(index))),
  ]);
  const { objects } = open(0, 0);
  const truth = new Map(
    (await objects.list({ resource: RESOURCE })).objects.map((object) => [object.metadata.name!, stateOf(object)]),
  );
  const log = await versionsLogged(items);
  for (const { seen, received, listedAt } of finals) {
    expect(received).toEqual(log.filter((version) => version > listedAt));
    expect(new Map([...seen].sort())).toEqual(new Map([...truth].sort()));
  }
  return { committed, events };
}

const seed = Number(process.env['RACE_SEED'] ?? 20_261_120);
const writes = Number(process.env['RACE_WRITES'] ?? 0);

describe('L9: every watcher ends with exactly the server’s state', () => {
  it.each([0, 1, 2, 3, 4])(
    'in memory, 16 writers and 8 watchers, seed +%i',
    async (offset) => {
      const result = await race({
        items: memoryItemStore(),
        seed: seed + offset,
        writes: writes || 40,
        turnsMax: 6,
      });
      expect(result.committed).toBeGreaterThan(WRITERS);
      expect(result.events).toBeGreaterThan(WATCHERS);
    },
    writes ? 3_600_000 : 30_000,
  );

  it(
    'in the embedded engine, 16 writers and 8 watchers',
    async () => {
      const engine = await startEngine();
      try {
        const items = dynamoDbItemStore({ client: engine.client, tables: engine.tables });
        const result = await race({ items, seed, writes: writes || 6, turnsMax: 3 });
        expect(result.committed).toBeGreaterThan(WRITERS);
      } finally {
        await engine.stop();
      }
    },
    writes ? 3_600_000 : 30_000,
  );
});
