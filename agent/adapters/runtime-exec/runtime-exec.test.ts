import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { defined } from '../../../shared/defined.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { OBEDIENT, podIn, STUBBORN, shellPod, stateWithin, uidOf } from '../../../test/contract/pod-runtime.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import type { ContainerInputSource } from '../../ports/container-inputs.ts';
import type { LogQuery, PodRuntime } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { identify, isAlive, readBootId } from './process-table.ts';
import { execRuntime } from './runtime-exec.ts';

let rootDirectory: string;
const opened: PodRuntime[] = [];

beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-exec-'));
});

afterEach(async () => {
  const last = opened.at(-1);
  if (last !== undefined) await Promise.all((await last.pods()).map(({ uid }) => last.stop(uid, 0)));
  for (const runtime of opened.splice(0)) await runtime.close();
  rmSync(rootDirectory, { recursive: true, force: true });
});

function open(time: AgentTime = realTime, logBytesMax?: number): PodRuntime {
  const runtime = execRuntime({
    rootDirectory,
    time,
    log: silentLog,
    hostIp: () => '192.0.2.7',
    ...defined({ logBytesMax }),
  });
  opened.push(runtime);
  return runtime;
}

const fileOf = (pod: KubeObject, name: string): string => join(rootDirectory, 'pods', uidOf(pod), name);
const outputOf = (pod: KubeObject, container = 'c0'): string => {
  const path = fileOf(pod, `${container}.0.log`);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
};
const soon = { withinMs: 30_000, everyMs: 20 };
const written = (pod: KubeObject, text: string) =>
  until(() => outputOf(pod).includes(text), { ...soon, what: `output ${text}` });
const recorded = (pod: KubeObject) =>
  JSON.parse(readFileSync(fileOf(pod, 'record.json'), 'utf8')) as {
    containers: { process?: { pid: number; startTicks: string; bootId: string } }[];
  };
const pidOf = (pod: KubeObject): number => recorded(pod).containers[0]?.process?.pid ?? 0;

/**
 * Waits of 5 s and more end when the test releases them. Until then the clock shows the start plus the released waits.
 */
function releasedTime() {
  const waiting: (() => void)[] = [];
  const waits: number[] = [];
  let skippedMs = 0;
  const time: AgentTime = {
    nowMs: () => Date.now() + skippedMs,
    monotonicMs: () => realTime.monotonicMs() + skippedMs,
    uptimeMs: () => realTime.uptimeMs() + skippedMs,
    sleep(milliseconds, signal) {
      if (milliseconds < 5_000) return realTime.sleep(milliseconds, signal);
      return new Promise((resolve) => {
        signal?.addEventListener('abort', () => resolve());
        waits.push(milliseconds);
        waiting.push(() => {
          skippedMs += milliseconds;
          resolve();
        });
      });
    },
  };
  return {
    time,
    waits,
    releaseAll() {
      for (const release of waiting.splice(0)) release();
    },
  };
}

