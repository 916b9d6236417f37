import type { ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { memoryCgroups, podCgroups } from '../../../test/support/memory-cgroups.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import { podCgroup } from '../../rules/cgroup-values.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import { PodProcesses } from './pod-processes.ts';
import { type ContainerRecord, newRecord } from './pod-record.ts';
import type { MarkedProcess, ProcessTable } from './process-table.ts';

let directory: string;
beforeEach(() => {
  directory = folderForTest();
});

const pod: KubePod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'u1' },
  spec: { containers: [{ name: 'main', resources: { limits: { memory: '1Mi' } } }, { name: 'other' }] },
};
const child = (pid?: number) => ({ pid }) as ChildProcess;
const AT_START = { pid: 7, startTicks: '70', bootId: 'b1' };

/** A machine of processes in memory. `survivors` are not killed by a signal. */
function machine(marked: MarkedProcess[], survivors: readonly number[] = []) {
  const signals: [number, string][] = [];
  const faults = { marked: '', identify: '', isAlive: '' };
  const alive = new Set([7]);
  const refusals = new Map<number, string>();
  const fail = (what: keyof typeof faults): void => {
    if (faults[what] !== '') throw new Error(faults[what]);
  };
  const table: ProcessTable = {
    bootId: () => 'b1',
    identify(pid, bootId) {
      fail('identify');
      return pid === 7 ? { pid, startTicks: '70', bootId } : undefined;
    },
    isAlive({ pid, bootId }, current) {
      fail('isAlive');
      return bootId === current && alive.has(pid);
    },
    marked() {
      fail('marked');
      return [...marked];
    },
    signal(target, name) {
      signals.push([target, name]);
      const refusal = refusals.get(target);
      if (refusal === undefined && !survivors.includes(target)) {
        const left = marked.filter(({ pid }) => pid !== target);
        marked.splice(0, marked.length, ...left);
      }
      return refusal;
    },
    residentBytes: () => 0,
  };
  return { table, signals, faults, alive, refusals };
}

function open(processTable: ProcessTable) {
  const time = new SteppedTime(1_700_000_000_000);
  const lines: string[] = [];
  const say = (message: string) => void lines.push(message);
  const log = { ...silentLog, info: say, warn: say, error: say };
  const changes: string[] = [];
  const dependencies = { time, log, bootId: 'b1', directory, onChange: () => changes.push('change'), processTable };
  const processes = new PodProcesses(newRecord(pod), dependencies);
  const [container] = processes.record.containers;
  if (container === undefined) throw new Error('no container');
  return { processes, container, time, lines, changes };
}
const world = (marked: MarkedProcess[] = [], survivors: readonly number[] = []) => {
  const given = machine(marked, survivors);
  return { ...given, ...open(given.table) };
};

describe('the names of a container', () => {
  it('differ for each start', () => {
    const { processes, container } = world();
    container.restartCount = 3;
    expect(processes.markOf(container)).toBe('u1/main/3');
    expect(processes.logOf(container)).toEqual({ directory, container: 'main', run: 3 });
    expect(processes.terminationLogOf(container)).toBe(join(directory, 'main.termination-log'));
    expect(
      ['u1/main/3', 'u1/main/2', 'u1/other/3', 'u2/main/3'].map((mark) => processes.isMarkOf(container, mark)),
    ).toEqual([true, false, false, false]);
  });

  it('lead to its spec, and an unknown one has none', () => {
    const { processes, container } = world();
    expect(processes.specOf(container).resources?.limits).toEqual({ memory: '1Mi' });
    expect(processes.specOf({ ...container, name: 'absent' })).toEqual({});
  });

  it('are those of running ones', () => {
    const { processes, container } = world();
    expect(processes.running()).toEqual([]);
    container.state = { kind: 'running', startedAtMs: 1 };
    expect(processes.running()).toEqual([container]);
  });
});

describe('the time of a pod', () => {
  it('is compared within one boot only', async () => {
    const { processes, time } = world();
    await time.pass(1_000);
    const moment = processes.momentIn(500);
    expect(moment).toEqual({ bootId: 'b1', monotonicMs: 1_500 });
    const other = { ...moment, bootId: 'b0' };
    const seen = () => [processes.leftMs(moment), processes.elapsedMs(moment)];
    expect(seen()).toEqual([500, undefined]);
    await time.pass(500);
    expect(seen()).toEqual([0, 0]);
    await time.pass(200);
    expect(seen()).toEqual([0, 200]);
    expect([processes.leftMs({ ...other, monotonicMs: 9_999 }), processes.elapsedMs(other)]).toEqual([0, undefined]);
    expect([processes.leftMs(undefined), processes.elapsedMs(undefined)]).toEqual([0, undefined]);
  });

  it('ends a pause at a change, at its end, and when the pod is detached', async () => {
    const { processes, time } = world();
    const ended: string[] = [];
    const pause = (name: string, milliseconds: number) =>
      void processes.pause(milliseconds).then(() => ended.push(name));
    pause('changed', 1_000);
    await settle();
    processes.wake();
    await settle();
    pause('late', 100);
    pause('detached', 1_000);
    await time.pass(99);
    expect(ended).toEqual(['changed']);
    await time.pass(1);
    expect(ended).toEqual(['changed', 'late']);
    processes.detach();
    await settle();
    expect(ended).toEqual(['changed', 'late', 'detached']);
  });

  it('acts later, and reports an act that fails', async () => {
    const { processes, time, lines } = world();
    const acts: string[] = [];
    processes.after(100, () => acts.push('done'));
    processes.after(100, () => {
      throw new Error('broken');
    });
    await time.pass(99);
    expect(acts).toEqual([]);
    await time.pass(1);
    expect([acts, lines]).toEqual([['done'], ['a pod could not be checked']]);
  });
});

