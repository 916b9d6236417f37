import { expect, it } from 'vitest';
import { computedNode, nodeAt } from './node-object.ts';

const machine = { name: 'edge-a-0', index: 0, zone: 'a', zoneIndex: 0 };

it('makes extended resources of the stored capacity allocatable, and keeps its own amounts', () => {
  const node = nodeAt(machine, 'r', 0);
  const capacity = { ...node.status?.capacity, cpu: '64', 'example.com/gpu': '2' };
  const { status } = computedNode(machine, { ...node, status: { ...node.status, capacity } }, 0);
  expect(status?.capacity).toMatchObject({ cpu: '4', 'example.com/gpu': '2' });
  expect(status?.allocatable).toMatchObject({ cpu: '3920m', 'example.com/gpu': '2' });
});
