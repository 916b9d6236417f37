import { existsSync, readdirSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { claimDirectories } from './claim-directories.ts';

const UNLIMITED = { kind: 'none', why: 'a reason', todo: '' } as const;
const calls: string[] = [];
const quotas = {
  limit: async (path: string, bytes: number) => {
    calls.push(`limit ${basename(path)} ${existsSync(path)} ${bytes}`);
    return UNLIMITED;
  },
  release: async (path: string) => void calls.push(`release ${basename(path)} ${existsSync(path)}`),
  fault: async () => UNLIMITED,
};
const modeOf = (path: string): number => statSync(path).mode & 0o777;

it('a directory for a claim is for every user, below one that only the agent enters', async () => {
  const root = folderForTest();
  const directories = claimDirectories(root, quotas);
  // Each usual umask would narrow this mode. A test in a thread cannot change the umask.
  const { path, unlimited } = await directories.make('pvc-1', 5);
  expect(unlimited).toBe('a reason');
  expect([path, modeOf(path), modeOf(join(root, 'claims'))]).toEqual([join(root, 'claims/pvc-1'), 0o777, 0o700]);
  writeFileSync(join(path, 'data'), 'kept');
  await directories.make('pvc-1', 5);
  expect(readdirSync(path)).toEqual(['data']);
  await directories.make('pvc-2', 6);
  await directories.remove('pvc-1');
  await directories.remove('pvc-1');
  expect(readdirSync(join(root, 'claims'))).toEqual(['pvc-2']);
  const made = ['limit pvc-1 true 5', 'limit pvc-1 true 5', 'limit pvc-2 true 6'];
  expect(calls).toEqual([...made, 'release pvc-1 true', 'release pvc-1 false']);
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
