/** The agent, with processes as pods, on a small file system of its own that fills up. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../agent/adapters/config/load-config.ts';
import { LinuxMachine } from '../../agent/adapters/linux-machine/linux-machine.ts';
import { probeClient } from '../../agent/adapters/probe/probe-client.ts';
import { markedProcesses } from '../../agent/adapters/runtime-exec/process-table.ts';
import { execRuntime } from '../../agent/adapters/runtime-exec/runtime-exec.ts';
import { podVolumes } from '../../agent/adapters/volumes/pod-volumes.ts';
import { runAgent } from '../../agent/app/run-agent.ts';
import type { AgentConfig } from '../../agent/config.ts';
import type { HealthCheck } from '../../agent/ports/health-check.ts';
import type { KubeApi } from '../../agent/ports/kube-api.ts';
import type { PodRuntime } from '../../agent/ports/pod-runtime.ts';
import { LOGIND_SHUTDOWN } from '../../agent/rules/shutdown-start.ts';
import { PODS_VERSION_ANNOTATION } from '../../shared/kinds/leases/lease-record.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { silentLog, silentMeter } from '../support/agent-api.ts';
import { type ApiInMemory, apiInMemory, podsIn } from '../support/api-in-memory.ts';
import { memoryHeartbeatFile, memoryPermitFile } from '../support/memory-heartbeat-file.ts';
import { scaledTime } from '../support/scaled-time.ts';
import { until } from '../support/until.ts';

/** Why no file system can be mounted here; undefined where one can. */
function mountRefusal(): string | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-mount-'));
  try {
    mount(directory);
    execFileSync('umount', [directory], { stdio: 'pipe' });
    return undefined;
  } catch (cause) {
    return `tmpfs cannot be mounted: ${
      String((cause as Error).message)
        .split('\n')
        .at(-2) ?? cause
    }`;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function mount(directory: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory], { stdio: 'pipe' });
}

const why = mountRefusal();

