/** Pods that the hub of the site decides about, in the loop of the agent, with the API of the cluster and a hub. */

import { beforeEach, describe, expect, it } from 'vitest';
import type { PermitAnswer, PermitRequest } from '../../shared/agents/site-permits.ts';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import { SITE_HUB } from '../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { answered, silentLog, timedOut } from '../../test/support/agent-api.ts';
import { type ApiInMemory, apiInMemory, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { memoryHeartbeatFile, memoryPermitFile } from '../../test/support/memory-heartbeat-file.ts';
import { type MemoryRuntime, memoryRuntime } from '../../test/support/memory-runtime.ts';
import { EDGE_1, sendAsEdge1 } from '../../test/support/node-api.ts';
import { podLoopParts } from '../../test/support/pod-loop-parts.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import type { PermitFile } from '../ports/permit-file.ts';
import { clockReading } from '../rules/offline-stop.ts';
import { AnsweredHeartbeats } from './answered-heartbeats.ts';
import { createPodLoop, type PodLoop } from './pod-loop.ts';
import { SitePermits } from './site-permits.ts';

const HUB = 'system:serviceaccount:kube-system:hub';
const RUN_MS = 7_200_000;
const COPY: KubePod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web-1',
    namespace: 'default',
    uid: 'copy',
    annotations: { [OFFLINE_STOP_AFTER]: '2h', [SITE_HUB]: HUB },
  },
  spec: { ...pod('web-1').spec, nodeName: 'edge-1', terminationGracePeriodSeconds: 30 },
} as KubePod;

let server: ApiInMemory;
let time: SteppedTime;
let runtime: MemoryRuntime;
let loop: PodLoop;
let heartbeats: AnsweredHeartbeats;
let file: PermitFile;
let stop: AbortController;
let sent: KubeRequest[];
let asked: PermitRequest[];
let isClusterUp: boolean;
/** Undefined: the hub does not answer. */
let hubAnswer: ((request: PermitRequest) => Partial<PermitAnswer>) | undefined;

const api = {
  async send(request: KubeRequest): Promise<KubeAnswer> {
    if (!isClusterUp) return timedOut;
    sent.push(request);
    return sendAsEdge1(server, request);
  },
  reconnect() {},
};

const hub = {
  async send({ body }: KubeRequest): Promise<KubeAnswer> {
    asked.push(body as PermitRequest);
    if (hubAnswer === undefined) return timedOut;
    const empty: PermitAnswer = { hub: HUB, permitted: [], copies: [], withdrawn: [], released: [] };
    return answered(200, { ...empty, ...hubAnswer(body as PermitRequest) });
  },
  reconnect() {},
};

async function rest(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await settle();
}

async function pass(milliseconds: number, { beats = true } = {}): Promise<void> {
  for (let passedMs = 0; passedMs < milliseconds; passedMs += 60_000) {
    await time.pass(60_000);
    await rest();
    if (beats) loop.heartbeatAnswered(clockReading(time));
    await rest();
  }
}

async function startAgent(): Promise<void> {
  heartbeats = new AnsweredHeartbeats({ time, log: silentLog, file: memoryHeartbeatFile() });
  const permits = new SitePermits({ hub, file, time, log: silentLog });
  await permits.read();
  loop = createPodLoop({ ...podLoopParts, api, runtime, heartbeats, permits, time, recordEvent: () => undefined });
  stop = new AbortController();
  void loop.run(stop.signal);
  void permits.run(stop.signal);
  await rest();
  loop.heartbeatAnswered(clockReading(time));
  await rest();
}

const uidOf = async (): Promise<string> => (await server.send('GET', `${podsIn('default')}/web`)).body.metadata.uid;
const statusOf = async () => (await server.send('GET', `${podsIn('default')}/web`)).body.status;

