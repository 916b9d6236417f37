/** Calls that run twice, at once, late or are killed half-way: the effects of the controllers. */
import { describe, expect, it } from 'vitest';
import { type ControlledFleet, settledFleet } from '../support/controlled-fleet.ts';
import { dyingStore } from '../support/failing-store.ts';

const SILENT = ['a-3', 'a-4'];
const POLICY = { nodeEvictionRatePerSecond: 0.1 };

/** Two silent nodes with one pod each in a zone of five, beside a zone of two; until just before they are due. */
async function beforeTheMark(): Promise<ControlledFleet> {
  const { fleet } = await settledFleet({ a: 5, b: 2 }, { policy: POLICY });
  for (const name of SILENT) await fleet.addPod(`on-${name}`, name);
  await fleet.streams();
  await fleet.run(0, 40, (seconds) => living(fleet, seconds));
  return fleet;
}

const living = (fleet: ControlledFleet, seconds: number): Promise<unknown> =>
  seconds % 10 === 0 ? fleet.beat('a-0', 'a-1', 'a-2', 'b-0', 'b-1') : Promise.resolve();

/** The state that is required some ticks later, whatever happened. */
async function expectMarkedOnce(fleet: ControlledFleet): Promise<void> {
  for (const name of SILENT) {
    expect(await fleet.ready(name)).toBe('Unknown');
    expect(await fleet.taints(name)).toContain('unreachable:NoSchedule');
    const pod = await fleet.pod(`on-${name}`);
    expect(pod?.status?.['conditions']).toMatchObject([{ type: 'Ready', status: 'False' }]);
    expect((await fleet.health(name))?.podsToMark).toBe(false);
  }
  for (const name of ['a-0', 'a-1', 'a-2', 'b-0', 'b-1']) {
    expect(await fleet.ready(name)).toBe('True');
    expect(await fleet.taints(name)).toEqual([]);
  }
  const events = await fleet.events('NodeNotReady');
  const counts = events.map((event) => {
    const involved = event['involvedObject'] as { kind: string; name: string };
    return `${involved.kind} ${involved.name} ${String(event['count'])}`;
  });
  expect(counts.sort()).toEqual(['Node a-3 1', 'Node a-4 1', 'Pod on-a-3 1', 'Pod on-a-4 1']);
}

describe('node-monitor', () => {
  it('marks each node once when the same tick runs twice, one after the other', async () => {
    const fleet = await beforeTheMark();
    fleet.at(45);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    await fleet.makeControllers(fleet.tables).tickNodeMonitor(fleet.slot());
    await fleet.streams();
    await expectMarkedOnce(fleet);
  });

  it('marks each node once when two run at once', async () => {
    const fleet = await beforeTheMark();
    fleet.at(45);
    const reports = await Promise.all([
      fleet.controllers.tickNodeMonitor(fleet.slot()),
      fleet.makeControllers(fleet.tables).tickNodeMonitor(fleet.slot()),
      fleet.makeControllers(fleet.tables).tickNodeMonitor(fleet.slot() + 1),
    ]);
    expect(reports.filter(({ kind }) => kind === 'ran').length).toBeGreaterThan(0);
    await fleet.streams();
    await expectMarkedOnce(fleet);
  });

  it('does not mark a node that sends a heartbeat while the tick is deciding', async () => {
    let fleet: ControlledFleet | undefined;
    let beats = 0;
    const settled = await settledFleet(
      { a: 3 },
      {
        between: (items) => ({
          ...items,
          async transact(writes) {
            // The mark's transaction: the heartbeat is one millisecond earlier.
            if (fleet !== undefined && writes.some(({ key }) => key.table === 'health')) {
              beats += 1;
              await fleet.beat('a-1');
            }
            return items.transact(writes);
          },
        }),
      },
    );
    await settled.fleet.run(0, 40, async (seconds) => seconds % 10 === 0 && settled.fleet.beat('a-0'));
    fleet = settled.fleet;
    fleet.at(45);
    const report = await fleet.controllers.tickNodeMonitor(fleet.slot());
    expect(beats).toBeGreaterThan(0);
    expect(report).toMatchObject({ kind: 'ran', marked: 1 });
    expect(await fleet.ready('a-1')).toBe('True');
    expect(await fleet.ready('a-2')).toBe('Unknown');
    expect((await fleet.records()).queue.map(({ nodeName }) => nodeName)).toEqual(['a-2']);
  });

  it('does no harm when it resumes late: its old decisions are refused', async () => {
    const fleet = await beforeTheMark();
    fleet.at(45);
    let asleep = false;
    let wake = (): void => {};
    const sleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const frozen = fleet.makeControllers({
      ...fleet.tables,
      async getMany(keys, options) {
        const found = await fleet.tables.getMany(keys, options);
        // Everything is read. Before the write, the state changes.
        asleep = true;
        await sleep;
        return found;
      },
    });
    const sleeper = frozen.tickNodeMonitor(fleet.slot());
    for (let turns = 0; !asleep && turns < 10_000; turns += 1) await Promise.resolve();
    expect(asleep).toBe(true);
    fleet.at(46);
    for (const name of SILENT) {
      await fleet.beat(name);
      await fleet.post(name);
    }
    wake();
    await sleeper;
    await fleet.streams();
    for (const name of SILENT) {
      expect(await fleet.ready(name)).toBe('True');
      expect(await fleet.taints(name)).toEqual([]);
    }
    expect(await fleet.events('NodeNotReady')).toEqual([]);
  });

  it('does not count ticks that die during their work: when ticks complete again, the safety gate is closed first', async () => {
    const fleet = await beforeTheMark();
    let dead = false;
    const dying = fleet.makeControllers({
      ...fleet.tables,
      write: (write, options) =>
        dead ? Promise.reject(new Error('the process is dead')) : fleet.tables.write(write, options),
      transact: async () => {
        dead = true;
        throw new Error('the process is dead');
      },
    });
    for (const seconds of [45, 50, 55]) {
      fleet.at(seconds);
      dead = false;
      await expect(dying.tickNodeMonitor(fleet.slot())).rejects.toThrow('node-monitor could not finish its tick');
    }
    await fleet.run(65, 65);
    expect((await fleet.records()).state.gate.reasons).toEqual(['missedTicks']);
    for (const name of SILENT) expect(await fleet.ready(name)).toBe('True');
  });

  it.each([false, true])(
    'is repaired by the next tick wherever it was killed (last write done: %s)',
    async (happens) => {
      const counting = await beforeTheMark();
      counting.at(45);
      const alive = dyingStore(counting.tables, Number.POSITIVE_INFINITY, false);
      await counting.makeControllers(alive.items).tickNodeMonitor(counting.slot());
      const calls = alive.calls();
      expect(calls).toBeGreaterThan(15);
      for (let atCall = 1; atCall <= calls; atCall += 1) {
        const fleet = await beforeTheMark();
        fleet.at(45);
        const dying = dyingStore(fleet.tables, atCall, happens);
        await fleet
          .makeControllers(dying.items)
          .tickNodeMonitor(fleet.slot())
          .catch(() => 'killed');
        await fleet.run(50, 55, (seconds) => living(fleet, seconds));
        await expectMarkedOnce(fleet);
        expect((await fleet.records()).zones.map(({ state }) => state)).toEqual(['Normal', 'Normal']);
      }
    },
  );
});

