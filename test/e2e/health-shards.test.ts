/**
 * A cluster with 32 shards of health is deployed with 256, its rows are moved while machines send heartbeats, and all of
 * it is undone. On virtual time, with the deployed controllers.
 */
import { describe, expect, it } from 'vitest';
import { moveRows } from '../../scripts/health-shards/move-rows.ts';
import { FORMER_HEALTH_SHARDS, HEALTH_SHARDS, type HealthShards } from '../../shared/domain/health-shards.ts';
import type { ItemStore } from '../../shared/ports/item-store.ts';
import { placedStore } from '../../shared/store/health-placement.ts';
import { healthKeyIn, isRow } from '../../shared/store/health-row.ts';
import { type ControlledFleet, settledFleet } from '../support/controlled-fleet.ts';

/** A store of functions that are deployed with another setting meanwhile. */
function deployedStore(shards: () => HealthShards) {
  return (items: ItemStore): ItemStore => {
    const now = (): ItemStore => placedStore(items, shards());
    return {
      get: (...args) => now().get(...args),
      getMany: (...args) => now().getMany(...args),
      query: (...args) => now().query(...args),
      scan: (...args) => now().scan(...args),
      write: (...args) => now().write(...args),
      transact: (...args) => now().transact(...args),
    };
  };
}

/** Moves some rows, and is then killed. */
async function moveSome(fleet: ControlledFleet, to: HealthShards, count: number): Promise<void> {
  let left = count;
  const killed: ItemStore = {
    ...fleet.tables,
    async transact(writes) {
      if (left === 0) throw new Error('killed');
      left -= 1;
      return fleet.tables.transact(writes);
    },
  };
  await expect(moveAll(fleet, to, killed)).rejects.toThrow('killed');
}

function moveAll(fleet: ControlledFleet, to: HealthShards, items: ItemStore = fleet.tables) {
  let waitedMs = 0;
  return moveRows(items, {
    to,
    rowsPerSecond: 10_000,
    nowMs: () => fleet.nowMs() + waitedMs,
    pause: async (ms) => {
      waitedMs += ms;
    },
    report: () => {},
  });
}

const SILENT = 'north-0';
const GRACE = 40;
const isApart = (name: string): boolean =>
  healthKeyIn(HEALTH_SHARDS, name).pk !== healthKeyIn(FORMER_HEALTH_SHARDS, name).pk;

describe('the deployment of another number of shards', () => {
  it('marks no node that sends heartbeats, marks a silent one in time, and loses no row, there and back', async () => {
    let served: HealthShards = FORMER_HEALTH_SHARDS;
    let controlled: HealthShards = FORMER_HEALTH_SHARDS;
    const { fleet, names } = await settledFleet(
      { north: 20, south: 20 },
      { serving: deployedStore(() => served), between: deployedStore(() => controlled) },
    );
    const silentSince = new Map<string, number>();
    const markedAt = new Map<string, number>();
    const run = (from: number, to: number, step: (seconds: number) => Promise<void> = async () => {}) =>
      fleet.run(from, to, async (seconds) => {
        for (const name of names) {
          if ((await fleet.ready(name)) === 'Unknown' && !markedAt.has(name)) markedAt.set(name, seconds);
        }
        await step(seconds);
        if (seconds % 10 === 0) await fleet.beat(...names.filter((name) => !silentSince.has(name)));
        if (seconds % 100 === 50) for (const name of names) if (!silentSince.has(name)) await fleet.post(name);
      });
    const placesOf = async (name: string): Promise<readonly HealthShards[]> => {
      const found: HealthShards[] = [];
      for (const shards of [FORMER_HEALTH_SHARDS, HEALTH_SHARDS] as const) {
        if (isRow(await fleet.tables.get(healthKeyIn(shards, name), { consistent: true }))) found.push(shards);
      }
      return found;
    };
    const expectAllAt = async (shards: HealthShards): Promise<void> => {
      for (const name of names)
        expect([name, await placesOf(name)]).toEqual([
          name,
          isApart(name) ? [shards] : [FORMER_HEALTH_SHARDS, HEALTH_SHARDS],
        ]);
    };

    await run(5, 60);
    await expectAllAt(FORMER_HEALTH_SHARDS);
    // Half of the functions are replaced first.
    controlled = HEALTH_SHARDS;
    await run(65, 80);
    served = HEALTH_SHARDS;
    await run(85, 100, async (seconds) => {
      if (seconds !== 90) return;
      await fleet.register('south-new', { zone: 'south' });
      await fleet.post('south-new');
      names.push('south-new');
    });
    silentSince.set(SILENT, 100);
    await run(105, 160, async (seconds) => {
      if (seconds % 10 === 5) await moveSome(fleet, HEALTH_SHARDS, 5);
    });
    const deleted = names.splice(names.indexOf('south-3'), 1)[0]!;
    await fleet.removeNode(deleted);
    await run(165, 200);
    expect(await moveAll(fleet, HEALTH_SHARDS)).toMatchObject({ kind: 'finished' });
    await expectAllAt(HEALTH_SHARDS);
    expect(await placesOf(deleted)).toEqual([]);

    await run(205, 240);
    [served, controlled] = [FORMER_HEALTH_SHARDS, HEALTH_SHARDS];
    await run(245, 260, async (seconds) => {
      if (seconds === 255) await moveSome(fleet, FORMER_HEALTH_SHARDS, 5);
    });
    controlled = FORMER_HEALTH_SHARDS;
    await run(265, 300);
    expect(await moveAll(fleet, FORMER_HEALTH_SHARDS)).toMatchObject({ kind: 'finished' });
    await expectAllAt(FORMER_HEALTH_SHARDS);
    await run(305, 340);

    expect([...markedAt.keys()]).toEqual([SILENT]);
    expect(markedAt.get(SILENT)).toBeGreaterThan(100 + GRACE);
    expect(markedAt.get(SILENT)).toBeLessThanOrEqual(100 + GRACE + 10);
    for (const name of names) {
      const health = await fleet.health(name);
      expect(health?.renewedAtMs).toBe(fleet.nowMs() - 1_000 * (name === SILENT ? 240 : 0));
    }
    expect((await fleet.events('NodeNotReady')).length).toBe(1);
  });
});
