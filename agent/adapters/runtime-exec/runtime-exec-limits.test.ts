import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import { recordsOf } from '../../../shared/kubernetes/normal-form.ts';
import { podIn, shellPod, stateWithin, uidOf } from '../../../test/contract/pod-runtime.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { type MemoryCgroups, memoryCgroups, podCgroups } from '../../../test/support/memory-cgroups.ts';
import { cgroupsMissing, NO_CGROUPS, type RealGroup, realGroup } from '../../../test/support/real-cgroups.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import type { CgroupTree } from '../../ports/cgroup-tree.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { podCgroup } from '../../rules/cgroup-values.ts';
import { ownPods } from '../cgroup/own-pods.ts';
import { identify, isAlive, readBootId } from './process-table.ts';
import { execRuntime } from './runtime-exec.ts';

const MIB = 1_024 ** 2;

let rootDirectory: string;
const opened: PodRuntime[] = [];

beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-exec-'));
});

async function stopPods(): Promise<void> {
  const last = opened.at(-1);
  if (last !== undefined) await Promise.all((await last.pods()).map(({ uid }) => last.stop(uid, 0)));
}

afterEach(async () => {
  await stopPods();
  for (const runtime of opened.splice(0)) await runtime.close();
  rmSync(rootDirectory, { recursive: true, force: true });
});

function open(tree: CgroupTree | undefined, time: AgentTime = realTime): PodRuntime {
  const allocatable = {
    capacity: { cpu: '4', memory: '8Gi' },
    systemReserved: {},
    kubeReserved: {},
    enforced: true,
  };
  const cgroups = tree && podCgroups(tree, { allocatable, own: ownPods(join(rootDirectory, 'cgroups')) });
  const runtime = execRuntime({ rootDirectory, time, log: silentLog, hostIp: () => undefined, cgroups });
  opened.push(runtime);
  return runtime;
}

const outputOf = (pod: KubeObject, run = 0): string => {
  const path = join(rootDirectory, 'pods', uidOf(pod), `c0.${run}.log`);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
};
const soon = { withinMs: 30_000, everyMs: 20 };
const written = (pod: KubeObject, pattern: RegExp) =>
  until(() => pattern.test(outputOf(pod)), { ...soon, what: `output ${pattern}` });
const limits = (memory: string) => ({ resources: { limits: { memory } } });

describe('a container with a memory limit, on a machine without the controller', () => {
  it('has the limit on the data of each process', async () => {
    const runtime = open(undefined);
    const pod = shellPod(['ulimit -d; sh -c "ulimit -d"'], {}, limits('64Mi'));
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    expect(outputOf(pod)).toBe('65536\n65536\n');
  });

  it('keeps it while it runs: a resize of memory is not possible, one of cpu is', async () => {
    const runtime = open(undefined);
    const pod = shellPod(['sleep 300'], {}, limits('64Mi'));
    await runtime.start(pod);
    const resize = (more: object) => {
      const containers = recordsOf(pod.spec?.['containers']).map((each) => ({ ...each, ...more }));
      return runtime.resize?.({ ...pod, spec: { ...pod.spec, containers } });
    };
    expect(await resize(limits('96Mi'))).toEqual({
      kind: 'failed',
      message: 'the memory limit of a running container cannot change without the controller memory of cgroup v2',
    });
    for (const [cpu, memory] of [
      ['1', '64Mi'],
      ['2', '65536Ki'],
    ] as const) {
      expect(await resize({ resources: { requests: { cpu }, limits: { memory } } })).toEqual({ kind: 'applied' });
    }
  });

  it('sees its own environment and none of the shell that started it', async () => {
    const runtime = open(undefined);
    const env = [
      { name: 'dotted.name', value: 'a b' },
      { name: 'PLAIN', value: '1' },
    ];
    const pod = shellPod([''], {}, { ...limits('64Mi'), env, command: ['/usr/bin/env'] });
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    const names = outputOf(pod)
      .split('\n')
      .map((line) => line.split('=', 1)[0]);
    const ours = ['NODEKEEPER_CONTAINER', 'NODEKEEPER_TERMINATION_LOG'];
    expect(names.sort()).toEqual(['', 'HOSTNAME', ...ours, 'PATH', 'PLAIN', 'dotted.name']);
    expect(outputOf(pod)).toContain('dotted.name=a b\n');
  });

  it('that cannot be started is reported as without a limit', async () => {
    const runtime = open(undefined);
    const missing = shellPod([''], {}, { ...limits('64Mi'), command: ['no-such-program'] });
    await runtime.start(missing);
    expect(await stateWithin(runtime, missing, 'terminated')).toMatchObject({
      exitCode: 127,
      reason: 'ContainerCannotRun',
      message: 'spawn no-such-program ENOENT',
    });
  });
});

describe('the OOM score of a container', () => {
  it('is that of its class, not that of the agent', async () => {
    const runtime = open(undefined);
    const pod = shellPod(['sleep 0.2; cat /proc/self/oom_score_adj']);
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    expect(outputOf(pod)).toBe('1000\n');
  });
});

