/**
 * Which reads of a store return every earlier write, and which may be late: those cost half. A memory store has no late
 * reads, so other tests do not show the difference.
 */
import { expect, it } from 'vitest';
import { cidrStore } from '../../functions/object-stream/cidr-store.ts';
import { readShortages } from '../../functions/workloads/shortage-store.ts';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { evictionTimerStore } from '../../shared/fleet/eviction-timer-store.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { cloudStore } from '../../shared/fleet/instances/watch-list-store.ts';
import { readHealth } from '../../shared/fleet/nodes/health-store.ts';
import { readNodeUses } from '../../shared/fleet/nodes/node-use.ts';
import { silenceStore } from '../../shared/fleet/silences/silence-store.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { readClaim } from '../../shared/store/owners.ts';
import { earliestRows, hasDueRow, nextSweep } from '../../shared/ticks/due-rows.ts';
import { parkedStore } from '../../shared/ticks/parked-store.ts';

const PAGE = { nowMs: 0, limit: 1 };
const NODE = { kind: 'Node', name: 'n' } as const;
const POD = { kind: 'Pod', namespace: 'd', name: 'p' } as const;

/** What a read asks for: its `consistent`, each value once. */
async function askedFor(read: (items: ItemStore) => Promise<unknown>): Promise<boolean[]> {
  const asked = new Set<boolean>();
  const items = memoryItemStore();
  await read({
    ...items,
    get(key, options) {
      asked.add(options.consistent);
      return items.get(key, options);
    },
    getMany(keys, options) {
      asked.add(options.consistent);
      return items.getMany(keys, options);
    },
    query(request) {
      asked.add(request.consistent);
      return items.query(request);
    },
  });
  return [...asked];
}

it.each<[string, (items: ItemStore) => Promise<unknown>]>([
  ['the records of the fleet', (items) => fleetStore(items).read()],
  ['the state of the fleet', (items) => fleetStore(items).readState()],
  ['the rows of nodes', (items) => readHealth(items, ['n'])],
  ['the timers of a node', (items) => evictionTimerStore(items).read('n')],
  ['nodes with a due timer', (items) => evictionTimerStore(items).readDue(0)],
  ['a watched node', (items) => cloudStore(items).get('n')],
  ['uses of nodes', readNodeUses],
  ['requests to the scheduler', (items) => queueStore(items).wanted()],
  ['waiting pods', (items) => queueStore(items).rows()],
  ['the order of bindings', (items) => queueStore(items).orderVersion()],
  ['the claim of an owner', (items) => readClaim(items, 'u')],
  ['shortages of workloads', readShortages],
  ['due workloads', earliestRows],
  ['the next sweep', nextSweep],
  ['the owners of pod CIDRs', (items) => cidrStore(items).read('10.0.0.0/16#24')],
  ['wide pod CIDRs', (items) => cidrStore(items).readRanges('10.0.0.0/16#24')],
  ['a parked row', (items) => parkedStore(items).get('r')],
])('%s are read with every earlier write', async (_text, read) => {
  expect(await askedFor(read)).toEqual([true]);
});

it.each<[string, (items: ItemStore) => Promise<unknown>]>([
  ['the turn of the scheduler', (items) => queueStore(items).peek()],
  ['whether work is due', (items) => hasDueRow(items, [{ pk: 'p', time: 'none' }], 0)],
  ['parked rows', (items) => parkedStore(items).list()],
  ['watched nodes', (items) => cloudStore(items).read()],
  ['when EC2 was last asked', (items) => cloudStore(items).readAsked()],
  ['all decisions', (items) => decisionStore(items).list(PAGE)],
  ['decisions about a node', (items) => decisionStore(items).list({ ...PAGE, about: NODE })],
  ['decisions about a pod', (items) => decisionStore(items).list({ ...PAGE, about: POD })],
  ['hours of silences', (items) => silenceStore(items).list(PAGE)],
  ['an hour of silences', (items) => silenceStore(items).get('x')],
])('%s may be read late', async (_text, read) => {
  expect(await askedFor(read)).toEqual([false]);
});
