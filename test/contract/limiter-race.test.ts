/**
 * L3 under fire: 32 evictors want tokens of one zone at the same moments, through the very writes a taint commits with,
 * on the embedded engine. Some die before they send, some after it has taken effect; some lose the answer and try the
 * same commit again; their clocks are up to a second off. Never may a window of T seconds see more than 1 + rate x T
 * grants. RACE_SEED=… RACE_ATTEMPTS=… vitest run test/contract/limiter-race.test.ts
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { acquireTokenWrite, dequeueWrite, fleetStore } from '../../shared/fleet/fleet-store.ts';
import { takeTokenUpdate } from '../../shared/fleet/limiter.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { startEngine, type TestEngine } from '../support/engine.ts';
import { randomFrom } from '../support/seeded.ts';

const EVICTORS = 32;
const ATTEMPTS = Number(process.env['RACE_ATTEMPTS'] ?? 10_000);
/** A race for each token: dozens want it. Without RACE_ATTEMPTS, so many are enough. */
const GRANTS_ENOUGH = process.env['RACE_ATTEMPTS'] === undefined ? 12 : Number.POSITIVE_INFINITY;
const SEED = Number(process.env['RACE_SEED'] ?? 20_261_120);
const START_MS = Date.UTC(2026, 0, 1);

let engine: TestEngine;
let items: ItemStore;

beforeAll(async () => {
  engine = await startEngine();
  items = dynamoDbItemStore({ client: engine.client, tables: engine.tables });
});
afterAll(() => engine.stop());

interface Grant {
  readonly atMs: number;
}

/** One commit of one evictor: its token and the queue entry that leaves, whole or not at all. */
async function attempt(
  zone: string,
  at: {
    readonly nowMs: number;
    readonly skewMs: number;
    readonly ratePerSecond: number;
    readonly random: () => number;
  },
  entry: { readonly nodeName: string },
): Promise<Grant | undefined> {
  const token = takeTokenUpdate({ nowMs: at.nowMs + at.skewMs, ratePerSecond: at.ratePerSecond });
  const fate = at.random();
  if (token === undefined || fate < 0.1) return undefined;
  const queued = { zone, nodeName: entry.nodeName, uid: entry.nodeName, addedAtMs: START_MS };
  const commit = () => items.transact([acquireTokenWrite(zone, token), dequeueWrite(queued)]);
  const outcome = await commit();
  // A lost response: the same commit again. Its first attempt deleted the entry, so it cannot acquire a second token.
  if (fate > 0.8) expect((await commit()).kind === 'written' && outcome.kind === 'written').toBe(false);
  return outcome.kind === 'written' ? { atMs: at.nowMs } : undefined;
}

async function race(
  zone: string,
  options: { readonly ratePerSecond: number; readonly skewMs: number; readonly attempts: number },
) {
  const random = randomFrom(SEED);
  const fleet = fleetStore(items);
  await fleet.createZone(zone, { state: 'Normal', ratePerSecond: options.ratePerSecond, nowMs: 0 });
  const skews = Array.from({ length: EVICTORS }, () => (random() * 2 - 1) * options.skewMs);
  const grants: Grant[] = [];
  const rounds = Math.ceil(options.attempts / EVICTORS);
  let nowMs = START_MS;
  for (let round = 0; round < rounds && grants.length < GRANTS_ENOUGH; round += 1) {
    nowMs += Math.floor(random() * 4_000);
    const nodeName = `n-${round}`;
    await fleet.enqueue({ zone, nodeName, uid: nodeName, addedAtMs: START_MS });
    // Half want the same node, half one that waits from before.
    const won = await Promise.all(
      skews.map((skewMs, evictor) =>
        attempt(
          zone,
          { nowMs, skewMs: Math.floor(skewMs), ratePerSecond: options.ratePerSecond, random },
          { nodeName: evictor % 2 === 0 ? nodeName : `n-${Math.max(0, round - 1 - (evictor % 7))}` },
        ),
      ),
    );
    grants.push(...won.filter((grant) => grant !== undefined));
  }
  return { grants, seconds: (nowMs - START_MS) / 1_000 };
}

/** The tightest window around any two grants. */
function worstExcess(grants: readonly Grant[], ratePerSecond: number, skewMs: number): number {
  const times = grants.map(({ atMs }) => atMs).sort((one, other) => one - other);
  let worst = Number.NEGATIVE_INFINITY;
  for (let first = 0; first < times.length; first += 1) {
    for (let last = first; last < times.length; last += 1) {
      const seconds = (times[last]! - times[first]! + 2 * skewMs) / 1_000;
      worst = Math.max(worst, last - first + 1 - (1 + ratePerSecond * seconds));
    }
  }
  return worst;
}

describe('32 evictors on one limiter', () => {
  it.each([
    ['equal clocks', 0.1, 0],
    ['clocks a second off', 0.1, 1_000],
    ['one per second, clocks off by a second', 1, 1_000],
  ])(
    'never grant more than 1 + rate x T: %s',
    async (name, ratePerSecond, skewMs) => {
      const { grants, seconds } = await race(name, { ratePerSecond, skewMs, attempts: Math.ceil(ATTEMPTS / 3) });
      expect(worstExcess(grants, ratePerSecond, skewMs)).toBeLessThanOrEqual(1e-9);
      // And the limiter does not block: most of the possible tokens were granted.
      expect(grants.length).toBeGreaterThan((ratePerSecond < 1 ? 0.5 : 0.2) * ratePerSecond * seconds);
    },
    120_000,
  );
});
