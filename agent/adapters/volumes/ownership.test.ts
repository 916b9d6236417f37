import { chmodSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { setGroup } from './ownership.ts';

let root: string;
const at = (...names: string[]): string => join(root, ...names);
const modeOf = (...names: string[]): string => (statSync(at(...names)).mode & 0o7777).toString(8);
const own = process.getgid?.() ?? 0;
/** Another group than new files have, if the user of this process may set one. */
const groupId = process.getuid?.() === 0 ? own + 1 : (process.getgroups?.().find((each) => each !== own) ?? own);

beforeEach(() => {
  root = folderForTest();
  mkdirSync(at('volume/deep'), { recursive: true });
  for (const name of ['volume/file', 'volume/deep/file', 'outside']) {
    writeFileSync(at(name), '');
    chmodSync(at(name), 0o600);
  }
  symlinkSync(at('outside'), at('volume/link'));
  for (const name of ['volume', 'volume/deep']) chmodSync(at(name), 0o700);
});

it('lets the group write, and passes the group to new files', () => {
  setGroup(at('volume'), groupId, 'writable');
  expect([modeOf('volume'), modeOf('volume/deep'), modeOf('volume/file'), modeOf('volume/deep/file')]).toEqual([
    '2770',
    '2770',
    '660',
    '660',
  ]);
  for (const name of ['volume', 'volume/deep/file', 'volume/link']) expect(lstatSync(at(name)).gid).toBe(groupId);
});

it('lets the group read alone', () => {
  setGroup(at('volume'), groupId, 'readOnly');
  expect([modeOf('volume'), modeOf('volume/file')]).toEqual(['2750', '640']);
});

it('does not follow links', () => {
  setGroup(at('volume'), groupId, 'writable');
  expect([modeOf('outside'), statSync(at('outside')).gid]).toEqual(['600', own]);
});

it('sets the mode of the directory alone, and nothing without a group', () => {
  setGroup(at('volume'), undefined, 'writable', 0o755);
  expect([modeOf('volume'), modeOf('volume/deep'), modeOf('volume/file')]).toEqual(['755', '700', '600']);
  setGroup(at('volume'), groupId, 'writable', 0o711);
  expect(modeOf('volume')).toBe('2771');
});
