import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { networkDiskOf } from './network-disk.ts';

it('names the file systems of networks, and no disk of this machine', () => {
  expect(networkDiskOf(tmpdir())).toBeUndefined();
  expect([0x6969, 0xfe534d42, 0xef53].map((type) => networkDiskOf('/data', () => type))).toEqual([
    'NFS',
    'SMB',
    undefined,
  ]);
});