describe('processes of a pod', () => {
  it('write their output to a file, and see who they are', async () => {
    const runtime = open();
    const env = [
      { name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'ADDRESS', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
    ];
    const pod = shellPod(['echo "$WHO on $ADDRESS"; echo oops >&2'], {}, { env });
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    expect(outputOf(pod)).toBe(`${pod.metadata.name} on 192.0.2.7\noops\n`);
  });

  it.each([
    ['at once', {}, 'running'],
    ['when it says so', { 'nodekeeper.dev/offline-stop-after': '2h' }, 'terminated'],
  ])('that ended while no agent ran start again with the next one %s', async (_, annotations, kind) => {
    const pod = shellPod(['echo up; exec sleep 300'], { restartPolicy: 'Always' });
    Object.assign(pod.metadata, { annotations });
    const before = open();
    await before.start(pod);
    await written(pod, 'up');
    await before.close();
    process.kill(pidOf(pod), 'SIGKILL');
    const next = open();
    next.useStarted?.(() => true);
    await stateWithin(next, pod, kind as 'running');
    expect((await next.pods())[0]?.pod?.metadata).toEqual(pod.metadata);
    await next.start(pod);
    await stateWithin(next, pod, 'running');
  });

  it('leave nothing behind when the first of them ends', async () => {
    const runtime = open();
    const pod = shellPod(['sleep 300 & echo "child $!"; exit 0']);
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    const child = Number(/child (\d+)/.exec(outputOf(pod))?.[1]);
    const bootId = readBootId();
    await until(() => {
      const found = identify(child, bootId);
      return found === undefined || !isAlive(found, bootId);
    }, soon);
  });

  it.each([
    ['when the first process exits', 'exit 0'],
    ['when the pod is stopped', 'while true; do sleep 0.1; done'],
  ])('terminate in a session of their own (setsid) %s', async (_when, rest) => {
    const runtime = open();
    // Two dollar signs stand for one, as in every pod.
    const mark = join(rootDirectory, 'mark');
    const child = `setsid sh -c 'echo "child $$$$ ready"; echo > ${mark}; exec sleep 300'`;
    const pod = shellPod([`${child} & until test -s ${mark}; do sleep 0.01; done; ${rest}`]);
    await runtime.start(pod);
    await written(pod, 'ready');
    const bootId = readBootId();
    const found = identify(Number(/child (\d+)/.exec(outputOf(pod))?.[1]), bootId);
    if (rest !== 'exit 0') {
      expect(found !== undefined && isAlive(found, bootId)).toBe(true);
      await runtime.stop(uidOf(pod), 1);
    }
    await until(() => found === undefined || !isAlive(found, bootId), soon);
  });

  it('that cannot be started end as such', async () => {
    const runtime = open();
    const pod = shellPod([]);
    pod.spec = { restartPolicy: 'Never', containers: [{ name: 'c0', command: ['/no/such/program'] }] };
    await runtime.start(pod);
    expect(await stateWithin(runtime, pod, 'terminated')).toMatchObject({
      exitCode: 127,
      reason: 'ContainerCannotRun',
    });
  });

  it('with a spec that this runtime does not support are never started', async () => {
    const runtime = open();
    const pod = shellPod([]);
    pod.spec = { restartPolicy: 'Always', containers: [{ name: 'c0', image: 'nginx' }] };
    await runtime.start(pod);
    expect(await stateWithin(runtime, pod, 'waiting')).toMatchObject({ reason: 'CreateContainerConfigError' });
  });

  // Two dollar signs stand for one, as in every pod.
  it('report the signal that terminated them', async () => {
    const runtime = open();
    const pod = shellPod(['kill -11 $$$$']);
    await runtime.start(pod);
    expect(await stateWithin(runtime, pod, 'terminated')).toMatchObject({ exitCode: 139, signal: 11, reason: 'Error' });
  });

  it('of a name that leads out of the directory are refused', async () => {
    const runtime = open();
    const pod = shellPod(['true']);
    pod.metadata.uid = '../../etc';
    await expect(runtime.start(pod)).rejects.toThrow(/uid/);
  });
});

describe('restarts', () => {
  it('come at once, then after 10 s, 20 s …, by the policy', async () => {
    const { time, waits, releaseAll } = releasedTime();
    const runtime = open(time);
    const pod = shellPod(['exit 1'], { restartPolicy: 'OnFailure' });
    await runtime.start(pod);
    const restarted = (count: number) =>
      until(async () => {
        const container = (await podIn(runtime, pod))?.containers[0];
        return container?.restartCount === count && container.state.kind === 'waiting' ? container : undefined;
      }, soon);
    expect(await restarted(1)).toMatchObject({
      state: {
        reason: 'CrashLoopBackOff',
        message: `back-off 10s restarting failed container=c0 pod=${pod.metadata.name}_default(${uidOf(pod)})`,
      },
      lastState: { exitCode: 1 },
      lastContainerId: `exec://${uidOf(pod)}/c0/1`,
    });
    releaseAll();
    expect(await restarted(2)).toMatchObject({ state: { message: expect.stringContaining('back-off 20s') } });
    const backOffs = waits
      .filter((wait) => wait !== 10_000 || waits.length < 3)
      .map((wait) => Math.round(wait / 1_000));
    expect(backOffs).toContain(20);
  });

  it('come later, as the same run, when there is no file for the output', async () => {
    const time = new SteppedTime(Date.now());
    const runtime = open(time);
    const pod = shellPod(['exit 1'], { restartPolicy: 'Always' });
    mkdirSync(fileOf(pod, 'c0.1.log'), { recursive: true });
    await runtime.start(pod);
    const shown = async () => (await podIn(runtime, pod))?.containers[0];
    await until(async () => (await shown())?.state.kind === 'waiting', soon);
    expect(await shown()).toMatchObject({
      state: { reason: 'CreateContainerError', message: expect.stringContaining('EISDIR') },
      restartCount: 0,
      containerId: `exec://${uidOf(pod)}/c0/0`,
    });
    rmSync(fileOf(pod, 'c0.1.log'), { recursive: true });
    await time.pass(10_000);
    await until(async () => (await shown())?.restartCount === 1, soon);
  });

  it('do not come while the pod is being stopped', async () => {
    const runtime = open();
    const pod = shellPod([OBEDIENT], { restartPolicy: 'Always' });
    await runtime.start(pod);
    await written(pod, 'ready');
    await runtime.stop(uidOf(pod), 20);
    expect((await podIn(runtime, pod))?.containers[0]).toMatchObject({
      state: { kind: 'terminated' },
      restartCount: 0,
    });
  });

  it('come for a stopped pod that is started again', async () => {
    const runtime = open();
    const pod = shellPod([OBEDIENT], { restartPolicy: 'Always' });
    await runtime.start(pod);
    await written(pod, 'ready');
    await runtime.stop(uidOf(pod), 20);
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'running');
    expect((await podIn(runtime, pod))?.containers[0]).toMatchObject({ restartCount: 1 });
  });
});