describe('evictor', () => {
  /** Two marked nodes in the queue, the limiter full. */
  async function beforeTheTaint(): Promise<ControlledFleet> {
    const fleet = await beforeTheMark();
    fleet.at(45);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    await fleet.streams();
    expect((await fleet.records()).queue).toHaveLength(2);
    return fleet;
  }
  const tainted = async (fleet: ControlledFleet) => {
    const lists = await Promise.all(SILENT.map((name) => fleet.taints(name)));
    return lists.filter((taints) => taints.includes('unreachable:NoExecute')).length;
  };

  it('acquires one token when the same tick runs twice, or two at once, or the next one early', async () => {
    const fleet = await beforeTheTaint();
    await Promise.all([
      fleet.controllers.tickEvictor(fleet.slot()),
      fleet.makeControllers(fleet.tables).tickEvictor(fleet.slot()),
      fleet.makeControllers(fleet.tables).tickEvictor(fleet.slot() + 1),
    ]);
    expect(await tainted(fleet)).toBe(1);
    expect((await fleet.records()).queue).toHaveLength(1);
  });

  it.each([false, true])(
    'never exceeds the rate wherever it was killed, and continues (last write done: %s)',
    async (happens) => {
      const counting = await beforeTheTaint();
      const alive = dyingStore(counting.tables, Number.POSITIVE_INFINITY, false);
      await counting.makeControllers(alive.items).tickEvictor(counting.slot());
      for (let atCall = 1; atCall <= alive.calls(); atCall += 1) {
        const fleet = await beforeTheTaint();
        const dying = dyingStore(fleet.tables, atCall, happens);
        await fleet
          .makeControllers(dying.items)
          .tickEvictor(fleet.slot())
          .catch(() => 'killed');
        expect(await tainted(fleet)).toBeLessThanOrEqual(1);
        await fleet.run(50, 50, (seconds) => living(fleet, seconds));
        expect(await tainted(fleet)).toBe(1);
        await fleet.run(55, 60, (seconds) => living(fleet, seconds));
        expect(await tainted(fleet)).toBe(2);
        expect((await fleet.records()).queue).toEqual([]);
      }
    },
  );

  it('does not taint a node that sends a heartbeat at that moment', async () => {
    const fleet = await beforeTheTaint();
    let once = true;
    const racing = fleet.makeControllers({
      ...fleet.tables,
      async transact(writes) {
        if (once) await fleet.beat(...SILENT);
        once = false;
        return fleet.tables.transact(writes);
      },
    });
    await racing.tickEvictor(fleet.slot());
    expect(await tainted(fleet)).toBe(0);
  });

  it('does not taint in a tick that read an open gate when the gate is closed by now', async () => {
    const fleet = await beforeTheTaint();
    const racing = fleet.makeControllers({
      ...fleet.tables,
      async transact(writes) {
        const key = { table: 'control', pk: 'fleet', sk: 'state' } as const;
        await fleet.tables.write({ kind: 'update', key, set: { holding: 1 } });
        return fleet.tables.transact(writes);
      },
    });
    await racing.tickEvictor(fleet.slot());
    expect(await tainted(fleet)).toBe(0);
    expect((await fleet.records()).queue).toHaveLength(2);
  });
});
