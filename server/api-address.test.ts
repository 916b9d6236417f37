import type { NetworkInterfaceInfo } from 'node:os';
import { expect, it } from 'vitest';
import { apiAddressOf } from './api-address.ts';

const of = (address: string, family: 'IPv4' | 'IPv6', internal = false): NetworkInterfaceInfo =>
  ({ address, family, internal }) as NetworkInterfaceInfo;
const INTERFACES = {
  lo: [of('127.0.0.1', 'IPv4', true)],
  none: undefined,
  eth0: [of('fe80::1', 'IPv6'), of('192.0.2.7', 'IPv4')],
  eth1: [of('192.0.2.8', 'IPv4')],
};

it.each([
  ['192.0.2.9', { ip: '192.0.2.9', port: 6443 }],
  ['0.0.0.0', { ip: '192.0.2.7', port: 6443 }],
  ['::', { ip: '192.0.2.7', port: 6443 }],
  ['127.0.0.1', undefined],
  ['localhost', undefined],
  ['2001:db8::1', undefined],
  ['api.example', undefined],
])('a listener on %s is reached at %j', (host, expected) => {
  expect(apiAddressOf(host, 6443, INTERFACES)).toEqual(expected);
});

it('a machine without a network has no address', () => {
  expect(apiAddressOf('0.0.0.0', 6443, { lo: INTERFACES.lo })).toBeUndefined();
});
