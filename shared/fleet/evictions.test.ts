import { describe, expect, it } from 'vitest';
import { type ControlledFleet, settledFleet } from '../../test/support/controlled-fleet.ts';
import type { KubeObject } from '../kinds/types.ts';
import { type ItemStore, StoreFault } from '../store/item-store.ts';
import { workDependencies } from '../ticks/dependencies.ts';
import { evictPods } from './evictions.ts';
import { stateKey } from './fleet-store.ts';

const TAINT = { key: 'example.com/maintenance', effect: 'NoExecute' as const };

const taint = (fleet: ControlledFleet) =>
  fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [TAINT] } }));

async function fleetWithPods(...names: string[]): Promise<ControlledFleet> {
  const { fleet } = await settledFleet({ a: 2 }, { policy: { tickGate: 'off' } });
  for (const name of names) await fleet.addPod(name, 'a-0', { tolerations: [] });
  await fleet.streams();
  return fleet;
}

const isDeleted = async (fleet: ControlledFleet, name: string) => {
  const pod = await fleet.pod(name);
  return pod === undefined || pod.metadata.deletionTimestamp !== undefined;
};

it.each<[string, unknown]>([
  ['are no list', { key: 'example.com/maintenance' }],
  ['hold null', [null]],
  ['hold a text behind a toleration', [{ operator: 'Exists' }, 'all']],
])('a pod with tolerations that %s fails alone, and the other pods are evicted', async (_, tolerations) => {
  const fleet = await fleetWithPods('unreadable', 'web');
  await fleet.changePod('unreadable', (pod) => ({ ...pod, spec: { ...pod.spec, tolerations } }) as KubeObject);
  await fleet.streams();
  await taint(fleet);
  const fault = await fleet.streams().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(String((fault as AggregateError).errors?.[0] ?? fault)).toContain(
    'tolerations of pod default/unreadable cannot be read',
  );
  expect(await isDeleted(fleet, 'web')).toBe(true);
  expect(await isDeleted(fleet, 'unreadable')).toBe(false);
});

it('a pod without tolerations is evicted', async () => {
  const fleet = await fleetWithPods('web');
  await fleet.changePod('web', ({ spec: { tolerations: _, ...spec } = {}, ...pod }) => ({ ...pod, spec }));
  await taint(fleet);
  await fleet.streams();
  expect(await isDeleted(fleet, 'web')).toBe(true);
});

it('a pod that is terminating already is left unchanged', async () => {
  const fleet = await fleetWithPods('web');
  await fleet.endPod('web');
  await fleet.streams();
  const before = await fleet.pod('web');
  await taint(fleet);
  await fleet.streams();
  expect(await fleet.pod('web')).toEqual(before);
  expect(await fleet.events('TaintManagerEviction')).toEqual([]);
});

it('a change of a pod of a tainted node reads that pod alone, and keeps the timers of the others', async () => {
  const fleet = await fleetWithPods('a', 'b', 'c');
  const tolerate = (name: string, tolerationSeconds: number) =>
    fleet.changePod(name, (pod) => ({
      ...pod,
      spec: { ...pod.spec, tolerations: [{ ...TAINT, operator: 'Exists', tolerationSeconds }] },
    }));
  for (const name of ['a', 'b', 'c']) await tolerate(name, 600);
  await taint(fleet);
  await fleet.streams();
  const others = (await fleet.timers('a-0')).filter(({ name }) => name !== 'b');
  expect(others).toHaveLength(2);
  await tolerate('b', 300);
  const read: string[] = [];
  const isPod = ({ pk }: { readonly pk: string }) => pk.startsWith('o#pods');
  const recording: ItemStore = {
    ...fleet.tables,
    getMany(keys, options) {
      read.push(...keys.filter(isPod).map(({ sk }) => sk));
      return fleet.tables.getMany(keys, options);
    },
  };
  const changes = fleet.tables.changes('objects').filter(({ key }) => isPod(key));
  await fleet.makeControllers(recording).onObjectRecords(changes.slice(-1));
  expect(read).toEqual(['default/b']);
  const after = await fleet.timers('a-0');
  expect(after).toEqual(expect.arrayContaining(others));
  expect(after.find(({ name }) => name === 'b')?.atMs).toBe(others[0]!.atMs - 300_000);
});

