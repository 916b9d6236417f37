/** Law L12: a bad object affects only itself. Each case has a healthy neighbour that must not wait for it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import type { Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { objectText } from '../../shared/store/object-record.ts';
import { type ControlledFleet, settledFleet } from '../support/controlled-fleet.ts';

const beats = (fleet: ControlledFleet, ...names: string[]) => {
  return (seconds: number): Promise<unknown> => (seconds % 10 === 0 ? fleet.beat(...names) : Promise.resolve());
};
/** With an annotation that makes the stored JSON this long. */
const padded = <T extends KubeObject>(object: T, units: number, unit = 'x'): T => {
  const withPadding = (padding: string): T => ({
    ...object,
    metadata: { ...object.metadata, annotations: { padding } },
  });
  return withPadding(unit.repeat(units - objectText(withPadding('')).length));
};
const notWritten = (fleet: ControlledFleet) =>
  fleet.metrics.filter(({ name }) => name === 'objects_not_written_total').length;

describe('an oversized object', () => {
  it('does not prevent a tick from completing: pods that exceed a transaction together are marked in parts', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    for (let index = 0; index < 13; index += 1) {
      await fleet.addPod(`p-${index}`, 'a-2');
      await fleet.changePod(`p-${index}`, (pod) => padded(pod, 99_900, '中'));
    }
    await fleet.streams();
    await fleet.run(0, 60, beats(fleet, 'a-0', 'a-1'));
    expect(await fleet.ready('a-2')).toBe('Unknown');
    for (let index = 0; index < 13; index += 1) {
      expect((await fleet.pod(`p-${index}`))?.status?.['conditions']).toMatchObject([
        { type: 'Ready', status: 'False' },
      ]);
    }
    expect((await fleet.health('a-2'))?.podsToMark).toBe(false);
    expect((await fleet.records()).state.gate.reasons).toEqual([]);
    expect(notWritten(fleet)).toBe(0);
  });

  it('is skipped and reported when it cannot be marked. The pods beside it are marked, and no tick reads it again', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    for (const name of ['p-0', 'p-1', 'p-2']) await fleet.addPod(name, 'a-2');
    await fleet.changePod('p-1', (pod) => padded(pod, 120_000));
    await fleet.streams();
    await fleet.run(0, 60, beats(fleet, 'a-0', 'a-1'));
    for (const [name, status] of [
      ['p-0', 'False'],
      ['p-1', 'True'],
      ['p-2', 'False'],
    ] as const) {
      expect((await fleet.pod(name))?.status?.['conditions'], name).toMatchObject([{ status }]);
    }
    expect((await fleet.health('a-2'))?.podsToMark).toBe(false);
    expect(notWritten(fleet)).toBe(1);
    const [event] = await fleet.events('ObjectTooLarge');
    expect(event).toMatchObject({ type: 'Warning', involvedObject: { kind: 'Pod', name: 'p-1' } });
    expect(fleet.told).toContainEqual(
      expect.objectContaining({ level: 'error', fields: expect.objectContaining({ name: 'default/p-1' }) }),
    );
  });

  it('is reported when it is a Node that cannot be tainted by its conditions', async () => {
    const { fleet } = await settledFleet({ a: 2 });
    await fleet.changeNode('a-1', (node) => {
      const pressure = { type: 'DiskPressure', status: 'True' };
      const status = { ...node.status, conditions: [...(node.status?.conditions ?? []), pressure] };
      return padded({ ...node, status } as KubeNode, 120_000);
    });
    await fleet.streams();
    expect((await fleet.node('a-1'))?.spec?.taints ?? []).toEqual([]);
    expect(notWritten(fleet)).toBe(1);
    const [event] = await fleet.events('ObjectTooLarge');
    expect(event).toMatchObject({ type: 'Warning', involvedObject: { kind: 'Node', name: 'a-1' } });
  });

  it('leaves the others of its commit marked when it is a Node', async () => {
    const { fleet } = await settledFleet({ a: 8 });
    await fleet.changeNode('a-7', (node) => padded(node, 120_000));
    await fleet.streams();
    await fleet.run(0, 45, beats(fleet, 'a-0', 'a-1', 'a-2', 'a-3'));
    for (const name of ['a-4', 'a-5', 'a-6']) expect(await fleet.ready(name)).toBe('Unknown');
    expect(await fleet.ready('a-7')).toBe('True');
    expect((await fleet.events('ObjectTooLarge')).length).toBe(1);
    await fleet.run(50, 50, beats(fleet, 'a-0', 'a-1', 'a-2', 'a-3'));
    expect((await fleet.records()).state.gate.reasons).toEqual([]);
  });

  it('does not block its zone: the next node in the queue gets its taint in the same tick', async () => {
    const { fleet } = await settledFleet({ a: 6 }, { policy: { nodeEvictionRatePerSecond: 0.1 } });
    const dead = ['a-0', 'a-1'];
    const alive = ['a-2', 'a-3', 'a-4', 'a-5'];
    await fleet.run(0, 40, beats(fleet, ...alive));
    fleet.at(45);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    await fleet.streams();
    for (const name of dead) expect(await fleet.ready(name)).toBe('Unknown');
    // By now it is so large that its taint does not fit: another controller filled the headroom.
    await fleet.changeNode('a-0', (node) => padded(node, 120_000));
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(await fleet.taints('a-0')).not.toContain('unreachable:NoExecute');
    expect(await fleet.taints('a-1')).toContain('unreachable:NoExecute');
    expect(notWritten(fleet)).toBe(1);
    expect((await fleet.records()).queue).toEqual([]);
  });
});

