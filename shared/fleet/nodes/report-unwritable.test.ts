/** What is reported about an object that controllers cannot write, and how often. */
import { expect, it } from 'vitest';
import { replay } from '../../../cli/replay.ts';
import { type ControlledFleet, type FleetOptions, settledFleet } from '../../../test/support/controlled-fleet.ts';
import { decisionStore, type NamedDecision } from '../../decisions/decision-store.ts';
import { StoreFault } from '../../store/item-store.ts';

const ALIVE = ['a-0', 'a-1', 'a-2'];
const LARGE_CHARACTERS = 119_900;

/** a-4 is so large that no controller can change it. */
async function fleetWithLargeNode(options: FleetOptions = {}): Promise<ControlledFleet> {
  const { fleet } = await settledFleet({ a: 5 }, options);
  const { resourceVersion: _, ...metadata } = (await fleet.node('a-4'))!.metadata;
  const length = JSON.stringify({ ...(await fleet.node('a-4')), metadata }).length;
  const frame = ',"annotations":{"example.com/large":""}'.length;
  const annotations = { 'example.com/large': 'x'.repeat(LARGE_CHARACTERS - length - frame) };
  await fleet.changeNode('a-4', (node) => ({ ...node, metadata: { ...node.metadata, annotations } }));
  await fleet.streams();
  return fleet;
}

const beats = (fleet: ControlledFleet) => (seconds: number) =>
  seconds % 10 === 0 ? fleet.beat(...ALIVE) : Promise.resolve();

const notWritten = async (fleet: ControlledFleet): Promise<readonly NamedDecision[]> => {
  const about = { kind: 'Node', name: 'a-4' } as const;
  const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000, about });
  return decisions.filter(({ record }) => record.act === 'NotWritten');
};

const logged = (fleet: ControlledFleet, part: string) =>
  fleet.told.filter(({ level, message }) => level === 'error' && message.includes(part));

it('records why a silent node was not marked, with its size and what to do', async () => {
  const fleet = await fleetWithLargeNode();
  await fleet.run(0, 45, beats(fleet));
  const [first, ...others] = await notWritten(fleet);
  expect(others).toEqual([]);
  expect(first?.record).toMatchObject({
    about: { kind: 'Node', name: 'a-4', uid: (await fleet.node('a-4'))?.metadata.uid },
    reason:
      'could not mark the node Unknown: the object has 119900 characters and would exceed 120000 characters or 400 KB; ' +
      'shorten its annotations or status',
    inputs: { what: 'mark the node Unknown', characters: LARGE_CHARACTERS, charactersMax: 120_000 },
  });
  expect(replay(first!.record)).toMatchObject({ same: true, checked: false });
});

it('reports an object once in ten minutes, and counts it at every tick', async () => {
  const fleet = await fleetWithLargeNode();
  await fleet.run(0, 1_500, beats(fleet));
  const counted = fleet.metrics.filter(({ name }) => name === 'objects_not_written_total').length;
  expect(counted).toBeGreaterThan(250);
  expect((await notWritten(fleet)).length).toBeLessThanOrEqual(3);
  expect(logged(fleet, 'too large').length).toBeLessThanOrEqual(3);
  expect((await notWritten(fleet)).length).toBeGreaterThanOrEqual(2);
}, 30_000);

it('records an object once when two processes find it', async () => {
  const fleet = await fleetWithLargeNode();
  await fleet.run(0, 45, beats(fleet));
  const other = fleet.makeControllers(fleet.tables);
  fleet.at(50);
  await other.tickNodeMonitor(fleet.slot());
  expect(logged(fleet, 'too large to be written')).toHaveLength(2);
  expect(await notWritten(fleet)).toHaveLength(1);
});

it('marks the other nodes, and emits the event, while the ledger cannot store the record', async () => {
  const fleet = await fleetWithLargeNode({
    between: (items) => ({
      ...items,
      write: (write) =>
        write.key.pk.startsWith('d#')
          ? Promise.reject(new StoreFault('throttled', 'this partition is throttled', { retryable: true }))
          : items.write(write),
    }),
  });
  await fleet.run(0, 60, beats(fleet));
  expect(await fleet.ready('a-3')).toBe('Unknown');
  expect(await fleet.events('ObjectTooLarge')).toHaveLength(1);
  expect(await notWritten(fleet)).toEqual([]);
  expect(logged(fleet, 'could not be stored')).toHaveLength(1);
  expect((await fleet.records()).state.gate.reasons).toEqual([]);
});

it('logs a node that cannot be tainted once, although evictor tries at every tick', async () => {
  const { fleet } = await settledFleet({ a: 5 });
  await fleet.run(0, 40, beats(fleet));
  fleet.at(45);
  await fleet.controllers.tickNodeMonitor(fleet.slot());
  await fleet.streams();
  const length = JSON.stringify(await fleet.node('a-4')).length;
  // Longer than any change can still fit in, but not too long for the test's own write.
  const annotations = { 'example.com/large': 'x'.repeat(119_990 - length) };
  await fleet.changeNode('a-4', (node) => ({ ...node, metadata: { ...node.metadata, annotations } }));
  await fleet.run(50, 350, beats(fleet));
  expect(await fleet.taints('a-4')).not.toContain('unreachable:NoExecute');
  const counted = fleet.metrics.filter(({ name }) => name === 'objects_not_written_total').length;
  expect(counted).toBeGreaterThan(20);
  expect(logged(fleet, 'too large')).toHaveLength(1);
  expect((await notWritten(fleet)).map(({ record }) => record.inputs)).toMatchObject([
    { what: 'add its NoExecute taint' },
  ]);
});
