import { appendFileSync, mkdtempSync, readdirSync, rmSync, truncateSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import type { LogQuery } from '../../ports/pod-runtime.ts';
import { boundLog, type LogName, logPath, recordOutputTime, removeOlderRuns, seenOutput } from './log-file.ts';
import { readLog } from './log-reader.ts';

const START_MS = Date.UTC(2026, 0, 1);
let name: LogName;
let time: SteppedTime;

beforeEach(() => {
  name = { directory: mkdtempSync(join(tmpdir(), 'nodekeeper-log-')), container: 'main', run: 0 };
  time = new SteppedTime(START_MS);
});

afterEach(() => rmSync(name.directory, { recursive: true }));

/** The container writes at this second, and the agent looks. */
function write(text: string, atSecond = 0): void {
  appendFileSync(logPath(name), text);
  const at = new Date(START_MS + atSecond * 1_000);
  utimesSync(logPath(name), at, at);
  recordOutputTime(name);
}

const ALL: LogQuery = { podUid: 'u', container: 'main', previous: false, follow: false, timestamps: false };

async function read(query: Partial<LogQuery> = {}): Promise<string> {
  const stop = new AbortController().signal;
  const pieces: Uint8Array[] = [];
  for await (const piece of readLog(name, { ...ALL, ...query }, { time, isRunning: () => false, stop })) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

const rotate = (bytesMax = 10, filesMax = 3): void => boundLog(name, { bytesMax, filesMax });

describe('the output of a container', () => {
  it('is read across the files that the size limit made', async () => {
    for (const text of ['first line\n', 'second line\n', 'third line\n']) {
      write(text);
      rotate(text.length - 1, 5);
    }
    write('rest');
    // The first byte of each file fell to the limit, as the limit is one byte too small for each.
    expect(await read()).toBe('irst line\necond line\nhird line\nrest');
  });

  it('keeps as many files as the limit allows', async () => {
    for (let line = 0; line < 6; line += 1) {
      write(`line number ${line}\n`);
      rotate(10);
    }
    expect(readdirSync(name.directory).filter((file) => file.startsWith('main.0.log'))).toHaveLength(3);
    expect(await read()).toBe(' number 4\n number 5\n');
  });

  it.each([
    [0, ''],
    [1, 'd'],
    [2, 'c\nd'],
    [3, 'b\nc\nd'],
    [9, 'a\nb\nc\nd'],
  ])('ends with its last %i lines', async (tailLines, expected) => {
    write('a\nb\n');
    rotate(4);
    write('c\nd');
    expect(await read({ tailLines })).toBe(expected);
  });

  it('ends with its last lines when they are longer than one read', async () => {
    const long = 'x'.repeat(200_000);
    write(`a\n${long}\nb\n`);
    expect(await read({ tailLines: 2 })).toBe(`${long}\nb\n`);
    expect(await read({ tailLines: 3 })).toBe(`a\n${long}\nb\n`);
  });

  it('begins with the first line that was written since a time', async () => {
    write('old\nhalf', 10);
    write(' a line\nnew\n', 20);
    write('newest\n', 30);
    const since = (second: number) => read({ sinceMs: START_MS + second * 1_000 });
    expect(await since(0)).toBe('old\nhalf a line\nnew\nnewest\n');
    expect(await since(15)).toBe('new\nnewest\n');
    expect(await since(30)).toBe('newest\n');
    expect(await since(31)).toBe('');
    expect(await read({ sinceMs: START_MS + 15_000, tailLines: 1 })).toBe('newest\n');
  });

  it('has the time at which it was seen before each line', async () => {
    write('one\ntwo\n', 1);
    write('three\n', 2.5);
    expect(await read({ timestamps: true })).toBe(
      '2026-01-01T00:00:01.000000000Z one\n2026-01-01T00:00:01.000000000Z two\n2026-01-01T00:00:02.500000000Z three\n',
    );
  });

  it('has one time per line when a line is longer than one read', async () => {
    write(`${'x'.repeat(150_000)}\n`, 1);
    expect((await read({ timestamps: true })).match(/2026/g)).toHaveLength(1);
  });

  it('is cut off at a number of bytes that includes the times', async () => {
    write('one\ntwo\n', 1);
    expect(await read({ limitBytes: 5 })).toBe('one\nt');
    expect(await read({ limitBytes: 33, timestamps: true })).toBe('2026-01-01T00:00:01.000000000Z on');
  });

  it('of a run that never wrote is empty', async () => {
    expect(await read()).toBe('');
    expect(await read({ tailLines: 5, sinceMs: START_MS, timestamps: true })).toBe('');
  });

  it('of other runs and of containers with a longer name is left alone', async () => {
    write('zero\n');
    for (const other of [{ run: 1 }, { run: 2 }, { container: 'main-2' }]) {
      appendFileSync(logPath({ ...name, ...other }), 'other\n');
    }
    expect(await read()).toBe('zero\n');
    removeOlderRuns({ ...name, run: 1 });
    expect(readdirSync(name.directory).sort()).toEqual(['main-2.0.log', 'main.1.log', 'main.2.log']);
  });

  it('keeps at most 256 KB of times, and older ones become coarser', () => {
    for (let second = 0; second < 30_000; second += 1) write('x', second);
    const seen = seenOutput(name);
    expect(seen.length).toBeLessThan(21_846);
    expect(seen.at(-1)).toEqual({ end: 30_000, atMs: START_MS + 29_999_000 });
    expect(seen.every(({ end }, index) => index === 0 || end > seen[index - 1]!.end)).toBe(true);
  });
});

describe('a followed log', () => {
  function follow() {
    const stop = new AbortController();
    let isRunning = true;
    let text = '';
    let hasEnded = false;
    const reading = async (): Promise<void> => {
      const query = { ...ALL, follow: true };
      for await (const piece of readLog(name, query, { time, isRunning: () => isRunning, stop: stop.signal })) {
        text += Buffer.from(piece).toString('utf8');
      }
    };
    void reading().finally(() => {
      hasEnded = true;
    });
    return {
      text: () => text,
      hasEnded: () => hasEnded,
      stop: () => stop.abort(),
      exit: () => {
        isRunning = false;
      },
    };
  }

  it('continues while the container runs, loses nothing at the size limit, and ends with the container', async () => {
    const log = follow();
    let expected = '';
    for (let line = 0; line < 20; line += 1) {
      write(`line ${line}\n`);
      expected += `line ${line}\n`;
      if (line % 3 === 2) rotate(1_000 * line, 5);
      await time.pass(250);
      expect(log.text()).toBe(expected);
    }
    write('last\n');
    rotate(5, 5);
    log.exit();
    await time.pass(250);
    expect(log.text()).toBe(`${expected}last\n`);
    expect(log.hasEnded()).toBe(true);
  });

  it('continues at the start when a full disk made the agent discard all output', async () => {
    const log = follow();
    write('some output\n');
    await time.pass(250);
    truncateSync(logPath(name));
    write('new\n');
    await time.pass(250);
    expect(log.text()).toBe('some output\nnew\n');
    log.stop();
    await time.pass(0);
    expect(log.hasEnded()).toBe(true);
  });
});

describe('a limit of bytes', () => {
  const piecesOf = async (query: Partial<LogQuery>): Promise<readonly number[]> => {
    const stop = new AbortController().signal;
    const reading = { time, isRunning: () => true, stop };
    return (await text(readLog(name, { ...ALL, ...query }, reading))).map(({ length }) => length);
  };
  /** The pieces; fails if it waits for more output. */
  async function text(log: AsyncGenerator<Uint8Array>): Promise<readonly Uint8Array[]> {
    const pieces: Uint8Array[] = [];
    for (;;) {
      const next = await Promise.race([log.next(), settled(20)]);
      if (next === undefined) throw new Error('the log is still followed');
      if (next.done === true) return pieces;
      pieces.push(next.value);
    }
  }
  async function settled(turns: number): Promise<undefined> {
    for (let turn = 0; turn < turns; turn += 1) await settle();
  }

  it('counts all pieces, and ends also a log that is followed', async () => {
    write('x'.repeat(3 * 65_536));
    expect(await piecesOf({ limitBytes: 65_536 + 5, follow: true })).toEqual([65_536, 5]);
    expect(await piecesOf({ limitBytes: 65_536, follow: true })).toEqual([65_536]);
    expect(await piecesOf({ limitBytes: 0, follow: true })).toEqual([]);
  });
});

it('an empty first line is a line of the tail', async () => {
  write('\nab\n');
  expect([await read({ tailLines: 1 }), await read({ tailLines: 2 })]).toEqual(['ab\n', '\nab\n']);
});
