import type { ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { expect, it } from 'vitest';
import { startForTest } from '../../../test/support/started-process.ts';
import { settle } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import { commandResult } from './command-result.ts';

const sh = (script: string): ChildProcess => startForTest('sh', ['-c', script]);

/** Pauses end only when they are woken; delayed acts run when the test says so. */
function pod() {
  const changes = new EventEmitter();
  const acts: { readonly milliseconds: number; readonly act: () => void }[] = [];
  const pauses: number[] = [];
  return {
    acts,
    pauses,
    isDetached: false,
    wake: () => void changes.emit('change'),
    after: (milliseconds: number, act: () => void) => void acts.push({ milliseconds, act }),
    async pause(milliseconds: number) {
      pauses.push(milliseconds);
      await once(changes, 'change');
    },
  };
}
const resultOf = (child: ChildProcess, processes = pod()) => commandResult(child, processes, () => true);

it.each([
  ['exit 0', 0],
  ['exit 7', 7],
  // A signal counts from 128.
  ['kill -9 $$', 137],
  ['kill -15 $$', 143],
])('has the exit code of %s', async (script, exitCode) => {
  expect(await resultOf(sh(script))).toEqual({ kind: 'exited', exitCode, output: '' });
});

it('has both outputs, up to 10 KiB together', async () => {
  const result = await resultOf(sh('echo one; echo two >&2'));
  if (result.kind !== 'exited') throw new Error(result.kind);
  expect(result.output.split('\n').sort()).toEqual(['', 'one', 'two']);
  const long = await resultOf(sh('head -c 30000 /dev/zero | tr "\\0" x'));
  expect(long).toEqual({ kind: 'exited', exitCode: 0, output: 'x'.repeat(10_240) });
});

it('cuts the piece of output that crosses the limit, and drops the pieces after it', async () => {
  const child = sh('read line');
  const processes = pod();
  const result = resultOf(child, processes);
  for (const [text, count] of [
    ['a', 10_000],
    ['b', 1_000],
    ['c', 1_000],
  ] as const) {
    child.stdout?.emit('data', Buffer.from(text.repeat(count)));
  }
  child.stdin?.end();
  expect(await result).toMatchObject({ output: `${'a'.repeat(10_000)}${'b'.repeat(240)}` });
});

it('does not wait for a child that keeps the output open', async () => {
  const child = sh('echo begun; sleep 60 & echo $! >&2; exit 3');
  const processes = pod();
  let sleeper = '';
  child.stderr?.on('data', (text: Buffer) => {
    sleeper += text.toString();
  });
  const result = resultOf(child, processes);
  await until(() => processes.acts.length > 0 && sleeper.endsWith('\n'), { withinMs: 30_000 });
  expect(processes.acts.map(({ milliseconds }) => milliseconds)).toEqual([200]);
  for (const { act } of processes.acts) act();
  expect(await result).toMatchObject({ kind: 'exited', exitCode: 3, output: expect.stringContaining(sleeper) });
});

it('says why a command cannot start', async () => {
  expect(await resultOf(startForTest('/nonexistent/command'))).toEqual({
    kind: 'failed',
    message: 'spawn /nonexistent/command ENOENT',
  });
});

it('has no result when it may not wait, or when the pod is detached', async () => {
  const late = pod();
  expect(await commandResult(sh('read line'), late, () => false)).toEqual({ kind: 'timedOut' });
  expect(late.pauses).toEqual([]);
  expect(await resultOf(sh('read line'), { ...pod(), isDetached: true })).toEqual({ kind: 'timedOut' });
  let asked = 0;
  const running = pod();
  const twice = commandResult(sh('read line'), running, () => ++asked <= 2);
  await Promise.resolve();
  running.wake();
  await settle();
  running.wake();
  expect(await twice).toEqual({ kind: 'timedOut' });
  expect(running.pauses).toEqual([250, 250]);
});
