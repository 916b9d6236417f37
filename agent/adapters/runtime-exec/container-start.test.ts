import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import { CgroupError } from '../../ports/cgroup-tree.ts';
import type { CommandLine } from './command-line.ts';
import type { ContainerCommands } from './container-commands.ts';
import { ContainerStart, startProcess } from './container-start.ts';
import { PodProcesses } from './pod-processes.ts';
import { newRecord } from './pod-record.ts';

type TerminationMessagePolicy = NonNullable<Container['terminationMessagePolicy']>;

const START_MS = 1_700_000_000_000;
const soon = { withinMs: 10_000, everyMs: 2 };
let directory: string;
beforeEach(() => {
  directory = folderForTest();
});

const lineOf = (script: string, more: Partial<CommandLine> = {}): CommandLine => ({
  kind: 'command',
  file: '/bin/sh',
  args: ['-c', script],
  env: { PATH: '/usr/bin:/bin' },
  directory: undefined,
  userId: undefined,
  groupId: undefined,
  ...more,
});

function container(line: CommandLine, hasMounts = false, messagePolicy: TerminationMessagePolicy = 'File') {
  const spec = { name: 'main', terminationMessagePolicy: messagePolicy };
  const pod: KubePod = { metadata: { name: 'p', namespace: 'ns', uid: 'start-test' }, spec: { containers: [spec] } };
  const time = new SteppedTime(START_MS);
  const processes = new PodProcesses(newRecord(pod), {
    ...{ time, directory },
    log: silentLog,
    bootId: 'b1',
    onChange() {},
  });
  const acts: (readonly [string, unknown])[] = [];
  const commands = {
    startLine: () => ({ kind: 'start', isolated: { line, hasMounts } }),
  } as unknown as ContainerCommands;
  const start = new ContainerStart(processes, {
    ...{ time, commands },
    onConfigFault: (_, fault) => acts.push(['config', fault]),
    onStart: ({ state }) => acts.push(['start', state]),
    onEnd: (record, state) => {
      processes.children.delete(record);
      acts.push(['end', state]);
    },
    onShortage: (_, { message }) => acts.push(['shortage', message]),
  });
  const record = processes.record.containers[0]!;
  return {
    ...{ processes, record, acts, time },
    start: () => start.start(record),
    end: () => until(() => acts.find(([what]) => what === 'end')?.[1] as Record<string, unknown>, soon),
  };
}

