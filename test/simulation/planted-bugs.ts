/** Bugs that the laws must find: changes of what functions read, write or are configured with. */

import type { FunctionName } from '../../functions/function-list.ts';
import { defined } from '../../shared/defined.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import type { ObjectRef } from '../../shared/kinds/types.ts';
import {
  type Condition,
  type Item,
  type ItemStore,
  StoreFault,
  type TransactWrite,
  type Write,
} from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';
import { type StoredText, unpackText } from '../../shared/store/object-record.ts';
import { objectKey } from '../../shared/store/object-store.ts';
import { SLOTS_PARTITION } from '../../shared/watches/stream-form-store.ts';
import { FAULT_NAMES } from '../../simulation/faults/catalogue.ts';
import type { Plant, PlantedBug } from './find-bug.ts';

/** What the controllers see of the tables, changed on its way. */
export function seenThrough(change: {
  readonly transact?: (writes: readonly TransactWrite[]) => readonly TransactWrite[];
  readonly read?: (item: Item) => Item;
  /** undefined: it is not done, and said to be. */
  readonly write?: (write: Write) => Write | undefined;
}): Plant {
  const { transact = (writes) => writes, read = (item) => item, write: writing = (write) => write } = change;
  return {
    items: (items): ItemStore => ({
      ...items,
      async query(request) {
        const page = await items.query(request);
        return { ...page, items: page.items.map(read) };
      },
      async scan(request) {
        const page = await items.scan(request);
        return { ...page, items: page.items.map(read) };
      },
      async get(key, options) {
        const item = await items.get(key, options);
        return item === undefined ? undefined : read(item);
      },
      async getMany(keys, options) {
        const found = await items.getMany(keys, options);
        return found.map((item) => (item === undefined ? undefined : read(item)));
      },
      async write(write, options) {
        const changed = writing(write);
        return changed === undefined ? { kind: 'written' } : items.write(changed, options);
      },
      transact: (writes) => items.transact(transact(writes)),
    }),
  };
}

const HOUR_MS = 3_600_000;
const isZone = (item: Item): boolean => item['pk'] === 'fleet' && String(item['sk']).startsWith('zone#');
const isState = (item: Item): boolean => item['pk'] === 'fleet' && item['sk'] === 'state';
const without = (item: Item, ...names: string[]): Item =>
  Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)));
const ALWAYS: Condition = { kind: 'any', of: [{ kind: 'has', attribute: 'pk' }, { kind: 'itemAbsent' }] };
const withPolicy = (changes: Partial<Policy>): Plant => ({
  policy: (policy) => ({ ...policy, ...changes }),
});

