/** HB: heartbeat and node health, by node-monitor over stored nodes. Grace 50 s, startup grace 60 s, period 5 s. */
import { describe, expect, it } from 'vitest';
import { type AskedNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const T0 = Date.UTC(2015, 0, 1, 12);
const HOUR = 3_600_000;
const YEAR_2012 = Date.UTC(2012, 0, 1);
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };

const fleetOf = (node: Omit<AskedNode, 'nodeName'>) => MonitoredFleet.of([{ nodeName: 'n', ...node }], GRACE_50);
/** Seconds after `fromMs` of the passes that marked the node. */
const marks = (fleet: MonitoredFleet, fromMs = T0) => fleet.marks.map(({ atMs }) => (atMs - fromMs) / 1_000);
const conditionsOf = async (fleet: MonitoredFleet) => (await fleet.node('n')).status?.conditions;

async function withPod(fleet: MonitoredFleet): Promise<void> {
  await fleet.fleet.addPod('p', 'n');
}
const podReady = async (fleet: MonitoredFleet) =>
  ((await fleet.fleet.pod('p'))?.status?.['conditions'] as { status: string }[] | undefined)?.[0]?.status;

const neverPosted = (type: string, createdAt: string, markedAt: string) => ({
  type,
  status: 'Unknown',
  reason: 'NodeStatusNeverUpdated',
  message: 'Kubelet never posted node status.',
  lastHeartbeatTime: createdAt,
  lastTransitionTime: markedAt,
});

