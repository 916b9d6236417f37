import { describe, expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { upstream } from '../../shared/kinds/upstream.ts';
import type { JsonObject } from '../../shared/kubernetes/json.ts';
import { applyStrategicMergePatch } from '../../shared/kubernetes/patch/strategic.ts';
import { nodeStatusPatch } from './node-patch.ts';

const nodeSchema = upstream.struct('core/v1.Node');

const dual = [
  { type: 'InternalIP', address: '10.0.0.1' },
  { type: 'InternalIP', address: 'fd00::1' },
  { type: 'Hostname', address: 'n' },
];
const from: KubeNode = {
  metadata: { name: 'n', labels: { a: '1', gone: 'x' }, annotations: { old: '' } },
  spec: { providerID: 'p' },
  status: {
    capacity: { cpu: '2', 'example.com/dongle': '1' },
    conditions: [
      { type: 'MemoryPressure', status: 'False', lastHeartbeatTime: '2024-05-01T10:00:00Z' },
      { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: '2024-05-01T10:00:00Z' },
    ],
    addresses: dual,
    volumesInUse: ['a', 'b'],
  },
};

const applied = (base: KubeNode, patch: JsonObject | undefined) => {
  const result = applyStrategicMergePatch(base as unknown as JsonObject, patch ?? {}, nodeSchema);
  return result.kind === 'patched' ? (result.object as unknown as KubeNode) : result;
};

describe('the patch of a node status', () => {
  it('says nothing when nothing differs, and nothing about the spec', () => {
    expect(nodeStatusPatch(from, structuredClone(from))).toBeUndefined();
    expect(nodeStatusPatch(from, { ...structuredClone(from), spec: { unschedulable: true } })).toBeUndefined();
    const status = { ...from.status, capacity: { ...from.status?.['capacity'], none: undefined } };
    expect(nodeStatusPatch(from, { ...from, status } as unknown as KubeNode)).toBeUndefined();
  });

  it('turns the one into the other when the server applies it', () => {
    const to: KubeNode = {
      ...structuredClone(from),
      metadata: { name: 'n', labels: { a: '2', b: '3' } },
      status: {
        capacity: { cpu: '4' },
        allocatable: { cpu: '4' },
        conditions: [
          { type: 'DiskPressure', status: 'False' },
          { type: 'Ready', status: 'False', lastHeartbeatTime: '2024-05-01T10:00:10Z' },
        ],
        addresses: [dual[2]!, dual[0]!],
        volumesInUse: ['b'],
      },
    };
    const patched = applied(from, nodeStatusPatch(from, to));
    expect(patched).toEqual({ ...to, spec: from.spec, metadata: { ...to.metadata, annotations: {} } });
  });

  it('names of a condition only what changed', () => {
    const to = structuredClone(from);
    to.status!.conditions![1]!.lastHeartbeatTime = '2024-05-01T10:00:10Z';
    expect(nodeStatusPatch(from, to)).toEqual({
      status: {
        '$setElementOrder/conditions': [{ type: 'MemoryPressure' }, { type: 'Ready' }],
        conditions: [{ type: 'Ready', lastHeartbeatTime: '2024-05-01T10:00:10Z' }],
      },
    });
  });

  it('replaces addresses as a whole, which keeps the second InternalIP', () => {
    const to = structuredClone(from);
    to.status!.addresses = [...dual.slice(0, 2), { type: 'Hostname', address: 'm' }];
    expect(nodeStatusPatch(from, to)?.['status']).toEqual({
      addresses: [...to.status!.addresses, { $patch: 'replace' }],
    });
    expect((applied(from, nodeStatusPatch(from, to)) as KubeNode).status?.addresses).toEqual(to.status?.addresses);
  });

  it('merges addresses into none as they are', () => {
    const bare: KubeNode = { metadata: { name: 'n' } };
    const to: KubeNode = { metadata: { name: 'n' }, status: { addresses: [dual[0]!] } };
    expect(nodeStatusPatch(bare, to)).toEqual({ status: { addresses: [dual[0]] } });
  });
});

it('a label without a value in the new Node is removed, and one without a value in both is no difference', () => {
  const labels = (texts: Record<string, string | undefined>) =>
    ({ metadata: { name: 'n', labels: texts } }) as KubeNode;
  expect(nodeStatusPatch(labels({ a: '1' }), labels({ a: undefined }))).toEqual({
    metadata: { labels: { a: null } },
  });
  expect(nodeStatusPatch(labels({ a: '1', b: undefined }), labels({ a: '1' }))).toBeUndefined();
});