describe.skipIf(why !== undefined)(`a full disk${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  let rootDirectory: string;
  let server: ApiInMemory;
  let runtime: PodRuntime;
  let checks: readonly HealthCheck[] = [];
  let beats: number;
  let podsVersion: number;
  const stop = new AbortController();
  // A container that crashes is started again after up to 300 s, which are 15 s here.
  const soon = { withinMs: 45_000, everyMs: 20 };

  beforeEach(() => {
    rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-full-'));
    mount(rootDirectory);
    mkdirSync(join(rootDirectory, 'pods'));
    server = apiInMemory({ uuid: randomUUID });
    beats = 0;
    podsVersion = 0;
  });
  afterEach(async () => {
    stop.abort();
    await runtime.close();
    execFileSync('umount', ['-l', rootDirectory]);
    rmSync(rootDirectory, { recursive: true, force: true });
  });

  function configured(): AgentConfig {
    const args = ['--endpoint', 'https://api.example', '--token', 't', '--root-dir', rootDirectory];
    const loaded = loadConfig([...args, '--fail-swap-on=false'], { readText: () => '', hostname: () => 'edge-1' });
    if (loaded.kind !== 'ok') throw new Error(JSON.stringify(loaded));
    return { ...loaded.config, evictionPressureTransitionPeriodMs: 20_000 };
  }

  function start(): void {
    // Slower than elsewhere: events about one Node are limited to 25 and one per five minutes, and each round of
    // eviction is one.
    const time = scaledTime(20);
    const api: KubeApi = {
      async send({ method, path, body, contentType }) {
        const answer = await server.send(method, path, { body, contentType: contentType ?? 'application/json' });
        if (method !== 'PUT' || answer.code !== 200)
          return { kind: 'answered', status: answer.code, body: answer.body };
        beats += 1;
        const { metadata } = answer.body as KubeObject;
        // Function heartbeat answers the same. Without it the agent lists its pods once in five minutes.
        const annotations = { ...metadata.annotations, [PODS_VERSION_ANNOTATION]: String(podsVersion) };
        return { kind: 'answered', status: 200, body: { ...answer.body, metadata: { ...metadata, annotations } } };
      },
      reconnect() {},
    };
    runtime = execRuntime({ rootDirectory, time, log: silentLog, hostIp: () => undefined });
    void runAgent(
      {
        config: configured(),
        agentVersion: 'v1',
        beatApi: api,
        api,
        clusterLabels: async () => ({}),
        machine: new LinuxMachine({ rootDirectory }),
        numa: { nodes: [], distances: undefined },
        swaps: undefined,
        runtime,
        probeClient: probeClient(),
        heartbeatFile: memoryHeartbeatFile(),
        permitFile: memoryPermitFile(),
        volumes: podVolumes({ rootDirectory, memoryDirectory: undefined }),
        shutdownSignal: {
          rules: LOGIND_SHUTDOWN,
          delayMaxMs: async () => 0,
          raiseDelayMax: async () => {},
          hold: async () => ({ release: async () => {} }),
          async *watch() {},
        },
        shutdownState: { read: async () => undefined, write: async () => {} },
        time,
        fraction: () => 0,
        compress: (bytes) => bytes,
        log: silentLog,
        meter: silentMeter,
        async serveHealth(given) {
          checks = given;
        },
      },
      stop.signal,
    );
  }

  const get = async (path: string): Promise<KubeObject> => (await server.send('GET', path)).body as KubeObject;
  const conditionIs = (type: string, status: string) =>
    until(
      async () =>
        recordsOf((await get('/api/v1/nodes/edge-1')).status?.['conditions']).find((each) => each['type'] === type)?.[
          'status'
        ] === status,
      { ...soon, what: `${type} ${status}` },
    );
  const complaints = () => checks.flatMap(({ complaint }) => complaint() ?? []);

  it('is reported and beaten through, its pod is evicted and can be deleted, and all is well when it has room again', async () => {
    const path = `${podsIn('default')}/web`;
    await server.send('POST', podsIn('default'), {
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web' },
        spec: {
          nodeName: 'edge-1',
          containers: [
            { name: 'stays', image: 'i', command: ['/bin/sh', '-c', 'exec sleep 300'] },
            { name: 'crashes', image: 'i', command: ['/bin/sh', '-c', 'sleep 0.5; exit 1'] },
          ],
        },
      },
    });
    start();
    await until(async () => (await runtime.pods()).length === 1, { ...soon, what: 'the pod runs' });
    await conditionIs('Ready', 'True');
    await conditionIs('DiskPressure', 'False');
    expect(() => writeFileSync(join(rootDirectory, 'filler'), Buffer.alloc(2 ** 21))).toThrow(/ENOSPC/);
    await conditionIs('DiskPressure', 'True');
    await until(() => complaints().some((each) => /cannot be written: ENOSPC/.test(each)), soon);
    const before = beats;
    await until(() => beats >= before + 3, soon);
    await conditionIs('Ready', 'True');
    const { uid = '' } = (await get(path)).metadata;
    await server.send('DELETE', path, { body: { gracePeriodSeconds: 1 } });
    podsVersion += 1;
    await until(async () => (await runtime.pods()).length === 0, { ...soon, what: 'the pod is deleted' });
    await until(async () => (await server.send('GET', path)).code === 404, soon);
    expect(markedProcesses().filter(({ mark }) => mark.startsWith(uid))).toEqual([]);
    rmSync(join(rootDirectory, 'filler'));
    await conditionIs('DiskPressure', 'False');
    await until(() => complaints().length === 0, soon);
    expect(existsSync(join(rootDirectory, 'pods', uid))).toBe(false);
    const wanted = ['NodeHasDiskPressure', 'StateNotWritten', 'EvictionThresholdMet', 'Evicted', 'StateWritten'];
    const reasons = async () =>
      recordsOf((await get('/api/v1/namespaces/default/events'))['items']).map((each) => textOf(each['reason']));
    await until(
      async () => {
        const recorded = await reasons();
        return wanted.every((reason) => recorded.includes(reason));
      },
      { ...soon, what: `events ${wanted}` },
    );
  }, 240_000);
});
