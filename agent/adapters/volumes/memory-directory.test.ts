import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { memoryDirectory } from './memory-directory.ts';

it('is below the first directory of the unit, in memory, and only for the agent', () => {
  const below = `/dev/shm/nodekeeper-test-${process.pid}`;
  onTestFinished(() => rmSync(below, { recursive: true, force: true }));
  vi.stubEnv('RUNTIME_DIRECTORY', `${below}:/other`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const path = memoryDirectory('volumes');
  expect(path).toBe(`${below}/volumes`);
  expect(statSync(path!).mode & 0o777).toBe(0o700);
});

it('is none on a disk, or where it cannot be made', () => {
  const root = folderForTest();
  writeFileSync(join(root, 'file'), '');
  expect(memoryDirectory('volumes', join(root, 'file'))).toBeUndefined();
  expect(memoryDirectory('heartbeat', '/proc/none')).toBeUndefined();
  const isInMemory = statfsSync(root).type === 0x01021994;
  expect(memoryDirectory('volumes', root)).toBe(isInMemory ? join(root, 'volumes') : undefined);
});
