import { describe, expect, it } from 'vitest';
import { addressesToWrite, initialiseNode, type UninitialisedNode } from './initialisation.rule.ts';
import { type InstanceMetadata, PROVIDED_NODE_IP_ANNOTATION } from './instance.ts';

const node: UninitialisedNode = {
  labels: {},
  annotations: {},
  taints: [{ key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' }],
  addresses: [],
};
const metadata: InstanceMetadata = {
  instanceType: '',
  zone: '',
  region: '',
  addresses: [],
  additionalLabels: {},
};

describe('initialiseNode', () => {
  it('leaves a node without the taint, and writes no empty labels', () => {
    expect(initialiseNode({ ...node, taints: [] }, { kind: 'metadata', metadata })).toEqual({ kind: 'notNeeded' });
    expect(initialiseNode(node, { kind: 'metadata', metadata })).toMatchObject({ kind: 'initialised', labels: {} });
  });

  it('keeps the taint when the provider fails', () => {
    expect(initialiseNode(node, { kind: 'failed', message: 'throttled' })).toEqual({
      kind: 'failed',
      reason: 'no instance metadata: throttled',
    });
  });

  it('is settled by its own result', () => {
    const result = initialiseNode(node, { kind: 'metadata', metadata });
    if (result.kind !== 'initialised') throw new Error(result.kind);
    expect(initialiseNode({ ...node, taints: result.taints }, { kind: 'metadata', metadata }).kind).toBe('notNeeded');
  });

  it('asks for both addresses of a dual pair', () => {
    const dual = { ...node, annotations: { [PROVIDED_NODE_IP_ANNOTATION]: '10.0.0.1,fd00::1' } };
    const addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
    expect(initialiseNode(dual, { kind: 'metadata', metadata: { ...metadata, addresses } })).toMatchObject({
      kind: 'failed',
      reason: 'provided node ip fd00::1 is not among the addresses of the instance',
    });
  });

  it.each([
    ['10.0.0.1, fd00::1', 'provided node ip " fd00::1" is not an IP address'],
    ['', 'provided node ip "" is not an IP address'],
    ['edge-1', 'provided node ip "edge-1" is not an IP address'],
    ['10.0.0.1,10.0.0.2', 'provided node ip 10.0.0.1,10.0.0.2 must be one address, or an IPv4 and an IPv6 address'],
    ['0.0.0.0,fd00::1', 'provided node ip 0.0.0.0,fd00::1 contains an unspecified address'],
  ])('refuses the provided address %j', (annotation, reason) => {
    const provided = { ...node, annotations: { [PROVIDED_NODE_IP_ANNOTATION]: annotation } };
    const addresses = ['10.0.0.1', '10.0.0.2', 'fd00::1'].map((address) => ({ type: 'InternalIP', address }));
    expect(initialiseNode(provided, { kind: 'metadata', metadata: { ...metadata, addresses } })).toEqual({
      kind: 'failed',
      reason,
    });
  });

  it.each(['fd00:0::1', '010.0.0.1'])('knows the provided address %s, however it is written', (annotation) => {
    const provided = { ...node, annotations: { [PROVIDED_NODE_IP_ANNOTATION]: annotation } };
    const addresses = ['10.0.0.1', 'fd00::1'].map((address) => ({ type: 'InternalIP', address }));
    const answer = { kind: 'metadata', metadata: { ...metadata, addresses } } as const;
    expect(initialiseNode(provided, answer).kind).toBe('initialised');
  });
});

describe('addressesToWrite', () => {
  const internal = (address: string) => ({ type: 'InternalIP', address });
  const hostname = (address: string) => ({ type: 'Hostname', address });

  it('puts the provided address first within its type', () => {
    const annotations = { [PROVIDED_NODE_IP_ANNOTATION]: '10.0.0.2' };
    expect(
      addressesToWrite({ addresses: [], annotations }, [
        internal('10.0.0.1'),
        { type: 'ExternalIP', address: '1.2.3.4' },
        internal('10.0.0.2'),
      ]),
    ).toEqual([internal('10.0.0.2'), internal('10.0.0.1'), { type: 'ExternalIP', address: '1.2.3.4' }]);
  });

  it('puts a dual pair in the order of its annotation', () => {
    const annotations = { [PROVIDED_NODE_IP_ANNOTATION]: 'fd00::2,10.0.0.2' };
    const known = ['10.0.0.1', 'fd00::1', '10.0.0.2', 'fd00::2'].map(internal);
    const wanted = ['fd00::2', '10.0.0.2', '10.0.0.1', 'fd00::1'].map(internal);
    expect(addressesToWrite({ addresses: [], annotations }, known)).toEqual(wanted);
  });

  it('writes nothing for a provided address that the instance does not have', () => {
    const annotations = { [PROVIDED_NODE_IP_ANNOTATION]: '10.0.0.9' };
    expect(addressesToWrite({ addresses: [], annotations }, [internal('10.0.0.1')])).toBeUndefined();
  });

  it('keeps the machine’s Hostname unless the provider has one', () => {
    const own = { addresses: [hostname('edge-1')], annotations: {} };
    expect(addressesToWrite(own, [internal('10.0.0.1')])).toEqual([internal('10.0.0.1'), hostname('edge-1')]);
    for (const known of [[hostname('ip-10-0-0-1')], [internal('10.0.0.1'), hostname('ip-10-0-0-1')]]) {
      expect(addressesToWrite(own, known)).toEqual(known);
    }
  });

  it.each([
    ['10.0.0.2', ['10.0.0.1', '10.0.0.2'], ['10.0.0.2', '10.0.0.1']],
    ['fd00::2,10.0.0.2', ['10.0.0.2', 'fd00::2', '10.0.0.1'], ['fd00::2', '10.0.0.2', '10.0.0.1']],
  ])('moves the provided address %s to the front of addresses that the node has already', (text, before, after) => {
    const annotations = { [PROVIDED_NODE_IP_ANNOTATION]: text };
    const written = addressesToWrite({ addresses: before.map(internal), annotations }, before.map(internal));
    expect(written).toEqual(after.map(internal));
    expect(addressesToWrite({ addresses: after.map(internal), annotations }, before.map(internal))).toBeUndefined();
    const jittered = [...after.slice(0, -1).toReversed(), ...after.slice(-1)].map(internal);
    expect(addressesToWrite({ addresses: after.map(internal), annotations }, jittered)).toBeUndefined();
  });

  it('writes nothing when only the order behind the provided address differs', () => {
    const annotations = { [PROVIDED_NODE_IP_ANNOTATION]: '10.0.0.2' };
    const addresses = ['10.0.0.2', '10.0.0.1', '10.0.0.3'].map(internal);
    expect(addressesToWrite({ addresses, annotations }, addresses.toReversed())).toBeUndefined();
  });

  it('writes nothing when only the order differs', () => {
    const addresses = [internal('10.0.0.1'), internal('10.0.0.2')];
    expect(addressesToWrite({ addresses, annotations: {} }, addresses.toReversed())).toBeUndefined();
  });
});
