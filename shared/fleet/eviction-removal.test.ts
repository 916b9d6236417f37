/** Removal of terminating pods that must not run twice, by the real controllers on a silent node. */
import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { type ControlledFleet, START_MS, settledFleet } from '../../test/support/controlled-fleet.ts';
import { decisionStore } from '../decisions/decision-store.ts';
import { OFFLINE_STOP_AFTER } from '../kinds/pods/offline-stop.ts';
import type { KubeObject } from '../kinds/types.ts';
import { type ItemStore, StoreFault } from '../store/item-store.ts';
import { evictionTimerStore } from './eviction-timer-store.ts';
import type { Policy } from './policy.ts';

/** Ten minutes without a link, 30 s of grace, and the margin. Seconds. */
const STOP_SECONDS = 600 + 30 + 60.6;
/** The first tick after the stop of a machine that last spoke at 0. */
const REMOVED_AT = 695;

interface Given {
  readonly annotation?: string;
  readonly finalizers?: string[];
  readonly tolerationSeconds?: number;
  readonly policy?: Partial<Policy>;
}

/** a-2 never beats after 0 s: it is marked and tainted at 45 s. */
async function fleetWithPod({ annotation = '10m', finalizers, tolerationSeconds = 60, policy = {} }: Given = {}) {
  const { fleet } = await settledFleet({ a: 3 }, { policy });
  await fleet.addPod('p', 'a-2', {
    tolerations: [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', tolerationSeconds }],
  });
  const annotations: Record<string, string> = annotation === '' ? {} : { [OFFLINE_STOP_AFTER]: annotation };
  const more = { annotations, ...(finalizers === undefined ? {} : { finalizers }) };
  await fleet.changePod('p', (pod) => ({ ...pod, metadata: { ...pod.metadata, ...more } }) as KubeObject);
  await fleet.streams();
  const run = (from: number, to: number, ...beating: string[]) =>
    fleet.run(from, to, async (seconds) => {
      if (seconds % 10 === 0) await fleet.beat('a-0', 'a-1', ...beating);
    });
  return { fleet, run };
}

async function silentFleet(given?: Given, untilSeconds = REMOVED_AT - 5) {
  const { fleet, run } = await fleetWithPod(given);
  await run(0, untilSeconds);
  return { fleet, run };
}

const removals = async (fleet: ControlledFleet) => {
  const { decisions } = await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000 });
  const records = decisions.map(({ record }) => record).filter(({ about }) => about.name === 'p');
  for (const record of records) expect(replay(record)).toMatchObject({ same: true, checked: true });
  return records.toSorted((one, other) => one.atMs - other.atMs).map(({ act }) => act);
};
const messages = async (fleet: ControlledFleet) =>
  (await fleet.events('TaintManagerEviction')).map((event) => [event['message'], event['count']]).toSorted();
const removedCount = (fleet: ControlledFleet) =>
  fleet.metrics.filter(({ name }) => name === 'taint_eviction_controller_pod_removals_total').length;
const timersAt = async (fleet: ControlledFleet) =>
  (await fleet.timers('a-2')).map(({ atMs }) => (atMs - START_MS) / 1_000);

/** A tick of evictor, with a callback after it has decided and before it writes the pod. */
async function removedWhile(fleet: ControlledFleet, happens: () => Promise<unknown>): Promise<void> {
  let once = true;
  const racing = fleet.makeControllers({
    ...fleet.tables,
    async transact(writes) {
      if (once && writes.some(({ key }) => key.pk.startsWith('o#pods#'))) {
        once = false;
        await happens();
      }
      return fleet.tables.transact(writes);
    },
  });
  await racing.tickEvictor(fleet.slot());
  expect(once).toBe(false);
}

