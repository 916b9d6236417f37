import { describe, expect, it } from 'vitest';
import { type AddressRange, addressOf, isIn, rangesOf, textOf, unionOf, without } from './address-ranges.ts';

const range = (first: number, last: number): AddressRange => [BigInt(first), BigInt(last)];

describe('an address', () => {
  it.each([
    ['10.0.0.1', 'ip', 0x0a_00_00_01n],
    ['255.255.255.255', 'ip', 2n ** 32n - 1n],
    ['::1', 'ip6', 1n],
    ['fd00::1:2', 'ip6', (0xfd00n << 112n) + 0x1_0002n],
  ] as const)('%s is a number of the family %s, and is written again as it was', (text, family, address) => {
    expect(addressOf(text, family)).toBe(address);
    expect(textOf(address, family)).toBe(text);
  });

  it.each([
    ['10.0.0.1', 'ip6'],
    ['::1', 'ip'],
    ['10.0.0', 'ip'],
    ['', 'ip'],
  ] as const)('%j is none of the family %s', (text, family) => {
    expect(addressOf(text, family)).toBeUndefined();
  });
});

describe('the range of a CIDR', () => {
  it.each([
    ['10.0.0.0/24', 'ip', [0x0a_00_00_00n, 0x0a_00_00_ffn]],
    ['10.0.0.77/24', 'ip', [0x0a_00_00_00n, 0x0a_00_00_ffn]],
    ['10.0.0.7/32', 'ip', [0x0a_00_00_07n, 0x0a_00_00_07n]],
    ['0.0.0.0/0', 'ip', [0n, 2n ** 32n - 1n]],
    ['::/128', 'ip6', [0n, 0n]],
    ['::/100', 'ip6', [0n, 2n ** 28n - 1n]],
  ] as const)('%s of %s contains its last address, whatever is in its host part', (cidr, family, expected) => {
    expect(rangesOf([cidr], family)).toEqual([expected]);
  });

  it.each(['10.0.0.0/33', '10.0.0.0', '10.0.0.0/', '10.0.0.0/x', '10.0.0.0/1x', '10.0.0.0/0008', '::/0', ''])(
    'is none of IPv4 for %j',
    (cidr) => {
      expect(rangesOf([cidr, '10.0.0.0/32'], 'ip')).toHaveLength(1);
    },
  );
});

describe('a union of ranges', () => {
  it.each([
    ['joins those that overlap', [range(1, 5), range(3, 9)], [range(1, 9)]],
    ['joins those that touch', [range(1, 5), range(6, 9)], [range(1, 9)]],
    ['leaves a gap of one address', [range(1, 5), range(7, 9)], [range(1, 5), range(7, 9)]],
    ['keeps the end of one that contains the next', [range(1, 9), range(2, 3), range(9, 9)], [range(1, 9)]],
    ['is in order', [range(20, 30), range(1, 5), range(10, 11)], [range(1, 5), range(10, 11), range(20, 30)]],
    ['of none is empty', [], []],
  ])('%s', (_, ranges, expected) => {
    expect(unionOf(ranges)).toEqual(expected);
  });
});

describe('a range without others', () => {
  it.each([
    ['is whole without any', [], [range(10, 20)]],
    ['is whole beside its neighbours', [range(1, 9), range(21, 30)], [range(10, 20)]],
    ['is whole between distant ones', [range(1, 3), range(40, 50)], [range(10, 20)]],
    ['loses its first address', [range(1, 10)], [range(11, 20)]],
    ['may keep its last address alone', [range(10, 19)], [range(20, 20)]],
    ['loses its last address', [range(20, 30)], [range(10, 19)]],
    ['is cut by one inside', [range(14, 15)], [range(10, 13), range(16, 20)]],
    ['is empty inside another', [range(10, 20)], []],
    ['is cut by several', [range(18, 18), range(5, 11), range(13, 14)], [range(12, 12), range(15, 17), range(19, 20)]],
  ])('%s', (_, others, expected) => {
    expect(without(range(10, 20), others)).toEqual(expected);
  });
});

it.each([
  [9, false],
  [10, true],
  [20, true],
  [21, false],
  [30, true],
])('%i is in two ranges: %s', (address, isInside) => {
  expect(isIn([range(10, 20), range(30, 30)], BigInt(address))).toBe(isInside);
});
