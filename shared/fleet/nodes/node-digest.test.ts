import { describe, expect, it } from 'vitest';
import type { KubeNode } from '../../kinds/types.ts';
import type { NodeCondition } from '../../kubernetes/kubernetes.ts';
import { healthWritesFor } from './change-node.ts';
import { isExcluded, movedTimes, shownNode, storedNode, zoneKeyOf } from './node-digest.ts';

const NODE = {
  metadata: {
    name: 'n1',
    uid: 'u1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { 'topology.kubernetes.io/zone': 'a' },
  },
  status: { conditions: [{ type: 'Ready', status: 'True' as const }] },
} satisfies KubeNode;

const tainted = (key: string): KubeNode => ({ ...NODE, spec: { taints: [{ key, effect: 'NoExecute' }] } });

const writes = (next: KubeNode) =>
  healthWritesFor({ kind: 'update', next, old: NODE, statusPost: false, nowMs: 0 }).length;

it.each<[string, KubeNode]>([
  ['uid', { ...NODE, metadata: { ...NODE.metadata, uid: 'u2' } }],
  ['creation', { ...NODE, metadata: { ...NODE.metadata, creationTimestamp: '2026-01-01T00:00:01Z' } }],
  ['zone', { ...NODE, metadata: { ...NODE.metadata, labels: { 'topology.kubernetes.io/zone': 'b' } } }],
  [
    'exclusion from disruption',
    {
      ...NODE,
      metadata: {
        ...NODE.metadata,
        labels: { ...NODE.metadata.labels, 'node.kubernetes.io/exclude-disruption': '' },
      },
    },
  ],
  ['readiness', { ...NODE, status: { conditions: [{ type: 'Ready', status: 'False' }] } }],
  ['taint not-ready', tainted('node.kubernetes.io/not-ready')],
  ['taint unreachable', tainted('node.kubernetes.io/unreachable')],
])('a change of the %s alone is written to the digest', (_, next) => {
  expect(writes(next)).toBe(1);
});

it('a change of another label is not', () => {
  const labels = { ...NODE.metadata.labels, site: 'harbour' };
  expect(writes({ ...NODE, metadata: { ...NODE.metadata, labels } })).toBe(0);
});

describe('zoneKeyOf', () => {
  it('is empty for a node without zone and region', () => {
    expect(zoneKeyOf(undefined)).toBe('');
    expect(zoneKeyOf({ 'kubernetes.io/os': 'linux' })).toBe('');
  });

  it('is the zone alone without a region, and region/zone with one', () => {
    expect(zoneKeyOf({ 'topology.kubernetes.io/zone': 'a' })).toBe('a');
    expect(zoneKeyOf({ 'topology.kubernetes.io/zone': 'a', 'topology.kubernetes.io/region': 'r' })).toBe('r/a');
  });

  it('distinguishes a region without zone from a zone of the same name', () => {
    expect(zoneKeyOf({ 'topology.kubernetes.io/region': 'r' })).toBe('r/');
    expect(zoneKeyOf({ 'topology.kubernetes.io/zone': 'r' })).toBe('r');
  });
});

describe('isExcluded', () => {
  it('depends on the presence of the label, not on its value', () => {
    expect(isExcluded({ 'node.kubernetes.io/exclude-disruption': '' })).toBe(true);
    expect(isExcluded({ 'node.kubernetes.io/exclude-disruption': 'false' })).toBe(true);
    expect(isExcluded({})).toBe(false);
    expect(isExcluded(undefined)).toBe(false);
  });
});

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
