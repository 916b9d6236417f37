import { expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { labelsToSet, nodeChanged, statusChanged } from './status-report.ts';

const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-01-01T00:00:00Z', lastTransitionTime: null };
const disk = { ...ready, type: 'DiskPressure', status: 'False' };
const memory = { ...ready, type: 'MemoryPressure', status: 'False' };
const status = { conditions: [ready, disk, memory], capacity: { cpu: '1' }, allocatable: { cpu: '1' }, phase: 'x' };

it.each<[string, object]>([
  ['the order of conditions', { conditions: [memory, ready, disk] }],
  ['the order of conditions', { conditions: [disk, memory, ready] }],
  ['the time of a heartbeat', { conditions: [{ ...ready, lastHeartbeatTime: '2026-01-02T00:00:00Z' }, disk, memory] }],
  ['how a quantity is written', { capacity: { cpu: '1000m' }, allocatable: { cpu: '1000m' } }],
])('a status does not change with %s', (_what, over) => {
  expect(statusChanged(status as never, { ...status, ...over } as never)).toBe(false);
});

it.each<[string, object]>([
  ['a condition', { conditions: [{ ...ready, status: 'False' }, disk, memory] }],
  ['a condition less', { conditions: [ready, disk] }],
  ['no conditions', { conditions: undefined }],
  ['a capacity', { capacity: { cpu: '2' } }],
  ['a resource more', { capacity: { cpu: '1', memory: '1' } }],
  ['a resource less', { allocatable: {} }],
  ['no resources', { allocatable: undefined }],
  ['another field', { phase: 'y' }],
])('a status changes with %s', (_what, over) => {
  expect(statusChanged(status as never, { ...status, ...over } as never)).toBe(true);
});

it('a status changes where it begins or ends', () => {
  expect(statusChanged(undefined, undefined)).toBe(false);
  expect(statusChanged(status as never, undefined)).toBe(true);
  expect(statusChanged(undefined, status as never)).toBe(true);
});

it('a Node changes with its status and its labels, not with its annotations', () => {
  const node = { metadata: { name: 'n', labels: { a: 'b' } }, status } as unknown as KubeNode;
  const withMetadata = (over: object) => ({ ...node, metadata: { ...node.metadata, ...over } }) as KubeNode;
  expect(nodeChanged(node, withMetadata({ annotations: { x: 'y' } }))).toBe(false);
  expect(nodeChanged(node, withMetadata({ labels: { a: 'c' } }))).toBe(true);
  expect(nodeChanged(node, { ...node, status: {} } as KubeNode)).toBe(true);
});

it('sets the labels of the machine that are missing or wrong', () => {
  const platform = { operatingSystem: 'linux', architecture: 'arm64' };
  const both = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' };
  expect(labelsToSet(undefined, platform)).toEqual(both);
  expect(labelsToSet({ 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'x' }, platform)).toEqual({
    'kubernetes.io/arch': 'arm64',
  });
  expect(labelsToSet(both, platform)).toEqual({});
});