describe('the process of a container', () => {
  it('has a session, a mark and a directory of its own, and is recorded as running', async () => {
    const script = 'echo "$NODEKEEPER_CONTAINER $PWD"; [ "$(ps -o sid= -p $$ | tr -d " ")" = $$ ] && echo leader';
    const here = container(lineOf(script, { directory: '/usr' }));
    here.start();
    expect([here.record.state, here.record.restartCount, here.record.containerId, here.record.started]).toEqual([
      { kind: 'running', startedAtMs: START_MS },
      0,
      'exec://start-test/main/0',
      { bootId: 'b1', monotonicMs: 0 },
    ]);
    expect(here.acts).toEqual([['start', here.record.state]]);
    // The next agent finds the process by its record.
    const { pid } = here.processes.children.get(here.record)!;
    const saved = JSON.parse(readFileSync(join(directory, 'record.json'), 'utf8'));
    expect(saved.containers[0]).toMatchObject({ state: { kind: 'running' }, process: { pid, bootId: 'b1' } });
    await here.end();
    expect(readFileSync(join(directory, 'main.0.log'), 'utf8')).toBe('start-test/main/0 /usr\nleader\n');
  });

  it.each<[string, string, TerminationMessagePolicy, object]>([
    ['exit 0', '', 'File', { exitCode: 0, reason: 'Completed' }],
    ['echo out; exit 3', 'said', 'File', { exitCode: 3, reason: 'Error', message: 'said' }],
    ['echo out; exit 3', '', 'FallbackToLogsOnError', { exitCode: 3, reason: 'Error', message: 'out\n' }],
    ['kill -KILL $$', '', 'File', { exitCode: 137, reason: 'Error', signal: 9 }],
  ])('that ends by %j reports it', async (script, said, policy, expected) => {
    const message = join(directory, 'main.termination-log');
    const here = container(lineOf(`read -r go; printf '${said}' >${message}; ${script}`), false, policy);
    here.start();
    const end = await here.end();
    expect(end).toEqual({ kind: 'terminated', ...expected, startedAtMs: START_MS, finishedAtMs: START_MS });
  });

  it.each([
    ['printf "no mount" >&4; exit 125', { exitCode: 128, reason: 'ContainerCannotRun', message: 'no mount' }],
    ['printf "no program" >&4; exit 127', { exitCode: 127, reason: 'ContainerCannotRun', message: 'no program' }],
    ['echo >&4; exit 125', { exitCode: 125, reason: 'Error' }],
  ])('with mounts that ends by %j was set up, or says why not', async (script, expected) => {
    const here = container(lineOf(script), true);
    here.start();
    expect(here.record.hasMounts).toBe(true);
    const end = await here.end();
    expect(end).toEqual({ kind: 'terminated', ...expected, startedAtMs: START_MS, finishedAtMs: START_MS });
  });

  it.each([
    ['no-such-program', 127, 'spawn no-such-program ENOENT'],
    ['/etc/passwd', 126, 'spawn /etc/passwd EACCES'],
    ['/etc/passwd/program', 128, 'spawn ENOTDIR'],
  ])('that cannot be started, %s, ends with %i', async (file, exitCode, message) => {
    const here = container(lineOf('', { file }));
    here.start();
    expect(await here.end()).toEqual({
      ...{ kind: 'terminated', exitCode, reason: 'ContainerCannotRun', message },
      startedAtMs: START_MS,
      finishedAtMs: START_MS,
    });
  });

  it('is started again with the next number, and keeps the output of one run', async () => {
    const here = container(lineOf('exit 0'));
    for (const run of [0, 1, 2]) {
      here.acts.length = 0;
      here.start();
      await here.end();
      expect([here.record.restartCount, here.record.containerId]).toEqual([run, `exec://start-test/main/${run}`]);
    }
    const kept = [0, 1, 2].map((run) => {
      try {
        return readFileSync(join(directory, `main.${run}.log`), 'utf8');
      } catch {
        return undefined;
      }
    });
    expect(kept).toEqual([undefined, '', '']);
  });

  it('has no message of an earlier run', async () => {
    writeFileSync(join(directory, 'main.termination-log'), 'old');
    const here = container(lineOf('exit 0'));
    here.start();
    expect(await here.end()).not.toHaveProperty('message');
  });

  it('that lacks a file is not counted as a start, and leaves no descriptor open', async () => {
    const here = container(lineOf('exit 0'), true);
    mkdirSync(join(directory, 'main.0.log'));
    const next = openSync('/dev/null', 'r');
    closeSync(next);
    here.start();
    expect(here.acts).toEqual([['shortage', expect.stringContaining('EISDIR')]]);
    expect(here.record).not.toHaveProperty('containerId');
    expect([here.record.restartCount, here.record.containerId]).toEqual([0, undefined]);
    const after = openSync('/dev/null', 'r');
    closeSync(after);
    expect(after).toBe(next);
    Object.assign(here.record, { containerId: 'exec://start-test/main/4', restartCount: 4 });
    mkdirSync(join(directory, 'main.5.log'));
    here.start();
    expect([here.record.restartCount, here.record.containerId]).toEqual([4, 'exec://start-test/main/4']);
  });

  it.each([
    [false, false, ['shortage']],
    [true, false, ['end']],
    [false, true, []],
  ])('without a group is tried again, unless the pod is stopped (%s) or left (%s)', async (stopped, left, expected) => {
    const here = container(lineOf('exit 0'));
    here.processes.limitsOf = () => {
      throw new CgroupError('no group');
    };
    here.record.containerId = 'exec://start-test/main/0';
    here.start();
    here.processes.record.stopped = stopped;
    if (left) here.processes.detach();
    await settle();
    expect(here.acts.map(([what]) => what)).toEqual(expected);
    expect(here.record.restartCount).toBe(expected[0] === 'shortage' ? 0 : 1);
  });

  it('is not observed by an agent that has left it', async () => {
    const here = container(lineOf(`echo over >${join(directory, 'over')}`));
    here.start();
    here.processes.detach();
    const child = here.processes.children.get(here.record);
    await new Promise((resolve) => child?.once('exit', resolve));
    expect(here.acts.map(([what]) => what)).toEqual(['start']);
  });

  it('has the descriptors of the caller for itself alone', () => {
    const here = container(lineOf('exit 0'));
    const open = () => openSync(join(directory, 'output'), 'a');
    const isOpen = (descriptor: number): boolean => {
      try {
        return fstatSync(descriptor).isFile();
      } catch {
        return false;
      }
    };
    for (const cwd of ['/', '/no such directory']) {
      const [output, message] = [open(), open()];
      const line = lineOf('exit 0', { directory: cwd });
      startProcess(here.processes, here.record, line, { output, message }).on('error', () => undefined);
      expect([isOpen(output), isOpen(message)]).toEqual([false, false]);
    }
  });
});