describe.each([-10_800_000, 3_600_000])('after the clock of the machine is set by %s ms', (byMs) => {
  it('a restart comes when its wait is over, neither earlier nor later', async () => {
    const time = new SteppedTime(Date.now());
    const runtime = open(time);
    const pod = shellPod(['exit 1'], { restartPolicy: 'Always' });
    await runtime.start(pod);
    const containerWaits = (restartCount: number) =>
      until(async () => {
        const container = (await podIn(runtime, pod))?.containers[0];
        return container?.restartCount === restartCount && container.state.kind === 'waiting';
      }, soon);
    await containerWaits(1);
    time.setClock(byMs);
    await time.pass(9_000);
    expect((await podIn(runtime, pod))?.containers[0]).toMatchObject({ restartCount: 1, state: { kind: 'waiting' } });
    await time.pass(1_000);
    await containerWaits(2);
    // An agent that starts now counts on from the record.
    await runtime.close();
    const next = open(time);
    await next.start(pod);
    await time.pass(19_000);
    expect((await podIn(next, pod))?.containers[0]).toMatchObject({ restartCount: 2, state: { kind: 'waiting' } });
    await time.pass(1_000);
    await until(async () => (await podIn(next, pod))?.containers[0]?.restartCount === 3, soon);
  });

  it('a stop kills when its grace period is over, neither earlier nor later', async () => {
    const time = new SteppedTime(Date.now());
    const runtime = open(time);
    const pod = shellPod([STUBBORN]);
    await runtime.start(pod);
    await written(pod, 'ready');
    let isStopped = false;
    const stop = runtime.stop(uidOf(pod), 30).then(() => {
      isStopped = true;
    });
    time.setClock(byMs);
    await time.pass(29_000);
    expect((await podIn(runtime, pod))?.containers[0]?.state.kind).toBe('running');
    await until(async () => {
      // A second of the grace period is left; killing takes a few looks more.
      await time.pass(1_000);
      return isStopped;
    }, soon);
    await stop;
    expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ exitCode: 137, signal: 9 });
  });
});

describe('init containers', () => {
  const shell = (name: string, script: string, more: Record<string, unknown> = {}) => ({
    name,
    command: ['/bin/sh', '-c', script],
    ...more,
  });

  it('run one after the other, and the others after them', async () => {
    const runtime = open();
    const order = join(rootDirectory, 'order');
    const pod = shellPod([`echo main >> ${order}`], {
      initContainers: [shell('one', `sleep 0.2; echo one >> ${order}`), shell('two', `echo two >> ${order}`)],
    });
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    expect(readFileSync(order, 'utf8')).toBe('one\ntwo\nmain\n');
  });

  it('that fail for good keep the others from starting', async () => {
    const runtime = open();
    const pod = shellPod(['true'], { initContainers: [shell('one', 'exit 4')] });
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated', 'one');
    expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ reason: 'PodInitializing' });
  });

  it('that restart always run beside the others', async () => {
    const runtime = open();
    const pod = shellPod(['exit 0'], { initContainers: [shell('side', OBEDIENT, { restartPolicy: 'Always' })] });
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    expect((await podIn(runtime, pod))?.initContainers).toMatchObject([{ name: 'side', state: { kind: 'running' } }]);
  });
});