beforeEach(async () => {
  stop?.abort();
  server = apiInMemory({
    users: EDGE_1,
  });
  time = new SteppedTime(server.nowMs());
  runtime = memoryRuntime(time);
  file = memoryPermitFile();
  [sent, asked, isClusterUp, hubAnswer] = [[], [], true, undefined];
  await server.send('POST', '/api/v1/nodes', {
    body: { metadata: { name: 'edge-1', annotations: { [SITE_HUB]: HUB } } },
  });
  await server.send('PATCH', '/api/v1/nodes/edge-1/status', {
    contentType: 'application/merge-patch+json',
    body: { status: { allocatable: { cpu: '2', memory: '4Gi', pods: '10', 'ephemeral-storage': '10Gi' } } },
  });
  await server.send('POST', '/apis/nodekeeper.dev/v1alpha1/sitepolicies', {
    body: { metadata: { name: 'site' }, spec: { hub: HUB, nodes: ['edge-1'], namespaces: ['default'] } },
  });
  const spec = { ...pod('web').spec, terminationGracePeriodSeconds: 30 };
  await server.send('POST', podsIn('default'), {
    body: pod('web', { metadata: { name: 'web', annotations: { [OFFLINE_STOP_AFTER]: '2h' } }, spec }),
  });
  await server.send('POST', `${podsIn('default')}/web/binding`, {
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'web' }, target: { kind: 'Node', name: 'edge-1' } },
  });
});

describe('a pod that the hub of the site decides about', () => {
  it('starts by a permit, whatever heartbeats the cluster answers', async () => {
    await startAgent();
    await pass(300_000);
    expect(runtime.asked).toEqual([]);
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await pass(60_000);
    expect(runtime.asked).toEqual(['start web']);
  });

  it('does not start by a permit of another hub', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ hub: 'another', permitted: [uid] });
    await startAgent();
    await pass(120_000);
    expect(runtime.asked).toEqual([]);
  });

  it('stops when it had no permit for its time, although the cluster answers heartbeats', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await startAgent();
    await pass(RUN_MS * 2);
    expect(runtime.asked).toEqual(['start web']);
    hubAnswer = undefined;
    await pass(RUN_MS - 120_000);
    expect(runtime.asked).toEqual(['start web']);
    await pass(180_000);
    expect(runtime.asked).toContain('stop web 30');
  });

  it('runs on without the cluster, as long as it has permits', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await startAgent();
    isClusterUp = false;
    await pass(RUN_MS * 2, { beats: false });
    expect(runtime.asked).toEqual(['start web']);
  });

  it('is reported as Failed only after its release', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await startAgent();
    hubAnswer = undefined;
    await pass(RUN_MS + 600_000);
    expect((await statusOf()).phase).not.toBe('Failed');
    hubAnswer = ({ released = [] }) => ({ released });
    await pass(1_200_000);
    expect((await statusOf()).phase).toBe('Failed');
  });

  it('is not reported, nor started again, while the hub refuses its release', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await startAgent();
    hubAnswer = undefined;
    await pass(RUN_MS + 600_000);
    hubAnswer = () => ({ permitted: [uid] });
    await pass(1_200_000);
    expect((await statusOf()).phase).not.toBe('Failed');
    expect(runtime.asked.filter((each) => each.startsWith('start'))).toEqual(['start web']);
  });

  it('is confirmed as deleted only after its release', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await startAgent();
    hubAnswer = undefined;
    await server.send('DELETE', `${podsIn('default')}/web`, { contentType: 'application/json' });
    loop.podsChanged();
    await pass(600_000);
    expect(runtime.asked).toContain('stop web 30');
    expect(sent.filter(({ method }) => method === 'DELETE')).toEqual([]);
    hubAnswer = ({ released = [] }) => ({ released });
    await pass(600_000);
    expect((await server.send('GET', `${podsIn('default')}/web`)).code).toBe(404);
  });
});

