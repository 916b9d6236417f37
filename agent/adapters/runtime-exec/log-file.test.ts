import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  boundLog,
  type LogName,
  logPath,
  logSegments,
  logTail,
  readOutput,
  recordOutputTime,
  removeOlderRuns,
  seenOutput,
} from './log-file.ts';

let name: LogName;
beforeEach(() => {
  name = { directory: mkdtempSync(join(tmpdir(), 'log-file-')), container: 'c', run: 2 };
});
afterEach(() => rmSync(name.directory, { recursive: true }));

const path = (file: string) => join(name.directory, file);
const put = (file: string, text = 'x') => writeFileSync(path(file), text);
const files = () => readdirSync(name.directory).sort();
const OFFSET = '000000000000000';
const offset = (value: number) => `c.2.log.${String(value).padStart(15, '0')}`;

describe('the output of a run', () => {
  it('has earlier files in order, then the current one, and no other file', () => {
    put('c.2.log', 'now');
    put(offset(4), 'abc');
    put(`c.2.log.${OFFSET}`, '0123');
    for (const other of [
      'c.1.log',
      'd.2.log',
      'c.2.times',
      'c.2.log.1',
      `c.2.log.${OFFSET}1`,
      'c.2.log.00000000000000x',
      'c.2.log.x00000000000000',
      `c.2.lag.${OFFSET}`,
    ])
      put(other, 'other');
    expect(logSegments(name)).toEqual([
      { path: path(`c.2.log.${OFFSET}`), start: 0, end: 4 },
      { path: path(offset(4)), start: 4, end: 7 },
      { path: path('c.2.log'), start: 7, end: 10 },
    ]);
  });

  it('has none before the start, and earlier files without a current one', () => {
    expect(logSegments(name)).toEqual([]);
    put(offset(4), 'abc');
    expect(logSegments(name)).toEqual([{ path: path(offset(4)), start: 4, end: 7 }]);
    expect(logTail({ ...name, run: 3 }, 5)).toEqual(Buffer.alloc(0));
  });

  it('is read from an offset to the end of its file, up to a number of bytes', () => {
    put(`c.2.log.${OFFSET}`, '0123');
    put('c.2.log', 'abcdef');
    const read = (from: number, bytesMax = 99) => readOutput(logSegments(name), from, bytesMax).toString();
    expect([read(0), read(3), read(4), read(5, 2), read(9), read(10)]).toEqual(['0123', '3', 'abcdef', 'bc', 'f', '']);
    expect(logTail(name, 2).toString()).toBe('ef');
    expect(logTail(name, 99).toString()).toBe('abcdef');
  });
});

describe('a log above its limit', () => {
  const limits = { bytesMax: 4, filesMax: 3 };

  it('is moved away but for what is too long, with the offset of its first byte', () => {
    put('c.2.log', '0123456');
    boundLog(name, limits);
    expect(files()).toEqual(['c.2.log', offset(3)]);
    expect(readFileSync(path(offset(3)), 'utf8')).toBe('3456');
    expect(statSync(path(offset(3))).mode & 0o777).toBe(0o640);
    expect(statSync(logPath(name)).size).toBe(0);
    appendFileSync(logPath(name), 'abcde');
    boundLog(name, limits);
    expect(files()).toEqual(['c.2.log', offset(3), offset(8)]);
    expect(readFileSync(path(offset(8)), 'utf8')).toBe('bcde');
  });

  it('stays at the limit', () => {
    put('c.2.log', '0123');
    boundLog(name, limits);
    expect(readFileSync(logPath(name), 'utf8')).toBe('0123');
    expect(files()).toEqual(['c.2.log']);
  });

  it('has so many files with the current one: the oldest are removed', () => {
    for (const part of ['aaaaa', 'bbbbb', 'ccccc', 'ddddd']) {
      appendFileSync(logPath(name), part);
      boundLog(name, limits);
    }
    expect(logSegments(name).map(({ path: file }) => readFileSync(file, 'utf8'))).toEqual(['cccc', 'dddd', '']);
    appendFileSync(logPath(name), 'eeeee');
    boundLog(name, { ...limits, filesMax: 1 });
    expect(files()).toEqual(['c.2.log']);
  });
});

it('removes logs and times of earlier runs of the container alone', () => {
  const kept = ['c.10.log', 'c.2.log', 'c.2.times', 'c.x.log', 'd.1.log', 'c.1.other', 'cc.1.log'];
  for (const file of [...kept, 'c.1.log', 'c.0.times', `c.1.log.${OFFSET}`]) put(file);
  removeOlderRuns(name);
  expect(files()).toEqual(kept.sort());
});

