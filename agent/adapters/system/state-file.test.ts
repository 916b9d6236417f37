import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { onPlatform } from '../../../test/support/on-platform.ts';
import { openedBelow } from '../../../test/support/opened-below.ts';
import { replaceFile, syncDirectory, textOf } from './state-file.ts';

let folder: string;
beforeEach(() => {
  folder = folderForTest();
});

it('a file that does not exist has no text, and any other fault is one', async () => {
  writeFileSync(join(folder, 'state'), 'text');
  expect([await textOf(join(folder, 'state')), await textOf(join(folder, 'none'))]).toEqual(['text', undefined]);
  await expect(textOf(folder)).rejects.toThrow(/EISDIR/);
});

it('nothing stays open after a write and after a sync', async () => {
  await replaceFile(join(folder, 'state'), 'state.tmp', 'text', 0o644);
  await syncDirectory(folder);
  expect([openedBelow(folder), readdirSync(folder)]).toEqual([[], ['state']]);
});

it('the error of a write that fails is that of the write, also when its temporary file cannot be removed', async () => {
  mkdirSync(join(folder, 'state.tmp'));
  writeFileSync(join(folder, 'state.tmp', 'other'), '');
  await expect(replaceFile(join(folder, 'state'), 'state.tmp', 'text', 0o644)).rejects.toThrow(/EISDIR/);
  expect(openedBelow(folder)).toEqual([]);
});

it.runIf(process.platform === 'linux')('a file system that cannot sync directories is no fault', async () => {
  await syncDirectory('/proc/self');
  await expect(syncDirectory(join(folder, 'none'))).rejects.toThrow(/ENOENT/);
});

it('directories are not synced on Windows', async () => {
  onPlatform('win32');
  await syncDirectory(join(folder, 'none'));
});
