import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { type JsonLogOptions, jsonLog } from './json-log.ts';
import { replaceFile, stateFile } from './state-file.ts';
import { systemTime } from './time.ts';

describe('the log', () => {
  const lines = (priorities: boolean, more: Partial<JsonLogOptions> = {}) => {
    const written: string[] = [];
    return { written, log: jsonLog({ write: (line) => written.push(line), nowMs: () => 0, priorities, ...more }) };
  };

  it('is a line of JSON an entry, errors with their causes', () => {
    const { written, log } = lines(false);
    log.error('it broke', { node: 'edge-1', cause: new Error('outer', { cause: new TypeError('inner') }) });
    log.debug('never mind');
    expect(written).toHaveLength(1);
    expect(JSON.parse(written[0] ?? '')).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      level: 'error',
      message: 'it broke',
      node: 'edge-1',
      cause: { name: 'Error', message: 'outer', cause: { name: 'TypeError', message: 'inner' } },
    });
  });

  it('passes the priority to journald', () => {
    const { written, log } = lines(true, { debug: true });
    log.debug('a detail');
    log.info('it runs');
    log.warn('careful');
    log.error('it broke');
    expect(written.map((line) => line.slice(0, 4))).toEqual(['<7>{', '<6>{', '<4>{', '<3>{']);
    expect(written.map((line) => JSON.parse(line.slice(3)).level)).toEqual(['debug', 'info', 'warn', 'error']);
  });

  it('has large numbers as texts', () => {
    const { written, log } = lines(false);
    log.info('read', { inode: 2n ** 64n });
    expect(JSON.parse(written[0] ?? '')).toMatchObject({ inode: '18446744073709551616' });
  });

  it('does not stop the work that is logged when a line cannot be written', () => {
    const { log } = lines(false, {
      write: () => {
        throw new Error('no space left');
      },
    });
    log.info('it runs');
  });
});

describe('a state file', () => {
  it('is replaced as a whole, and absent before the first write', async () => {
    const directory = folderForTest();
    const file = stateFile(join(directory, 'state'), '.tmp-state');
    expect(await file.read()).toBeUndefined();
    await file.write('one');
    await file.write('two');
    expect(await file.read()).toBe('two');
    expect(readdirSync(directory)).toEqual(['state']);
  });

  it('can be read by everybody, whatever the umask', async () => {
    const directory = folderForTest();
    const modeOf = (name: string): number => statSync(join(directory, name)).mode & 0o777;
    await stateFile(join(directory, 'state'), '.tmp-state').write('one');
    expect(modeOf('state')).toBe(0o644);
    // Each usual umask would narrow this mode. A test in a thread cannot change the umask.
    await replaceFile(join(directory, 'shared'), '.tmp-shared', 'one', 0o666);
    expect(modeOf('shared')).toBe(0o666);
  });

  it('leaves nothing behind when it cannot be written', async () => {
    const directory = folderForTest();
    mkdirSync(join(directory, 'state/taken'), { recursive: true });
    await expect(stateFile(join(directory, 'state'), '.tmp-state').write('one')).rejects.toThrow();
    expect(readdirSync(directory)).toEqual(['state']);
  });
});

describe('waiting', () => {
  it('ends with its signal, without a complaint', async () => {
    const stop = new AbortController();
    const waiting = systemTime.sleep(60_000, stop.signal);
    stop.abort();
    await waiting;
    await systemTime.sleep(60_000, stop.signal);
  });

  it('of no time, or of time that is over, ends at once', async () => {
    await systemTime.sleep(0);
    await systemTime.sleep(-60_000);
  });

  it('of more time than a timer takes does not end at once', async () => {
    const stop = new AbortController();
    let ended = false;
    const waiting = systemTime.sleep(2 ** 31 + 1_000, stop.signal).then(() => {
      ended = true;
    });
    // A timer of too long a time would fire after 1 ms, before these.
    await systemTime.sleep(5);
    await systemTime.sleep(5);
    expect(ended).toBe(false);
    stop.abort();
    await waiting;
  });
});

it('the clocks of the machine are in milliseconds, and count since its boot', () => {
  const uptimeMs = systemTime.uptimeMs();
  expect(Math.abs(uptimeMs - uptime() * 1_000)).toBeLessThan(60_000);
  // A suspend is counted by one of them. Both count since the boot, not since the start of this process.
  expect(systemTime.monotonicMs()).toBeLessThan(uptimeMs + 60_000);
  expect(systemTime.monotonicMs()).toBeGreaterThan(performance.now());
  const beforeMs = systemTime.monotonicMs();
  expect(systemTime.monotonicMs()).toBeGreaterThanOrEqual(beforeMs);
});
