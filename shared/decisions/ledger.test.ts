/** The ledger when calls run twice, run at once or are killed half-way: no record twice, none missing for an effect. */
import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { type ControlledFleet, settledFleet } from '../../test/support/controlled-fleet.ts';
import { dyingStore } from '../../test/support/failing-store.ts';
import { decisionStore, type NamedDecision } from './decision-store.ts';

const DEAD = ['a-3', 'a-4'];
const ALIVE = ['a-0', 'a-1', 'a-2', 'b-0', 'b-1'];

async function beforeTheMark(): Promise<ControlledFleet> {
  const { fleet } = await settledFleet({ a: 5, b: 2 });
  for (const name of DEAD) await fleet.addPod(`on-${name}`, name);
  await fleet.streams();
  await fleet.run(0, 40, (seconds) => living(fleet, seconds));
  return fleet;
}

const living = (fleet: ControlledFleet, seconds: number): Promise<unknown> =>
  seconds % 10 === 0 ? fleet.beat(...ALIVE) : Promise.resolve();

const records = async (fleet: ControlledFleet): Promise<readonly NamedDecision[]> =>
  (await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 10_000 })).decisions;

/** `act about`, sorted, of the decisions from that second on. */
const told = async (fleet: ControlledFleet, fromSeconds: number): Promise<string[]> =>
  (await records(fleet))
    .filter(({ record }) => record.atMs >= fleet.nowMs() - (fleet.seconds() - fromSeconds) * 1_000)
    .map(({ record }) => `${record.act} ${record.about.name}`)
    .sort();

const MARKED = ['MarkUnknown a-3', 'MarkUnknown a-4'];
const EVICTED = [
  'EvictionHeld a',
  ...MARKED,
  'PodDeleted on-a-3',
  'PodDeleted on-a-4',
  'PodEvictionSet on-a-3',
  'PodEvictionSet on-a-4',
  'Tainted a-3',
  'Tainted a-4',
];

/** Each effect on an object has its record, and no record is without its effect: marks, taints, deletions. */
async function expectTrue(fleet: ControlledFleet): Promise<void> {
  const acts = new Set(await told(fleet, 41));
  for (const name of DEAD) {
    expect([name, acts.has(`MarkUnknown ${name}`)]).toEqual([name, (await fleet.ready(name)) === 'Unknown']);
    const taints = await fleet.taints(name);
    expect([name, acts.has(`Tainted ${name}`)]).toEqual([name, taints.includes('unreachable:NoExecute')]);
    const isGoing = (await fleet.pod(`on-${name}`))?.metadata.deletionTimestamp !== undefined;
    expect([name, acts.has(`PodDeleted on-${name}`)]).toEqual([name, isGoing]);
  }
}

describe('the ledger', () => {
  it('records each act once, whatever runs twice or at once, and each record replays to the same outcome', async () => {
    const fleet = await beforeTheMark();
    for (let seconds = 45; seconds <= 400; seconds += 5) {
      fleet.at(seconds);
      await living(fleet, seconds);
      const others = fleet.makeControllers(fleet.tables);
      await Promise.all([fleet.controllers.tickNodeMonitor(fleet.slot()), others.tickNodeMonitor(fleet.slot())]);
      await Promise.all([fleet.controllers.tickEvictor(fleet.slot()), others.tickEvictor(fleet.slot())]);
      await fleet.streams();
      await expectTrue(fleet);
    }
    expect(await told(fleet, 41)).toEqual(EVICTED.toSorted());
    for (const { name, record } of await records(fleet))
      expect([name, replay(record)]).toMatchObject([name, { same: true }]);
  });

  it.each([false, true])(
    'has no act without its record when the process dies at any call (last one happens: %s)',
    async (lastHappens) => {
      for (let atCall = 1; atCall <= 60; atCall += 1) {
        const fleet = await beforeTheMark();
        for (const seconds of [45, 50, 55]) {
          fleet.at(seconds);
          await living(fleet, seconds);
          const dying = dyingStore(fleet.tables, atCall, lastHappens);
          const controllers = fleet.makeControllers(dying.items);
          await controllers.tickNodeMonitor(fleet.slot()).catch(() => {});
          await controllers.tickEvictor(fleet.slot()).catch(() => {});
          await expectTrue(fleet);
          await fleet.streams();
        }
        await fleet.run(60, 470, (seconds) => living(fleet, seconds));
        await expectTrue(fleet);
        const acts = (await told(fleet, 41)).filter(
          (act) => !act.startsWith('Gate') && !act.startsWith('EvictionHeld'),
        );
        expect(acts).toEqual(EVICTED.filter((act) => !act.startsWith('EvictionHeld')).toSorted());
      }
    },
  );

  it('writes nothing in a quiet tick, and nothing while a decision to wait stays the same', async () => {
    const fleet = await beforeTheMark();
    const before = (await records(fleet)).length;
    await fleet.run(45, 45, (seconds) => living(fleet, seconds));
    await fleet.run(50, 55, (seconds) => living(fleet, seconds));
    const held = (await told(fleet, 41)).filter((act) => act === 'EvictionHeld a');
    expect(held).toHaveLength(1);
    await fleet.run(60, 120, (seconds) => living(fleet, seconds));
    const after = (await records(fleet)).length;
    expect(after).toBeGreaterThan(before);
    await fleet.run(125, 300, (seconds) => living(fleet, seconds));
    expect((await records(fleet)).length).toBe(after);
  });

  it('keeps the record of a mark below one write unit', async () => {
    const fleet = await beforeTheMark();
    await fleet.run(45, 45, (seconds) => living(fleet, seconds));
    const marks = (await records(fleet)).filter(({ record }) => record.act === 'MarkUnknown');
    expect(marks.map(({ record }) => record.about.name).toSorted()).toEqual(DEAD);
    for (const { name, record } of marks) expect(JSON.stringify(record).length + name.length).toBeLessThan(850);
  });

  it('records why nothing happens while the safety gate is closed', async () => {
    const fleet = await beforeTheMark();
    fleet.at(100);
    await fleet.tick();
    fleet.at(105);
    await fleet.tick();
    expect(await told(fleet, 41)).toEqual(['GateClosed fleet', 'GateOpened fleet']);
    const closed = (await records(fleet)).find(({ record }) => record.act === 'GateClosed');
    expect(closed?.record.reason).toBe(
      'safety gate closed: node-monitor missed ticks; no node is newly marked, tainted or evicted',
    );
    for (const { record } of await records(fleet)) expect(replay(record).same).toBe(true);
  });
});