describe('the next agent of the same boot', () => {
  it('lets a pod go on by the last permit, and stops it at its time', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await startAgent();
    await pass(60_000);
    stop.abort();
    hubAnswer = undefined;
    await startAgent();
    await pass(RUN_MS - 180_000);
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual([]);
    await pass(240_000);
    expect(runtime.asked).toContain('stop web 30');
  });

  it('starts none by it: the agent before may have released the pod', async () => {
    const uid = await uidOf();
    hubAnswer = () => ({ permitted: [uid] });
    await startAgent();
    await pass(60_000);
    stop.abort();
    runtime = memoryRuntime(time);
    hubAnswer = undefined;
    await startAgent();
    await pass(300_000);
    expect(runtime.asked).toEqual([]);
  });

  it('lets a copy go on that the cluster does not know', async () => {
    await startAgent();
    isClusterUp = false;
    hubAnswer = () => ({ permitted: ['copy'], copies: [COPY] });
    await pass(120_000, { beats: false });
    stop.abort();
    hubAnswer = undefined;
    isClusterUp = true;
    await startAgent();
    await pass(300_000);
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual([]);
  });
});

describe('a copy of a pod of another machine', () => {
  it('runs while the cluster cannot be reached, and when it can be again', async () => {
    await startAgent();
    isClusterUp = false;
    hubAnswer = () => ({ permitted: ['copy'], copies: [COPY] });
    await pass(300_000, { beats: false });
    expect(runtime.asked).toEqual(['start web-1']);
    isClusterUp = true;
    await pass(900_000);
    expect(runtime.asked).toEqual(['start web-1']);
    expect(sent.filter(({ path }) => path.includes('/web-1/'))).toEqual([]);
  });

  it('stops when it is withdrawn, and then says so', async () => {
    await startAgent();
    isClusterUp = false;
    hubAnswer = () => ({ permitted: ['copy'], copies: [COPY] });
    await pass(120_000, { beats: false });
    isClusterUp = true;
    hubAnswer = () => ({ withdrawn: ['copy'] });
    await pass(600_000);
    expect(runtime.asked).toContain('stop web-1 30');
    expect(asked.at(-1)?.stopped).toEqual(['copy']);
    // The hub knows it now, and names it no longer.
    hubAnswer = () => ({});
    await pass(60_000);
    expect(asked.at(-1)?.stopped).toEqual([]);
  });
});

describe('the permits of a machine', () => {
  const permitsOf = (over: Partial<ConstructorParameters<typeof SitePermits>[0]> = {}) =>
    new SitePermits({ hub, file, time, log: silentLog, ...over });

  it('release no pod before it is known which pods run, and none that runs', async () => {
    hubAnswer = ({ released = [] }) => ({ released });
    const permits = permitsOf();
    expect(await permits.release('u1')).toBe(false);
    permits.connect({ mayRun: (uid) => uid === 'u1', permitting() {}, permitted() {} });
    expect(await permits.release('u1')).toBe(false);
    expect(asked).toEqual([]);
    expect(await permits.release('u2')).toBe(true);
    expect(asked).toEqual([{ released: ['u2'], stopped: [] }]);
  });

  it('are asked for one after the other, also after a request that failed', async () => {
    const pending: PromiseWithResolvers<KubeAnswer>[] = [];
    const send = () => {
      const answer = Promise.withResolvers<KubeAnswer>();
      pending.push(answer);
      return answer.promise;
    };
    const permits = permitsOf({ hub: { send, reconnect() {} } });
    permits.connect({ mayRun: () => false, permitting() {}, permitted() {} });
    const first = permits.release('u1');
    const second = permits.release('u2');
    await settle();
    expect(pending).toHaveLength(1);
    pending[0]?.reject(new Error('a bug'));
    await expect(first).rejects.toThrow('a bug');
    await settle();
    expect(pending).toHaveLength(2);
    pending[1]?.resolve(timedOut);
    expect(await second).toBe(false);
  });

  it('are none where their file cannot be read', async () => {
    const warnings: unknown[] = [];
    const broken: PermitFile = { ...file, read: () => Promise.reject(new Error('EIO')) };
    const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
    const permits = permitsOf({ file: broken, log });
    await permits.read();
    expect([permits.lastPermitOf(COPY), warnings]).toEqual([undefined, ['the last permits cannot be read']]);
  });
});
