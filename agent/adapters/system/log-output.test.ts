import { existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { logOutput } from './log-output.ts';

let folder: string;
beforeEach(() => {
  folder = folderForTest();
});

it('appends to the file of the previous agent, and keeps one earlier file', () => {
  const file = join(folder, 'agent.log');
  writeFileSync(file, 'before\n');
  logOutput(file)('one\n');
  expect(readFileSync(file, 'utf8')).toBe('before\none\n');
  truncateSync(file, 11 * 1024 * 1024);
  logOutput(file)('two\n');
  expect(readFileSync(file, 'utf8')).toBe('two\n');
  expect(statSync(`${file}.1`).size).toBe(11 * 1024 * 1024);
});

it('counts what it wrote itself, in bytes, and renames the file above 10 MiB', () => {
  const file = join(folder, 'agent.log');
  const sizes = (): readonly number[] =>
    [file, `${file}.1`].map((path) => (existsSync(path) ? statSync(path).size : 0));
  const [half, full] = [5 * 1024 * 1024, 10 * 1024 * 1024];
  const write = logOutput(file);
  // Two bytes each in UTF-8.
  write('\u00e4'.repeat(half / 2));
  write('b'.repeat(half));
  // Exactly at the limit.
  write('c');
  expect(sizes()).toEqual([full + 1, 0]);
  write('d');
  expect(sizes()).toEqual([1, full + 1]);
  write('e');
  expect(sizes()).toEqual([2, full + 1]);
});

it('writes to its file while it cannot be renamed', () => {
  const file = join(folder, 'agent.log');
  writeFileSync(file, '');
  truncateSync(file, 11 * 1024 * 1024);
  mkdirSync(`${file}.1`);
  logOutput(file)('one\n');
  expect(statSync(file).size).toBe(11 * 1024 * 1024 + 4);
});

it('drops lines that cannot be written', () => {
  const file = join(folder, 'missing', 'agent.log');
  logOutput(file)('one\n');
  expect(existsSync(file)).toBe(false);
});

it('writes to stderr without a file, and a fault of stderr does not end the process', () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const before = process.stderr.listenerCount('error');
  logOutput(undefined)('line\n');
  expect(write.mock.calls).toEqual([['line\n']]);
  expect(process.stderr.listenerCount('error')).toBe(before + 1);
  write.mockRestore();
});
