import { describe, expect, it } from 'vitest';
import { parseIp } from './ip-address.ts';
import { type AddressFacts, decideAddresses } from './node-addresses.ts';

const ips = (...texts: string[]) => texts.map((text) => parseIp(text)!);
const FACTS: AddressFacts = {
  nodeName: 'n1',
  hostname: 'host-1',
  nodeIps: [],
  externalCloudProvider: false,
  present: [],
  hostAddresses: ['10.0.0.7', '10.0.0.8', 'fd00::7', '127.0.0.1'],
};
const decide = (more: Partial<AddressFacts> = {}) => decideAddresses({ ...FACTS, ...more });
const host = { type: 'Hostname', address: 'host-1' };
const internal = (address: string) => ({ type: 'InternalIP', address });

describe('the addresses of a node', () => {
  it('are the configured ones, if this machine has them', () => {
    expect(decide({ nodeIps: ips('10.0.0.7') })).toEqual({ kind: 'decided', addresses: [internal('10.0.0.7'), host] });
    expect(decide({ nodeIps: ips('10.0.0.7', 'fd00::7') })).toEqual({
      kind: 'decided',
      addresses: [internal('10.0.0.7'), internal('fd00::7'), host],
    });
    const failed = (message: string) => ({ kind: 'failed', message: expect.stringContaining(message) });
    expect(decide({ nodeIps: ips('10.0.0.9') })).toEqual(failed('failed to validate nodeIP: '));
    expect(decide({ nodeIps: ips('10.0.0.7', 'fd00::9') })).toEqual(failed('failed to validate secondaryNodeIP: '));
    expect(decide({ nodeIps: ips('127.0.0.1') })).toEqual(failed('loopback'));
  });

  it('are that of a host name which is an address', () => {
    const hostname = '10.0.0.9';
    expect(decide({ hostname })).toEqual({
      kind: 'decided',
      addresses: [internal(hostname), { type: 'Hostname', address: hostname }],
    });
  });

  it('are those of DNS that this machine has, of the preferred family first', () => {
    const found = (lookup: string[], nodeIps: string[] = []) => {
      const decision = decide({ lookup, nodeIps: ips(...nodeIps) });
      return decision.kind === 'decided' ? decision.addresses?.[0]?.address : decision;
    };
    expect(decide()).toEqual({ kind: 'lookup' });
    expect(found(['x', '10.0.0.9', 'fd00::7', '10.0.0.8'])).toBe('10.0.0.8');
    expect(found(['10.0.0.8', 'fd00::7'], ['::'])).toBe('fd00::7');
    expect(found(['10.0.0.8', 'fd00::7'], ['0.0.0.0'])).toBe('10.0.0.8');
    expect(found(['fd00::7'])).toBe('fd00::7');
    expect(found(['127.0.0.1', '10.0.0.9'])).toEqual({ kind: 'defaultRoute', families: [4, 6] });
    expect(found([], ['::'])).toEqual({ kind: 'defaultRoute', families: [6, 4] });
  });

  it('are that of the default route at last', () => {
    const route = (...defaultRoute: string[]) => decide({ lookup: [], defaultRoute });
    expect(route('x', '10.0.0.8')).toEqual({ kind: 'decided', addresses: [internal('10.0.0.8'), host] });
    expect(route()).toEqual({
      kind: 'failed',
      message: "can't get ip address of node n1. error: no interface has a default route",
    });
  });
});

describe('with an external cloud provider', () => {
  const external = (more: Partial<AddressFacts> = {}) => decide({ externalCloudProvider: true, ...more });

  it('a node has its name until the provider sets its addresses, which then stay', () => {
    expect(external()).toEqual({ kind: 'decided', addresses: [host] });
    expect(external({ present: [host] })).toEqual({ kind: 'decided' });
    expect(external({ nodeIps: ips('::') })).toEqual({ kind: 'lookup' });
  });

  it('the provider receives the configured addresses', () => {
    expect(external({ nodeIps: ips('10.0.0.7') })).toEqual({
      ...{ kind: 'decided', providedNodeIp: '10.0.0.7', addresses: [internal('10.0.0.7'), host] },
    });
    expect(external({ nodeIps: ips('10.0.0.7', 'fd00::7'), present: [host] })).toEqual({
      kind: 'decided',
      providedNodeIp: '10.0.0.7,fd00::7',
    });
    expect(decide({ nodeIps: ips('10.0.0.7'), present: [host] })).not.toHaveProperty('providedNodeIp');
  });
});