/** Each must be found within a few seeds, or the laws watch nothing. */
export const PLANTED: readonly PlantedBug[] = [
  {
    bug: 'a chain of ticks that multiplies',
    laws: ['ticks'],
    plant: {
      tickQueue: (queue) => ({
        ...queue,
        send: async (slot, at) => {
          await queue.send(slot, at);
          await queue.send(slot, at);
        },
      }),
    },
    options: { faults: [] },
  },
  {
    bug: 'a loser of a slot that sends the message of the next one',
    laws: ['ticks'],
    plant: {
      controllers: (controllers, queue) => ({
        ...controllers,
        async onTickMessage(kind, budgetMs) {
          const outcome = await controllers.onTickMessage(kind, budgetMs);
          const isLost = outcome.kind === 'over' && outcome.report.kind === 'lost';
          if (isLost) await queue.send(0, { delaySeconds: 5, nowMs: 0 });
          return outcome;
        },
      }),
    },
    options: { faults: ['twice'], faultsAStorm: 28 },
  },
  {
    bug: 'a watchdog that treats every chain as alive',
    laws: ['ticks'],
    plant: blindWatchdog,
    options: { faults: ['lostTicks'], faultsAStorm: 28 },
  },
  {
    bug: 'a gate that ignores gaps between ticks',
    laws: ['L5'],
    seed: 32,
    plant: {
      policy: (policy) => ({ ...policy, tickGate: 'off' }),
      items: onlyFor('node-monitor', seenThrough({ read: (item) => (isState(item) ? withoutProof(item) : item) }))
        .items!,
    },
    options: { faults: ['apiOutage', 'tickOutage'], faultsAStorm: 28 },
  },
  {
    bug: 'a limiter that grants tokens it does not have',
    laws: ['L3', 'L4'],
    plant: seenThrough({
      read: (item) => (isZone(item) ? without(item, 'tatMs') : item),
      transact: (writes) =>
        writes.map((write) =>
          write.key.pk === 'fleet' && write.key.sk.startsWith('zone#') ? { ...write, when: ALWAYS } : write,
        ),
    }),
  },
  {
    bug: 'a gate that never holds for a failing path',
    laws: ['L5'],
    plant: withPolicy({ ingestGate: 'off' }),
    options: { faults: ['apiOutage'], faultsAStorm: 28 },
  },
  {
    bug: 'a gate that ignores the probe through the URL',
    laws: ['L5'],
    seed: 32,
    plant: { probes: ([first]) => [first!] },
    options: { faults: ['urlOutage'], faultsAStorm: 28, parts: ['heartbeatUrl'] },
  },
  { bug: 'a grace that is half as long', laws: ['L1'], plant: withPolicy({ nodeMonitorGracePeriodSeconds: 20 }) },
  {
    bug: 'a grace that is half as long again',
    laws: ['L2'],
    plant: withPolicy({ nodeMonitorGracePeriodSeconds: 75 }),
    // A late mark is L12 while bad objects exist.
    options: { faults: FAULT_NAMES.filter((name) => name !== 'poison') },
  },
  {
    bug: 'a total disruption that is ignored',
    laws: ['L4', 'L10'],
    seed: 32,
    plant: seenThrough({
      read: (item) => (isState(item) ? without(item, 'disruption') : item),
      write: (write) => {
        if (write.key.pk !== 'fleet') return write;
        if (write.kind === 'delete') return write.key.sk.startsWith('queue#') ? undefined : write;
        if (write.kind !== 'update' || write.set === undefined) return write;
        return write.set['ratePerSecond'] === 0 ? undefined : { ...write, set: without(write.set, 'total') };
      },
    }),
    options: { nodes: 12, policy: { nodeEvictionRatePerSecond: 0.05 } },
  },
  {
    bug: "a zone's state that is decided and not kept",
    laws: ['L10'],
    plant: seenThrough({
      transact: (writes) =>
        writes.filter(
          (write) => write.key.pk !== 'fleet' || write.kind !== 'update' || write.set?.['state'] === undefined,
        ),
    }),
  },
  {
    bug: 'an item that cannot be read',
    laws: ['calm', 'L6', 'L12'],
    seed: 37,
    plant: seenThrough({
      read: (item) => {
        if (item['pk'] === 'cloud') throw new TypeError('planted');
        return item;
      },
    }),
  },
  {
    bug: 'one answer of EC2 counted as two',
    laws: ['L6'],
    seed: 36,
    plant: hastyCloud(),
    options: { faults: ['ec2Wrong'], faultsAStorm: 28 },
  },
  {
    bug: 'an evictor that sees no tolerations',
    laws: ['L7'],
    plant: seenThrough({
      read: (item) =>
        String(item['pk']).startsWith('o#pods#') && item['o'] !== undefined
          ? { ...item, o: withoutTolerations(textOf(item)) }
          : item,
    }),
  },
  {
    bug: 'writes that forget which version they rest on',
    laws: ['L8'],
    plant: seenThrough({
      transact: (writes) =>
        writes.map((write) =>
          write.key.pk.startsWith('o#nodes#') && write.kind !== 'check' ? unconditional(write) : write,
        ),
    }),
  },
  {
    bug: 'a watch that trusts the newest version it sees',
    laws: ['L9'],
    plant: { items: trustingHeads },
    options: { parts: ['watches'] },
    seed: 33,
  },
  {
    bug: 'a watch without padding behind a front that holds chunks',
    laws: ['L9'],
    plant: withoutPadding(),
    options: { parts: ['watches'] },
  },
  {
    bug: 'an identity without a limit of its time',
    laws: ['L17'],
    plant: {
      limits: (limits) => ({
        ...limits,
        node: { ...limits.node, time: { share: 1, burstMs: HOUR_MS, waitMsMax: 0 } },
      }),
    },
    options: { faults: ['costlyRequests'], faultsAStorm: 28, hours: 0.5 },
  },
  {
    bug: 'refused requests that are not counted',
    laws: ['L17'],
    plant: seenThrough({ write: (write) => (write.key.pk === 'refusals' ? undefined : write) }),
    options: { faults: ['costlyRequests'], faultsAStorm: 28, hours: 0.5 },
  },
  {
    bug: 'commits below a version that a watch already sent',
    laws: ['L9'],
    plant: seenThrough({
      transact: (writes) => writes.map((write) => (write.key.pk.startsWith('h#') ? unconditional(write) : write)),
    }),
    options: { parts: ['watches'] },
  },
  {
    bug: 'a block that is assigned to two Nodes',
    laws: ['cidrs'],
    plant: seenThrough({
      transact: (writes) => writes.map((write) => (write.key.pk.startsWith('cidr#') ? unconditional(write) : write)),
    }),
    options: { parts: ['podCidrs'] },
  },
  {
    bug: 'a block that is never released',
    laws: ['cidrs'],
    seed: 32,
    plant: seenThrough({
      write: (write) => (write.kind === 'delete' && write.key.pk.startsWith('cidr#') ? undefined : write),
    }),
    options: { parts: ['podCidrs'] },
  },
  {
    bug: 'a Node that is assigned half a block',
    laws: ['cidrs'],
    plant: seenThrough({
      transact: (writes) =>
        writes.map((write) => (write.key.pk.startsWith('o#nodes#') ? withHalfBlocks(write) : write)),
    }),
    options: { parts: ['podCidrs'], faults: [] },
  },
  {
    bug: 'a mounted volume that is detached at once',
    laws: ['volumes'],
    seed: 16,
    plant: withPolicy({ forceDetachTimeoutSeconds: 1 }),
    options: { parts: ['volumes'], faults: [], nodes: 5 },
  },
  {
    bug: 'a mounted volume that is never detached',
    laws: ['volumes'],
    seed: 2,
    plant: withPolicy({ disableForceDetachOnTimeout: true }),
    options: { parts: ['volumes'], faults: [] },
  },
  {
    bug: 'a volume that is detached while a pod uses it',
    laws: ['volumes'],
    seed: 32,
    plant: onlyFor(
      'pod-gc',
      seenThrough({ read: (item) => (String(item['pk']).startsWith('o#pods#') ? asIfEnded(item) : item) }),
    ),
    options: { parts: ['volumes'], faults: [] },
  },
  {
    bug: 'a binding that does not depend on the Node',
    laws: ['L13'],
    plant: onlyFor('scheduler', { items: lateAndUnguarded }),
    options: { parts: ['scheduling'], faults: [] },
  },
  {
    bug: 'a scheduler that reads no requests of pods on nodes',
    laws: ['L13'],
    plant: onlyFor(
      'scheduler',
      seenThrough({
        read: (item) => {
          if (item['o'] === undefined) return item;
          const text = unpackText(item['o'] as StoredText);
          return text.includes('"nodeName"') ? { ...item, o: text.replaceAll('"requests"', '"hidden"') } : item;
        },
      }),
    ),
    options: { parts: ['scheduling'], faults: [] },
  },
  {
    bug: 'a time of binding that the machine writes',
    laws: ['L7'],
    plant: boundByMachine(),
    options: { faults: ['lyingClocks'], parts: ['taints'] },
  },
  {
    bug: 'a silence counted from the renewTime of the Lease',
    laws: ['L1', 'L2'],
    plant: markedByRenewTime(),
    options: { faults: ['lyingClocks'] },
  },
  {
    bug: 'a node-monitor that a large object keeps from its other work',
    laws: ['L12'],
    plant: () => contagious('node-monitor', (item) => textOf(item).length > LARGE_LENGTH),
    options: { faults: ['poison'] },
  },
  {
    bug: 'an evictor that an absurd grace keeps from its other work',
    laws: ['L12'],
    plant: () =>
      contagious('evictor', (item) => /"terminationGracePeriodSeconds":(1e\+?300|1e\+?12|\d{13,})/.test(textOf(item))),
    options: { faults: ['poison'] },
  },
  {
    bug: 'timers of all nodes in one item',
    laws: ['L12'],
    seed: 33,
    plant: timersInOneItem,
    options: { faults: ['poison'] },
  },
  {
    bug: 'a throttled stream record that is delivered again instead of parked',
    laws: ['L12'],
    plant: onlyFor('object-stream', withoutParking()),
    // Throttles a node before another one in its lane is tainted.
    seed: 6089,
    options: { hours: 0.25 },
  },
];

