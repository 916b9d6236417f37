import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeAtomically } from './atomic-files.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'atomic-files-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const write = (files: Record<string, string>, mode = 0o644) =>
  writeAtomically(
    directory,
    new Map(Object.entries(files).map(([path, text]) => [path, { bytes: Buffer.from(text), mode } as never])),
  );
const visible = () => readdirSync(directory).filter((name) => !name.startsWith('..'));
const read = (path: string) => readFileSync(join(directory, path), 'utf8');

it('writes files behind one link, with their mode, and directories', () => {
  expect(write({ a: '1', 'b/c': '2', 'b/d': '3' }, 0o600)).toBe(true);
  expect(visible()).toEqual(['a', 'b']);
  expect([read('a'), read('b/c'), read('b/d')]).toEqual(['1', '2', '3']);
  expect(readlinkSync(join(directory, 'a'))).toBe('..data/a');
  expect(statSync(join(directory, 'a')).mode & 0o777).toBe(0o600);
  expect(statSync(join(directory, 'b')).mode & 0o777).toBe(0o755);
  expect(statSync(join(directory, '..data')).mode & 0o777).toBe(0o755);
});

it('writes nothing where the same files are', () => {
  write({ a: '1', 'b/c': '2' });
  const before = readlinkSync(join(directory, '..data'));
  expect(write({ a: '1', 'b/c': '2' })).toBe(false);
  expect(write({ 'b/c': '2', './a': '1' })).toBe(false);
  expect(readlinkSync(join(directory, '..data'))).toBe(before);
});

it.each<[string, Record<string, string>, number]>([
  ['another text', { a: '2', 'b/c': '2' }, 0o644],
  ['a file more', { a: '1', 'b/c': '2', d: '3' }, 0o644],
  ['a file less', { a: '1' }, 0o644],
  ['another name', { a: '1', 'b/d': '2' }, 0o644],
  ['more permissions', { a: '1', 'b/c': '2' }, 0o664],
])('replaces all files for %s, and leaves one directory', (_what, files, mode) => {
  write({ a: '1', 'b/c': '2' });
  expect(write(files, mode)).toBe(true);
  expect(Object.keys(files).map(read)).toEqual(Object.values(files));
  expect(visible()).toEqual([...new Set(Object.keys(files).map((path) => path.split('/')[0]))].sort());
  expect(readdirSync(directory).filter((name) => name.startsWith('..'))).toHaveLength(2);
});

it('removes what an interrupted write left, and what is not of the volume', () => {
  mkdirSync(join(directory, '..old'));
  writeFileSync(join(directory, '..data_tmp'), '');
  mkdirSync(join(directory, 'other'));
  write({ a: '1' });
  expect(
    readdirSync(directory)
      .filter((name) => name !== readlinkSync(join(directory, '..data')))
      .sort(),
  ).toEqual(['..data', 'a']);
  expect(lstatSync(join(directory, '..data')).isSymbolicLink()).toBe(true);
});

it.each([
  ['', 'invalid path: must be relative path: '],
  ['/a', 'invalid path: must be relative path: /a'],
  ['../a', "invalid path: must not contain '..': ../a"],
  ['a/../../b', "invalid path: must not contain '..': a/../../b"],
  ['..a', "invalid path: must not start with '..': ..a"],
  ['a'.repeat(4_097), 'invalid path: longer than 4096 characters'],
])('refuses a path that leaves the volume or is too long, and keeps the former files', (path, message) => {
  write({ a: '1' });
  expect(() => write({ a: '2', [path]: 'x' })).toThrow(message);
  expect([visible(), read('a')]).toEqual([['a'], '1']);
});

it('keeps the former files where one cannot be written, and no part of the others', () => {
  write({ a: '1' });
  expect(() => write({ a: '2', 'a/b': '3' })).toThrow();
  expect(read('a')).toBe('1');
  expect(readdirSync(directory)).toHaveLength(3);
});

it('accepts a path of the greatest length', () => {
  write({ [`${'./'.repeat(2_047)}aa`]: '1' });
  expect([visible(), read('aa')]).toEqual([['aa'], '1']);
});