describe('the times of output', () => {
  const write = (text: string, atSeconds: number) => {
    appendFileSync(logPath(name), text);
    utimesSync(logPath(name), atSeconds, atSeconds);
  };

  it('are those at which the log was longer than before', () => {
    expect(recordOutputTime(name)).toBeUndefined();
    write('', 5);
    expect(recordOutputTime(name)).toBe('2 0 5000');
    expect(seenOutput(name)).toEqual([]);
    write('abc', 10);
    const state = recordOutputTime(name);
    expect(state).toBe('2 3 10000');
    expect(recordOutputTime(name, state)).toBe(state);
    expect(recordOutputTime(name)).toBe(state);
    write('de', 20);
    expect(recordOutputTime(name, state)).toBe('2 5 20000');
    expect(seenOutput(name)).toEqual([
      { end: 3, atMs: 10_000 },
      { end: 5, atMs: 20_000 },
    ]);
    expect(statSync(path('c.2.times')).mode & 0o777).toBe(0o640);
  });

  it('do not run backwards, and count earlier files', () => {
    write('abc', 10);
    recordOutputTime(name);
    boundLog(name, { bytesMax: 2, filesMax: 9 });
    write('d', 7);
    recordOutputTime(name);
    expect(seenOutput(name)).toEqual([
      { end: 3, atMs: 10_000 },
      { end: 4, atMs: 10_000 },
    ]);
  });

  it('become coarser when there are too many', () => {
    const entries = Buffer.alloc(21_845 * 12);
    for (let index = 0; index < 21_845; index += 1) {
      entries.writeUIntBE(index + 1, index * 12, 6);
      entries.writeUIntBE(index + 1, index * 12 + 6, 6);
    }
    writeFileSync(path('c.2.times'), entries.subarray(12));
    write('x'.repeat(21_846), 100);
    recordOutputTime(name);
    expect(seenOutput(name)).toHaveLength(21_845);
    write('y', 101);
    recordOutputTime(name);
    const seen = seenOutput(name);
    expect(seen).toHaveLength(10_923);
    expect(seen[0]).toEqual({ end: 3, atMs: 3 });
    expect(seen.at(-1)).toEqual({ end: 21_847, atMs: 101_000 });
  });
});

it('times that cannot be read are a fault, and there may be none', () => {
  expect(seenOutput(name)).toEqual([]);
  mkdirSync(path('c.2.times'));
  expect(() => seenOutput(name)).toThrow(/EISDIR/);
});

it('the tail of three files is that of the current one, and no descriptor stays open', () => {
  put(`c.2.log.${OFFSET}`, 'aa');
  put(offset(2), 'bb');
  put('c.2.log', 'cccccc');
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const before = descriptors();
  expect(logTail(name, 9).toString()).toBe('cccccc');
  boundLog(name, { bytesMax: 4, filesMax: 9 });
  expect(readFileSync(path(offset(6)), 'utf8')).toBe('cccc');
  expect(descriptors()).toBe(before);
});

it('older runs are those with a lower number, of any length', () => {
  const others = ['c.12.log', 'c.12.times', 'c.x1.log', 'c.1x.log', 'c.1.text', 'd.1.log'];
  for (const file of [...others, 'c.9.log', 'c.10.times', `c.11.log.${OFFSET}`]) put(file);
  removeOlderRuns({ ...name, run: 12 });
  expect(files()).toEqual([...others].sort());
});

it('output that was recorded is not looked at again until it grows', () => {
  put('c.2.log', 'abc');
  const seen = recordOutputTime(name);
  rmSync(path('c.2.times'));
  expect(recordOutputTime(name, seen)).toBe(seen);
  expect(files()).toEqual(['c.2.log']);
  appendFileSync(logPath(name), 'd');
  expect(recordOutputTime(name, seen)).not.toBe(seen);
  expect(seenOutput(name).map(({ end }) => end)).toEqual([4]);
});

it('is read from what was listed: nothing before the first file, and nothing that was written since', () => {
  put(offset(4), 'abc');
  put('c.2.log', 'de');
  const segments = logSegments(name);
  appendFileSync(logPath(name), 'later');
  const read = (from: number) => readOutput(segments, from, 99).toString();
  expect([read(2), read(4), read(7), read(9)]).toEqual(['', 'abc', 'de', '']);
});
