/**
 * L9 for ChangeReads: a program that lists, and then follows by ChangeReads alone, ends with the state of the server.
 * It receives each change after its lists once and in order, also if an answer has room for one change only. Writers
 * choose versions and are then delayed or killed; clocks differ. The schedule comes from a seed:
 *
 *   RACE_SEED=… vitest run test/contract/change-reads-race.test.ts
 */
import { expect, it } from 'vitest';
import { type Cursor, readChanges } from '../../functions/api/changes/read-changes.ts';
import { changeLog } from '../../shared/store/change-log.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { objectStore } from '../../shared/store/object-store.ts';
import type { ChangesOfResource } from '../../shared/watches/change-read.ts';
import { stateOf, turns, unreliable, writeOnce } from '../support/racing-writers.ts';
import { randomFrom } from '../support/seeded.ts';

const WRITERS = 12;
const WRITES = 40;
const FOLLOWERS = 4;
const SHARDS: Readonly<Record<string, number>> = { things: 4, others: 1, quiet: 2 };
const RESOURCES = Object.keys(SHARDS);
const TURNS_MAX = 5;
const READS_MAX = 100_000;
/** More than any change of a writer, less than two large ones. */
const BYTES = 4_000;
const seed = Number(process.env['RACE_SEED'] ?? 20_261_129);

it.each([
  ['one change at most', 0, { changes: 1, bytes: 1_000_000 }],
  ['two', 1, { changes: 2, bytes: 1_000_000 }],
  ['three', 2, { changes: 3, bytes: 1_000_000 }],
  ['few bytes', 3, { changes: 1_000, bytes: BYTES }],
  ['more than there is', 4, { changes: 1_000, bytes: 1_000_000 }],
])(
  'a copy that follows by answers with %s ends with the state of the server',
  async (_, offset, room) => {
    const random = randomFrom(seed + offset);
    const tables = memoryItemStore();
    let elapsedMs = 0;
    const open = (skewMs: number, kills: number) => {
      const options = {
        items: unreliable(tables, random, { turnsMax: TURNS_MAX, kills }),
        clock: {
          nowMs() {
            elapsedMs += random() < 0.3 ? 1 : 0;
            return 1_795_197_000_000 + elapsedMs + skewMs;
          },
        },
        shardsOf: (resource: string) => SHARDS[resource]!,
        pause: () => turns(random, TURNS_MAX),
        random,
      };
      return { objects: objectStore(options), log: changeLog(options) };
    };
    const skewed = (kills: number) => open(Math.floor((random() - 0.5) * 1_000), kills);

    let running = WRITERS;
    async function writer(index: number): Promise<void> {
      const { objects } = skewed(0.05);
      for (let write = 0; write < WRITES; write += 1) {
        const resource = random() < 0.7 ? 'things' : 'others';
        try {
          await writeOnce(objects, resource, { random, mark: `${index}-${write}` });
        } catch (error) {
          if (!(error instanceof StoreFault)) throw error;
        }
      }
      running -= 1;
    }

    async function follower() {
      const { objects, log } = skewed(0);
      const copy = new Map<string, string>();
      const received: string[] = [];
      const listedAt = new Map<string, number>();
      for (const resource of RESOURCES) {
        listedAt.set(resource, await log.currentVersion(resource));
        for (const object of (await objects.list({ resource })).objects) {
          copy.set(`${resource}/${object.metadata.name}`, stateOf(object));
        }
      }
      let cursors = RESOURCES.map((resource): Cursor => ({ group: '', resource, after: listedAt.get(resource)! }));
      for (let reads = 0; reads < READS_MAX; reads += 1) {
        const isOver = running === 0;
        const texts = await readChanges(log, cursors, { ...room }, false);
        const outcomes = texts.map((text) => JSON.parse(text) as ChangesOfResource);
        expect(outcomes.map(({ resource }) => resource)).toEqual(cursors.map(({ resource }) => resource));
        let changes = 0;
        let hasMore = false;
        cursors = outcomes.map((each, index): Cursor => {
          if (each.outcome !== 'changes') throw new Error(JSON.stringify(each));
          changes += each.changes.length;
          hasMore ||= each.more;
          for (const { type, object } of each.changes) {
            const version = Number(object.metadata.resourceVersion);
            expect(version).toBeGreaterThan(cursors[index]!.after);
            expect(version).toBeLessThanOrEqual(Number(each.through));
            received.push(`${each.resource} ${version}`);
            const key = `${each.resource}/${object.metadata.name}`;
            if (type === 'DELETED') copy.delete(key);
            else copy.set(key, stateOf(object));
          }
          return { group: '', resource: each.resource, after: Number(each.through) };
        });
        expect(changes).toBeLessThanOrEqual(room.changes);
        expect(texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0)).toBeLessThan(room.bytes + 500);
        if (isOver && changes === 0 && !hasMore) return { copy, received, listedAt };
        await turns(random, TURNS_MAX);
      }
      throw new Error('the follower did not catch up');
    }

    const [followers] = await Promise.all([
      Promise.all(Array.from({ length: FOLLOWERS }, follower)),
      Promise.all(Array.from({ length: WRITERS }, (_each, index) => writer(index))),
    ]);
    const { objects, log } = open(0, 0);
    const truth = new Map<string, string>();
    const logged = new Map<string, readonly number[]>();
    for (const resource of RESOURCES) {
      for (const object of (await objects.list({ resource })).objects) {
        truth.set(`${resource}/${object.metadata.name}`, stateOf(object));
      }
      const all = await log.readChanges({ resource, after: 1_795_196_000_000_000, limit: 100_000, eager: true });
      if (all.kind === 'expired') throw new Error('expired within the retention');
      logged.set(
        resource,
        all.changes.map(({ resourceVersion }) => resourceVersion),
      );
    }
    expect(logged.get('things')?.length).toBeGreaterThan(WRITERS);
    expect(logged.get('quiet')).toEqual([]);
    for (const { copy, received, listedAt } of followers) {
      expect([...copy].sort()).toEqual([...truth].sort());
      for (const resource of RESOURCES) {
        const versions = logged.get(resource)!.filter((version) => version > listedAt.get(resource)!);
        expect(received.filter((each) => each.startsWith(`${resource} `))).toEqual(
          versions.map((version) => `${resource} ${version}`),
        );
      }
    }
  },
  60_000,
);