describe('HB heartbeat and node health', () => {
  it('HB-01 marks a node that never posted and is long past its startup grace, and leaves its pods', async () => {
    const fleet = await fleetOf({ ready: undefined, createdAtMs: YEAR_2012 });
    await withPod(fleet);
    await fleet.pass(T0);
    expect(fleet.marks).toHaveLength(1);
    expect(await podReady(fleet)).toBe('True');
    expect(await conditionsOf(fleet)).toEqual(
      ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) =>
        neverPosted(type, '2012-01-01T00:00:00Z', '2015-01-01T12:00:00Z'),
      ),
    );
  });

  it('HB-03 marks a node without further status posts, keeps its heartbeat time, adds pressure conditions and marks pods', async () => {
    const fleet = await fleetOf({ createdAtMs: YEAR_2012, statusAtMs: T0 });
    await withPod(fleet);
    await fleet.pass(T0);
    expect(fleet.marks).toHaveLength(0);
    await fleet.pass(T0 + HOUR);
    expect(fleet.marks).toHaveLength(1);
    expect(await podReady(fleet)).toBe('False');
    const stopped = (type: string) => ({
      type,
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      message: 'Kubelet stopped posting node status.',
      lastTransitionTime: '2015-01-01T13:00:00Z',
    });
    expect(await conditionsOf(fleet)).toEqual([
      { ...stopped('Ready'), lastHeartbeatTime: '2015-01-01T12:00:00Z' },
      stopped('MemoryPressure'),
      neverPosted('DiskPressure', '2012-01-01T00:00:00Z', '2015-01-01T13:00:00Z'),
      neverPosted('PIDPressure', '2012-01-01T00:00:00Z', '2015-01-01T13:00:00Z'),
    ]);
  });

  it('HB-05 leaves a new node that beats', async () => {
    const fleet = await fleetOf({ ready: undefined, createdAtMs: T0, renewedAtMs: T0 });
    await fleet.pass(T0);
    expect(fleet.marks).toHaveLength(0);
  });

  it('HB-07 keeps a node that beats without status, and marks it once the beat stops', async () => {
    const fleet = await fleetOf({ ready: undefined, createdAtMs: YEAR_2012, renewedAtMs: T0 });
    await withPod(fleet);
    await fleet.pass(T0);
    expect(fleet.marks).toHaveLength(0);
    await fleet.pass(T0 + HOUR);
    expect(fleet.marks).toHaveLength(1);
    expect(await podReady(fleet)).toBe('True');
  });

  it('HB-09 keeps a node that only posts status', async () => {
    const fleet = await fleetOf({ createdAtMs: T0, renewedAtMs: T0, statusAtMs: T0 });
    await fleet.pass(T0);
    await fleet.post('n', 'True', T0 + HOUR);
    await fleet.pass(T0 + HOUR);
    expect(fleet.marks).toHaveLength(0);
    expect(await fleet.ready('n')).toBe('True');
  });

  it('HB-11 keeps Ready True of a node with a recent heartbeat', async () => {
    const fleet = await fleetOf({ createdAtMs: T0, statusAtMs: T0 });
    await fleet.pass(T0);
    expect(await fleet.ready('n')).toBe('True');
  });

  it('HB-13 keeps Ready Unknown of a node with a recent heartbeat', async () => {
    const fleet = await fleetOf({ ready: 'Unknown', createdAtMs: T0, statusAtMs: T0 });
    const before = await fleet.node('n');
    await fleet.pass(T0);
    expect((await fleet.node('n')).status).toEqual(before.status);
  });

  it('HB-15 turns Ready True of a node with its last heartbeat a year ago into Unknown', async () => {
    const fleet = await fleetOf({ createdAtMs: T0 - 365 * 24 * HOUR });
    await fleet.pass(T0);
    expect(await fleet.ready('n')).toBe('Unknown');
  });

  it('HB-17 writes nothing for a node that is Unknown already', async () => {
    const fleet = await fleetOf({ ready: 'Unknown', createdAtMs: T0 - 365 * 24 * HOUR });
    const before = await fleet.node('n');
    await fleet.pass(T0);
    expect(await fleet.node('n')).toEqual(before);
  });

  it('HB-19 does not call exactly one grace late: marked in the pass at 55 s, not at 50 s', async () => {
    const fleet = await fleetOf({ createdAtMs: T0 });
    await fleet.run(T0, T0 + 120_000);
    expect(marks(fleet)).toEqual([55]);
  });

  it('HB-21 counts a status post as a sign of life whatever heartbeat time it carries: marked at 85 s, not at 55 s', async () => {
    const fleet = await fleetOf({ createdAtMs: T0 });
    await fleet.run(T0, T0 + 25_000);
    await fleet.post('n', 'True', T0 + 30_000);
    // Only the server's receipt time is kept; the time written in the condition plays no part (D1).
    await fleet.fleet.changeNode('n', (node) => ({
      ...node,
      status: {
        ...node.status,
        conditions: (node.status?.conditions ?? []).map((each) => ({
          ...each,
          lastHeartbeatTime: '1999-01-01T00:00:00Z',
        })),
      },
    }));
    await fleet.run(T0 + 30_000, T0 + 120_000);
    expect(marks(fleet)).toEqual([85]);
  });

  it('HB-23 allows 60 s from creation to a node without Ready: untouched at 60 s, marked at 65 s', async () => {
    const fleet = await fleetOf({ ready: undefined, createdAtMs: T0 });
    await fleet.run(T0, T0 + 120_000);
    expect(marks(fleet)).toEqual([65]);
  });

  it('HB-25 counts from the last status post where there is no lease: True at 55 s, Unknown at 60 s', async () => {
    const fleet = await fleetOf({ createdAtMs: T0, statusAtMs: T0 + 5_000 });
    await fleet.run(T0, T0 + 120_000);
    expect(marks(fleet)).toEqual([60]);
  });

  it('HB-27 does not let a re-created node inherit silence: it has its own startup grace (D2)', async () => {
    const fleet = await fleetOf({ createdAtMs: T0 - HOUR, statusAtMs: T0 });
    await fleet.pass(T0);
    await fleet.remove('n');
    await fleet.add({ nodeName: 'n', ready: undefined, createdAtMs: T0 + 300_000 });
    await fleet.pass(T0 + 305_000);
    expect(fleet.marks).toHaveLength(0);
    await fleet.run(T0 + 310_000, T0 + 400_000);
    expect(marks(fleet)).toEqual([365]);
  });
});
