/**
 * A beat of the agent on the wire: its own HTTPS client, its own signed token, TLS included, through local mode. Bytes are
 * counted at the agent's sockets; TCP and IP headers (40 bytes a packet, about four packets a beat) are not.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpKubeApi, type HttpKubeApi } from '../agent/adapters/http/kube-api.ts';
import { createNodeIdentity, givenToken } from '../agent/adapters/identity/node-identity.ts';
import { createLeaseLoop } from '../agent/app/lease-loop.ts';
import type { Credentials } from '../agent/ports/credentials.ts';
import { type Benchmark, percentile, rounded } from './benchmark.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';

const BEATS = 200;
const BEATS_A_DAY = 86_400 / 10.2;
const NODE = 'agent-wire';

export const agentWire: Benchmark = {
  name: 'agent-wire',
  about: 'bytes up and down of a beat on a warm connection, of a new connection, and a day of both, TLS included',
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
    } finally {
      api.close();
      await local.stop();
      rmSync(rootDirectory, { recursive: true });
    }
  },
};

/** The token of local mode, in a header as long as with one that a node signs. */
function asLongAsSigned(local: LocalHost, rootDirectory: string): Credentials {
  const identity = createNodeIdentity(
    { nodeName: NODE, clusterId: 'nodekeeper', rootDirectory },
    { time: { nowMs: () => Date.now() }, log: { debug() {}, info() {}, warn() {}, error() {} } },
  );
  const given = givenToken(local.token);
  return {
    answered: given.answered,
    async bearer() {
      const [sent, signed] = [await given.bearer(), await identity.bearer()];
      // Blanks behind a token are no part of it (RFC 9110, 5.5), and take the room.
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
      time: { nowMs: () => Date.now(), sleep: () => Promise.reject(new Error('a beat failed')) },
      fraction: Math.random,
      log: { debug() {}, info() {}, warn() {}, error() {} },
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
    nodeDayMegabytesUp: rounded((beatUp * BEATS_A_DAY) / 1e6),
    nodeDayMegabytesDown: rounded((beatDown * BEATS_A_DAY) / 1e6),
  };
}

async function bytesOf(api: HttpKubeApi, what: () => Promise<void>): Promise<number[]> {
  const before = api.traffic();
  await what();
  const after = api.traffic();
  return [after.bytesUp - before.bytesUp, after.bytesDown - before.bytesDown];
}