/** The time of a binding, by every clock but ours: what the machine says of PodScheduled. */
function boundByMachine(): Plant {
  const scheduledMs = (text: unknown): number => {
    const pod = JSON.parse(String(text)) as {
      status?: { conditions?: readonly { type: string; lastTransitionTime?: string }[] };
    };
    const found = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
    return Date.parse(found?.lastTransitionTime ?? '');
  };
  return {
    items: (items, process) => {
      if (process.name !== 'evictor' && process.name !== 'object-stream') return items;
      return {
        ...items,
        async query(request) {
          const page = await items.query(request);
          if (!request.pk.startsWith('n#')) return page;
          const keys = page.items.map(({ sk }) => objectKey(podRef(String(sk)), shardsOf('pods')));
          const pods = await items.getMany(keys, { consistent: true });
          const bound = page.items.map((item, index) => {
            const boundMs = scheduledMs(pods[index] === undefined ? '{}' : textOf(pods[index]));
            return Number.isNaN(boundMs) ? item : { ...item, b: boundMs };
          });
          return { ...page, items: bound };
        },
      };
    },
  };
}

function podRef(key: string): ObjectRef {
  const [namespace = '', name = ''] = key.split('/');
  return { resource: 'pods', namespace, name };
}

/** node-monitor counts silence from the renewTime that the machine wrote, and its marks have no conditions. */
function markedByRenewTime(): Plant {
  const { items: through } = seenThrough({
    read: (item) =>
      typeof item['t'] === 'number' && item['r'] !== undefined ? { ...item, r: Math.floor(item['t'] / 1_000) } : item,
    transact: (writes) =>
      writes.map((write) => (write.key.table === 'health' && write.kind !== 'check' ? unconditional(write) : write)),
  });
  // The scan reads the digest alone, without the renewTime.
  const withRenewTime = (items: ItemStore): ItemStore => ({
    ...items,
    scan: ({ attributes, ...request }) =>
      items.scan({ ...request, ...(attributes && { attributes: [...attributes, 't'] }) }),
  });
  return onlyFor('node-monitor', { items: (items, process) => through!(withRenewTime(items), process) });
}

