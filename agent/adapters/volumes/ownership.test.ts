import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { setGroup } from './ownership.ts';

let root: string;
const at = (...names: string[]): string => join(root, ...names);
const modeOf = (...names: string[]): string => (statSync(at(...names)).mode & 0o7777).toString(8);
/** A group that every user of a machine may set: its own. */
const groupId = process.getgid?.() ?? 0;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nodekeeper-group-'));
  mkdirSync(at('volume/deep'), { recursive: true });
  for (const name of ['volume/file', 'volume/deep/file', 'outside']) {
    writeFileSync(at(name), '');
    chmodSync(at(name), 0o600);
  }
  symlinkSync(at('outside'), at('volume/link'));
  for (const name of ['volume', 'volume/deep']) chmodSync(at(name), 0o700);
});
afterEach(() => rmSync(root, { recursive: true }));

it('lets the group write, and passes the group to new files', () => {
  setGroup(at('volume'), groupId, 'writable');
  expect([modeOf('volume'), modeOf('volume/deep'), modeOf('volume/file'), modeOf('volume/deep/file')]).toEqual([
    '2770',
    '2770',
    '660',
    '660',
  ]);
  expect(statSync(at('volume/deep/file')).gid).toBe(groupId);
});

it('lets the group read alone', () => {
  setGroup(at('volume'), groupId, 'readOnly');
  expect([modeOf('volume'), modeOf('volume/file')]).toEqual(['2750', '640']);
});

it('does not follow links', () => {
  setGroup(at('volume'), groupId, 'writable');
  expect(modeOf('outside')).toBe('600');
});

it('sets the mode of the directory alone, and nothing without a group', () => {
  setGroup(at('volume'), undefined, 'writable', 0o755);
  expect([modeOf('volume'), modeOf('volume/deep'), modeOf('volume/file')]).toEqual(['755', '700', '600']);
  setGroup(at('volume'), groupId, 'writable', 0o711);
  expect(modeOf('volume')).toBe('2771');
});
