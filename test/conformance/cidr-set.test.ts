/** Area CS: the set of blocks of one cluster CIDR. */
import { describe, expect, it } from 'vitest';
import { formatCidr } from '../../shared/fleet/cidrs/cidr.ts';
import { blockAt, createCidrSet, isUsed, usageOf } from '../../shared/fleet/cidrs/cidr-set.ts';
import { cidr, TestCidrSet } from '../support/cidr-sets.ts';

const block = (cluster: string, nodePrefix: number, index: number): string =>
  formatCidr(blockAt(new TestCidrSet(cluster, nodePrefix).set, index));

/** Occupies, and lists first and last used block after checking that they and only they are used. */
function occupied(cluster: string, nodePrefix: number, text: string): [number, number] {
  const set = new TestCidrSet(cluster, nodePrefix).occupy(text);
  const used = Array.from({ length: set.set.size }, (_, index) => index).filter((index) => isUsed(set.set, index));
  const [first, last] = [used[0] ?? -1, used.at(-1) ?? -1];
  expect(used).toHaveLength(last - first + 1);
  expect(set.used).toBe(used.length);
  return [first, last];
}

const metrics = ({ allocations, releases, set }: TestCidrSet) => ({ allocations, releases, usage: usageOf(set) });

describe('CIDR set', () => {
  it('CS-02 a set of one block is full after one, and has it again once released', () => {
    const set = new TestCidrSet('beef:1234::/30', 30);
    expect([set.allocate(), set.allocate()]).toEqual(['beef:1234::/30', 'full']);
    set.release('beef:1234::/30');
    expect([set.allocate(), set.allocate()]).toEqual(['beef:1234::/30', 'full']);
  });

  it.each<[string, string, number, number, string]>([
    ['CS-04', '127.123.0.0/16', 24, 15, '127.123.15.0/24'],
    ['CS-06', '2001:0db8:1234:3::/48', 64, 0, '2001:db8:1234::/64'],
    ['CS-08', '2001:0db8:85a3::8a2e:0370:7334/50', 63, 6425, '2001:db8:85a3:3232::/63'],
    ['CS-10', '2001:0db8::/32', 48, 15, '2001:db8:f::/48'],
    ['CS-12', '2001:0db8:1234:ff00::/56', 72, 0, '2001:db8:1234:ff00::/72'],
    ['CS-14', '2001:0db8:1234:ff00::0370:7334/56', 72, 6425, '2001:db8:1234:ff19:1900::/72'],
    ['CS-16', '2001:0db8:1234:0:1234::/80', 96, 15, '2001:db8:1234:0:1234:f::/96'],
  ])('%s %s in /%d: block %d is %s', (_id, cluster, nodePrefix, index, expected) => {
    expect(block(cluster, nodePrefix, index)).toBe(expected);
  });

  it('CS-18 256 blocks come in the same order again after all were released', () => {
    const set = new TestCidrSet('127.123.234.0/16', 24);
    const first = set.allocateMany(256);
    expect(new Set(first).size).toBe(256);
    expect(set.allocate()).toBe('full');
    for (const text of first) set.release(text);
    expect(set.allocateMany(256)).toEqual(first);
    expect(set.allocate()).toBe('full');
  });

  it('CS-20 with the upper half occupied, one of them twice, the lower half is allocated in order', () => {
    const set = new TestCidrSet('127.123.234.0/16', 24);
    const all = set.allocateMany(256);
    for (const text of all) set.release(text);
    for (const text of all.slice(128)) set.occupy(text);
    set.occupy(all[128] ?? '');
    expect(set.allocateMany(129)).toEqual([...all.slice(0, 128), 'full']);
  });

  it('CS-22 counts only blocks that really change', () => {
    const set = new TestCidrSet('10.42.0.0/16', 24);
    const counts = [
      set.occupy('10.42.5.0/24').used,
      set.occupy('10.42.9.0/24').used,
      set.occupy('10.42.8.0/22').used,
      set.occupy('10.42.9.0/24').used,
      set.release('10.42.9.0/24').used,
      set.release('10.42.9.0/24').used,
      set.release('10.42.4.0/22').used,
    ];
    expect(counts).toEqual([1, 2, 5, 5, 4, 4, 3]);
    expect(set.allocateMany(253)).not.toContain('full');
    expect(set.allocate()).toBe('full');
  });

  it('CS-24 finds the block of a CIDR', () => {
    const set = new TestCidrSet('be00::/8', 16);
    const first = (text: string) => set.blocks(text)[0];
    expect(['be00::/16', 'beef::/16', 'be68::/16', 'be24::/16'].map(first)).toEqual([0, 239, 104, 36]);
  });

  it('CS-26 finds the block of a CIDR, and refuses one that is out of range', () => {
    const set = new TestCidrSet('beef::/16', 24);
    expect(set.blocks('beef:1200::/24')).toEqual([18, 18]);
    expect(set.blocks('beef:9700::/24')).toEqual([151, 151]);
    expect(set.blocks('2001:db00::/24')).toBe('out of range');
  });

  it.each<[string, string, number, string, [number, number]]>([
    ['CS-28', '2001:beef:1200::/40', 48, '2001:beef:1200::/40', [0, 255]],
    ['CS-30', '2001:beef:1200::/40', 48, '2001:beef:1234::/34', [0, 255]],
    ['CS-32', '2001:beef:1200::/40', 48, '2001:beef:1200::/48', [0, 0]],
    ['CS-34', '2001:beef:1200::/48', 64, '2001:beef:1200::/48', [0, 65_535]],
    ['CS-36', '2001:beef:7f00::/39', 48, '2001:beef:7f00::/47', [256, 257]],
    ['CS-38', '2001:beef:7f00::/39', 47, '2001:beef:7f00::/47', [128, 128]],
    ['CS-40', '2001:beef:7f00::/39', 50, '2001:beef:7f00::/47', [1024, 1031]],
  ])('%s %s in /%d: occupying %s uses the blocks %j', (_id, cluster, nodePrefix, text, expected) => {
    expect(occupied(cluster, nodePrefix, text)).toEqual(expected);
  });

  it('CS-42 refuses an IPv6 set with masks 17 bits apart', () => {
    expect(createCidrSet(cidr('beef:1234::/32'), 49).kind).toBe('refused');
  });

  it('CS-44 reports allocations, releases, usage and attempts', () => {
    const set = new TestCidrSet('10.0.0.0/16', 24);
    for (let done = 1; done <= 256; done += 1) {
      set.allocate();
      expect(metrics(set)).toEqual({ allocations: done, releases: 0, usage: done / 256 });
    }
    expect(set.tries).toBe(0);
    expect(metrics(set.release('10.0.0.0/16'))).toEqual({ allocations: 256, releases: 256, usage: 0 });
    expect(metrics(set.occupy('10.0.0.0/16'))).toEqual({ allocations: 512, releases: 256, usage: 1 });
  });

  it('CS-46 keeps the figures of two sets apart', () => {
    const v4 = new TestCidrSet('10.0.0.0/16', 24).occupy('10.0.0.0/16');
    const v6 = new TestCidrSet('2001:db8::/48', 64).occupy('2001:db8::/48');
    expect(metrics(v4)).toEqual({ allocations: 256, releases: 0, usage: 1 });
    expect(metrics(v6)).toEqual({ allocations: 65_536, releases: 0, usage: 1 });
    expect(metrics(v4.release('10.0.0.0/16'))).toEqual({ allocations: 256, releases: 256, usage: 0 });
    expect(metrics(v6.release('2001:db8::/48'))).toEqual({ allocations: 65_536, releases: 65_536, usage: 0 });
    expect([v4, v6].map(({ set }) => formatCidr(set.cluster))).toEqual(['10.0.0.0/16', '2001:db8::/48']);
  });
});