/** The order in which nodes wait for a taint is that of the renewTimes that they wrote. No other law forbids it. */
export function queueByRenewTime(): Plant {
  return {
    items: (items, process) => {
      if (process.name !== 'evictor') return items;
      return {
        ...items,
        async query(request) {
          const page = await items.query(request);
          if (request.pk !== 'fleet') return page;
          const ofQueue = page.items.filter(({ sk }) => String(sk).startsWith('queue#'));
          const rows = await items.getMany(
            ofQueue.map(({ sk }) => healthKey(String(sk).split('#')[2]!)),
            { consistent: true },
          );
          const renewTimes = ofQueue.map((item, index) => ({ sk: item['sk'], time: Number(rows[index]?.['t'] ?? 0) }));
          renewTimes.sort((one, other) => one.time - other.time);
          const addedAtMs = ofQueue.map((item) => Number(item['addedAtMs'])).sort((one, other) => one - other);
          const positions = new Map(renewTimes.map(({ sk }, index) => [sk, addedAtMs[index]!]));
          const ordered = page.items.map((item) => ({ ...item, ...defined({ addedAtMs: positions.get(item['sk']) }) }));
          return { ...page, items: ordered };
        },
      };
    },
  };
}

const ILL_MS = 20_000;

/** A function that meets bad objects of one machine fails for a while whatever it does: others wait for them. */
function contagious(name: FunctionName, isBad: (item: Item) => boolean): Plant {
  let illUntilMs = 0;
  return {
    items: (items, process) => {
      if (process.name !== name) return items;
      const seen = <T>(found: T, among: readonly (Item | undefined)[]): T => {
        if (among.some((item) => item !== undefined && isBad(item))) illUntilMs = process.clock.nowMs() + ILL_MS;
        if (process.clock.nowMs() < illUntilMs) throw new RangeError('planted: what one object does, all suffer');
        return found;
      };
      return {
        ...items,
        async getMany(keys, options) {
          const found = await items.getMany(keys, options);
          return seen(found, found);
        },
        async get(key, options) {
          const found = await items.get(key, options);
          return key.pk === 'fleet' ? found : seen(found, [found]);
        },
      };
    },
  };
}

