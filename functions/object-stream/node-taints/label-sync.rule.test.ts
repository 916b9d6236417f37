import { expect, it } from 'vitest';
import { osArchLabels, topologyLabels } from './label-sync.rule.ts';

it.each([
  ['kubernetes.io/os', 'beta.kubernetes.io/os', osArchLabels],
  ['kubernetes.io/arch', 'beta.kubernetes.io/arch', osArchLabels],
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone', topologyLabels],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region', topologyLabels],
  ['beta.kubernetes.io/instance-type', 'node.kubernetes.io/instance-type', topologyLabels],
])('%s is copied to %s where that differs, and never back', (from, to, labelsOf) => {
  expect(labelsOf({ [from]: 'x' })).toEqual({ [to]: 'x' });
  expect(labelsOf({ [from]: 'x', [to]: 'y' })).toEqual({ [to]: 'x' });
  expect(labelsOf({ [from]: 'x', [to]: 'x' })).toBeUndefined();
  expect(labelsOf({ [to]: 'x' })).toBeUndefined();
  const other = labelsOf === osArchLabels ? topologyLabels : osArchLabels;
  expect(other({ [from]: 'x' })).toBeUndefined();
});

it('a node without labels gets none', () => {
  expect([osArchLabels(undefined), topologyLabels(undefined), osArchLabels({})]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
