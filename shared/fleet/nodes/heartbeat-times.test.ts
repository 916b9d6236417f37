import { describe, expect, it } from 'vitest';
import type { KubeNode } from '../../kinds/types.ts';
import type { NodeCondition } from '../../kubernetes/kubernetes.ts';
import { movedTimes, shownNode, storedNode } from './heartbeat-times.ts';

const at = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`;
const seconds = (minute: number): number => Date.UTC(2026, 0, 1, 0, minute) / 1_000;

/** Conditions by type, each with the minute of its last heartbeat. */
const node = (minutes: Readonly<Record<string, number>>, change: Partial<KubeNode> = {}): KubeNode => ({
  metadata: { name: 'n1', resourceVersion: '7' },
  status: {
    conditions: Object.entries(minutes).map(
      ([type, minute]): NodeCondition => ({ type, status: 'True', lastHeartbeatTime: at(minute) }),
    ),
  },
  ...change,
});
const minutesOf = ({ status }: KubeNode) =>
  Object.fromEntries((status?.conditions ?? []).map((each) => [each.type, each.lastHeartbeatTime]));
const unread = (stored: KubeNode) => ({ shown: stored, stored });

describe('heartbeat times kept apart from the Node', () => {
  it('are what moved when nothing else did', () => {
    const stored = node({ Ready: 0, DiskPressure: 0 });
    expect(movedTimes(node({ Ready: 5, DiskPressure: 5 }), unread(stored))).toEqual({
      fromSeconds: seconds(0),
      toSeconds: seconds(5),
    });
  });

  it('move for a part of the conditions when those share a time that no other has', () => {
    const stored = node({ Ready: 0, DiskPressure: 0, KernelDeadlock: 3 });
    expect(movedTimes(node({ Ready: 5, DiskPressure: 5, KernelDeadlock: 3 }), unread(stored))).toBeDefined();
  });

  it.each([
    ['another field changed', { Ready: 0 }, node({ Ready: 5 }, { spec: { unschedulable: true } })],
    ['a condition came', { Ready: 0 }, node({ Ready: 5, DiskPressure: 5 })],
    ['a time went back', { Ready: 6 }, node({ Ready: 5 })],
    ['two times came', { Ready: 0, DiskPressure: 0 }, node({ Ready: 5, DiskPressure: 6 })],
    ['two times went', { Ready: 0, DiskPressure: 1 }, node({ Ready: 5, DiskPressure: 5 })],
    ['one of two that share a time stayed', { Ready: 0, DiskPressure: 0 }, node({ Ready: 5, DiskPressure: 0 })],
    ['nothing changed', { Ready: 0 }, node({ Ready: 0 })],
  ])('are not all that moved when %s', (_what, stored, next) => {
    expect(movedTimes(next, unread(node(stored)))).toBeUndefined();
  });

  it('are shown for those conditions alone that are stored with the earlier time', () => {
    const times = { fromSeconds: seconds(0), toSeconds: seconds(5) };
    expect(minutesOf(shownNode(node({ Ready: 0, KernelDeadlock: 3 }), times))).toEqual({
      Ready: at(5),
      KernelDeadlock: at(3),
    });
    const stored = node({ Ready: 3 });
    expect([shownNode(stored, times), shownNode(stored, undefined)].every((shown) => shown === stored)).toBe(true);
  });

  it('move on from what is shown', () => {
    const stored = node({ Ready: 0, KernelDeadlock: 3 });
    const shown = shownNode(stored, { fromSeconds: seconds(0), toSeconds: seconds(5) });
    expect(movedTimes(node({ Ready: 10, KernelDeadlock: 3 }), { shown, stored })).toEqual({
      fromSeconds: seconds(0),
      toSeconds: seconds(10),
    });
  });

  it('are not stored by a write that only copied them', () => {
    const stored = node({ Ready: 0, KernelDeadlock: 3 });
    const shown = shownNode(stored, { fromSeconds: seconds(0), toSeconds: seconds(5) });
    const next = node({ Ready: 5, KernelDeadlock: 7 });
    expect(minutesOf(storedNode(next, { shown, stored }))).toEqual({ Ready: at(0), KernelDeadlock: at(7) });
  });
});