/** It starts the first chain, and none after it. */
function blindWatchdog(): Plant {
  let starts = 0;
  return {
    controllers: (controllers) => ({
      ...controllers,
      async onTickMessage(kind, budgetMs) {
        if (kind === 'watchdog') starts += 1;
        return kind === 'watchdog' && starts > 1 ? { kind: 'alive' } : controllers.onTickMessage(kind, budgetMs);
      },
    }),
  };
}

/** No good run of ticks was ever recorded, so none is missed. */
function withoutProof(item: Item): Item {
  if (typeof item['gate'] !== 'string') return item;
  const { provenAtMs: _, goodSinceMs: __, ...gate } = JSON.parse(item['gate']) as Record<string, unknown>;
  return { ...item, gate: JSON.stringify(gate) };
}

export const textOf = ({ o: stored }: Item): string =>
  typeof stored === 'string' || stored instanceof Uint8Array ? unpackText(stored) : '';
const LARGE_LENGTH = 80_000;

/** No work can be parked, so its record is reported as failed and blocks the records behind it. */
function withoutParking(): Plant {
  return {
    items: (items) => ({
      ...items,
      write: (write, options) =>
        write.key.pk === 'parked'
          ? Promise.reject(new StoreFault('throttled', 'planted', { retryable: true }))
          : items.write(write, options),
    }),
  };
}

/** Timers of all nodes share one item's size. */
function timersInOneItem(): Plant {
  const sizes = new Map<string, number>();
  const TIMERS_LENGTH_MAX = 60_000;
  return {
    items: (items) => ({
      ...items,
      transact(writes) {
        for (const write of writes) {
          if (!write.key.pk.startsWith('evictions#') || write.kind !== 'put') continue;
          sizes.set(write.key.pk, JSON.stringify(write.item).length);
          const length = [...sizes.values()].reduce((sum, each) => sum + each, 0);
          if (length > TIMERS_LENGTH_MAX) throw new StoreFault('too-large', 'planted', { retryable: false });
        }
        return items.transact(writes);
      },
    }),
  };
}

