/**
 * The agent's identity, registration and heartbeat against the deployed API and heartbeat functions, on a test clock.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createNodeIdentity, staticToken } from '../../agent/adapters/identity/node-identity.ts';
import { createLeaseLoop, type LeaseLoop } from '../../agent/app/lease-loop.ts';
import { createRegistration } from '../../agent/app/registration.ts';
import type { Credentials } from '../../agent/ports/credentials.ts';
import type { KubeApi } from '../../agent/ports/kube-api.ts';
import { initialNode } from '../../agent/rules/node-registration.ts';
import { silentLog } from '../support/agent-api.ts';
import { CLUSTER_ID, IDENTITIES, IdentityCluster, NODE_LEASES } from '../support/identity-cluster.ts';

let cluster: IdentityCluster;
let rootDirectory: string;
let stopper: AbortController;
let sleeps: number;

/** After this many waits a machine is switched off: no test waits without a bound. */
const SLEEPS_MAX = 30;

beforeEach(() => {
  cluster = new IdentityCluster();
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-agent-'));
  stopper = new AbortController();
  sleeps = 0;
});
afterEach(() => {
  stopper.abort();
  rmSync(rootDirectory, { recursive: true });
  expect(cluster.takeFaults()).toEqual([]);
});

/** Behaves as the HTTP adapter: one token per request, and a retry when another token may succeed. */
function apiFor(credentials: Credentials): KubeApi {
  return {
    async send({ method, path, body, contentType, heartbeat }) {
      for (let number = 0; ; number += 1) {
        let token: string;
        try {
          token = await credentials.bearer({ kind: heartbeat === undefined ? 'all' : 'beat' });
        } catch (cause) {
          return { kind: 'failed', cause };
        }
        const headers = contentType === undefined ? {} : { 'content-type': contentType };
        const answer = await cluster.send(method, path, token, body, headers);
        const mayRetry = credentials.answered({ status: answer.code, serverTimeMs: cluster.nowMs, token });
        if (mayRetry && number === 0) continue;
        return { kind: 'answered', status: answer.code, body: answer.body };
      }
    },
    reconnect() {},
  };
}

/** `aheadMs`: offset of its clock. */
async function machine(nodeName: string, aheadMs = 0): Promise<LeaseLoop> {
  const time = {
    nowMs: () => cluster.nowMs + aheadMs,
    monotonicMs: () => cluster.nowMs,
    uptimeMs: () => cluster.nowMs,
    async sleep(milliseconds: number) {
      cluster.nowMs += milliseconds;
      sleeps += 1;
      if (sleeps >= SLEEPS_MAX) stopper.abort();
    },
  };
  const bootstrapToken = await cluster.bootstrapToken({ nodeLabels: { site: 'north' } });
  const identity = createNodeIdentity(
    { nodeName, clusterId: CLUSTER_ID, rootDirectory, bootstrapToken },
    { time, log: silentLog, bootstrapApi: apiFor(staticToken(bootstrapToken)) },
  );
  return loopOf(nodeName, time, identity);
}

function loopOf(
  nodeName: string,
  time: Parameters<typeof createLeaseLoop>[1]['time'],
  identity: ReturnType<typeof createNodeIdentity>,
): LeaseLoop {
  const api = apiFor(identity);
  const common = { api, time, fraction: () => 0, log: silentLog, stop: stopper.signal, timeoutMs: 10_000 };
  const settings = {
    nodeName,
    nodeLabels: {},
    providerId: '',
    registerSchedulable: true,
    registerWithTaints: [],
    cloudProvider: '',
    enableControllerAttachDetach: true,
  } as const;
  const registration = createRegistration(
    { nodeName, registerNode: true },
    {
      ...common,
      buildNode: async () =>
        initialNode(
          { ...settings, nodeLabels: await identity.nodeLabels() },
          { hostname: nodeName, operatingSystem: 'linux', architecture: 'arm64' },
        ),
    },
  );
  return createLeaseLoop(
    { nodeName, nodeLeaseDurationSeconds: 40 },
    { ...common, registerAgain: () => registration.again() },
  );
}

describe('a machine with only a bootstrap token', () => {
  it('enrols, registers and sends a heartbeat within its first round', async () => {
    const loop = await machine('edge-7');
    await loop.round();
    expect(loop.cached()).toMatchObject({ spec: { holderIdentity: 'edge-7', leaseDurationSeconds: 40 } });
    const node = (await cluster.asAdmin('GET', '/api/v1/nodes/edge-7')).body;
    expect(node.metadata.labels).toMatchObject({ site: 'north', 'kubernetes.io/arch': 'arm64' });
    const lease = (await cluster.asAdmin('GET', `${NODE_LEASES}/edge-7`)).body;
    expect(lease.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'edge-7', uid: node.metadata.uid },
    ]);
  });

  it('continues with one write per heartbeat', async () => {
    const loop = await machine('edge-7');
    await loop.round();
    for (let beat = 0; beat < 50; beat += 1) {
      cluster.nowMs += 10_000;
      cluster.consumed();
      await loop.round();
      const writes = cluster.consumed().reduce((sum, { writeUnits }) => sum + writeUnits, 0);
      expect(writes).toBe(1);
    }
    const lease = (await cluster.asAdmin('GET', `${NODE_LEASES}/edge-7`)).body;
    expect(lease.spec.renewTime).toBe(new Date(cluster.nowMs).toISOString().replace(/(\d{3})Z$/, '$1000Z'));
  });

  it.each([7_200_000, -7_200_000])('sends heartbeats with a clock that is %s ms ahead', async (aheadMs) => {
    const loop = await machine('edge-7', aheadMs);
    await loop.round();
    expect(loop.cached()).toBeDefined();
  });

  it('registers again when its Node was deleted', async () => {
    const loop = await machine('edge-7');
    await loop.round();
    const before = (await cluster.asAdmin('GET', '/api/v1/nodes/edge-7')).body.metadata.uid;
    expect((await cluster.asAdmin('DELETE', '/api/v1/nodes/edge-7')).code).toBe(200);
    await cluster.asAdmin('DELETE', `${NODE_LEASES}/edge-7`);
    await loop.round();
    const after = (await cluster.asAdmin('GET', '/api/v1/nodes/edge-7')).body.metadata.uid;
    expect(after).not.toBe(before);
    expect(loop.cached()?.metadata.ownerReferences?.[0]?.uid).toBe(after);
  });

  it('gets no heartbeat accepted once its identity is deleted', async () => {
    const loop = await machine('edge-7');
    await loop.round();
    const beats: number[] = [];
    loop.onBeat((atMs) => beats.push(atMs));
    await cluster.asAdmin('DELETE', `${IDENTITIES}/edge-7`);
    cluster.nowMs += 301_000;
    await loop.round();
    expect(sleeps).toBe(SLEEPS_MAX);
    expect(beats).toEqual([]);
  });
});