describe('a hook before the end', () => {
  it('runs first, and may not outlast the grace period', async () => {
    const runtime = open();
    const lifecycle = { preStop: { exec: { command: ['/bin/sh', '-c', 'echo hooked; sleep 300'] } } };
    const pod = shellPod([STUBBORN], {}, { lifecycle });
    await runtime.start(pod);
    await written(pod, 'ready');
    await runtime.stop(uidOf(pod), 1);
    expect(outputOf(pod)).toContain('hooked');
    expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ exitCode: 137, signal: 9 });
  });
});

describe('an agent that starts again', () => {
  it('finds its processes running, with the same ids', async () => {
    const first = open();
    const pod = shellPod([OBEDIENT], { restartPolicy: 'Always' });
    await first.start(pod);
    await written(pod, 'ready');
    const before = (await podIn(first, pod))?.containers;
    const pid = pidOf(pod);
    await first.close();
    const second = open();
    await second.start(pod);
    expect((await podIn(second, pod))?.containers).toEqual(before);
    expect(pidOf(pod)).toBe(pid);
    await second.stop(uidOf(pod), 20);
    expect((await podIn(second, pod))?.containers[0]?.state).toMatchObject({
      kind: 'terminated',
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
    });
    expect(identify(pid, readBootId())?.startTicks === undefined || !existsSync(`/proc/${pid}`)).toBe(true);
  });

  it('reports an unknown exit for a process that exited meanwhile', async () => {
    const first = open();
    const pod = shellPod(['echo ready; sleep 0.5; exit 0']);
    await first.start(pod);
    await written(pod, 'ready');
    const pid = pidOf(pod);
    await first.close();
    await until(() => !existsSync(`/proc/${pid}`), soon);
    expect((await podIn(open(), pod))?.containers[0]?.state).toMatchObject({
      kind: 'terminated',
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
    });
  });

  it('starts a container that terminated meanwhile as soon as its inputs are there', async () => {
    const volumes = [{ name: 'settings', configMap: { name: 'settings' } }];
    const mounted = { volumeMounts: [{ name: 'settings', mountPath: '/settings' }] };
    const pod = shellPod([OBEDIENT], { restartPolicy: 'Always', volumes }, mounted);
    const inputs: ContainerInputSource = {
      inputsOf: () => ({ kind: 'ready', variables: {}, mounts: [] }),
      // No network.
      readMissing: () => new Promise(() => undefined),
    };
    const first = open();
    first.useInputs?.(inputs);
    await first.start(pod);
    await written(pod, 'ready');
    const pid = pidOf(pod);
    await first.close();
    process.kill(-pid, 'SIGKILL');
    await until(() => !existsSync(`/proc/${pid}`), soon);
    const second = open(releasedTime().time);
    expect(await stateWithin(second, pod, 'waiting')).toMatchObject({ reason: 'CreateContainerConfigError' });
    second.useInputs?.(inputs);
    await second.start(pod);
    expect(await stateWithin(second, pod, 'running')).toMatchObject({ kind: 'running' });
    await second.stop(uidOf(pod), 0);
  });

  it('never adopts, or kills, a process that has the recorded id and started at another time', async () => {
    const first = open();
    const pod = shellPod([OBEDIENT]);
    await first.start(pod);
    await written(pod, 'ready');
    const record = recorded(pod);
    const process = record.containers[0]?.process;
    await first.close();
    const other = spawn('sleep', ['600'], { stdio: 'ignore' });
    onTestFinished(() => {
      other.kill('SIGKILL');
    });
    writeFileSync(
      fileOf(pod, 'record.json'),
      JSON.stringify({
        ...record,
        containers: [{ ...record.containers[0], process: { ...process, pid: other.pid, startTicks: '1' } }],
      }),
    );
    const second = open();
    expect((await podIn(second, pod))?.containers[0]?.state).toMatchObject({ reason: 'ContainerStatusUnknown' });
    await second.stop(uidOf(pod), 0);
    expect(readFileSync(`/proc/${other.pid}/stat`, 'utf8')).toMatch(/^\d+ \(sleep\) [^ZX] /);
  });

  it('skips a pod with a malformed record', async () => {
    const first = open();
    const pod = shellPod(['exit 0']);
    await first.start(pod);
    await stateWithin(first, pod, 'terminated');
    await first.close();
    writeFileSync(fileOf(pod, 'record.json'), '{"version":');
    expect(await open().pods()).toEqual([]);
  });
});

