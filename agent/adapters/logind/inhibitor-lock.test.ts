/** The lock through programs in place of systemd-inhibit(1). */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { until } from '../../../test/support/until.ts';
import { InhibitorLockError, takeInhibitorLock } from './inhibitor-lock.ts';

const LOCK = { what: 'shutdown', who: 'kubelet', why: 'pods stop first', mode: 'delay' } as const;
const soon = { withinMs: 10_000, everyMs: 5 };

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-lock-'));
  vi.stubEnv('PATH', `${directory}:${process.env['PATH']}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true, force: true });
});

function take(script: string, timeoutMs = 5_000) {
  const record = `printf '%s\\n' "$@" "$DBUS_SYSTEM_BUS_ADDRESS" > ${directory}/call`;
  const text = `#!/bin/sh\necho $$ > ${directory}/pid\n${record}\n${script}\n`;
  writeFileSync(join(directory, 'systemd-inhibit'), text, { mode: 0o755 });
  return takeInhibitorLock('unix:path=/bus', LOCK, timeoutMs);
}
const pid = (): number => Number(readFileSync(join(directory, 'pid'), 'utf8'));
const runs = (): boolean => existsSync(`/proc/${pid()}`);

it('is held by a program in a session of its own, until its release', async () => {
  const lock = await take('exec cat');
  expect(readFileSync(join(directory, 'call'), 'utf8').split('\n')).toEqual([
    '--what=shutdown',
    '--who=kubelet',
    '--why=pods stop first',
    '--mode=delay',
    'cat',
    'unix:path=/bus',
    '',
  ]);
  const session = readFileSync(`/proc/${pid()}/stat`, 'utf8').split(') ')[1]?.split(' ')[3];
  expect(session).toBe(String(pid()));
  await lock.release();
  expect([runs(), lock.lost.aborted]).toEqual([false, false]);
  await lock.release();
});

it('is not held before the program answers with all that it was sent', async () => {
  const lock = await take(`printf he; sleep 0.1; touch ${directory}/answered; echo ld; exec cat >/dev/null`);
  expect(existsSync(join(directory, 'answered'))).toBe(true);
  await lock.release();
});

it.each([
  ['ends with a reason', 'echo " access denied " >&2; exit 1', 'access denied'],
  ['ends without one', 'exit 3', 'it ended with 3'],
  ['is killed', 'kill -9 $$', 'it ended with SIGKILL'],
])('is refused by a program that %s', async (_, script, reason) => {
  const refused = take(script);
  await expect(refused).rejects.toThrow(InhibitorLockError);
  await expect(refused).rejects.toThrow(`systemd-inhibit could not acquire the lock: ${reason}`);
});

it('is refused where there is no such program', async () => {
  vi.stubEnv('PATH', directory);
  await expect(takeInhibitorLock('unix:path=/bus', LOCK, 5_000)).rejects.toThrow(
    'systemd-inhibit could not acquire the lock: spawn systemd-inhibit ENOENT',
  );
});

it('is given up when its time is over, and a program that ignores the end of its input is killed', async () => {
  await expect(take('exec sleep 300', 100)).rejects.toThrow('could not acquire the lock: no answer in 100 ms');
  expect(runs()).toBe(false);
});

it('is released although the program does not end', async () => {
  const lock = await take("echo held; trap '' TERM; exec sleep 300", 200);
  await lock.release();
  expect([runs(), lock.lost.aborted]).toEqual([false, false]);
});

it('is released by the end of the input of the program', async () => {
  const lock = await take(`cat; touch ${directory}/ended`);
  await lock.release();
  expect(existsSync(join(directory, 'ended'))).toBe(true);
});

it('is released although what the program started does not end', async () => {
  const lock = await take(`sleep 300 & echo $! > ${directory}/child; echo held; exec cat >/dev/null`, 200);
  const child = readFileSync(join(directory, 'child'), 'utf8').trim();
  const stateOf = (stat: string): string | undefined => stat.split(') ')[1]?.[0];
  await lock.release();
  const path = `/proc/${child}/stat`;
  await until(() => !existsSync(path) || stateOf(readFileSync(path, 'utf8')) === 'Z', soon);
});

it('is lost when the program ends', async () => {
  const lock = await take('exec cat');
  expect(lock.lost.aborted).toBe(false);
  process.kill(pid(), 'SIGKILL');
  await until(() => lock.lost.aborted, soon);
  await lock.release();
});
