import { expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { type IpAddress, parseIp } from '../rules/ip-address.ts';
import { addressSetter } from './set-addresses.ts';

const PROVIDED = 'alpha.kubernetes.io/provided-node-ip';
const machine: Parameters<typeof addressSetter>[0] = {
  addresses: () => [{ interfaceName: 'eth0', address: '192.0.2.7', family: 4 }],
  defaultAddress: async (family) => (family === 4 ? '192.0.2.7' : undefined),
  lookup: async () => [],
};
const nodeWith = (annotations?: Record<string, string>, status?: KubeNode['status']): KubeNode => ({
  metadata: { name: 'n1', resourceVersion: '5', ...(annotations && { annotations }) },
  spec: { providerID: 'x' },
  ...(status && { status }),
});
const ip: IpAddress = ipOf('192.0.2.7');

function ipOf(text: string): IpAddress {
  const address = parseIp(text);
  if (address === undefined) throw new Error(`${text} is no address`);
  return address;
}

const set = (node: KubeNode, cloudProvider: '' | 'external', nodeIps: readonly IpAddress[] = [ip]) =>
  addressSetter(machine, { nodeName: 'n1', cloudProvider }, nodeIps)(node);

it('sets the addresses with the name of the node, and keeps the rest', async () => {
  const { node, events } = await set(nodeWith(undefined, { phase: 'Running' }), '', []);
  expect(node).toEqual({
    metadata: { name: 'n1', resourceVersion: '5' },
    spec: { providerID: 'x' },
    status: {
      phase: 'Running',
      addresses: [
        { type: 'InternalIP', address: '192.0.2.7' },
        { type: 'Hostname', address: 'n1' },
      ],
    },
  });
  expect(events).toEqual([]);
});

it('reports the node IP to an external cloud provider alone', async () => {
  const before = { addresses: [{ type: 'InternalIP', address: '198.51.100.1' }] };
  const external = await set(nodeWith({ a: 'b', [PROVIDED]: 'old' }, before), 'external');
  expect(external.node.metadata.annotations).toEqual({ a: 'b', [PROVIDED]: '192.0.2.7' });
  expect(external.node.status).toEqual(before);
  expect((await set(nodeWith(undefined, before), 'external')).node.metadata.annotations).toEqual({
    [PROVIDED]: '192.0.2.7',
  });
  expect((await set(nodeWith({ a: 'b', [PROVIDED]: 'old' }), '')).node.metadata.annotations).toEqual({ a: 'b' });
  expect((await set(nodeWith({ [PROVIDED]: 'old' }), '')).node.metadata.annotations).toEqual({});
});

it('fails with an address that is not of this machine', async () => {
  await expect(set(nodeWith(), '', [ipOf('198.51.100.9')])).rejects.toThrow('not found in the host');
});
