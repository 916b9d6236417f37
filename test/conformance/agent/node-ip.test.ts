/** Areas RP, RV and RD of the agent: the node IP argument, addresses of the host, addresses in the status. */
import { describe, expect, it } from 'vitest';
import { parseIp } from '../../../agent/rules/ip-address.ts';
import { type AddressFacts, decideAddresses } from '../../../agent/rules/node-addresses.ts';
import { hostAddressComplaint, parseNodeIpArgument } from '../../../agent/rules/node-ip.ts';

describe('the node IP argument', () => {
  it.each([
    ['RP-01', '', []],
    ['RP-03', 'blah', []],
    ['RP-05', ' 1.2.3.4   ', ['1.2.3.4']],
    ['RP-07', '1.2.3', []],
    ['RP-09', '0.0.0.0', ['0.0.0.0']],
    ['RP-11', 'abcd:0abc:00ab:0000:0000::1', ['abcd:abc:ab::1']],
  ])('%s %j results in %j', (_, argument, expected) => {
    const parsed = parseNodeIpArgument(argument, true);
    if (parsed.kind !== 'parsed') throw new Error(parsed.message);
    expect(parsed.addresses.map(({ text }) => text)).toEqual(expected);
    const reported = expected.length === 0 && argument !== '';
    expect(parsed.ignored).toEqual(reported ? [argument] : []);
  });

  it.each([
    ['RP-13', '1.2.3.4,abcd::ef01', false, 'dual-stack not supported in this configuration'],
    ['RP-15', '1.2.3.4,5.6.7.8', true, 'must contain either a single IP or a dual-stack pair of IPs'],
    ['RP-17', '1.2.3.4,::', true, "dual-stack node IP cannot include '0.0.0.0' or '::'"],
    ['RP-19', '0.0.0.0,abcd::1', false, 'dual-stack not supported in this configuration'],
    ['RP-21', '1.2.3.4,abcd::1,5.6.7.8', true, 'must contain either a single IP or a dual-stack pair of IPs'],
  ])('%s %j is refused', (_, argument, dualStackAllowed, message) => {
    expect(parseNodeIpArgument(argument, dualStackAllowed)).toEqual({ kind: 'refused', message });
  });
});

describe('a node IP on its host', () => {
  const host = ['127.0.0.1', '::1', '169.254.3.4', 'fe80::1', '10.0.0.5'];

  it.each([
    ['RV-01', '', 'nodeIP must be a valid IP address'],
    ['RV-03', '::1', "nodeIP can't be loopback address"],
    ['RV-05', 'ff00::1', "nodeIP can't be a multicast address"],
    ['RV-07', 'fe80::0202:b3ff:fe1e:8329', "nodeIP can't be a link-local unicast address"],
    ['RV-09', '::', "nodeIP can't be an all zeros address"],
    ['RV-11', '10.0.0.5', undefined],
  ])('%s %j: %s', (_, text, complaint) => {
    expect(hostAddressComplaint(parseIp(text), host)).toBe(complaint);
  });
});

describe('addresses in the node status', () => {
  const facts: AddressFacts = {
    nodeName: 'h1',
    hostname: 'h1',
    nodeIps: [],
    externalCloudProvider: false,
    present: [],
    hostAddresses: ['10.1.1.1', '10.0.0.1', '10.2.2.2', 'fd00::5'],
  };
  const ips = (...texts: string[]) => texts.map((text) => parseIp(text)).filter((ip) => ip !== undefined);
  const internal = (address: string) => ({ type: 'InternalIP', address });
  const host = { type: 'Hostname', address: 'h1' };

  it('RD-01 the node IP, then the host name', () => {
    expect(decideAddresses({ ...facts, nodeIps: ips('10.1.1.1') })).toEqual({
      kind: 'decided',
      addresses: [internal('10.1.1.1'), host],
    });
  });

  it('RD-03 the node IP is published for an external cloud provider', () => {
    expect(decideAddresses({ ...facts, nodeIps: ips('10.0.0.1'), externalCloudProvider: true })).toEqual({
      kind: 'decided',
      addresses: [internal('10.0.0.1'), host],
      providedNodeIp: '10.0.0.1',
    });
  });

  it('RD-05 only the host name where an external cloud provider will say the rest', () => {
    expect(decideAddresses({ ...facts, externalCloudProvider: true })).toEqual({ kind: 'decided', addresses: [host] });
  });

  it('RD-07 DNS knows both families: IPv4 is preferred', () => {
    expect(decideAddresses(facts)).toEqual({ kind: 'lookup' });
    expect(decideAddresses({ ...facts, lookup: ['fd00::5', '10.2.2.2'] })).toEqual({
      kind: 'decided',
      addresses: [internal('10.2.2.2'), host],
    });
  });

  it('RD-09 DNS knows IPv6 only', () => {
    expect(decideAddresses({ ...facts, lookup: ['fd00::5'] })).toEqual({
      kind: 'decided',
      addresses: [internal('fd00::5'), host],
    });
  });

  it('RD-11 a host name that is an address needs no DNS', () => {
    expect(decideAddresses({ ...facts, hostname: '10.4.4.4' })).toEqual({
      kind: 'decided',
      addresses: [internal('10.4.4.4'), { type: 'Hostname', address: '10.4.4.4' }],
    });
  });
});