describe('an object that cannot be read or written', () => {
  const failing =
    (when: (pk: string) => boolean) =>
    (items: ItemStore): ItemStore => ({
      ...items,
      query: (request) =>
        when(request.pk)
          ? Promise.reject(new StoreFault('throttled', 'this partition is throttled', { retryable: true }))
          : items.query(request),
    });

  it('does not keep other nodes from being marked when the pods of one cannot be listed; its own are marked later', async () => {
    let broken = true;
    const { fleet } = await settledFleet({ a: 20 }, { between: failing((pk) => broken && pk === 'n#a-19') });
    const silent = ['a-15', 'a-16', 'a-17', 'a-18', 'a-19'];
    for (const name of silent) await fleet.addPod(`on-${name}`, name);
    await fleet.streams();
    const alive = Array.from({ length: 15 }, (_, index) => `a-${index}`);
    await fleet.run(0, 40, beats(fleet, ...alive));
    fleet.at(45);
    await expect(fleet.controllers.tickNodeMonitor(fleet.slot())).rejects.toMatchObject({
      errors: [expect.objectContaining({ message: 'this partition is throttled' })],
    });
    for (const name of silent) expect(await fleet.ready(name), name).toBe('Unknown');
    expect((await fleet.pod('on-a-18'))?.status?.['conditions']).toMatchObject([{ status: 'False' }]);
    expect((await fleet.health('a-19'))?.podsToMark).toBe(true);
    broken = false;
    fleet.at(50);
    await fleet.beat(...alive);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    expect((await fleet.records()).state.gate.reasons).toEqual([]);
    expect((await fleet.pod('on-a-19'))?.status?.['conditions']).toMatchObject([{ status: 'False' }]);
  });

  it('does not prevent other nodes of its commit from being marked, and does not close the gate however long it lasts', async () => {
    let broken = false;
    const { fleet } = await settledFleet(
      { a: 16 },
      {
        between: (items) => ({
          ...items,
          transact: (writes) =>
            broken && writes.some(({ key }) => key.pk.startsWith('o#nodes#') && key.sk === 'a-15')
              ? Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }))
              : items.transact(writes),
        }),
      },
    );
    const alive = Array.from({ length: 10 }, (_, index) => `a-${index}`);
    await fleet.run(0, 40, beats(fleet, ...alive));
    broken = true;
    for (const seconds of [45, 50, 55, 60, 65]) {
      fleet.at(seconds);
      await beats(fleet, ...alive)(seconds);
      await expect(fleet.controllers.tickNodeMonitor(fleet.slot())).rejects.toThrow('could not finish');
      for (const name of ['a-10', 'a-11', 'a-12', 'a-13', 'a-14']) expect(await fleet.ready(name)).toBe('Unknown');
    }
    expect(await fleet.ready('a-15')).toBe('True');
    expect((await fleet.records()).state.gate.reasons).toEqual([]);
  });

  it('does not prevent the taint of the other dead node of its zone', async () => {
    let broken = false;
    const { fleet } = await settledFleet(
      { a: 6 },
      {
        between: (items) => ({
          ...items,
          get: (key, options) =>
            broken && key.pk.startsWith('o#nodes#') && key.sk === 'a-0'
              ? Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }))
              : items.get(key, options),
        }),
      },
    );
    await fleet.run(0, 40, beats(fleet, 'a-2', 'a-3', 'a-4', 'a-5'));
    fleet.at(45);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    broken = true;
    await expect(fleet.controllers.tickEvictor(fleet.slot())).rejects.toThrow('evictor could not finish');
    const tainted = (node: KubeNode | undefined) =>
      (node?.spec?.taints ?? []).some(({ effect }) => effect === 'NoExecute');
    expect(tainted(await fleet.node('a-1'))).toBe(true);
    expect(tainted(await fleet.node('a-0'))).toBe(false);
  });

  it('does not prevent the taint of the last node in the queue of its zone, with 60 of them before it', async () => {
    let last = '';
    const refused = new Set<string>();
    const { fleet, names } = await settledFleet(
      { a: 125 },
      {
        between: (items) => ({
          ...items,
          get: (key, options) => {
            if (last === '' || !key.pk.startsWith('o#nodes#') || key.sk === last) return items.get(key, options);
            refused.add(key.sk);
            return Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }));
          },
        }),
      },
    );
    const dead = names.slice(0, 61);
    await fleet.run(0, 40, beats(fleet, ...names.slice(61)));
    fleet.at(45);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    expect((await fleet.records()).queue).toHaveLength(61);
    last = [...dead].sort().at(-1)!;
    await expect(fleet.controllers.tickEvictor(fleet.slot())).rejects.toThrow('evictor could not finish');
    expect(refused.size).toBe(60);
    expect(await fleet.taints(last)).toContain('unreachable:NoExecute');
    expect((await fleet.records()).queue).toHaveLength(60);
  });

  it('does not use up the time of a tick: due pods are evicted while the taints of 40 nodes fail slowly', async () => {
    let broken = false;
    let refused = 0;
    const { fleet, ofZone } = await settledFleet(
      { a: 100, b: 3 },
      {
        between: (items) => ({
          ...items,
          get: (key, options) => {
            if (!broken || !key.pk.startsWith('o#nodes#') || !key.sk.startsWith('a-')) return items.get(key, options);
            refused += 1;
            fleet.at(110 + refused * 0.5);
            return Promise.reject(new StoreFault('throttled', 'this item is throttled', { retryable: true }));
          },
        }),
      },
    );
    await fleet.addPod('due', 'b-2', { tolerations: tolerating(62) });
    const alive = [...ofZone('a').slice(40), 'b-0', 'b-1'];
    await fleet.run(0, 60, beats(fleet, ...alive, ...ofZone('a').slice(0, 40)));
    await fleet.run(65, 100, beats(fleet, ...alive));
    fleet.at(105);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    fleet.at(110);
    expect((await fleet.records()).queue).toHaveLength(40);
    expect((await fleet.pod('due'))?.metadata.deletionTimestamp).toBeUndefined();
    broken = true;
    await expect(fleet.controllers.tickEvictor(fleet.slot())).rejects.toThrow('evictor could not finish');
    expect(refused).toBeGreaterThan(5);
    expect(refused).toBeLessThanOrEqual(10);
    expect((await fleet.pod('due'))?.metadata.deletionTimestamp).toBeDefined();
  });
});