describe('a pod that must not run twice, on a silent node', () => {
  it('is marked at its usual time, and removed when its machine has stopped it, not before', async () => {
    const { fleet, run } = await silentFleet({}, 100);
    expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeUndefined();
    await run(105, 105);
    expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeDefined();
    expect(await timersAt(fleet)).toEqual([STOP_SECONDS]);
    await run(110, REMOVED_AT - 5);
    expect(await fleet.pod('p')).toBeDefined();
    await run(REMOVED_AT, REMOVED_AT);
    expect(await fleet.pod('p')).toBeUndefined();
    expect(await timersAt(fleet)).toEqual([]);
    expect(await removals(fleet)).toEqual(['PodEvictionSet', 'PodDeleted', 'PodEvictionSet', 'PodRemoved']);
    expect(await messages(fleet)).toEqual([
      ['Marking for deletion Pod default/p', 1],
      ['Removing Pod default/p: node a-2 sends no heartbeats, and has stopped the pod by now', 1],
    ]);
    expect(removedCount(fleet)).toBe(1);
  });

  it.each([
    ['deletes it while the node is silent', 60],
    ['deleted it before the node became silent', 5],
  ])('is removed at the same time when a person %s', async (_, deletedAt) => {
    const { fleet, run } = await silentFleet({ tolerationSeconds: 9_999 }, deletedAt - 5);
    fleet.at(deletedAt - 1);
    await fleet.endPod('p');
    await fleet.streams();
    await run(deletedAt, 65);
    expect(await timersAt(fleet)).toEqual([STOP_SECONDS]);
    await run(70, REMOVED_AT - 5);
    expect(await fleet.pod('p')).toBeDefined();
    await run(REMOVED_AT, REMOVED_AT);
    expect(await fleet.pod('p')).toBeUndefined();
  });

  it('is never removed without the annotation, nor while no one marked it', async () => {
    const plain = await silentFleet({ annotation: '' }, 2_000);
    expect((await plain.fleet.pod('p'))?.metadata.deletionTimestamp).toBeDefined();
    const tolerating = await silentFleet({ tolerationSeconds: 9_999 }, 2_000);
    expect((await tolerating.fleet.pod('p'))?.metadata.deletionTimestamp).toBeUndefined();
  });

  it('is not removed before its machine has stopped it when the clock steps forward by less than a missed tick', async () => {
    const stepSeconds = 150;
    const { fleet, run } = await fleetWithPod({ policy: { nodeMonitorGracePeriodSeconds: 300 } });
    await run(0, 500);
    expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeDefined();
    await run(500 + stepSeconds, 600 + 30 + stepSeconds);
    expect(await fleet.pod('p')).toBeDefined();
    await run(635 + stepSeconds, 815);
    expect(await fleet.pod('p')).toBeUndefined();
  });

  it.each([
    ['v1.36.0', true],
    ['v1.36.0-nodekeeper.0.1.0', false],
  ])('stays on a machine that does not stop it without a link: %s', async (kubeletVersion, stays) => {
    const { fleet, run } = await fleetWithPod();
    await fleet.changeNode('a-2', (node) => ({ ...node, status: { ...node.status, nodeInfo: { kubeletVersion } } }));
    await fleet.streams();
    await run(0, 1_000);
    const pod = await fleet.pod('p');
    expect(pod !== undefined).toBe(stays);
    if (stays) expect(pod?.metadata.deletionTimestamp).toBeDefined();
    expect(await timersAt(fleet)).toEqual([]);
  });

  it.each([
    ['heartbeat', (fleet: ControlledFleet) => fleet.beat('a-2')],
    ['status post', (fleet: ControlledFleet) => fleet.post('a-2', 'Unknown')],
  ])('is not removed when a %s comes between the decision and its commit', async (_, speak) => {
    const { fleet } = await silentFleet();
    fleet.at(REMOVED_AT);
    await removedWhile(fleet, () => speak(fleet));
    expect(await fleet.pod('p')).toBeDefined();
    expect(await timersAt(fleet)).toEqual([REMOVED_AT + STOP_SECONDS]);
    expect(removedCount(fleet)).toBe(0);
    expect(await messages(fleet)).toHaveLength(1);
  });

  it('keeps its deletion when the node recovers: the timer is cancelled, and its machine finishes the pod', async () => {
    const { fleet, run } = await silentFleet({}, 300);
    fleet.at(302);
    await fleet.beat('a-2');
    await fleet.post('a-2');
    await fleet.streams();
    expect(await timersAt(fleet)).toEqual([]);
    await run(305, 1_100, 'a-2');
    expect((await fleet.pod('p'))?.metadata.deletionTimestamp).toBeDefined();
    expect((await removals(fleet)).at(-1)).toBe('PodEvictionCancelled');
  });

  it('is removed once by two evictors at the same time', async () => {
    const { fleet } = await silentFleet();
    fleet.at(REMOVED_AT);
    const other = fleet.makeControllers(fleet.tables);
    await removedWhile(fleet, () => other.tickEvictor(fleet.slot() + 1));
    expect(await fleet.pod('p')).toBeUndefined();
    expect(removedCount(fleet)).toBe(1);
    expect((await removals(fleet)).filter((act) => act === 'PodRemoved')).toHaveLength(1);
    expect(await timersAt(fleet)).toEqual([]);
  });

  it('stays removed when the process dies after the commit, and its timer is dropped', async () => {
    const { fleet } = await silentFleet();
    fleet.at(REMOVED_AT);
    const dying = fleet.makeControllers({
      ...fleet.tables,
      transact: (writes) =>
        writes.some(({ key }) => key.pk === 'evictions#a-2')
          ? Promise.reject(new StoreFault('throttled', 'the process died', { retryable: true }))
          : fleet.tables.transact(writes),
    });
    await expect(dying.tickEvictor(fleet.slot())).rejects.toThrow('evictor could not finish its tick');
    expect(await fleet.pod('p')).toBeUndefined();
    expect(await timersAt(fleet)).toEqual([STOP_SECONDS]);
    await fleet.streams();
    expect(await timersAt(fleet)).toEqual([]);
    expect(removedCount(fleet)).toBe(1);
  });

  it('is kept while the safety gate is closed, and the time counts anew from its opening', async () => {
    const { fleet, run } = await silentFleet();
    // No tick for 200 s, or a clock that was set forward: which one cannot be known.
    const openedAt = REMOVED_AT + 200;
    fleet.at(openedAt);
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(await fleet.pod('p')).toBeDefined();
    await run(openedAt, openedAt + 690);
    expect(await fleet.pod('p')).toBeDefined();
    await run(openedAt + 695, openedAt + 700);
    expect(await fleet.pod('p')).toBeUndefined();
  });

  it('with finalizers is marked with a grace period of 0, once', async () => {
    const { fleet, run } = await silentFleet({ finalizers: ['example.com/hold'] });
    await run(REMOVED_AT, REMOVED_AT);
    const marked = await fleet.pod('p');
    expect(marked?.metadata.deletionGracePeriodSeconds).toBe(0);
    expect(await timersAt(fleet)).toEqual([]);
    // All pods of the node are evaluated again.
    const taint = { key: 'example.com/maintenance', effect: 'NoExecute' as const };
    await fleet.changeNode('a-2', ({ spec, ...node }) => ({
      ...node,
      spec: { ...spec, taints: [...(spec?.taints ?? []), taint] },
    }));
    await run(REMOVED_AT + 5, REMOVED_AT + 60);
    expect(await fleet.pod('p')).toEqual(marked);
    expect(removedCount(fleet)).toBe(1);
  });

  it('gets its timer again with a new silence under the taint of an earlier one', async () => {
    const { fleet } = await silentFleet({}, 300);
    const ready = (status: string) =>
      fleet.changeNode('a-2', (node) => ({
        ...node,
        status: { ...node.status, conditions: [{ type: 'Ready', status } as never] },
      }));
    const timers = evictionTimerStore(fleet.tables);
    await timers.replace(await timers.read('a-2'), []);
    await ready('True');
    fleet.loseRecords();
    await ready('Unknown');
    await fleet.streams();
    expect(await timersAt(fleet)).toEqual([300 + STOP_SECONDS]);
  });

  it('is the only one for which the digest of the node is read', async () => {
    const digestsRead = async (annotation: string) => {
      const { fleet } = await silentFleet({ annotation }, 100);
      const reads: string[] = [];
      const recording: ItemStore = {
        ...fleet.tables,
        getMany(keys, options) {
          reads.push(...keys.filter(({ table }) => table === 'health').map(({ sk }) => sk));
          return fleet.tables.getMany(keys, options);
        },
      };
      await fleet.endPod('p');
      const change = fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('o#pods'));
      await fleet.makeControllers(recording).onObjectRecords(change.slice(-1));
      return reads;
    };
    expect(await digestsRead('')).toEqual([]);
    expect(await digestsRead('10m')).toEqual(['a-2']);
  });
});
