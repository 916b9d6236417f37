import { expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { osArchLabels, reconciledNode, topologyLabels } from './node-taints.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const at = { nowMs: NOW_MS, profiles: [] };
const ready = { type: 'Ready', status: 'True' };
const UNINITIALIZED = { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' };

const nodeOf = (over: {
  readonly labels?: Record<string, string>;
  readonly spec?: object;
  readonly conditions?: readonly object[];
}): KubeNode =>
  ({
    metadata: { name: 'n', uid: 'u', ...(over.labels === undefined ? {} : { labels: over.labels }) },
    ...(over.spec === undefined ? {} : { spec: over.spec }),
    status: { conditions: over.conditions ?? [ready] },
  }) as unknown as KubeNode;

const OLD_ZONE = { 'failure-domain.beta.kubernetes.io/zone': 'a' };
const NEW_ZONE = { 'topology.kubernetes.io/zone': 'a' };
const OLD_REGION = { 'failure-domain.beta.kubernetes.io/region': 'r' };
const NEW_REGION = { 'topology.kubernetes.io/region': 'r' };
const OLD_TYPE = { 'beta.kubernetes.io/instance-type': 't' };
const NEW_TYPE = { 'node.kubernetes.io/instance-type': 't' };
const NEW_SYSTEM = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' };
const OLD_SYSTEM = { 'beta.kubernetes.io/os': 'linux', 'beta.kubernetes.io/arch': 'arm64' };

it.each([
  ['without labels, spec and conditions', nodeOf({ conditions: [] })],
  ['with nothing to change', nodeOf({ spec: { unschedulable: false, taints: [] }, labels: { app: 'x' } })],
  ['with labels that agree', nodeOf({ labels: { ...OLD_ZONE, ...NEW_ZONE, ...NEW_SYSTEM, ...OLD_SYSTEM } })],
  ['with a new topology label alone', nodeOf({ labels: { ...NEW_ZONE, ...NEW_REGION, ...NEW_TYPE } })],
  ['with an old label of the system alone', nodeOf({ labels: OLD_SYSTEM })],
])('does not write a Node %s', (_what, node) => {
  expect(reconciledNode(node, at)).toBeUndefined();
});

it('sets old labels of the system, and new labels of the topology, and keeps all others', () => {
  const labels = { app: 'x', ...NEW_SYSTEM, ...OLD_ZONE, ...OLD_REGION, ...OLD_TYPE };
  const node = nodeOf({ labels });
  expect(reconciledNode(node, at)).toEqual({
    ...node,
    metadata: { ...node.metadata, labels: { ...labels, ...OLD_SYSTEM, ...NEW_ZONE, ...NEW_REGION, ...NEW_TYPE } },
  });
});

it('replaces a label that differs from its source', () => {
  const node = nodeOf({ labels: { ...OLD_ZONE, 'topology.kubernetes.io/zone': 'b' } });
  expect(reconciledNode(node, at)?.metadata.labels).toEqual({ ...OLD_ZONE, ...NEW_ZONE });
});

it('leaves the topology of a Node that EC2 has not initialised, whatever its other taints', () => {
  const other = { key: 'example.com/x', effect: 'NoSchedule' };
  const labels = { ...OLD_ZONE, ...NEW_SYSTEM };
  const node = nodeOf({ labels, spec: { taints: [other, UNINITIALIZED] } });
  expect(reconciledNode(node, at)?.metadata.labels).toEqual({ ...labels, ...OLD_SYSTEM });
  const initialised = nodeOf({ labels, spec: { taints: [other] } });
  expect(reconciledNode(initialised, at)?.metadata.labels).toEqual({ ...labels, ...OLD_SYSTEM, ...NEW_ZONE });
});

it.each([
  [
    'unschedulable',
    { spec: { unschedulable: true } },
    [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }],
  ],
  [
    'not Ready',
    { conditions: [{ type: 'Ready', status: 'False' }] },
    [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }],
  ],
])('adds the taint of a Node that is %s, and no label', (_what, over, taints) => {
  const node = nodeOf(over);
  const reconciled = reconciledNode(node, at);
  expect(reconciled?.spec?.taints).toMatchObject(taints);
  expect(reconciled?.spec?.taints).toHaveLength(1);
  expect(reconciled?.metadata).toEqual(node.metadata);
});

it('removes the taint of a Node that can be scheduled again', () => {
  const taints = [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }];
  expect(reconciledNode(nodeOf({ spec: { taints } }), at)?.spec?.taints ?? []).toEqual([]);
});

it('sets the time of a NoExecute taint without one, and only of that', () => {
  const taints = [
    { key: 'a', effect: 'NoExecute' },
    { key: 'b', effect: 'NoSchedule' },
  ];
  expect(reconciledNode(nodeOf({ spec: { taints } }), at)?.spec?.taints).toEqual([
    { key: 'a', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
    { key: 'b', effect: 'NoSchedule' },
  ]);
});

it('changes taints and labels in one write', () => {
  const reconciled = reconciledNode(nodeOf({ labels: NEW_SYSTEM, spec: { unschedulable: true } }), at);
  expect(reconciled?.metadata.labels).toEqual({ ...NEW_SYSTEM, ...OLD_SYSTEM });
  expect(reconciled?.spec?.taints).toHaveLength(1);
});

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
