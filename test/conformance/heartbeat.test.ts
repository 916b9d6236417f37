/** HB: heartbeat and node health. Grace 50 s, startup grace 60 s, period 5 s. */
import { describe, expect, it } from 'vitest';
import { markUnknown } from '../../shared/domain/conditions.ts';
import type { NodeCondition } from '../../shared/domain/kubernetes.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const T0 = Date.UTC(2015, 0, 1, 12);
const HOUR = 3_600_000;
const YEAR_2012 = Date.UTC(2012, 0, 1);
const GRACE_50 = { nodeMonitorGracePeriodSeconds: 50 };
const FOUR = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

const fleetOf = (node: Parameters<typeof aNode>[0]) => new MonitoredFleet([aNode(node)], GRACE_50);
const marks = (fleet: MonitoredFleet) => fleet.decisions.filter(({ decision }) => decision.kind === 'markUnknown');
const marksPods = (fleet: MonitoredFleet) =>
  marks(fleet).some(({ decision }) => decision.kind === 'markUnknown' && decision.markPods);
/** Second, counted from `fromMs`, of the pass that marked the node; passes every 5 s. */
function markedAtSecond(fleet: MonitoredFleet, fromMs: number, toMs: number): number | undefined {
  fleet.run(fromMs, toMs);
  const mark = marks(fleet)[0];
  return mark === undefined ? undefined : (mark.atMs - fromMs) / 1_000;
}

