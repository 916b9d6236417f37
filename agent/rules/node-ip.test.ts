import { describe, expect, it } from 'vitest';
import { isLinkLocalUnicast, isLoopback, isMulticast, parseIp } from './ip-address.ts';
import { parseNodeIpArgument } from './node-ip.ts';

describe('an IP address', () => {
  it.each([
    ['010.000.2.03', '10.0.2.3'],
    ['::', '::'],
    ['::1', '::1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:2:0:0:3', '1::2:2:0:0:3'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['FD00::A:0', 'fd00::a:0'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
  ])('%s is printed %s', (text, printed) => {
    expect(parseIp(text)?.text).toBe(printed);
  });

  it.each([
    '',
    '1.2.3',
    '1.2.3.256',
    '1.2.3.-4',
    '1.2.3.4.5',
    ':1',
    '1:::2',
    '1::2::3',
    '1:2:3:4:5:6:7',
    'fe80::1%eth0',
    '12345::',
    '1:2:3:4:5:6:7:8::',
    '1:2:3:4::5:6:7:8',
    '1.2.3.4::1',
  ])('%j is none', (text) => {
    expect(parseIp(text)).toBeUndefined();
  });

  it.each([
    ['127.255.0.1', isLoopback],
    ['224.0.0.1', isMulticast],
    ['239.255.255.255', isMulticast],
    ['169.254.0.1', isLinkLocalUnicast],
    ['febf::1', isLinkLocalUnicast],
  ])('%s is of a special kind', (text, isSpecial) => {
    const ip = parseIp(text);
    expect(ip !== undefined && isSpecial(ip)).toBe(true);
  });

  it.each([
    ['128.0.0.1', isLoopback],
    ['240.0.0.1', isMulticast],
    ['fec0::1', isLinkLocalUnicast],
    ['169.253.0.1', isLinkLocalUnicast],
  ])('%s is of no special kind', (text, isSpecial) => {
    const ip = parseIp(text);
    expect(ip !== undefined && isSpecial(ip)).toBe(false);
  });
});

describe('the node IP', () => {
  it('may be one address of each family, in their order', () => {
    const parsed = parseNodeIpArgument('abcd::1 , 1.2.3.4', true);
    expect(parsed.kind === 'parsed' && parsed.addresses.map(({ text }) => text)).toEqual(['abcd::1', '1.2.3.4']);
  });
});
