import { describe, expect, it } from 'vitest';
import { formatAddress, formatCidr, overlaps, parseAddress, parseCidr } from './cidr.ts';

const round = (text: string): string | undefined => {
  const cidr = parseCidr(text);
  return cidr === undefined ? undefined : formatCidr(cidr);
};
const overlap = (a: string, b: string): boolean => {
  const [one, other] = [parseCidr(a), parseCidr(b)];
  if (one === undefined || other === undefined) throw new Error(`not CIDRs: ${a} ${b}`);
  return overlaps(one, other);
};

describe('parseCidr and formatCidr', () => {
  it.each([
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['10.10.0.1/24', '10.10.0.0/24'],
    ['255.255.255.255/32', '255.255.255.255/32'],
    ['1.2.3.4/0', '0.0.0.0/0'],
    ['::/0', '::/0'],
    ['::1/128', '::1/128'],
    ['2001:0DB8:1234:3::/48', '2001:db8:1234::/48'],
    ['2001:db8:0:0:1:0:0:1/128', '2001:db8::1:0:0:1/128'],
    ['1:0:2:3:4:5:6:7/128', '1:0:2:3:4:5:6:7/128'],
    ['1::2:3:4:5:6:7/128', '1:0:2:3:4:5:6:7/128'],
    ['0:0:1::/48', '0:0:1::/48'],
    ['::ffff:1.2.3.4/128', '::ffff:102:304/128'],
    ['1:2:3:4:5:6:1.2.3.4/128', '1:2:3:4:5:6:102:304/128'],
    ['ace:cab:deca::/8', 'a00::/8'],
  ])('reads %s as %s', (text, expected) => {
    expect(round(text)).toBe(expected);
  });

  it.each([
    '',
    '10.0.0.0',
    '10.0.0/8',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '010.0.0.0/8',
    '256.0.0.0/8',
    '10.0.0.0.0/8',
    '10.0.0.0/8/8',
    ':/0',
    ':::/0',
    '1::2::3/64',
    '1:2:3:4:5:6:7/64',
    '1:2:3:4:5:6:7:8:9/64',
    '1:2:3:4:5:6:7::8/64',
    '12345::/16',
    'g::/16',
    '::/129',
    'fe80::1%eth0/64',
    '1.2.3.4::/64',
    '1:2:3:4:5:6:7:1.2.3.4/128',
    ' 10.0.0.0/8',
  ])('refuses %j', (text) => {
    expect(parseCidr(text)).toBeUndefined();
  });
});

describe('addresses', () => {
  it('are parsed and printed without change', () => {
    for (const text of ['0.0.0.0', '192.168.1.254', '::', '::1', 'fd00::', 'a:b:c:d:e:f:1:2', '1:0:0:2::3']) {
      const address = parseAddress(text);
      expect(address && formatAddress(address)).toBe(text);
    }
  });
});

describe('overlaps', () => {
  it('holds when one contains the other, within a family', () => {
    expect(overlap('10.0.0.0/8', '10.1.0.0/16')).toBe(true);
    expect(overlap('10.1.0.0/16', '10.0.0.0/8')).toBe(true);
    expect(overlap('10.0.0.0/16', '10.1.0.0/16')).toBe(false);
    expect(overlap('0.0.0.0/0', '::/0')).toBe(false);
  });
});
