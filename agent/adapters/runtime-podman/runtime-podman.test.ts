import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import { realTime } from '../../../test/support/real-time.ts';
import type { LogQuery } from '../../ports/pod-runtime.ts';
import { manifestOf, podmanRuntime, stateOf } from './runtime-podman.ts';

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
    const runtime = podmanRuntime({ time: realTime, log: silentLog, program: 'no-such-podman' });
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
    const runtime = podmanRuntime({ time: realTime, log: silentLog, program });
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
    const runtime = podmanRuntime({ time: realTime, log: silentLog, program });
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
