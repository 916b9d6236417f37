import { expect, it } from 'vitest';
import { nearName } from './near-name.ts';

const NAMES = ['nodes', 'policyFile', 'clusterId'];

it.each([
  ['policyfile', 'policyFile'],
  ['policy-file', 'policyFile'],
  ['Policy_File', 'policyFile'],
  ['policyFiles', 'policyFile'],
  ['policyFil', 'policyFile'],
  ['polcyFile', 'policyFile'],
  ['poolicyFile', 'policyFile'],
  ['ploicyFile', 'policyFile'],
  ['policyFiel', 'policyFile'],
  ['policyFike', 'policyFile'],
  ['olicyFile', 'policyFile'],
  ['Nodes', 'nodes'],
])('%s is almost %s', (misspelt, name) => {
  expect(nearName(NAMES, misspelt)).toBe(name);
});

it.each(['node', 'nodess', 'policy', 'policyFiless', 'lpocyiFile', 'url', ''])('%s is no name', (other) => {
  expect(nearName(NAMES, other)).toBeUndefined();
});