/** Only one function has the bug. With the same bug in evictor, most of its pods would be deleted first. */
export function onlyFor(name: FunctionName, { items: through }: Plant): Plant {
  return { items: (items, process) => (process.name === name ? (through?.(items, process) ?? items) : items) };
}

/** Pods with volumes are read as terminated. */
function asIfEnded(item: Item): Item {
  const text = textOf(item);
  if (!text.includes('awsElasticBlockStore')) return item;
  const pod = JSON.parse(text) as { status?: Record<string, unknown> };
  return { ...item, o: JSON.stringify({ ...pod, status: { ...pod.status, phase: 'Succeeded' } }) };
}

/** A watch reads R from the heads and does not raise the lower ones: no commit below R is refused. */
function trustingHeads(items: ItemStore): ItemStore {
  return {
    ...items,
    async write(write, options) {
      const isRaise = write.kind === 'update' && write.key.pk.startsWith('h#') && write.set?.['c'] === undefined;
      if (!isRaise) return items.write(write, options);
      const head = await items.get(write.key, { consistent: true });
      return { kind: 'written', item: { ...head, ...write.set } };
    },
  };
}

/** Bindings are committed some seconds after the decision, without the condition on the Node. */
function lateAndUnguarded(items: ItemStore): ItemStore {
  const CALLS = 300;
  return {
    ...items,
    async transact(writes) {
      const order = writes.find(({ key }) => key.pk === 'scheduler' && key.sk === 'order');
      if (order === undefined) return items.transact(writes);
      for (let calls = 0; calls < CALLS; calls += 1) await items.get(order.key, { consistent: true });
      return items.transact(writes.filter(({ kind, key }) => kind !== 'check' || !key.pk.startsWith('o#nodes#')));
    },
  };
}

function withHalfBlocks(write: TransactWrite): TransactWrite {
  if (write.kind !== 'put' || write.key.table !== 'objects' || write.item['o'] === undefined) return write;
  return { ...write, item: { ...write.item, o: textOf(write.item).replaceAll('.0/24"', '.0/25"') } };
}

export function unconditional(write: TransactWrite): TransactWrite {
  const { when: _, ...rest } = write;
  return rest as TransactWrite;
}

function withoutTolerations(body: string): string {
  const pod = JSON.parse(body) as { spec?: Record<string, unknown> };
  return JSON.stringify({ ...pod, spec: { ...pod.spec, tolerations: [] } });
}

/** Behaves as if EC2 had not known any instance a period ago, either. */
function hastyCloud(): Plant {
  const isWatched = (item: Item): boolean => item['pk'] === 'cloud';
  const { items } = seenThrough({
    read: (item) => {
      if (!isWatched(item)) return item;
      const seen = JSON.parse((item['seen'] as string | undefined) ?? '{}') as { memory?: object };
      const memory = { ...seen.memory, notFoundSinceMs: nowMs - 6_000 };
      return { ...item, seen: JSON.stringify({ ...seen, memory }) };
    },
    transact: (writes) => writes.map((write) => (write.key.pk === 'cloud' ? { ...write, when: ALWAYS } : write)),
  });
  let nowMs = 0;
  return {
    items: (inner, process) => {
      const seen = items!(inner, process);
      return {
        ...seen,
        query: (request) => {
          nowMs = process.clock.nowMs();
          return seen.query(request);
        },
      };
    },
  };
}

/** Behaves as a measurement that found no padding necessary. */
function withoutPadding(): Plant {
  const form: Item = { pk: SLOTS_PARTITION, sk: 'form', paddingBytes: 0, measuredMs: 0, deployment: '' };
  return {
    items: (items): ItemStore => ({
      ...items,
      async query(request) {
        const page = await items.query(request);
        return request.pk === SLOTS_PARTITION ? { ...page, items: [...page.items, form] } : page;
      },
    }),
  };
}
