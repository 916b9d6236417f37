import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import { shellPod, stateWithin, uidOf } from '../../../test/contract/pod-runtime.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { memoryCgroups, podCgroups } from '../../../test/support/memory-cgroups.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { until } from '../../../test/support/until.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import { podCgroup } from '../../rules/cgroup-values.ts';
import type { PodCgroups } from '../cgroup/pod-cgroups.ts';
import { execRuntime } from './runtime-exec.ts';

const MIB = 1_024 ** 2;

let rootDirectory: string;
let runtime: PodRuntime;

const open = (cgroups?: PodCgroups): PodRuntime =>
  execRuntime({ rootDirectory, time: realTime, log: silentLog, hostIp: () => undefined, cgroups });

beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-usage-'));
});
afterEach(async () => {
  await Promise.all((await runtime.pods()).map(({ uid }) => runtime.stop(uid, 0)));
  await runtime.close();
  rmSync(rootDirectory, { recursive: true, force: true });
});

const soon = { withinMs: 30_000, everyMs: 20 };
const logOf = (pod: KubeObject): string => join(rootDirectory, 'pods', uidOf(pod), 'c0.0.log');

describe('the use of a pod', () => {
  it('is that of its processes and their children without groups', async () => {
    runtime = open();
    const pod = shellPod(['sleep 300 & sleep 300'], {});
    await runtime.start(pod);
    const measured = () => runtime.usage?.(uidOf(pod), false);
    await until(async () => (await measured())?.processes === 3, { ...soon, what: 'three processes' });
    const usage = await measured();
    expect(usage?.memoryBytes).toBeGreaterThan(100_000);
    expect(usage?.containers).toEqual([
      { name: 'c0', memoryBytes: usage?.memoryBytes, storage: { bytes: 0, inodes: 0 } },
    ]);
  });

  it('is that of its group without inactive page cache', async () => {
    const tree = memoryCgroups();
    const allocatable = { capacity: { cpu: '1', memory: '1Gi' }, systemReserved: {}, kubeReserved: {}, enforced: true };
    runtime = open(podCgroups(tree, { allocatable }));
    const pod = shellPod(['sleep 300']);
    await runtime.start(pod);
    const path = podCgroup(pod as KubePod);
    for (const [group, bytes] of [
      [path, 50 * MIB],
      [`${path}/c0.0`, 40 * MIB],
      ['kubepods', 900 * MIB],
    ] as const) {
      tree.set(group, 'memory.current', `${bytes}\n`);
      tree.set(group, 'memory.stat', `anon 1\ninactive_file ${10 * MIB}\n`);
      tree.set(group, 'pids.current', '7\n');
    }
    expect(await runtime.usage?.(uidOf(pod), false)).toMatchObject({
      memoryBytes: 40 * MIB,
      processes: 7,
      containers: [{ name: 'c0', memoryBytes: 30 * MIB }],
    });
    expect(runtime.podsMemory?.()).toEqual({ limitBytes: 1_024 * MIB, workingSetBytes: 890 * MIB });
  });

  it('has its output and its volumes, but not what a link leads to', async () => {
    runtime = open();
    const pod = shellPod(['head -c 1000000 /dev/zero; sleep 300']);
    await runtime.start(pod);
    const volume = join(rootDirectory, 'volumes', uidOf(pod), 'data');
    mkdirSync(volume, { recursive: true });
    writeFileSync(join(volume, 'file'), Buffer.alloc(2 * MIB));
    symlinkSync('/usr', join(volume, 'link'));
    const measured = () => runtime.usage?.(uidOf(pod), true);
    await until(async () => ((await measured())?.containers[0]?.storage.bytes ?? 0) >= 1_000_000, {
      ...soon,
      what: 'the output',
    });
    const data = (await measured())?.volumes.get('data');
    expect(data?.inodes).toBe(3);
    expect(data?.bytes).toBeGreaterThanOrEqual(2 * MIB);
    expect(data?.bytes).toBeLessThan(3 * MIB);
  });

  it('is unknown for an unknown pod', async () => {
    runtime = open();
    expect(await runtime.usage?.('unknown', true)).toBeUndefined();
  });
});

describe('a disk that is low', () => {
  it('loses the output of terminated pods, and keeps that of the others', async () => {
    runtime = open();
    const [ended, running] = [shellPod(['echo done']), shellPod(['echo begun; sleep 300'])];
    await runtime.start(ended);
    await runtime.start(running);
    await stateWithin(runtime, ended, 'terminated');
    await runtime.reclaimStorage?.();
    expect(existsSync(logOf(ended))).toBe(false);
    expect(existsSync(logOf(running))).toBe(true);
  });
});
