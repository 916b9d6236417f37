import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import { realTime } from '../../../test/support/real-time.ts';
import { until } from '../../../test/support/until.ts';
import type { LogQuery } from '../../ports/pod-runtime.ts';
import type { CgroupNode } from '../../rules/cgroup-values.ts';
import { manifestOf, podmanRuntime, stateOf } from './runtime-podman.ts';

const LIMITS: CgroupNode = {
  swap: { cgroupVersion: 2, controllerPresent: true, swapBehavior: 'LimitedSwap', memoryBytes: 8e9, swapBytes: 4e9 },
  enforceCpuLimits: true,
  podPidsMax: 64,
};

describe('the manifest for podman', () => {
  it('is named by the uid of the pod and has its name as a label', () => {
    const pod = {
      metadata: { name: 'web', namespace: 'shop', uid: 'u-1', labels: { app: 'web' } },
      spec: { containers: [] },
    };
    expect(manifestOf(pod).metadata).toEqual({
      name: 'nodekeeper-u-1',
      labels: {
        app: 'web',
        'nodekeeper.dev/pod-uid': 'u-1',
        'nodekeeper.dev/pod-namespace': 'shop',
        'nodekeeper.dev/pod-name': 'web',
      },
    });
  });
});

describe('the state of a container in podman', () => {
  it.each([
    [
      { Status: 'running', StartedAt: '2026-01-01T00:00:01Z' },
      { kind: 'running', startedAtMs: Date.UTC(2026, 0, 1, 0, 0, 1) },
    ],
    [
      { Status: 'exited', ExitCode: 0 },
      { kind: 'terminated', exitCode: 0, reason: 'Completed' },
    ],
    [
      { Status: 'exited', ExitCode: 137 },
      { kind: 'terminated', exitCode: 137, signal: 9, reason: 'Error' },
    ],
    [
      { Status: 'exited', ExitCode: 137, OOMKilled: true },
      { kind: 'terminated', reason: 'OOMKilled' },
    ],
    [{ Status: 'created' }, { kind: 'waiting', reason: 'ContainerCreating' }],
  ])('%j', (state, expected) => {
    expect(stateOf({ State: state })).toMatchObject(expected);
  });
});

describe('a machine without podman', () => {
  it('is not ready, and says why', async () => {
    const runtime = podmanRuntime({ time: realTime, log: silentLog, limits: LIMITS, program: 'no-such-podman' });
    expect(await runtime.health()).toMatchObject({ kind: 'notReady', reason: expect.stringMatching(/no-such-podman/) });
    await runtime.close();
  });
});

describe('a pod that is stopped', () => {
  it('gets its whole grace period in seconds of podman, which knows no fractions', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-podman-'));
    const program = join(directory, 'podman');
    const calls = join(directory, 'calls');
    writeFileSync(program, `#!/bin/sh\necho "$@" >> ${calls}\ncase "$*" in 'pod ps'*) echo '[{}]' ;; esac\n`, {
      mode: 0o755,
    });
    const runtime = podmanRuntime({ time: realTime, log: silentLog, limits: LIMITS, program });
    await runtime.stop('u-1', 1.2);
    await runtime.stop('u-1', 30);
    await runtime.close();
    const stops = readFileSync(calls, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('pod stop'));
    expect(stops).toEqual(['pod stop --time 2 nodekeeper-u-1', 'pod stop --time 30 nodekeeper-u-1']);
    rmSync(directory, { recursive: true });
  });
});

describe('the log of a container in podman', () => {
  it('is that of podman logs, with the options of the request', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-podman-'));
    const program = join(directory, 'podman');
    const script = `case "$*" in 'pod ps'*) echo '[{}]' ;; *) echo "$@"; echo to stderr >&2 ;; esac`;
    writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const runtime = podmanRuntime({ time: realTime, log: silentLog, limits: LIMITS, program });
    const query = { podUid: 'u-1', container: 'main', previous: false, follow: false, timestamps: false };
    const read = async (more: Partial<LogQuery>): Promise<string> => {
      const pieces: Uint8Array[] = [];
      const stop = new AbortController().signal;
      for await (const piece of runtime.readLog?.({ ...query, ...more }, stop) ?? []) pieces.push(piece);
      return Buffer.concat(pieces).toString('utf8');
    };
    const all = { follow: true, timestamps: true, tailLines: 7, sinceMs: Date.UTC(2026, 0, 1) };
    expect((await read(all)).split('\n').sort()).toEqual([
      '',
      'logs --follow --timestamps --tail 7 --since 2026-01-01T00:00:00.000Z nodekeeper-u-1-main',
      'to stderr',
    ]);
    expect(await read({ limitBytes: 3 })).toHaveLength(3);
    await expect(read({ previous: true })).rejects.toThrow('previous terminated container "main" in pod u-1 not found');
    await runtime.close();
    rmSync(directory, { recursive: true });
  });
});

describe('the limits of a container in podman', () => {
  const pod = {
    metadata: { name: 'web', namespace: 'shop', uid: 'u-1' },
    spec: {
      containers: [
        { name: 'a', resources: { requests: { cpu: '250m', memory: '1G' }, limits: { memory: '2G' } } },
        { name: 'b' },
      ],
    },
  };
  const own = { cpus: [2, 3], memoryNodes: [1], exclusive: true };

  function recorded(script = '') {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-podman-'));
    const program = join(directory, 'podman');
    const calls = join(directory, 'calls');
    writeFileSync(program, `#!/bin/sh\ncat >/dev/null\necho "$@" >> ${calls}\n${script}\n`, { mode: 0o755 });
    const runtime = podmanRuntime({ time: realTime, log: silentLog, limits: LIMITS, program });
    const linesOf = (command: string): readonly string[] =>
      readFileSync(calls, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(command));
    return { runtime, linesOf, dispose: () => rmSync(directory, { recursive: true }) };
  }

  it('are set after its start, and again when its processors change', async () => {
    const { runtime, linesOf, dispose } = recorded();
    await runtime.start(pod);
    expect(linesOf('update')).toEqual([
      'update --cpu-shares 256 --memory 2000000000 --memory-swap 2500000000 nodekeeper-u-1-a',
      'update --pids-limit 64 nodekeeper-u-1-a',
      'update --cpu-shares 2 nodekeeper-u-1-b',
      'update --pids-limit 64 nodekeeper-u-1-b',
    ]);
    runtime.usePlacement?.((_uid, container) => (container === 'a' ? own : { ...own, cpus: [], memoryNodes: [] }));
    await until(() => linesOf('update').length === 8, { withinMs: 10_000, everyMs: 20, what: 'the updates' });
    expect(linesOf('update')[4]).toContain('--cpuset-cpus 2-3 --cpuset-mems 1 nodekeeper-u-1-a');
    expect(runtime.limitWarning?.()).toBeUndefined();
    await runtime.close();
    dispose();
  });

  it('that podman refuses are reported, and the pod runs', async () => {
    const { runtime, dispose } = recorded('case "$1" in update) echo "no such option" >&2; exit 125 ;; esac');
    await runtime.start(pod);
    expect(runtime.limitWarning?.()).toMatch(/^podman cannot set limits of pods: .*no such option$/);
    await runtime.close();
    dispose();
  });

  it('removes unused images when the disk is low', async () => {
    const { runtime, linesOf, dispose } = recorded();
    await runtime.reclaimStorage?.();
    expect(linesOf('image')).toEqual(['image prune --all --force']);
    await runtime.close();
    dispose();
  });
});
