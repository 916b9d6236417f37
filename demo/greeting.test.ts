import { expect, it } from 'vitest';
import { nameMachines } from './fleet/names.ts';
import { greeting } from './greeting.ts';

it.each([
  [1, 1],
  [1, 3],
  [6, 1],
  [6, 2],
  [6, 3],
])('the commands for %i machines in %i zones name machines that exist', (nodes, zones) => {
  const zoneNames = ['local-a', 'local-b', 'local-c'].slice(0, zones);
  const names = nameMachines(nodes, zoneNames).map(({ name }) => name);
  const text = greeting({
    ...{ url: 'https://127.0.0.1:6443', seconds: 1, kubeconfigPath: '/k', dataDirectory: '/d', defaultDirectory: '/d' },
    ...{ nodes, zones, ec2Nodes: 1, console: undefined },
  });
  const named = [...text.matchAll(/edge-[a-z]-\d+/g)].map(([name]) => name);
  expect(named).toHaveLength(3);
  expect(named.filter((name) => !names.includes(name))).toEqual([]);
});