describe('HB heartbeat and node health', () => {
  it('HB-01 marks a node that never posted and is long past its startup grace, and leaves its pods', () => {
    const fleet = fleetOf({ nodeName: 'n', ready: undefined, createdAtMs: YEAR_2012 });
    fleet.pass(T0);
    expect(marks(fleet)).toHaveLength(1);
    expect(marksPods(fleet)).toBe(false);
    expect(markUnknown(undefined, { nowMs: T0, createdAtMs: YEAR_2012 })).toEqual(
      FOUR.map((type) => ({
        type,
        status: 'Unknown',
        reason: 'NodeStatusNeverUpdated',
        message: 'Kubelet never posted node status.',
        lastHeartbeatTime: '2012-01-01T00:00:00Z',
        lastTransitionTime: '2015-01-01T12:00:00Z',
      })),
    );
  });

  it('HB-03 marks a node whose status stopped, keeps its heartbeat time, adds pressure conditions and marks pods', () => {
    const fleet = fleetOf({ nodeName: 'n', createdAtMs: YEAR_2012, statusAtMs: T0 });
    fleet.pass(T0);
    expect(marks(fleet)).toHaveLength(0);
    fleet.pass(T0 + HOUR);
    expect(marks(fleet)).toHaveLength(1);
    expect(marksPods(fleet)).toBe(true);
    const posted: NodeCondition[] = [
      {
        type: 'Ready',
        status: 'True',
        lastHeartbeatTime: '2015-01-01T12:00:00Z',
        lastTransitionTime: '2015-01-01T12:00:00Z',
      },
    ];
    const marked = markUnknown(posted, { nowMs: T0 + HOUR, createdAtMs: YEAR_2012 });
    expect(marked).toEqual([
      {
        type: 'Ready',
        status: 'Unknown',
        reason: 'NodeStatusUnknown',
        message: 'Kubelet stopped posting node status.',
        lastHeartbeatTime: '2015-01-01T12:00:00Z',
        lastTransitionTime: '2015-01-01T13:00:00Z',
      },
      ...FOUR.slice(1).map((type) => ({
        type,
        status: 'Unknown',
        reason: 'NodeStatusNeverUpdated',
        message: 'Kubelet never posted node status.',
        lastHeartbeatTime: '2012-01-01T00:00:00Z',
        lastTransitionTime: '2015-01-01T13:00:00Z',
      })),
    ]);
  });

  it('HB-05 leaves a new node that beats', () => {
    const fleet = fleetOf({ nodeName: 'n', ready: undefined, createdAtMs: T0, renewedAtMs: T0 });
    fleet.pass(T0);
    expect(marks(fleet)).toHaveLength(0);
  });

  it('HB-07 keeps a node that beats without status, and marks it once the beat stops', () => {
    const fleet = fleetOf({ nodeName: 'n', ready: undefined, createdAtMs: YEAR_2012, renewedAtMs: T0 });
    fleet.pass(T0);
    expect(marks(fleet)).toHaveLength(0);
    fleet.pass(T0 + HOUR);
    expect(marks(fleet)).toHaveLength(1);
    expect(marksPods(fleet)).toBe(false);
  });

  it('HB-09 keeps a node that only posts status', () => {
    const fleet = fleetOf({ nodeName: 'n', createdAtMs: T0, renewedAtMs: T0, statusAtMs: T0 });
    fleet.pass(T0);
    fleet.post('n', 'True', T0 + HOUR);
    fleet.pass(T0 + HOUR);
    expect(marks(fleet)).toHaveLength(0);
    expect(fleet.node('n').ready).toBe('True');
  });

  it('HB-11 keeps Ready True of a node heard of just now', () => {
    const fleet = fleetOf({ nodeName: 'n', createdAtMs: T0, statusAtMs: T0 });
    fleet.pass(T0);
    expect(fleet.node('n').ready).toBe('True');
  });

  it('HB-13 keeps Ready Unknown of a node heard of just now', () => {
    const fleet = fleetOf({ nodeName: 'n', ready: 'Unknown', createdAtMs: T0, statusAtMs: T0 });
    fleet.pass(T0);
    expect(fleet.node('n').ready).toBe('Unknown');
    expect(marks(fleet)).toHaveLength(0);
  });

  it('HB-15 turns Ready True of a node last heard of a year ago into Unknown', () => {
    const fleet = fleetOf({ nodeName: 'n', createdAtMs: T0 - 365 * 24 * HOUR, statusAtMs: T0 - 365 * 24 * HOUR });
    fleet.pass(T0);
    expect(fleet.node('n').ready).toBe('Unknown');
  });

  it('HB-17 writes nothing for a node that is Unknown already', () => {
    const longAgo = T0 - 365 * 24 * HOUR;
    const fleet = fleetOf({ nodeName: 'n', ready: 'Unknown', createdAtMs: longAgo, statusAtMs: longAgo });
    fleet.pass(T0);
    expect(marks(fleet)).toHaveLength(0);
    expect(markUnknown([{ type: 'Ready', status: 'Unknown' }], { nowMs: T0, createdAtMs: longAgo })).toBeUndefined();
  });

  it('HB-19 does not call exactly one grace late: marked in the pass at 55 s, not at 50 s', () => {
    const fleet = fleetOf({ nodeName: 'n', createdAtMs: T0, statusAtMs: T0 });
    expect(markedAtSecond(fleet, T0, T0 + 120_000)).toBe(55);
  });

  it('HB-21 takes a status post for a sign of life whatever heartbeat time it carries: marked at 85 s, not at 55 s', () => {
    const fleet = fleetOf({ nodeName: 'n', createdAtMs: T0, statusAtMs: T0 });
    fleet.run(T0, T0 + 25_000);
    // Only the server's receipt time is kept; the time written in the condition plays no part (D1).
    fleet.post('n', 'True', T0 + 30_000);
    fleet.run(T0 + 30_000, T0 + 120_000);
    expect(marks(fleet).map(({ atMs }) => atMs - T0)).toEqual([85_000]);
  });

  it('HB-23 allows 60 s from creation to a node without Ready: untouched at 60 s, marked at 65 s', () => {
    const fleet = fleetOf({ nodeName: 'n', ready: undefined, createdAtMs: T0 });
    expect(markedAtSecond(fleet, T0, T0 + 120_000)).toBe(65);
  });

  it('HB-25 counts from the last status post where there is no lease: True at 55 s, Unknown at 60 s', () => {
    const fleet = fleetOf({ nodeName: 'n', createdAtMs: T0, statusAtMs: T0 + 5_000 });
    expect(markedAtSecond(fleet, T0, T0 + 120_000)).toBe(60);
  });

  it('HB-27 does not let a re-created node inherit silence: it has its own startup grace (D2)', () => {
    const fleet = fleetOf({ nodeName: 'n', uid: 'old', createdAtMs: T0 - HOUR, statusAtMs: T0 });
    fleet.pass(T0);
    fleet.remove('n');
    fleet.add(aNode({ nodeName: 'n', uid: 'new', ready: undefined, createdAtMs: T0 + 300_000 }));
    fleet.pass(T0 + 305_000);
    expect(marks(fleet)).toHaveLength(0);
    fleet.run(T0 + 310_000, T0 + 400_000);
    expect(marks(fleet).map(({ atMs }) => atMs - T0)).toEqual([365_000]);
  });
});