/** Stored before the API refused it, or written to the table directly. */
async function storeAsIs(fleet: ControlledFleet, name: string, change: (pod: KubeObject) => KubeObject): Promise<void> {
  await fleet.changePod(name, change);
}

const withSpec =
  (spec: Record<string, unknown>) =>
  (pod: KubeObject): KubeObject => ({
    ...pod,
    spec: { ...pod.spec, ...spec },
  });
const tolerating = (tolerationSeconds: number): Toleration[] =>
  ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds,
  }));

describe('absurd numbers and times that are stored', () => {
  /** A dead node with three pods, two minutes later. `poison` changes the middle pod. */
  async function afterEviction(poison: (pod: KubeObject) => KubeObject) {
    const { fleet } = await settledFleet({ a: 4, b: 3 });
    for (const name of ['p-0', 'p-1', 'p-2']) await fleet.addPod(name, 'a-0', { tolerations: tolerating(5) });
    await storeAsIs(fleet, 'p-1', poison);
    await fleet.streams();
    await fleet.run(0, 70, beats(fleet, 'a-1', 'a-2', 'a-3', 'b-0', 'b-1', 'b-2'));
    return fleet;
  }
  const isGoing = async (fleet: ControlledFleet, name: string): Promise<boolean> =>
    (await fleet.pod(name))?.metadata.deletionTimestamp !== undefined;

  it('evict the pod and its neighbours at a valid time, whatever its grace period', async () => {
    const grace = fc.oneof(
      fc.constantFrom(1e12, 1e13, 8.64e15, 1e300, Number.MAX_VALUE, -1e300, 2 ** 53),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    );
    await fc.assert(
      fc.asyncProperty(grace, async (terminationGracePeriodSeconds) => {
        const fleet = await afterEviction(withSpec({ terminationGracePeriodSeconds }));
        for (const name of ['p-0', 'p-2']) expect(await isGoing(fleet, name), name).toBe(true);
        const pod = await fleet.pod('p-1');
        const going = pod?.metadata.deletionTimestamp;
        if (pod !== undefined) expect(Number.isNaN(Date.parse(going ?? '')), going).toBe(false);
        expect((await fleet.records()).state.gate.reasons).toEqual([]);
      }),
      { numRuns: 12 },
    );
  });

  it('evict the neighbours of a pod that tolerates for an absurd time', async () => {
    const seconds = fc.oneof(
      fc.constantFrom(1e11, 2 ** 63, 1e300, 1e305),
      fc.double({ min: 1e6, noNaN: true, noDefaultInfinity: true }),
    );
    await fc.assert(
      fc.asyncProperty(seconds, async (tolerationSeconds) => {
        const fleet = await afterEviction(withSpec({ tolerations: tolerating(tolerationSeconds) }));
        for (const name of ['p-0', 'p-2']) expect(await isGoing(fleet, name), name).toBe(true);
        expect(await isGoing(fleet, 'p-1')).toBe(false);
        const [timer] = await fleet.timers('a-0');
        expect(timer?.atMs).toBeLessThan(fleet.nowMs() + 2 ** 31 * 1_000);
      }),
      { numRuns: 12 },
    );
  });

  it('do not evict a pod that is terminating with a malformed time, and evict its neighbours', async () => {
    const fleet = await afterEviction((pod) => ({
      ...pod,
      metadata: { ...pod.metadata, deletionTimestamp: '+318857-05-20T17:46:40Z' },
    }));
    for (const name of ['p-0', 'p-2']) expect(await isGoing(fleet, name), name).toBe(true);
    expect(fleet.told.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('a stream record that can never be processed', () => {
  it('is dropped and reported at once; the records before and after it are processed', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    const image = (name: string) =>
      fleet.tables.items('objects').find((item) => item['n'] === name && item['k'] === 'Node')!;
    const keyOf = (name: string) => ({ pk: image(name)['pk'] as string, sk: name });
    const record = (name: string, unreadable = false) => {
      const newImage = unreadable ? { ...image(name), o: '{"kind":"No' } : image(name);
      return { type: 'MODIFY' as const, key: keyOf(name), oldImage: image(name), newImage };
    };
    for (const name of ['a-0', 'a-2']) {
      await fleet.changeNode(name, (node) => ({ ...node, spec: { ...node.spec, unschedulable: true } }));
    }
    const outcome = await fleet.controllers.onObjectRecords([record('a-0'), record('a-1', true), record('a-2')]);
    expect(outcome.failedFrom).toBeUndefined();
    expect(outcome.faults).toHaveLength(1);
    expect(fleet.metrics.filter(({ name }) => name === 'stream_records_given_up_total')).toHaveLength(1);
    for (const name of ['a-0', 'a-2']) expect(await fleet.taints(name)).toEqual(['unschedulable:NoSchedule']);
  });

  it('is dropped when its pod cannot be read; the other pods of its node are evicted', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    await fleet.addPod('bad', 'a-0', { tolerations: [] });
    await storeAsIs(fleet, 'bad', withSpec({ tolerations: 'none' }));
    await fleet.addPod('good', 'a-0', { tolerations: [] });
    await fleet.run(0, 5);
    const taint = { key: 'k', effect: 'NoExecute' as const, timeAdded: formatTime(fleet.nowMs()) };
    await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [taint] } }));
    await expect(fleet.streams()).rejects.toThrow('could not be evicted');
    expect((await fleet.pod('good'))?.metadata.deletionTimestamp).toBeDefined();
    expect((await fleet.pod('bad'))?.metadata.deletionTimestamp).toBeUndefined();
  });
});

