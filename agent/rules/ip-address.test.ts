import { describe, expect, it } from 'vitest';
import { isLinkLocalUnicast, isLoopback, isMulticast, isUnspecified, parseIp } from './ip-address.ts';

describe('an address', () => {
  it.each<[string, 4 | 6, string]>([
    ['10.0.0.1', 4, '10.0.0.1'],
    ['010.000.0.255', 4, '10.0.0.255'],
    ['0000000001.0.0.1', 4, '1.0.0.1'],
    ['::', 6, '::'],
    ['::1', 6, '::1'],
    ['1::', 6, '1::'],
    ['1:2:3:4:5:6:7:8', 6, '1:2:3:4:5:6:7:8'],
    ['2001:DB8:0:0:1:0:0:1', 6, '2001:db8::1:0:0:1'],
    ['1:0:0:2:0:0:0:3', 6, '1:0:0:2::3'],
    ['1:0:2:3:4:5:6:7', 6, '1:0:2:3:4:5:6:7'],
    ['1:2:3:4:5:6:0:0', 6, '1:2:3:4:5:6::'],
    ['1:2:3:4:5:6::7', 6, '1:2:3:4:5:6:0:7'],
    ['1:2:3:4:5:6:1.2.3.4', 6, '1:2:3:4:5:6:102:304'],
    ['64:ff9b::1.2.3.4', 6, '64:ff9b::102:304'],
    ['::ffff:1.2.3.4', 4, '1.2.3.4'],
    ['0:0:0:0:0:ffff:102:304', 4, '1.2.3.4'],
    ['::fffe:1.2.3.4', 6, '::fffe:102:304'],
    ['::feff:1.2.3.4', 6, '::feff:102:304'],
    ['1::ffff:1.2.3.4', 6, '1::ffff:102:304'],
    ['abcd::ff00', 6, 'abcd::ff00'],
  ])('%s is of family %i: %s', (text, family, canonical) => {
    const parsed = parseIp(text);
    expect(parsed).toMatchObject({ family, text: canonical });
    expect(parsed?.bytes).toHaveLength(family === 4 ? 4 : 16);
  });

  it('has its bytes in order', () => {
    expect(parseIp('1.2.3.255')?.bytes).toEqual([1, 2, 3, 255]);
    expect(parseIp('102::fffe')?.bytes).toEqual([1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 254]);
    expect(parseIp('::ffff:1.2.3.4')?.bytes).toEqual([1, 2, 3, 4]);
  });

  it.each([
    '',
    'host',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '1.2.3.',
    '1.2.3.-1',
    '1.2.3.x1',
    '1.2.3.1x',
    '00000000001.0.0.1',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    '12345::',
    '1:x::',
    '1:1g::',
    '::1:x',
    '1.2.3.4::',
    '1:2:3:4:5:6:1.2.3.256',
    '1.2.3.4:1:2:3:4:5:6',
    'fe80::1%eth0',
  ])('is not %j', (text) => {
    expect(parseIp(text)).toBeUndefined();
  });

  it.each<
    [string, (address: NonNullable<ReturnType<typeof parseIp>>) => boolean, readonly string[], readonly string[]]
  >([
    ['unspecified', isUnspecified, ['0.0.0.0', '::'], ['0.0.0.1', '::1', '1::']],
    ['loopback', isLoopback, ['127.0.0.1', '127.255.0.0', '::1'], ['128.0.0.1', '::', '::2', '1::1', '::101']],
    ['multicast', isMulticast, ['224.0.0.1', '239.1.1.1', 'ff00::'], ['223.1.1.1', '240.0.0.1', 'fe00::']],
    [
      'link-local',
      isLinkLocalUnicast,
      ['169.254.0.1', 'fe80::1', 'febf::1'],
      ['169.253.0.1', '168.254.0.1', 'fec0::1', 'fe7f::', 'ff80::'],
    ],
  ])('is %s or not', (_what, is, those, others) => {
    expect(those.map((text) => is(parseIp(text)!))).toEqual(those.map(() => true));
    expect(others.map((text) => is(parseIp(text)!))).toEqual(others.map(() => false));
  });
});
