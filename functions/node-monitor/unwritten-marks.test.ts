/** A silent node counts as not ready in its zone, also while its mark cannot be written. */
import { expect, it } from 'vitest';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { type ControlledFleet, settledFleet } from '../../test/support/controlled-fleet.ts';

const SILENT_FROM = 20;
const PARTIAL = { state: 'PartialDisruption', limiter: { ratePerSecond: 0.01 } };

/** Rejects every transaction that writes one of these Nodes. */
const unwritable =
  (names: ReadonlySet<string>) =>
  (items: ItemStore): ItemStore => ({
    ...items,
    transact: (writes) =>
      writes.some(({ key }) => key.pk.startsWith('o#nodes#') && names.has(key.sk))
        ? Promise.reject(new StoreFault('throttled', 'this partition is throttled', { retryable: true }))
        : items.transact(writes),
  });

/** Ticks of node-monitor and evictor. A tick that reports a failure does not stop the next one. */
async function ticks(fleet: ControlledFleet, from: number, to: number, alive: readonly string[]): Promise<void> {
  for (let seconds = from; seconds <= to; seconds += 5) {
    fleet.at(seconds);
    if (seconds % 10 === 0) await fleet.beat(...alive);
    await fleet.controllers.tickNodeMonitor(fleet.slot()).catch(() => {});
    await fleet.controllers.tickEvictor(fleet.slot()).catch(() => {});
  }
}

async function tainted(fleet: ControlledFleet, names: readonly string[]): Promise<number> {
  const taints = await Promise.all(names.map((name) => fleet.taints(name)));
  return taints.filter((each) => each.includes('unreachable:NoExecute')).length;
}

it('failed writes of marks do not raise the eviction rate of their zone', async () => {
  // 40 of 60 nodes are silent. Without the 25 that cannot be marked it would be 15 of 35: Normal, ten times the rate.
  const throttled = new Set<string>();
  const { fleet, names } = await settledFleet({ a: 60 }, { between: unwritable(throttled) });
  for (const name of names.slice(SILENT_FROM, SILENT_FROM + 25)) throttled.add(name);
  await ticks(fleet, 0, 120, names.slice(0, SILENT_FROM));
  expect(await fleet.ready(names.at(-1)!)).toBe('Unknown');
  expect(await fleet.ready(`a-${SILENT_FROM}`)).toBe('True');
  expect((await fleet.records()).zones).toMatchObject([{ zone: 'a', ...PARTIAL }]);
  expect(await tainted(fleet, names)).toBe(1);
}, 30_000);

it('a silent node that is too large to be marked changes the state of its zone as any silent node does', async () => {
  for (const isLarge of [false, true]) {
    const { fleet, names } = await settledFleet({ a: 60 });
    // The 33rd silent node of 60 is the one that reaches 55 %.
    const alive = names.slice(0, 27);
    const last = names.at(-1)!;
    if (isLarge) {
      const textLength = JSON.stringify(await fleet.node(last)).length;
      const annotations = { 'example.com/large': 'x'.repeat(119_900 - textLength) };
      await fleet.changeNode(last, (node) => ({ ...node, metadata: { ...node.metadata, annotations } }));
    }
    await ticks(fleet, 0, 45, alive);
    expect(await fleet.ready(last)).toBe(isLarge ? 'True' : 'Unknown');
    expect((await fleet.records()).zones).toMatchObject([PARTIAL]);
    // Its own next heartbeat ends its effect on the zone, and a node that was marked counts until its status is Ready.
    fleet.at(50);
    await fleet.beat(...alive, last);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    const state = isLarge ? 'Normal' : 'PartialDisruption';
    expect((await fleet.records()).zones).toMatchObject([{ state }]);
  }
}, 30_000);
