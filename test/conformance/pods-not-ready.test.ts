/** PN: marking pods not ready, by node-monitor and the stream of Pods. Grace 50 s. */
import { describe, expect, it } from 'vitest';
import { StoreFault } from '../../shared/store/item-store.ts';
import { MonitoredFleet } from '../support/monitored-fleet.ts';

const T0 = Date.UTC(2015, 0, 1, 12);
const MINUTE = 60_000;
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };

interface Condition {
  readonly type: string;
  readonly status: string;
}
const readyOfPod = async (fleet: MonitoredFleet, name = 'p') =>
  ((await fleet.fleet.pod(name))?.status?.['conditions'] as Condition[] | undefined)?.find(
    ({ type }) => type === 'Ready',
  )?.status;
/** NodeNotReady about pods. */
const podEvents = async (fleet: MonitoredFleet) =>
  (await fleet.events('NodeNotReady')).filter((event) => (event['involvedObject'] as { kind: string }).kind === 'Pod');
const podWrites = (fleet: MonitoredFleet) =>
  fleet.fleet.tables.changes('objects').filter(({ key }) => key.pk.startsWith('o#pods#')).length;

describe('PN marking pods not ready', () => {
  it('PN-01 leaves pods of a node that has only just been created', async () => {
    const fleet = await MonitoredFleet.of([{ nodeName: 'n', ready: undefined, createdAtMs: T0 }], GRACE_50);
    await fleet.fleet.addPod('p', 'n');
    await fleet.pass(T0);
    expect(await readyOfPod(fleet)).toBe('True');
  });

  it('PN-03 marks the pod of a node that falls silent, once', async () => {
    const fleet = await MonitoredFleet.of([{ nodeName: 'n', statusAtMs: T0 }], GRACE_50);
    await fleet.fleet.addPod('p', 'n');
    await fleet.pass(T0);
    const before = podWrites(fleet);
    await fleet.pass(T0 + MINUTE);
    await fleet.pass(T0 + MINUTE + 5_000);
    expect(podWrites(fleet) - before).toBe(1);
    expect(await readyOfPod(fleet)).toBe('False');
    expect(await podEvents(fleet)).toMatchObject([{ type: 'Warning', message: 'Node is not ready', count: 1 }]);
  });

  it('PN-05 marks the 5000 pods of 50 nodes exactly once each', async () => {
    const nodes = Array.from({ length: 50 }, (_, index) => ({ nodeName: `n-${index}`, statusAtMs: T0 }));
    const fleet = await MonitoredFleet.of(nodes, GRACE_50);
    for (const { nodeName } of nodes) {
      for (let pod = 0; pod < 100; pod += 1) await fleet.fleet.addPod(`${nodeName}-${pod}`, nodeName);
    }
    await fleet.pass(T0);
    const before = podWrites(fleet);
    await fleet.pass(T0 + MINUTE);
    await fleet.pass(T0 + MINUTE + 5_000);
    expect(podWrites(fleet) - before).toBe(5_000);
    expect((await fleet.fleet.objects.list({ resource: 'pods' })).objects).toHaveLength(5_000);
    expect(await podEvents(fleet)).toHaveLength(5_000);
  });

  /** A fleet with tables that refuse writes of pods while `refuses.pods`. */
  async function withFailingPodWrites() {
    const refuses = { pods: false };
    const fleet = await MonitoredFleet.of([{ nodeName: 'n', createdAtMs: T0 }], GRACE_50, {
      between: (items) => ({
        ...items,
        async transact(writes) {
          if (refuses.pods && writes.some(({ kind, key }) => kind !== 'check' && key.pk.startsWith('o#pods#'))) {
            throw new StoreFault('timeout', 'no answer in time', { retryable: true });
          }
          return items.transact(writes);
        },
      }),
    });
    await fleet.fleet.addPod('p', 'n');
    await fleet.pass(T0);
    refuses.pods = true;
    await expect(fleet.pass(T0 + MINUTE)).rejects.toThrow('node-monitor could not finish its tick');
    refuses.pods = false;
    expect([await fleet.ready('n'), await readyOfPod(fleet)]).toEqual(['Unknown', 'True']);
    return fleet;
  }

  it('PN-07 tries again in the next pass when a pod could not be written, while the node is not Ready', async () => {
    const fleet = await withFailingPodWrites();
    await fleet.post('n', 'False', T0 + MINUTE + 1_000);
    await fleet.pass(T0 + MINUTE + 5_000);
    expect(await readyOfPod(fleet)).toBe('False');
    const before = podWrites(fleet);
    await fleet.pass(T0 + MINUTE + 10_000);
    expect(podWrites(fleet)).toBe(before);
  });

  it('PN-07 gives up the retry when the node is Ready again', async () => {
    const fleet = await withFailingPodWrites();
    await fleet.post('n', 'True', T0 + MINUTE + 1_000);
    await fleet.pass(T0 + MINUTE + 5_000);
    expect(await readyOfPod(fleet)).toBe('True');
    await fleet.post('n', 'False', T0 + MINUTE + 6_000);
    await fleet.pass(T0 + MINUTE + 10_000);
    expect(await readyOfPod(fleet)).toBe('True');
  });

  it('PN-09 neither emits an event nor marks when the kubelet itself posts Ready False', async () => {
    const fleet = await MonitoredFleet.of([{ nodeName: 'n', createdAtMs: T0 }], GRACE_50);
    await fleet.fleet.addPod('p', 'n');
    await fleet.fleet.streams();
    await fleet.pass(T0);
    await fleet.post('n', 'False', T0 + 10_000);
    await fleet.pass(T0 + 10_000);
    await fleet.fleet.streams();
    expect(await readyOfPod(fleet)).toBe('True');
    expect(await fleet.events('NodeNotReady')).toEqual([]);
  });

  it('PN-11 marks a pod at once when it is bound to a node that is Unknown', async () => {
    const fleet = await MonitoredFleet.of([{ nodeName: 'n', ready: 'Unknown', createdAtMs: T0 }], GRACE_50);
    await fleet.fleet.addPod('p', 'n');
    await fleet.fleet.streams();
    expect(await readyOfPod(fleet)).toBe('False');
  });

  it('PN-13 says nothing about a pod bound to a node that is not known', async () => {
    const fleet = await MonitoredFleet.of([], GRACE_50);
    await fleet.fleet.addPod('p', 'n');
    await fleet.fleet.streams();
    expect(await readyOfPod(fleet)).toBe('True');
    expect(await podEvents(fleet)).toEqual([]);
  });
});