describe('the record', () => {
  const recordFile = () => join(directory, 'record.json');

  it('is written at a change, which wakes and notifies', async () => {
    const { processes, changes, container } = world();
    let isAwake = false;
    void processes.pause(1_000).then(() => {
      isAwake = true;
    });
    container.restartCount = 2;
    processes.changed();
    await settle();
    expect([isAwake, changes]).toEqual([true, ['change']]);
    expect(JSON.parse(readFileSync(recordFile(), 'utf8'))).toMatchObject({ containers: [{ restartCount: 2 }, {}] });
  });

  it('is not written for a detached pod', () => {
    const { processes } = world();
    processes.detach();
    processes.save();
    expect(() => readFileSync(recordFile())).toThrow('ENOENT');
  });

  it('is written again ten seconds after a failure, which is reported once', async () => {
    const { processes, time, lines } = world();
    processes.saveAgainIfDue();
    expect(() => readFileSync(recordFile())).toThrow('ENOENT');
    expect(processes.complaint()).toBeUndefined();
    rmSync(directory, { recursive: true });
    writeFileSync(directory, 'no directory');
    processes.save();
    processes.save();
    expect(processes.complaint()).toContain('EEXIST');
    expect(lines).toEqual(['the record of a pod cannot be written']);
    rmSync(directory);
    mkdirSync(directory);
    await time.pass(9_999);
    processes.saveAgainIfDue();
    expect(processes.complaint()).toBeDefined();
    await time.pass(1);
    processes.saveAgainIfDue();
    expect(processes.complaint()).toBeUndefined();
    expect(lines).toEqual(['the record of a pod cannot be written', 'the record of a pod is written again']);
    processes.save();
    expect(lines).toHaveLength(2);
  });
});

describe('without control groups', () => {
  it('limits the data of a process by the memory of its container', () => {
    const { processes, container } = world();
    const limits = processes.limitsOf(container);
    expect(limits).toMatchObject({ enter: undefined, dataBytesMax: 2 ** 20 });
    expect(limits.oomScoreAdjust).toBeGreaterThan(900);
    const [, other] = processes.record.containers as [ContainerRecord, ContainerRecord];
    expect(processes.limitsOf(other).dataBytesMax).toBeUndefined();
    expect(processes.limitsOf({ ...other, name: 'absent' })).toMatchObject({
      dataBytesMax: undefined,
      oomScoreAdjust: 0,
    });
    expect(processes.ranOutOfMemory(container)).toBe(false);
    expect(() => processes.discardRunsExcept([])).not.toThrow();
  });
});

describe('with control groups', () => {
  /** `oomKills` 'unreadable': the file of the kernel cannot be read. */
  function grouped(controllers: readonly string[], oomKills: number | 'unreadable' = 0) {
    const entered: unknown[] = [];
    const cgroups = {
      has: (controller: string) => controllers.includes(controller),
      prepare: (_: unknown, name: string, run: number) => `${name}.${run}`,
      tree: { enter: (group: string, pid: number) => entered.push([group, pid]) },
      oomKills() {
        if (oomKills === 'unreadable') throw new Error('no group');
        return oomKills;
      },
    } as unknown as PodCgroups;
    const { table } = machine([]);
    const dependencies = { time: new SteppedTime(0), log: silentLog, bootId: 'b1', directory, onChange() {} };
    const processes = new PodProcesses(newRecord(pod), { ...dependencies, processTable: table, cgroups });
    return { processes, container: processes.record.containers[0]!, entered };
  }

  it('a process enters the group of its run, which limits its memory', () => {
    const { processes, container, entered } = grouped(['memory']);
    const limits = processes.limitsOf(container);
    limits.enter?.(9);
    expect([limits.dataBytesMax, entered]).toEqual([undefined, [['main.0', 9]]]);
  });

  it('limits the data of a process where groups have no memory', () => {
    const { processes, container } = grouped(['cpu']);
    expect(processes.limitsOf(container).dataBytesMax).toBe(2 ** 20);
  });

  it.each([
    [1, true],
    [0, false],
    ['unreadable', false],
  ] as const)('with %s kills a run was out of memory: %s', (oomKills, was) => {
    const { processes, container } = grouped(['memory'], oomKills);
    expect(processes.ranOutOfMemory(container)).toBe(was);
  });
});