describe('a node with more eviction timers than one item holds', () => {
  it('keeps them all, and delays no other node', async () => {
    const { fleet } = await settledFleet({ a: 4, b: 3 });
    const nameOf = (index: number) => `p-${index}-`.padEnd(253, 'x');
    for (let index = 0; index < 1_300; index += 1) {
      await fleet.addPod(nameOf(index), 'a-0', { tolerations: tolerating(864_000) });
    }
    await fleet.addPod('victim', 'a-1', { tolerations: tolerating(5) });
    await fleet.streams();
    await fleet.run(0, 75, beats(fleet, 'a-2', 'a-3', 'b-0', 'b-1', 'b-2'));
    expect(await fleet.taints('a-0')).toContain('unreachable:NoExecute');
    expect((await fleet.timers('a-0')).length).toBe(1_300);
    expect((await fleet.pod('victim'))?.metadata.deletionTimestamp).toBeDefined();
  });
});

describe('a node with thousands of pods that are due', () => {
  it('has a bounded number of them deleted in one call, and the rest at the next ticks', async () => {
    const { fleet } = await settledFleet({ a: 3 });
    for (let index = 0; index < 130; index += 1) await fleet.addPod(`p-${index}`, 'a-0', { tolerations: [] });
    await fleet.run(0, 5);
    const taint = { key: 'k', effect: 'NoExecute' as const, timeAdded: formatTime(fleet.nowMs()) };
    await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [taint] } }));
    const going = async () => {
      const pods = await fleet.objects.listByNode('a-0');
      return pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).length;
    };
    const last = fleet.tables.changes('objects').findLast(({ key }) => key.pk.startsWith('o#nodes#'))!;
    expect((await fleet.controllers.onObjectRecords([last])).faults).toEqual([]);
    expect(await going()).toBe(100);
    await fleet.run(10, 10);
    expect(await going()).toBe(130);
  });
});
