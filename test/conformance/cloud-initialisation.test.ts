/** Area CN: cloud node initialisation. */
import { describe, expect, it } from 'vitest';
import {
  addressesToWrite,
  initialiseNode,
  type UninitialisedNode,
} from '../../shared/fleet/instances/initialisation.rule.ts';
import type { InstanceMetadata } from '../../shared/fleet/instances/instance.ts';
import { controlledFleet } from '../support/controlled-fleet.ts';

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized';
const node = (over: Partial<UninitialisedNode> = {}): UninitialisedNode => ({
  labels: {},
  annotations: {},
  taints: [{ key: UNINITIALIZED, value: 'true', effect: 'NoSchedule' }],
  addresses: [],
  ...over,
});
const metadata = (over: Partial<InstanceMetadata> = {}): InstanceMetadata => ({
  instanceType: 'm5',
  zone: 'z1',
  region: 'r1',
  addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
  additionalLabels: {},
  ...over,
});
const told = (over: Partial<InstanceMetadata> = {}) => ({ kind: 'metadata', metadata: metadata(over) }) as const;

describe('cloud node initialisation', () => {
  /** A node on an EC2 instance, with the taint, after a tick of cloud-node. */
  async function initialised() {
    const fleet = controlledFleet({ hasCloud: true });
    fleet.cloud.put({
      instanceId: 'i-0123456789abcdef0',
      zone: 'eu-central-1a',
      instanceType: 'm7g.large',
      launchedAtMs: 0,
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    });
    const taint = { key: UNINITIALIZED, value: 'true', effect: 'NoSchedule' } as const;
    await fleet.register('n', { providerID: 'aws:///eu-central-1a/i-0123456789abcdef0', taints: [taint] });
    await fleet.streams();
    await fleet.controllers.tickCloudNode(fleet.slot());
    return fleet;
  }

  it('CN-01 (ours, D11) sets six labels and the address, removes the taint and emits Synced', async () => {
    const fleet = await initialised();
    const node = await fleet.node('n');
    expect(node?.metadata.labels).toMatchObject({
      'beta.kubernetes.io/instance-type': 'm7g.large',
      'node.kubernetes.io/instance-type': 'm7g.large',
      'failure-domain.beta.kubernetes.io/zone': 'eu-central-1a',
      'topology.kubernetes.io/zone': 'eu-central-1a',
      'failure-domain.beta.kubernetes.io/region': 'eu-central-1',
      'topology.kubernetes.io/region': 'eu-central-1',
    });
    expect(node?.spec?.taints?.map(({ key }) => key)).not.toContain(UNINITIALIZED);
    expect(node?.status?.addresses).toEqual([{ type: 'InternalIP', address: '10.0.0.1' }]);
    expect(await fleet.events('Synced')).toMatchObject([
      { type: 'Normal', message: 'Node synced successfully', source: { component: 'cloud-node-controller' } },
    ]);
  });

  it('CN-03 leaves node and taint when there is no metadata, without trying again', () => {
    expect(initialiseNode(node(), { kind: 'none' })).toEqual({ kind: 'nothingKnown' });
  });

  it('CN-05 keeps the providerID of the node', async () => {
    expect((await (await initialised()).node('n'))?.spec?.providerID).toBe('aws:///eu-central-1a/i-0123456789abcdef0');
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

  it('CN-13 removes the taint whatever its effect', () => {
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
