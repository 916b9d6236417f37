import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../test/support/folder-for-test.ts';
import { makeDirectory } from './directory.ts';

it('a directory is made with its parents, and an existing one is not changed', () => {
  const root = folderForTest();
  const path = join(root, 'a/b/c');
  makeDirectory(path, 0o700);
  for (const each of ['a', 'a/b', 'a/b/c']) expect(statSync(join(root, each)).mode & 0o777).toBe(0o700);
  chmodSync(path, 0o755);
  makeDirectory(path, 0o700);
  expect(statSync(path).mode & 0o777).toBe(0o755);
  mkdirSync(join(root, 'x'));
  makeDirectory(join(root, 'x/y'), 0o700);
  expect(statSync(join(root, 'x/y')).isDirectory()).toBe(true);
});

it('a file in its place is a fault, and so is a name that the kernel does not have', () => {
  const root = folderForTest();
  writeFileSync(join(root, 'file'), '');
  expect(() => makeDirectory(join(root, 'file'), 0o700)).toThrow(/EEXIST/);
  expect(() => makeDirectory(join(root, 'file/below'), 0o700)).toThrow(/EEXIST/);
  expect(() => makeDirectory('/proc/none/below', 0o700)).toThrow(/ENOENT/);
});