describe('a container with a group', () => {
  let tree: MemoryCgroups;
  beforeEach(() => {
    tree = memoryCgroups();
  });
  const groupOf = (pod: KubeObject, run = 0): string => `${podCgroup(pod as KubePod)}/c0.${run}`;

  it('starts after its limits are written', async () => {
    const runtime = open(tree);
    const pod = shellPod(['echo started'], {}, limits('64Mi'));
    await runtime.start(pod);
    expect(tree.files()).toMatchObject({
      kubepods: { 'memory.max': String(8 * 1_024 * MIB) },
      'kubepods/burstable': { 'cpu.weight': '1' },
      [podCgroup(pod as KubePod)]: { 'memory.max': String(64 * MIB), 'pids.max': '20' },
      [groupOf(pod)]: { 'memory.max': String(64 * MIB), 'memory.swap.max': '0', 'memory.oom.group': '1' },
    });
    await stateWithin(runtime, pod, 'terminated');
    expect(outputOf(pod)).toBe('started\n');
  });

  it('is OOMKilled when the kernel killed a process of the run', async () => {
    const runtime = open(tree);
    const pod = shellPod(['kill -9 $$$$'], { restartPolicy: 'Never' });
    await runtime.start(pod);
    tree.set(groupOf(pod), 'memory.events', 'low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n');
    expect(await stateWithin(runtime, pod, 'terminated')).toMatchObject({
      exitCode: 137,
      signal: 9,
      reason: 'OOMKilled',
    });
  });

  it('is not started while the group cannot be made, and later is', async () => {
    const time = new SteppedTime(0);
    const runtime = open(
      {
        ...tree,
        controllers: tree.controllers,
        enter: (path, pid) => {
          if (time.monotonicMs() < 10_000) tree.enter('kubepods/none', pid);
          else tree.enter(path, pid);
        },
      },
      time,
    );
    const pod = shellPod(['echo started; exec sleep 300']);
    await runtime.start(pod);
    for (let turn = 0; turn < 5; turn += 1) await settle();
    expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({
      kind: 'waiting',
      reason: 'CreateContainerError',
      message: expect.stringContaining('cannot enter kubepods/none'),
    });
    expect(outputOf(pod)).toBe('');
    await time.pass(10_000);
    await written(pod, /started/);
    expect((await podIn(runtime, pod))?.containers[0]).toMatchObject({ state: { kind: 'running' }, restartCount: 0 });
  });

  it('gets other processors while it runs', async () => {
    const runtime = open(tree);
    const pod = shellPod(['sleep 300']);
    await runtime.start(pod);
    expect(tree.files()[groupOf(pod)]).toMatchObject({ 'cpuset.cpus': '' });
    runtime.usePlacement?.(() => ({ cpus: [2, 3], memoryNodes: [1], exclusive: false }));
    expect(tree.files()[groupOf(pod)]).toMatchObject({ 'cpuset.cpus': '2-3', 'cpuset.mems': '1' });
  });

  it('gets the limits of a resize while it runs, but not less memory than it uses', async () => {
    const runtime = open(tree);
    const sized = (pod: KubeObject, cpu: string, memory: string): KubeObject => {
      const resources = { requests: { cpu, memory }, limits: { memory } };
      const containers = recordsOf(pod.spec?.['containers']).map((each) => ({ ...each, resources }));
      return { ...pod, spec: { ...pod.spec, containers } };
    };
    const pod = sized(shellPod(['sleep 300']), '100m', '64Mi');
    await runtime.start(pod);
    const shares = () => Number(tree.read('kubepods/burstable', 'cpu.weight'));
    const before = shares();
    expect(await runtime.resize?.(sized(pod, '2', '128Mi'))).toEqual({ kind: 'applied' });
    expect(shares()).toBeGreaterThan(before);
    for (const group of [podCgroup(pod as KubePod), groupOf(pod)]) {
      expect(tree.read(group, 'memory.max')).toBe(String(128 * MIB));
      tree.set(group, 'memory.current', String(80 * MIB));
    }
    expect(await runtime.resize?.(sized(pod, '2', '64Mi'))).toEqual({
      kind: 'failed',
      message: expect.stringMatching(/^cannot decrease memory limits: \[attempting to set pod .* container "c0" /),
    });
    expect(tree.read(groupOf(pod), 'memory.max')).toBe(String(128 * MIB));
    expect(await runtime.resize?.(sized(pod, '2', '96Mi'))).toEqual({ kind: 'applied' });
    expect(tree.read(groupOf(pod), 'memory.max')).toBe(String(96 * MIB));
  });

  it('loses its groups with the pod', async () => {
    const runtime = open(tree);
    const pod = shellPod(['sleep 300']);
    await runtime.start(pod);
    await runtime.stop(uidOf(pod), 0);
    await runtime.remove(uidOf(pod));
    expect(Object.keys(tree.files())).toEqual(['kubepods', 'kubepods/burstable', 'kubepods/besteffort']);
  });
});

const suite = cgroupsMissing === undefined ? describe : describe.skip;
const why = cgroupsMissing === undefined ? '' : ` (skipped: ${NO_CGROUPS}: ${cgroupsMissing})`;
suite(`a container in a group of the kernel${why}`, () => {
  let group: RealGroup;
  beforeEach(() => {
    group = realGroup();
  });
  afterEach(async () => {
    await stopPods();
    group.dispose();
  });

  const alive = (pid: number): boolean => {
    const bootId = readBootId();
    const found = identify(pid, bootId);
    return found !== undefined && isAlive(found, bootId);
  };
  /** Leaves its session and its environment, so only its group says which pod it belongs to. */
  const leave = 'env -i /usr/bin/setsid /bin/sleep 300 & sleep 0.1; echo "escaped $!"';

  it('begins inside it', async () => {
    const runtime = open(group.tree);
    const pod = shellPod(['read -r line </proc/self/cgroup; grep ^0: /proc/self/cgroup'], {}, limits('64Mi'));
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    expect(outputOf(pod)).toBe(`0::${group.path}/${podCgroup(pod as KubePod)}/c0.0\n`);
  });

  it('leaves no process when the first of them exits, not even one that left its session and environment', async () => {
    const runtime = open(group.tree);
    const pod = shellPod([`${leave}; exit 0`]);
    await runtime.start(pod);
    await stateWithin(runtime, pod, 'terminated');
    const [pid] = /escaped (\d+)/.exec(outputOf(pod))?.slice(1).map(Number) ?? [];
    expect(pid).toBeGreaterThan(1);
    await until(() => !alive(pid ?? 0), { ...soon, what: 'the end of the escaped process' });
  });

  it('leaves no process when the pod is stopped', async () => {
    const runtime = open(group.tree);
    const pod = shellPod([`${leave}; sleep 300`]);
    await runtime.start(pod);
    await written(pod, /escaped \d+\n/);
    const pid = Number(/escaped (\d+)/.exec(outputOf(pod))?.[1]);
    expect(alive(pid)).toBe(true);
    await runtime.stop(uidOf(pod), 0);
    expect(alive(pid)).toBe(false);
    expect(group.tree.children('kubepods/besteffort')).toEqual([]);
  });

  it('is killed by the next agent if its record is lost', async () => {
    const runtime = open(group.tree);
    const pod = shellPod([`${leave}; sleep 300`]);
    await runtime.start(pod);
    await written(pod, /escaped \d+\n/);
    const pid = Number(/escaped (\d+)/.exec(outputOf(pod))?.[1]);
    await runtime.close();
    rmSync(join(rootDirectory, 'pods', uidOf(pod)), { recursive: true });
    const time = new SteppedTime(0);
    open(group.tree, time);
    await time.pass(10_000);
    await until(() => !alive(pid), { ...soon, what: 'the end of the process' });
  });

  it('of another agent on the machine is left alone', async () => {
    const runtime = open(group.tree);
    const pod = shellPod(['echo started; exec sleep 300']);
    await runtime.start(pod);
    await written(pod, /started/);
    rmSync(join(rootDirectory, 'pods', uidOf(pod)), { recursive: true });
    rmSync(join(rootDirectory, 'cgroups', uidOf(pod)));
    const time = new SteppedTime(0);
    open(group.tree, time);
    await time.pass(20_000);
    expect(group.tree.children('kubepods/besteffort')).toEqual([`pod${uidOf(pod)}`]);
    await runtime.stop(uidOf(pod), 0);
  });

  it('is OOMKilled above its memory limit', async (context) => {
    if (!group.tree.controllers.has('memory')) return context.skip(`${NO_CGROUPS}: no controller memory`);
    const runtime = open(group.tree);
    const pod = shellPod(['head -c 200m /dev/zero | tail -c 200m >/dev/null & wait'], {}, limits('32Mi'));
    await runtime.start(pod);
    expect(await stateWithin(runtime, pod, 'terminated')).toMatchObject({ exitCode: 137, reason: 'OOMKilled' });
  });

  it('has no more processes than its pod may have', async (context) => {
    if (!group.tree.controllers.has('pids')) return context.skip(`${NO_CGROUPS}: no controller pids`);
    const runtime = open(group.tree);
    const pod = shellPod(['for i in `seq 24`; do sleep 5 & done; echo all']);
    await runtime.start(pod);
    await written(pod, /fork|all/i);
    expect(outputOf(pod)).toMatch(/fork/i);
  });

  it('has the processor time of its limit', async (context) => {
    if (!group.tree.controllers.has('cpu')) return context.skip(`${NO_CGROUPS}: no controller cpu`);
    const runtime = open(group.tree);
    const pod = shellPod(['while :; do :; done'], {}, { resources: { limits: { cpu: '100m' } } });
    await runtime.start(pod);
    const path = `${podCgroup(pod as KubePod)}/c0.0`;
    const throttled = () => Number(/^nr_throttled (\d+)$/m.exec(group.tree.read(path, 'cpu.stat') ?? '')?.[1] ?? 0);
    await until(() => throttled() >= 3, { ...soon, what: 'three throttled periods' });
    expect(group.tree.read(path, 'cpu.max')?.trim()).toBe('10000 100000');
  });
});
