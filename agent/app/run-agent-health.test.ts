import { expect, it } from 'vitest';
import { silentLog, silentMeter } from '../../test/support/agent-api.ts';
import { memoryHeartbeatFile, memoryPermitFile } from '../../test/support/memory-heartbeat-file.ts';
import { memoryRuntime } from '../../test/support/memory-runtime.ts';
import { memoryVolumes } from '../../test/support/memory-volumes.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import { loadConfig } from '../adapters/config/load-config.ts';
import type { HealthCheck } from '../ports/health-check.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import { LOGIND_SHUTDOWN } from '../rules/shutdown-start.ts';
import { type AgentParts, runAgent } from './run-agent.ts';

const fileSystem = { capacityBytes: 1e11, availableBytes: 9e10, inodes: 1_000, inodesFree: 900 };

it('the agent serves its checks under the names that monitoring asks for', async () => {
  const loaded = loadConfig(['--endpoint', 'https://api.example', '--token', 't', '--root-dir', '/x'], {
    readText: () => '',
    hostname: () => 'edge-1',
  });
  if (loaded.kind !== 'ok') throw new Error(JSON.stringify(loaded));
  const time = new SteppedTime(Date.UTC(2026, 0, 1));
  const api: KubeApi = { send: async () => ({ kind: 'answered', status: 503, body: {} }), reconnect() {} };
  const isOver = new Error('the checks are known');
  let checks: readonly HealthCheck[] = [];
  const parts: AgentParts = {
    config: loaded.config,
    agentVersion: 'v1',
    beatApi: api,
    api,
    clusterLabels: async () => ({}),
    machine: {
      hostname: () => 'edge-1',
      facts: async () => ({
        cpuCores: 4,
        memoryBytes: 2 ** 33,
        swapBytes: 0,
        hugePages: {},
        machineId: 'm',
        systemUuid: 's',
        bootId: 'b',
        kernelVersion: '6.1',
        osImage: 'Linux',
        operatingSystem: 'linux',
        architecture: 'arm64',
      }),
      use: async () => ({
        memoryAvailableBytes: 2 ** 32,
        nodeFs: fileSystem,
        imageFs: fileSystem,
        pidsMax: 1_000,
        pidsUsed: 10,
        cpuBusySeconds: 100,
      }),
      addresses: () => [{ interfaceName: 'eth0', address: '192.0.2.7', family: 4 }],
      defaultAddress: async () => '192.0.2.7',
      lookup: async () => [],
    },
    numa: { nodes: [], distances: undefined },
    swaps: undefined,
    runtime: memoryRuntime(time),
    heartbeatFile: memoryHeartbeatFile(),
    permitFile: memoryPermitFile(),
    volumes: memoryVolumes(),
    probeClient: { httpGet: async () => ({ kind: 'failed', message: '' }), tcpConnect: async () => undefined },
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
    checks: [{ name: 'disk', complaint: () => undefined }],
    async serveHealth(given) {
      checks = given;
      throw isOver;
    },
  };
  await expect(runAgent(parts, new AbortController().signal)).rejects.toBe(isOver);
  expect(checks.map(({ name }) => name)).toEqual(['ping', 'runtime', 'disk', 'lease']);
  expect(checks.map(({ complaint }) => complaint())).toEqual([undefined, undefined, undefined, undefined]);
});