describe('the first process of a container', () => {
  it('is learnt, and is not known when /proc cannot be read', () => {
    const { processes, container, faults } = world();
    expect([processes.learnIdentity(container, child(8)), container.process]).toEqual([true, undefined]);
    expect([processes.learnIdentity(container, child()), container.process]).toEqual([true, undefined]);
    expect([processes.learnIdentity(container, child(7)), container.process]).toEqual([true, AT_START]);
    faults.identify = 'EMFILE';
    expect(processes.learnIdentity(container, child(7))).toBe(false);
  });

  it('may be alive unless it certainly ended', () => {
    const { processes, container, faults, alive } = world();
    expect(processes.mayBeAlive(container)).toBe(false);
    container.process = AT_START;
    expect(processes.mayBeAlive(container)).toBe(true);
    alive.clear();
    expect(processes.mayBeAlive(container)).toBe(false);
    faults.isAlive = 'EMFILE';
    expect(processes.mayBeAlive(container)).toBe(true);
  });

  it('is signalled alone or with its group, only while it certainly is the same', () => {
    const { processes, container, signals, faults, alive, refusals, lines } = world();
    const both = () => {
      processes.signalGroup(container, 'SIGTERM');
      processes.signalFirst(container, 'SIGHUP');
    };
    both();
    expect(signals).toEqual([]);
    container.process = AT_START;
    both();
    expect(signals.splice(0)).toEqual([
      [-7, 'SIGTERM'],
      [7, 'SIGHUP'],
    ]);
    expect(lines).toEqual([]);
    refusals.set(-7, 'EPERM').set(7, 'EPERM');
    both();
    expect(lines).toEqual(['a process cannot be signalled', 'a process cannot be signalled']);
    signals.splice(0);
    faults.isAlive = 'EMFILE';
    both();
    faults.isAlive = '';
    alive.clear();
    both();
    expect(signals).toEqual([]);
  });

  it('may be our child: its group is signalled without a look at the table', () => {
    const { processes, container, signals } = world();
    processes.children.set(container, child(8));
    processes.signalGroup(container, 'SIGKILL');
    expect(signals).toEqual([[-8, 'SIGKILL']]);
  });
});

describe('to kill', () => {
  const all = (): MarkedProcess[] => [
    { pid: 11, mark: 'u1/main/0' },
    { pid: 12, mark: 'u1/main/1' },
    { pid: 13, mark: 'u1/other/0' },
    { pid: 14, mark: 'u10/main/0' },
  ];

  it('kills the processes of the pod, in the first pass before any wait', async () => {
    const { processes, signals, time } = world(all());
    const killed = processes.killAll();
    expect(signals).toEqual([
      [11, 'SIGKILL'],
      [12, 'SIGKILL'],
      [13, 'SIGKILL'],
    ]);
    await time.pass(10);
    await killed;
    expect(time.waits).toEqual([10]);
  });

  it('kills those of one run, and no other', async () => {
    const { processes, container, signals, time } = world(all());
    container.restartCount = 1;
    const killed = processes.killRun(container);
    await time.pass(10);
    await killed;
    expect(signals).toEqual([[12, 'SIGKILL']]);
  });

  it.each([
    ['that do not end', {}, '1 processes of pod u1 still exist 10000 ms after SIGKILL'],
    ['that may not be signalled', { refusal: 'EPERM' }, 'process 11 of pod u1 cannot be killed: EPERM'],
    ['that cannot be listed', { marked: 'EMFILE' }, 'the processes of pod u1 cannot be listed: EMFILE'],
  ])('gives up after ten seconds on processes %s', async (_what, fault: { refusal?: string; marked?: string }, why) => {
    const { processes, faults, refusals, time } = world([{ pid: 11, mark: 'u1/main/0' }], [11]);
    if (fault.refusal !== undefined) refusals.set(11, fault.refusal);
    faults.marked = fault.marked ?? '';
    let outcome = '';
    void processes.killAll().catch((cause: Error) => {
      outcome = cause.message;
    });
    await time.pass(9_999);
    expect(outcome).toBe('');
    await time.pass(250);
    expect(outcome).toBe(why);
    expect(time.waits.slice(0, 7)).toEqual([10, 20, 40, 80, 160, 250, 250]);
  });

  it('ends when the pod is detached meanwhile', async () => {
    const { processes, time } = world([{ pid: 11, mark: 'u1/main/0' }], [11]);
    const killed = processes.killAll();
    await settle();
    processes.detach();
    await killed;
    expect(time.waits).toEqual([10]);
  });
});

it('groups of runs that are not these are discarded, and no others', () => {
  const { table } = machine([]);
  const cgroups = podCgroups(memoryCgroups());
  const dependencies = { time: new SteppedTime(0), log: silentLog, bootId: 'b1', directory, onChange() {} };
  const processes = new PodProcesses(newRecord(pod), { ...dependencies, processTable: table, cgroups });
  for (const [name, run] of [
    ['main', 0],
    ['main', 1],
    ['other', 1],
  ] as const)
    cgroups.prepare(pod, name, run);
  const [main] = processes.record.containers;
  processes.discardRunsExcept([{ ...main!, restartCount: 1 }]);
  expect(cgroups.tree.children(podCgroup(pod))).toEqual(['main.1']);
});
