/**
 * The laws over the assembled controllers: seeded stories in which machines fall silent and return, ticks run twice, at
 * once or die at any call, and streams repeat themselves. A seed that fails replays by its number.
 */
import { describe, expect, it } from 'vitest';
import { readyStatusOf } from '../../shared/fleet/nodes/conditions.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { type ControlledFleet, settledFleet } from '../support/controlled-fleet.ts';
import { dyingStore } from '../support/failing-store.ts';

const SEEDS = 40;
const PERIOD_SECONDS = 5;
const STORY_SECONDS = 400;

/** A linear congruential generator; its high bits are random enough for stories. */
function seeded(seed: number): () => number {
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Story {
  readonly fleet: ControlledFleet;
  readonly steady: readonly string[];
  /** By silent machine, when it stopped. Seconds. */
  readonly silentSince: ReadonlyMap<string, number>;
}

/** Plays a story. With `faults` processes die or run twice, and streams repeat. */
async function play(seed: number, faults: boolean): Promise<Story> {
  const random = seeded(seed);
  const { fleet, names } = await settledFleet({ a: 6, b: 4, c: 2 });
  // These never miss a heartbeat, and one zone is never fully disrupted.
  const steady = ['a-0', 'b-0', 'c-0', 'c-1'];
  const silentSince = new Map<string, number>();
  let told = 0;
  for (let seconds = 0; seconds <= STORY_SECONDS; seconds += PERIOD_SECONDS) {
    fleet.at(seconds);
    for (const name of names) {
      if (steady.includes(name)) continue;
      if (silentSince.has(name)) {
        if (random() < 0.04) silentSince.delete(name);
      } else if (random() < 0.03) silentSince.set(name, seconds);
    }
    if (seconds % 10 === 0) {
      for (const name of names) {
        if (silentSince.has(name)) continue;
        await fleet.beat(name);
        // When its conditions are overwritten, or contain one of its own, it posts.
        if ((await fleet.ready(name)) !== 'True' && random() < 0.7) await fleet.post(name);
      }
    }
    const dies = faults && random() < 0.3;
    const atCall = 1 + Math.floor(random() * 80);
    const processes = [
      dies ? fleet.makeControllers(dyingStore(fleet.tables, atCall, random() < 0.5).items) : fleet.controllers,
    ];
    if (faults && random() < 0.3) processes.push(fleet.makeControllers(fleet.tables));
    await Promise.all(processes.map((each) => each.tickNodeMonitor(fleet.slot()).catch(() => 'dead')));
    await Promise.all(processes.map((each) => each.tickEvictor(fleet.slot()).catch(() => 'dead')));
    await fleet.streams();
    if (faults && random() < 0.2) {
      // A part of the streams is delivered again.
      await fleet.controllers.onObjectRecords(fleet.tables.changes('objects', told));
      await fleet.controllers.onHealthRecords(fleet.tables.changes('health'));
      await fleet.streams();
    }
    told = fleet.tables.changes('objects').at(-1)?.sequence ?? 0;
  }
  return { fleet, steady, silentSince };
}

/** Every stored state of every Node, in order: zone, name and conditions. */
function history({ fleet }: Story) {
  return fleet.tables
    .changes('objects')
    .filter(({ key }) => key.pk.startsWith('o#nodes#'))
    .map(({ key, oldImage, newImage }) => {
      const parts = (image: typeof newImage) => {
        const node = image === undefined ? undefined : (objectOf(image) as KubeNode);
        const noExecute = (node?.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute');
        return { ready: readyStatusOf(node?.status?.conditions), noExecute };
      };
      return { name: key.sk, zone: key.sk.split('-')[0]!, before: parts(oldImage), after: parts(newImage) };
    });
}

describe.each([false, true])('the laws hold (faults: %s)', (faults) => {
  const seen = { marks: 0, taintings: 0, lifts: 0 };

  it.each(Array.from({ length: SEEDS }, (_, seed) => seed))('in story %i', async (seed) => {
    const story = await play(seed, faults);
    const { fleet, steady, silentSince } = story;
    const changes = history(story);

    // L1
    for (const { name, after } of changes.filter((change) => steady.includes(change.name))) {
      expect(after.ready, name).not.toBe('Unknown');
      expect(after.noExecute, name).toEqual([]);
    }

    // L2, with ticks that may die counted as missing
    if (!faults) {
      for (const [name, since] of silentSince) {
        if (since < STORY_SECONDS - 60) expect(await fleet.ready(name), name).toBe('Unknown');
      }
    }

    // L3: the limiter's taintings of a zone by their times, rounded up to the second
    const taintings = new Map<string, number[]>();
    for (const { zone, before, after } of changes) {
      if (before.noExecute.length > 0 || after.noExecute.length === 0) continue;
      const atMs = Date.parse(after.noExecute[0]!.timeAdded!);
      taintings.set(zone, [...(taintings.get(zone) ?? []), atMs]);
    }
    for (const [zone, times] of taintings) {
      for (let first = 0; first < times.length; first += 1) {
        for (let last = first; last < times.length; last += 1) {
          const windowSeconds = (times[last]! - times[first]!) / 1_000;
          expect(last - first + 1, zone).toBeLessThanOrEqual(1 + 0.1 * windowSeconds + 1e-9);
        }
      }
    }

    // Each mark has one event.
    const marks = changes.filter(({ before, after }) => before.ready === 'True' && after.ready === 'Unknown');
    const events = (await fleet.events('NodeNotReady')).map((event) => Number(event['count']));
    expect(events.reduce((sum, count) => sum + count, 0)).toBe(marks.length);

    // L10: two ticks repair what faults left behind. Then, at the same moment, no decision is left.
    for (let extra = 1; extra <= 2; extra += 1) {
      await fleet.controllers.tickNodeMonitor(fleet.slot() + extra);
      await fleet.streams();
    }
    expect(await fleet.controllers.tickNodeMonitor(fleet.slot() + 3)).toMatchObject({ kind: 'ran', decisions: 0 });

    seen.marks += marks.length;
    seen.taintings += [...taintings.values()].flat().length;
    seen.lifts += changes.filter(({ before, after }) => before.noExecute.length > after.noExecute.length).length;
  });

  it('and the stories contained the cases that the laws are about', () => {
    expect(seen.marks).toBeGreaterThan(5 * SEEDS);
    expect(seen.taintings).toBeGreaterThan(3 * SEEDS);
    expect(seen.lifts).toBeGreaterThan(SEEDS);
  });
});