describe('output that grows', () => {
  it('is cut to its bound, and the end of it kept', async () => {
    const { time, releaseAll } = releasedTime();
    const runtime = open(time, 1_000);
    const pod = shellPod(['i=0; while [ $i -lt 200 ]; do echo "line $i"; i=$((i+1)); done; echo ready; sleep 300']);
    await runtime.start(pod);
    await written(pod, 'ready');
    releaseAll();
    await until(() => statSync(fileOf(pod, 'c0.0.log')).size === 0, soon);
    const [rotated = ''] = readdirSync(join(rootDirectory, 'pods', uidOf(pod))).filter((name) =>
      name.startsWith('c0.0.log.'),
    );
    expect(readFileSync(fileOf(pod, rotated), 'utf8')).toMatch(/line 199\nready\n$/);
    expect(statSync(fileOf(pod, rotated)).size).toBe(1_000);
  });
});

describe('the log of a container', () => {
  const query = { container: 'c0', previous: false, follow: false, timestamps: false };
  async function read(runtime: PodRuntime, pod: KubeObject, more: Partial<LogQuery> = {}): Promise<string> {
    const pieces: Uint8Array[] = [];
    const stop = new AbortController().signal;
    for await (const piece of runtime.readLog?.({ ...query, podUid: uidOf(pod), ...more }, stop) ?? []) {
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString('utf8');
  }

  it('has both streams in the order in which they were written', async () => {
    const runtime = open();
    const pod = shellPod(['echo out; echo err >&2; echo out again'], { restartPolicy: 'Never' });
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    expect(await read(runtime, pod)).toBe('out\nerr\nout again\n');
    expect(await read(runtime, pod, { tailLines: 1 })).toBe('out again\n');
    expect(await read(runtime, pod, { timestamps: true, tailLines: 1 })).toMatch(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z out again\n$/,
    );
  });

  it('of the previous run is kept, and the one before it is removed', async () => {
    const { time, releaseAll } = releasedTime();
    const runtime = open(time);
    const runs =
      'n=$(cat $0.count 2>/dev/null || echo 0); echo $((n+1)) > $0.count; echo run $n; [ $n -lt 2 ] && exit 1; sleep 300';
    const pod = shellPod([runs.replaceAll('$0', join(rootDirectory, 'runs'))], { restartPolicy: 'Always' });
    await runtime.start(pod);
    await until(
      async () => {
        releaseAll();
        return (
          readdirSync(join(rootDirectory, 'pods', uidOf(pod))).includes('c0.2.log') &&
          (await read(runtime, pod)) === 'run 2\n'
        );
      },
      { ...soon, what: 'the third run' },
    );
    expect(await read(runtime, pod, { previous: true })).toBe('run 1\n');
    expect(existsSync(fileOf(pod, 'c0.0.log'))).toBe(false);
  });

  it('that is followed ends when the container terminates', async () => {
    const runtime = open();
    const pod = shellPod(['echo begun; sleep 0.3; echo done'], { restartPolicy: 'Never' });
    await runtime.start(pod);
    expect(await read(runtime, pod, { follow: true })).toBe('begun\ndone\n');
  });

  it.each([
    [{ container: 'c9' }, /^container "c9" in pod ".*" is not available$/],
    [{ previous: true }, /^previous terminated container "c0" in pod ".*" not found$/],
    [{ podUid: 'unknown' }, /^pod unknown is not known to this node$/],
  ])('that does not exist is an error for the user: %j', async (more, message) => {
    const runtime = open();
    const pod = shellPod(['sleep 300']);
    await runtime.start(pod);
    await expect(read(runtime, pod, more)).rejects.toThrow(message);
  });
});

it('is ready while it can write, has a version, and names limits that nothing enforces', async () => {
  const options = { rootDirectory, time: realTime, log: silentLog, hostIp: () => undefined };
  const runtime = execRuntime(options);
  expect([runtime.version, runtime.limitWarning?.()]).toEqual(['exec://1.0.0', undefined]);
  expect(await runtime.health()).toEqual({ kind: 'ready' });
  rmSync(join(rootDirectory, 'pods'), { recursive: true });
  expect(await runtime.health()).toEqual({
    kind: 'notReady',
    reason: expect.stringMatching(/^processes cannot be run: ENOENT: /),
  });
  await runtime.close();
  const other = execRuntime({ ...options, version: '2.3.4', limitWarning: 'no control groups' });
  expect([other.version, other.limitWarning?.()]).toEqual(['exec://2.3.4', 'no control groups']);
  await other.close();
});
