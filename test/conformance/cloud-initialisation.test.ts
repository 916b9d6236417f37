/** Area CN: cloud node initialisation. */
import { describe, expect, it } from 'vitest';
import {
  addressesToWrite,
  type InstanceMetadata,
  initialiseNode,
  type UninitialisedNode,
} from '../../shared/domain/cloud-initialisation.ts';

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized';
const node = (over: Partial<UninitialisedNode> = {}): UninitialisedNode => ({
  providerId: undefined,
  labels: {},
  annotations: {},
  taints: [{ key: UNINITIALIZED, value: 'true', effect: 'NoSchedule' }],
  addresses: [],
  ...over,
});
const metadata = (over: Partial<InstanceMetadata> = {}): InstanceMetadata => ({
  providerId: 'p://i-1',
  instanceType: 'm5',
  zone: 'z1',
  region: 'r1',
  addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  additionalLabels: {},
  ...over,
});
const told = (over: Partial<InstanceMetadata> = {}) => ({ kind: 'metadata', metadata: metadata(over) }) as const;

describe('cloud node initialisation', () => {
  it('CN-01 sets providerID, six labels and the address, takes the taint off and tells Synced', () => {
    expect(initialiseNode(node(), told())).toEqual({
      kind: 'initialised',
      providerId: 'p://i-1',
      labels: {
        'beta.kubernetes.io/instance-type': 'm5',
        'node.kubernetes.io/instance-type': 'm5',
        'failure-domain.beta.kubernetes.io/zone': 'z1',
        'topology.kubernetes.io/zone': 'z1',
        'failure-domain.beta.kubernetes.io/region': 'r1',
        'topology.kubernetes.io/region': 'r1',
      },
      taints: [],
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      event: {
        type: 'Normal',
        reason: 'Synced',
        message: 'Node synced successfully',
        source: 'cloud-node-controller',
      },
    });
  });

  it('CN-03 leaves node and taint when there is no metadata, without trying again', () => {
    expect(initialiseNode(node(), { kind: 'none' })).toEqual({ kind: 'nothingKnown' });
  });

  it('CN-05 keeps the providerID of the node when the metadata has none', () => {
    expect(initialiseNode(node({ providerId: 'p://i-1' }), told({ providerId: '' }))).toMatchObject({
      kind: 'initialised',
      providerId: 'p://i-1',
    });
  });

  it('CN-07 is an error when the provided address is not among the provider’s', () => {
    const annotations = { 'alpha.kubernetes.io/provided-node-ip': '10.0.0.9' };
    expect(initialiseNode(node({ annotations }), told())).toEqual({
      kind: 'failed',
      reason: 'provided node ip 10.0.0.9 is not among the addresses of the instance',
    });
  });

  it('CN-09 adds no label that is there or that belongs to Kubernetes', () => {
    const additionalLabels = { team: 'a', 'foo.kubernetes.io/x': '1', 'k8s.io/y': '2' };
    const bare = { instanceType: '', zone: '', region: '' };
    expect(initialiseNode(node({ labels: { team: 'b' } }), told({ ...bare, additionalLabels }))).toMatchObject({
      labels: { team: 'b' },
    });
    expect(initialiseNode(node(), told({ ...bare, additionalLabels }))).toHaveProperty('labels', { team: 'a' });
  });

  it('CN-11 keeps the addresses when the provider names none', () => {
    const addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
    expect(addressesToWrite({ addresses, annotations: {} }, [])).toBeUndefined();
  });

  it('CN-13 takes the taint off whatever its effect', () => {
    const taints = [
      { key: UNINITIALIZED, effect: 'NoSchedule' },
      { key: UNINITIALIZED, effect: 'NoExecute' },
      { key: 'other', effect: 'NoExecute' },
    ] as const;
    expect(initialiseNode(node({ taints }), told())).toMatchObject({
      taints: [{ key: 'other', effect: 'NoExecute' }],
    });
  });
});
