import { existsSync, readdirSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { claimDirectories } from './claim-directories.ts';

const modeOf = (path: string): number => statSync(path).mode & 0o777;

it('a directory for a claim is for every user, below one that only the agent enters', async () => {
  const root = folderForTest();
  const directories = claimDirectories(root);
  // Each usual umask would narrow this mode. A test in a thread cannot change the umask.
  const path = directories.make('pvc-1');
  expect([path, modeOf(path), modeOf(join(root, 'claims'))]).toEqual([join(root, 'claims/pvc-1'), 0o777, 0o700]);
  writeFileSync(join(path, 'data'), 'kept');
  directories.make('pvc-1');
  expect(readdirSync(path)).toEqual(['data']);
  directories.make('pvc-2');
  await directories.remove('pvc-1');
  await directories.remove('pvc-1');
  expect(readdirSync(join(root, 'claims'))).toEqual(['pvc-2']);
});

it('the free bytes are those of its file system, also before there is a claim', () => {
  const root = folderForTest();
  const free = claimDirectories(root).freeBytes();
  const { bavail, bsize } = statfsSync(root);
  expect(existsSync(join(root, 'claims'))).toBe(true);
  expect(modeOf(join(root, 'claims'))).toBe(0o700);
  // Other programs write meanwhile.
  expect(Math.abs(free - bavail * bsize) / (bavail * bsize)).toBeLessThan(0.2);
});
