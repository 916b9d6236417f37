import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { delayedWrite } from './delayed-write.ts';
import { appendLines, replaceFile } from './write-file.ts';

let folder: string;
let troubles: string[];

beforeEach(() => {
  vi.useFakeTimers();
  folder = mkdtempSync(join(tmpdir(), 'nodekeeper-write-'));
  troubles = [];
  onTestFinished(() => {
    vi.useRealTimers();
    rmSync(folder, { recursive: true });
  });
});

function aWrite(write: () => void) {
  return delayedWrite({ file: 'kept', delayMs: 1_000, write, onTrouble: (message) => troubles.push(message) });
}

it('tries a write that the disk refused again until it succeeds, and reports the begin and the end', () => {
  const file = join(folder, 'kept');
  // Stands for a full disk: the file that is written first cannot be opened.
  mkdirSync(`${file}.new`);
  const write = aWrite(() => replaceFile(file, 'content'));
  write.soon();
  vi.advanceTimersByTime(5_000);
  expect(troubles).toEqual([expect.stringMatching(/^kept cannot be written, it is tried again every 1 s: EISDIR/)]);
  rmSync(`${file}.new`, { recursive: true });
  vi.advanceTimersByTime(1_000);
  expect(readFileSync(file, 'utf8')).toBe('content');
  expect(troubles.slice(1)).toEqual(['kept is written again']);
  expect(vi.getTimerCount()).toBe(0);
});

it('makes one last attempt at its end, only for a write that is due', () => {
  let writes = 0;
  const write = aWrite(() => {
    writes += 1;
  });
  write.end();
  expect(writes).toBe(0);
  const due = aWrite(() => {
    writes += 1;
    throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', syscall: 'write' });
  });
  due.soon();
  due.end();
  vi.advanceTimersByTime(10_000);
  expect(writes).toBe(1);
});

it('does not hide an error of our own', () => {
  expect(() =>
    aWrite(() => {
      throw new TypeError('no function');
    }).now(),
  ).toThrow(TypeError);
});

it('appends all of the lines or none', () => {
  const file = join(folder, 'lines');
  appendLines(file, 'one\n');
  expect(() => appendLines(join(folder, 'no', 'folder'), 'x\n')).toThrow(/ENOENT/);
  appendLines(file, 'two\n');
  expect(readFileSync(file, 'utf8')).toBe('one\ntwo\n');
});
