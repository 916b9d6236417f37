/** Bounds of one tick of pod-gc, and parts of it that fail. */
import { beforeEach, describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { TickFault } from '../../shared/ticks/tick.ts';
import { collectPods } from './collect-pods.ts';
import { type PodGcDependencies, podGcDependencies } from './dependencies.ts';
import { runPodGc } from './work.ts';

const START_MS = Date.UTC(2026, 0, 1);

let tables: MemoryItemStore;
let nowMs: number;
let metrics: string[];
/** Writes of pods with these names fail. */
let refused: Set<string>;
let dependencies: PodGcDependencies;

beforeEach(() => {
  tables = memoryItemStore();
  nowMs = START_MS;
  metrics = [];
  refused = new Set();
  let uuids = 0;
  const items: ItemStore = {
    ...tables,
    transact: (writes) =>
      writes.some(({ key }) => key.pk.startsWith('o#pods#') && refused.has(key.sk))
        ? Promise.reject(new StoreFault('rejected', 'bad', { retryable: false }))
        : tables.transact(writes),
  };
  const silent = () => {};
  const common = workDependencies({
    items,
    clock: { nowMs: () => nowMs },
    random: { uuid: () => `u${uuids++}`, fraction: () => 0 },
    policy: { ...defaultPolicy, terminatedPodGcThreshold: 2 },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: (name, _value, _unit, dimensions) => void metrics.push(`${name} ${dimensions?.['reason']}`) },
  });
  dependencies = podGcDependencies(common, {});
});

async function create(resource: string, object: Partial<KubePod>): Promise<void> {
  const { namespace = '', name = '' } = object.metadata ?? {};
  const outcome = await dependencies.objects.commit({
    writes: [{ kind: 'create', ref: { resource, namespace, name }, object: object as KubePod }],
  });
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
}
const createPod = (name: string, nodeName: string, phase: 'Running' | 'Succeeded' = 'Running') =>
  create('pods', {
    kind: 'Pod',
    metadata: { namespace: 'd', name, uid: name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { nodeName, containers: [] },
    status: { phase },
  });
const rowOf = (name: string) => ({
  namespace: 'd',
  name,
  uid: name,
  nodeName: 'n',
  phase: 'Succeeded',
  terminating: false,
  evicted: false,
  createdAtMs: START_MS,
});
const names = async () =>
  (await dependencies.objects.list({ resource: 'pods', limit: 1_000 })).objects.map(({ metadata }) => metadata.name);
const collect = async (slot: number, hasTime: () => boolean = () => true) =>
  collectPods(dependencies, await dependencies.podGc.read(), { slot, nowMs, budget: { hasTime } });

/** Nodes that no longer exist, with a pod each; their quarantine is over. */
async function lose(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const name = `gone-${String(index).padStart(3, '0')}`;
    await createPod(`on-${name}`, name);
    await dependencies.podGc.putMissing(name, nowMs);
  }
  nowMs += defaultPolicy.orphanQuarantineSeconds * 1_000;
}

describe('a tick of pod-gc', () => {
  it('reads the pods of a hundred missing nodes, and those of others in the next slot', async () => {
    await lose(103);
    expect(await collect(0)).toMatchObject({ removed: 100, faults: [] });
    expect(await names()).toEqual(['on-gone-100', 'on-gone-101', 'on-gone-102']);
    expect(await collect(1)).toMatchObject({ removed: 3 });
    expect(await names()).toEqual([]);
    expect(metrics).toHaveLength(103);
  });

  it('begins no removal after its time, and counts what is left', async () => {
    await lose(9);
    let looks = 0;
    expect(await collect(0, () => looks++ < 4)).toMatchObject({ removed: 4, left: 5 });
    expect(await names()).toHaveLength(5);
  });

  it('leaves a pod that cannot be written, and says so', async () => {
    await lose(2);
    refused.add('d/on-gone-000');
    const outcome = await collect(0);
    expect(outcome).toMatchObject({ removed: 1, left: 0 });
    expect(outcome.faults).toHaveLength(1);
    expect(await names()).toEqual(['on-gone-000']);
    expect(metrics.sort()).toEqual([
      'pod_gc_collector_force_delete_pod_errors_total orphaned',
      'pod_gc_collector_force_delete_pods_total orphaned',
    ]);
  });

  it('counts only terminated pods that exist, and drops the rows of others', async () => {
    for (const name of ['a', 'b', 'c']) {
      await createPod(name, 'n', 'Succeeded');
      await dependencies.podGc.putPod(rowOf(name));
    }
    await dependencies.podGc.putPod(rowOf('a-deleted'));
    expect(await collect(0)).toMatchObject({ removed: 1, left: 0 });
    expect(await names()).toEqual(['b', 'c']);
    expect((await dependencies.podGc.read()).pods.map(({ name }) => name)).not.toContain('a-deleted');
  });
});

describe('the parts of a tick', () => {
  const tick = () => runPodGc(dependencies, { slot: Math.floor(nowMs / 20_000) });

  it('are counted', async () => {
    await lose(2);
    expect(await tick()).toEqual({ kind: 'ran', podsRemoved: 2, podsLeft: 0, volumesDetached: 0 });
  });

  it('do not keep each other from their work', async () => {
    await lose(2);
    await dependencies.podGc.askVolumes('n', nowMs);
    const { list } = dependencies.objects;
    dependencies.objects.list = (request) =>
      request.resource === 'volumeattachments' ? Promise.reject(new Error('down')) : list(request);
    const fault = await tick().catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(TickFault);
    // The sweep lists attachments too.
    expect((fault as TickFault).errors).toHaveLength(2);
    expect(await names()).toEqual([]);
  });

  it('are none, and no slot is claimed, without work', async () => {
    await dependencies.podGc.saveSweep({ dueAtMs: nowMs + 1, after: undefined });
    const before = JSON.stringify(tables.items('control'));
    expect(await tick()).toEqual({ kind: 'ran', podsRemoved: 0, podsLeft: 0, volumesDetached: 0 });
    expect(JSON.stringify(tables.items('control'))).toBe(before);
  });
});
