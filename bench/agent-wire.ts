/**
 * Network traffic of an idle agent: heartbeats, and rounds of its node status, with its own HTTPS client, a token as
 * long as its own, TLS included, through local mode. Bytes are counted at the agent's sockets. TCP and IP headers (40
 * bytes per packet, about four packets per request) are not counted.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../agent/adapters/config/load-config.ts';
import { createHttpKubeApi, type HttpKubeApi } from '../agent/adapters/http/kube-api.ts';
import { createNodeIdentity, staticToken } from '../agent/adapters/identity/node-identity.ts';
import { LinuxMachine } from '../agent/adapters/linux-machine/linux-machine.ts';
import { systemTime } from '../agent/adapters/system/time.ts';
import { createLeaseLoop } from '../agent/app/lease-loop.ts';
import { NodePressure } from '../agent/app/node-pressure.ts';
import { NodeStatusComputation } from '../agent/app/node-status.ts';
import { addressSetter } from '../agent/app/set-addresses.ts';
import { StatusLoop } from '../agent/app/status-loop.ts';
import type { AgentConfig } from '../agent/config.ts';
import type { Credentials } from '../agent/ports/credentials.ts';
import type { KubeApi } from '../agent/ports/kube-api.ts';
import { silentLog } from '../test/support/agent-api.ts';
import { type Benchmark, percentile, rounded } from './benchmark.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';

const BEATS = 200;
/** Between rounds of the lease loop, and between passes of the status loop, with half of their jitter. Milliseconds. */
const ROUND_MS = 10_200;
const ROUNDS_PER_DAY = 86_400_000 / ROUND_MS;
/** Some 50 reports: 4.5 hours on a clock that only the passes move. */
const STATUS_PASSES = 1_600;
const NODE = 'agent-wire';

export const agentWire: Benchmark = {
  name: 'agent-wire',
  about:
    'requests and bytes of an agent in which nothing happens: a beat, a new connection, node status, and a day of them, TLS included',
  async run(report) {
    const local = await startLocalHost({ controllers: false });
    const rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-agent-wire-'));
    const api = createHttpKubeApi({
      endpoint: local.url,
      certificateAuthority: local.ca,
      credentials: asLongAsSigned(local, rootDirectory),
    });
    try {
      report(await measure(api));
      report(await measureStatus(api));
    } finally {
      api.close();
      await local.stop();
      rmSync(rootDirectory, { recursive: true });
    }
  },
};

/** The token of local mode, in a header as long as with a token that a node signs. */
function asLongAsSigned(local: LocalHost, rootDirectory: string): Credentials {
  const identity = createNodeIdentity(
    { nodeName: NODE, clusterId: 'nodekeeper', rootDirectory },
    { time: systemTime, log: silentLog },
  );
  const given = staticToken(local.token);
  return {
    answered: given.answered,
    async bearer(use) {
      const [sent, signed] = [await given.bearer(use), await identity.bearer(use)];
      // Blanks after a token are not part of it (RFC 9110, 5.5), and fill the length.
      return sent.padEnd(signed.length, ' ');
    },
  };
}

async function measure(api: HttpKubeApi) {
  const created = await api.send({
    method: 'POST',
    path: '/api/v1/nodes',
    body: { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } },
  });
  if (created.kind === 'failed' || created.status !== 201) throw new Error(`no Node: ${JSON.stringify(created)}`);
  const loop = createLeaseLoop(
    { nodeName: NODE, nodeLeaseDurationSeconds: 40 },
    {
      api,
      time: { ...systemTime, sleep: () => Promise.reject(new Error('a beat failed')) },
      fraction: Math.random,
      log: silentLog,
      stop: new AbortController().signal,
      timeoutMs: 10_000,
      registerAgain: async () => false,
    },
  );
  await loop.round();
  await loop.round();
  const warm: number[][] = [];
  for (let beat = 0; beat < BEATS; beat += 1) warm.push(await bytesOf(api, () => loop.round()));
  const up = warm.map(([sent = 0]) => sent);
  const down = warm.map(([, received = 0]) => received);
  api.reconnect();
  const [resumedUp = 0, resumedDown = 0] = await bytesOf(api, () => loop.round());
  const [beatUp, beatDown] = [percentile(up, 0.5), percentile(down, 0.5)];
  return {
    beats: BEATS,
    beatBytesUp: beatUp,
    beatBytesDown: beatDown,
    beatBytesUpMax: Math.max(...up),
    beatBytesDownMax: Math.max(...down),
    reconnectBytesUp: resumedUp - beatUp,
    reconnectBytesDown: resumedDown - beatDown,
    dayRequests: Math.round(ROUNDS_PER_DAY),
    dayMegabytesUp: rounded((beatUp * ROUNDS_PER_DAY) / 1e6),
    dayMegabytesDown: rounded((beatDown * ROUNDS_PER_DAY) / 1e6),
  };
}

/** Rounds of the status loop on an unchanged machine, after its first report. */
async function measureStatus(api: HttpKubeApi) {
  const config = configured();
  let nowMs = Date.now();
  let requests = 0;
  const counted: KubeApi = {
    send(request) {
      requests += 1;
      return api.send(request);
    },
    reconnect: () => api.reconnect(),
  };
  const machine = new LinuxMachine({ rootDirectory: '/' });
  // No resolver answers for a name like ours, and each round would wait for one.
  const host = {
    addresses: () => machine.addresses(),
    defaultAddress: (family: 4 | 6) => machine.defaultAddress(family),
    lookup: async () => [],
  };
  const computation = new NodeStatusComputation({
    pressure: new NodePressure(config, () => undefined),
    settings: config,
    machine,
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    log: silentLog,
    agentVersion: 'v1.34.2-nodekeeper.0.1.0',
    setAddresses: addressSetter(host, config, []),
    readyErrors: () => ({ runtime: undefined, shutdown: undefined }),
    runtimeVersion: () => 'exec://1.0.0',
    volumesInUse: () => [],
  });
  const loop = new StatusLoop({
    settings: config,
    api: counted,
    time: { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => {} },
    fraction: () => 0.5,
    log: silentLog,
    compute: (node) => computation.compute(node),
    registration: { ensure: async () => true, again: async () => false, onRegistered: () => {} },
    recordEvent: () => {},
    onRepeatedFailure: () => {},
  });
  await loop.pass();
  requests = 0;
  const outcomes = { written: 0, quiet: 0, gone: 0, failed: 0 };
  const [up, down] = await bytesOf(api, async () => {
    for (let pass = 0; pass < STATUS_PASSES; pass += 1) {
      nowMs += ROUND_MS;
      outcomes[(await loop.pass()).kind] += 1;
    }
  });
  const aDay = ROUNDS_PER_DAY / STATUS_PASSES;
  return {
    statusPasses: STATUS_PASSES,
    ...outcomes,
    requests,
    dayRequests: Math.round(requests * aDay),
    dayMegabytesUp: rounded(((up ?? 0) * aDay) / 1e6),
    dayMegabytesDown: rounded(((down ?? 0) * aDay) / 1e6),
  };
}

function configured(): AgentConfig {
  const flags = ['--endpoint', 'https://127.0.0.1', '--token', 'none', '--hostname-override', NODE];
  const loaded = loadConfig(flags);
  if (loaded.kind !== 'ok') throw new Error(JSON.stringify(loaded));
  return loaded.config;
}

async function bytesOf(api: HttpKubeApi, what: () => Promise<void>): Promise<number[]> {
  const before = api.traffic();
  await what();
  const after = api.traffic();
  return [after.bytesUp - before.bytesUp, after.bytesDown - before.bytesDown];
}