describe('pods that are due at once', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `p${String(index).padStart(3, '0')}`);
  const deleted = async (fleet: ControlledFleet, of: readonly string[]) => {
    const states = await Promise.all(of.map((name) => isDeleted(fleet, name)));
    return of.filter((_, index) => states[index]);
  };

  /** The pods of the tainted node, without the streams. */
  const evict = async (fleet: ControlledFleet, items: ItemStore = fleet.tables): Promise<void> => {
    const silent = () => {};
    let uuids = 0;
    const dependencies = workDependencies({
      items,
      clock: { nowMs: fleet.nowMs },
      random: { uuid: () => `e${uuids++}`, fraction: () => 0 },
      policy: fleet.policy,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      meter: { add: silent },
    });
    await evictPods(dependencies, 'a-0', { nowMs: fleet.nowMs(), state: await dependencies.fleet.readState() });
  };

  it('stay in total disruption while our own taint is not removed yet', async () => {
    const fleet = await fleetWithPods('web');
    const taints = [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' as const }];
    await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints } }));
    const evictIn = async (total: boolean): Promise<boolean> => {
      const disruption = JSON.stringify({ total, sinceMs: 0, freshSinceMs: 0 });
      await fleet.tables.write({ kind: 'update', key: stateKey, set: { disruption } });
      await evict(fleet);
      return isDeleted(fleet, 'web');
    };
    expect(await evictIn(true)).toBe(false);
    expect(await evictIn(false)).toBe(true);
  });

  it('are deleted in parts of a hundred, and the others are due then', async () => {
    const pods = names(103);
    const fleet = await fleetWithPods(...pods);
    await taint(fleet);
    await evict(fleet);
    expect(await deleted(fleet, pods)).toHaveLength(100);
    const left = await fleet.timers('a-0');
    expect(left.map(({ atMs }) => atMs)).toEqual([fleet.nowMs(), fleet.nowMs(), fleet.nowMs()]);
    fleet.at(5);
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(await deleted(fleet, pods)).toHaveLength(103);
    expect(await fleet.timers('a-0')).toEqual([]);
  });

  it.each<[string, () => ReturnType<ItemStore['transact']>]>([
    ['cannot be written', () => Promise.reject(new StoreFault('rejected', 'bad', { retryable: false }))],
    ['is contended', async () => ({ kind: 'contended' })],
  ])('are deleted, except for one that %s: its timer is due, until it can be', async (_, answer) => {
    const fleet = await fleetWithPods('a', 'bad', 'c');
    await taint(fleet);
    const failing: ItemStore = {
      ...fleet.tables,
      transact: (writes) =>
        writes.some(({ key }) => key.pk.startsWith('o#pods#') && key.sk === 'default/bad')
          ? answer()
          : fleet.tables.transact(writes),
    };
    await evict(fleet, failing).catch(() => undefined);
    expect(await deleted(fleet, ['a', 'bad', 'c'])).toEqual(['a', 'c']);
    expect(await fleet.timers('a-0')).toMatchObject([{ name: 'bad', atMs: fleet.nowMs() }]);
    fleet.at(5);
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(await deleted(fleet, ['bad'])).toEqual(['bad']);
    expect(await fleet.timers('a-0')).toEqual([]);
  });
});

it('after an outage of the controller, a pod stays for a grace period of the profile of its node', async () => {
  const cell = { name: 'cell', nodeSelector: { matchLabels: { link: 'cell' } }, nodeMonitorGracePeriodSeconds: 120 };
  const { fleet } = await settledFleet({ a: 3 }, { policy: { profiles: [cell] } });
  await fleet.changeNode('a-2', ({ metadata, ...node }) => ({
    ...node,
    metadata: { ...metadata, labels: { ...metadata.labels, link: 'cell' } },
  }));
  const tolerations = [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', tolerationSeconds: 60 }] as const;
  await fleet.addPod('p', 'a-2', { tolerations: [...tolerations] });
  await fleet.streams();
  const run = (from: number, to: number) =>
    fleet.run(from, to, async (seconds) => {
      if (seconds % 10 === 0) await fleet.beat('a-0', 'a-1');
    });
  await run(0, 150);
  expect(await fleet.taints('a-2')).toContain('unreachable:NoExecute');
  await run(400, 515);
  expect(await isDeleted(fleet, 'p')).toBe(false);
  await run(520, 525);
  expect(await isDeleted(fleet, 'p')).toBe(true);
});
