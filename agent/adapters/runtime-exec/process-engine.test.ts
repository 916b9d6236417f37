import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { until } from '../../../test/support/until.ts';
import { hasOwnMounts } from './isolation.ts';
import type { PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';
import { ProcessEngine } from './process-engine.ts';
import { openSetUpMessage } from './termination-message.ts';

const NO_MOUNTS = 'the mounts of the container are not set up yet';
const LINE = 'the command line was asked for';

function engineOf({ elapsedMs = 0 as number | 'unknown', onPause = (_count: number): void => {} } = {}) {
  const messageFile = join(folderForTest(), 'message');
  let pauses = 0;
  let nowMs = elapsedMs === 'unknown' ? undefined : elapsedMs;
  const processes = {
    terminationLogOf: () => messageFile,
    elapsedMs: () => nowMs,
    async pause(milliseconds: number) {
      pauses += 1;
      if (nowMs !== undefined) nowMs += milliseconds;
      onPause(pauses);
    },
    // The command line needs the spec of the container: the first thing that is asked for after the mounts.
    get pod(): never {
      throw new Error(LINE);
    },
  } as unknown as PodProcesses;
  const engine = new ProcessEngine(processes, {} as never, {} as never, { time: {} as never });
  const setUp = () => writeFileSync(openSetUpMessage(messageFile), '\n');
  return { engine, setUp, pauses: () => pauses };
}
const recordOf = (over: Partial<ContainerRecord> = {}): ContainerRecord => ({
  name: 'main',
  kind: 'main',
  state: { kind: 'running', startedAtMs: 0 },
  restartCount: 0,
  hasMounts: true,
  ...over,
});
const command = { container: 'main', command: ['true'], stdin: false, tty: false };
const outcome = async (engine: ProcessEngine, container: ContainerRecord, mayWait = () => true) => {
  const executed = await engine.execute(container, ['true'], { mayWait, output: 'returned' });
  return executed.kind === 'failed' ? executed.message : executed.kind;
};
const opened = (engine: ProcessEngine, container: ContainerRecord) =>
  engine.open(container, command).then(
    () => 'opened',
    (cause: Error) => cause.message,
  );

describe('a further command in a container with mounts of its own', () => {
  it('waits for their set-up for 10 s after the start of the container', async () => {
    const { engine, pauses } = engineOf();
    expect(await outcome(engine, recordOf())).toBe(NO_MOUNTS);
    expect(pauses()).toBe(500);
    const again = engineOf({ elapsedMs: 9_980 });
    expect(await opened(again.engine, recordOf())).toBe(NO_MOUNTS);
    expect(again.pauses()).toBe(1);
  });

  it.each([
    ['the container started 10 s ago', { elapsedMs: 10_000 }],
    ['it is unknown when the container started', { elapsedMs: 'unknown' as const }],
  ])('does not wait when %s', async (_, options) => {
    const { engine, pauses } = engineOf(options);
    expect([await outcome(engine, recordOf()), pauses()]).toEqual([NO_MOUNTS, 0]);
  });

  it('does not wait for a container that does not run, nor longer than its caller', async () => {
    const ended = engineOf();
    expect(await outcome(ended.engine, recordOf({ state: { kind: 'waiting', reason: 'x' } }))).toBe(NO_MOUNTS);
    const hasty = engineOf();
    expect(await outcome(hasty.engine, recordOf(), () => hasty.pauses() < 3)).toBe(NO_MOUNTS);
    expect([ended.pauses(), hasty.pauses()]).toEqual([0, 3]);
  });

  it('does not run when the first process has no mounts of its own after all', async () => {
    const { engine, setUp, pauses } = engineOf();
    setUp();
    expect(await outcome(engine, recordOf())).toBe(NO_MOUNTS);
    const inMachine = recordOf({ process: { pid: process.pid, startTicks: '1' } as never });
    expect([await outcome(engine, inMachine), await opened(engine, inMachine)]).toEqual([NO_MOUNTS, NO_MOUNTS]);
    expect(pauses()).toBe(0);
  });

  it('runs once they are set up', async () => {
    const child = spawn('unshare', ['--mount', '--', 'sleep', '300'], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    await until(() => hasOwnMounts(child.pid ?? 0), { withinMs: 10_000, everyMs: 5 });
    const container = recordOf({ process: { pid: child.pid, startTicks: '1' } as never });
    const { engine, setUp, pauses } = engineOf({ onPause: (count) => count === 2 && setUp() });
    expect(await outcome(engine, container)).toBe(LINE);
    expect(pauses()).toBe(2);
    expect(await opened(engine, container)).toBe(LINE);
  });

  it('needs no set-up without them', async () => {
    const { engine, pauses } = engineOf();
    const container = recordOf({ hasMounts: false });
    expect([await outcome(engine, container), await opened(engine, container), pauses()]).toEqual([LINE, LINE, 0]);
  });
});

it('a running container is placed again by its run', () => {
  const placed: unknown[] = [];
  const pod = { metadata: { uid: 'u' } };
  const cgroups = { place: (...args: readonly unknown[]) => placed.push(args) } as never;
  const engine = new ProcessEngine({ pod } as never, {} as never, {} as never, { time: {} as never, cgroups });
  engine.place(recordOf({ restartCount: 3 }));
  expect(placed).toEqual([[pod, 'main', 3]]);
});
