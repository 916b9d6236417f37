import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { silentLog, silentMeter, timedOut } from '../../test/support/agent-api.ts';
import { type ApiInMemory, apiInMemory, NODES, node, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { noHeartbeats } from '../../test/support/memory-heartbeat-file.ts';
import { type MemoryRuntime, memoryRuntime } from '../../test/support/memory-runtime.ts';
import { type MemoryVolumes, memoryVolumes } from '../../test/support/memory-volumes.ts';
import { EDGE_1, sendAsEdge1 } from '../../test/support/node-api.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import type { ProbeClient } from '../ports/probe-client.ts';
import { ADMITTED } from '../rules/pod-admission.ts';
import { terminatedStatus } from '../rules/shutdown-status.ts';
import { staticPod } from '../rules/static-pod.ts';
import { createPodLoop, FIRST_LIST_MS, type PodLoop } from './pod-loop.ts';
import type { PodLoopDependencies } from './pods/dependencies.ts';
import { PodInputs, type RememberedInputs } from './pods/pod-inputs.ts';
import { PodProbes } from './pods/pod-probes.ts';

const noProbes: ProbeClient = {
  httpGet: async () => ({ kind: 'failed', message: '' }),
  tcpConnect: async () => undefined,
};
let server: ApiInMemory;
let time: SteppedTime;
let runtime: MemoryRuntime;
let volumes: MemoryVolumes;
let inputs: PodInputs;
let loop: PodLoop;
let requests: KubeRequest[];
let events: string[];
let counted: string[];
/** Replaces an answer of the API; undefined: its own answer. */
let instead: (request: KubeRequest) => KubeAnswer | undefined;
const stops: AbortController[] = [];

const api = {
  async send(request: KubeRequest): Promise<KubeAnswer> {
    requests.push(request);
    const other = instead(request);
    if (other !== undefined) return other;
    return sendAsEdge1(server, request);
  },
  reconnect() {},
};

function newLoop(over: Partial<PodLoopDependencies> = {}, remembered?: RememberedInputs, inputsApi = api): PodLoop {
  const recordEvent: PodLoopDependencies['recordEvent'] = ({ metadata }, { type, reason, message }) =>
    events.push(`${metadata.name}: ${type} ${reason} ${message}`);
  const hostIp = () => '192.0.2.7';
  const shared = { api, time, fraction: () => 0, log: silentLog, hostIp, recordEvent };
  const allocatable = () => ({ cpu: '2', memory: '4Gi' });
  inputs = new PodInputs({ ...shared, api: inputsApi, volumes, allocatable, services: {}, remembered });
  return createPodLoop({
    ...shared,
    nodeName: 'edge-1',
    runtime,
    inputs,
    heartbeats: noHeartbeats(time),
    probes: new PodProbes({ ...shared, runtime, probeClient: noProbes }),
    meter: {
      ...silentMeter,
      count: (name, labels) => counted.push(`${name} ${labels?.['reason'] ?? ''}`.trim()),
    },
    operatingSystem: 'linux',
    gate: () => ({ kind: 'admitted' }),
    topology: { admit: () => ADMITTED, release() {} },
    ...over,
  });
}

/** Runs the loop until the test is over. Returns when the loop is idle. */
async function running(started = loop): Promise<AbortController> {
  const stop = new AbortController();
  stops.push(stop);
  void started.run(stop.signal);
  await rest();
  return stop;
}

/** Waits until no request is under way. Time does not pass. */
async function rest(): Promise<void> {
  let before = -1;
  for (let turn = 0; turn < 200 && (turn % 20 !== 0 || before !== requests.length); turn += 1) {
    if (turn % 20 === 0) before = requests.length;
    await settle();
  }
}

async function pass(milliseconds: number): Promise<void> {
  const partMs = 1_000;
  for (let passedMs = 0; passedMs < milliseconds; passedMs += partMs) {
    await time.pass(Math.min(partMs, milliseconds - passedMs));
    await rest();
  }
}

async function bind(
  name: string,
  spec: Record<string, unknown> = {},
  more: Partial<KubeObject> = {},
): Promise<KubeObject> {
  const made = await server.send('POST', podsIn('default'), {
    body: pod(name, {
      ...more,
      spec: { nodeName: 'edge-1', terminationGracePeriodSeconds: 30, ...pod(name).spec, ...spec },
    }),
  });
  expect(made.code).toBe(201);
  return made.body as KubeObject;
}

const stored = async (name: string): Promise<KubeObject | undefined> => {
  const answer = await server.send('GET', `${podsIn('default')}/${name}`);
  return answer.code === 200 ? (answer.body as KubeObject) : undefined;
};
const remove = (name: string, body: Record<string, unknown> = {}) =>
  server.send('DELETE', `${podsIn('default')}/${name}`, { body });
const conditionOf = async (name: string, type: string) =>
  recordsOf((await stored(name))?.status?.['conditions']).find((each) => each['type'] === type);
const changed = async (): Promise<void> => {
  loop.podsChanged();
  await rest();
};
const statusWrites = (): number => requests.filter(({ method }) => method === 'PATCH').length;

beforeEach(async () => {
  for (const stop of stops.splice(0)) stop.abort();
  server = apiInMemory({
    users: EDGE_1,
  });
  time = new SteppedTime(server.nowMs());
  runtime = memoryRuntime(time);
  volumes = memoryVolumes();
  requests = [];
  events = [];
  counted = [];
  instead = () => undefined;
  loop = newLoop();
  await server.send('POST', NODES, { body: node('edge-1', { metadata: { labels: { site: 'harbour' } } }) });
  await server.send('PATCH', `${NODES}/edge-1/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { allocatable: { cpu: '2', memory: '4Gi', pods: '3', 'ephemeral-storage': '10Gi' } } },
  });
});

describe('a pod bound to the node', () => {
  it('is started, and reported as running and ready', async () => {
    await bind('web');
    await running();
    expect(runtime.asked).toEqual(['start web']);
    expect(await stored('web')).toMatchObject({
      status: {
        phase: 'Running',
        hostIP: '192.0.2.7',
        podIP: '192.0.2.7',
        qosClass: 'BestEffort',
        containerStatuses: [{ name: 'main', ready: true, restartCount: 0 }],
      },
    });
    expect(await conditionOf('web', 'Ready')).toMatchObject({ status: 'True' });
    expect(events).toEqual(['web: Normal Started Started container main']);
  });

  it('is found at once when a heartbeat says that pods changed', async () => {
    await running();
    await bind('web');
    await changed();
    expect(runtime.asked).toEqual(['start web']);
  });

  it('is found after 5 minutes without a heartbeat that says so, and after 30 by a machine without pods', async () => {
    await running();
    await bind('web');
    await pass(1_799_000);
    expect(runtime.asked).toEqual([]);
    await pass(1_000);
    expect(runtime.asked).toEqual(['start web']);
    await bind('next');
    await pass(299_000);
    expect(runtime.asked).toEqual(['start web']);
    await pass(1_000);
    expect(runtime.asked).toEqual(['start web', 'start next']);
  });

  it('costs one write while nothing changes', async () => {
    await bind('web');
    await running();
    await changed();
    await pass(600_000);
    expect(statusWrites()).toBe(1);
  });

  it('is started again after a failed start', async () => {
    runtime.failStarts = 2;
    await bind('web');
    await running();
    expect(events).toEqual(['web: Warning FailedSync Error starting pod: no more processes']);
    await pass(3_000);
    expect(runtime.asked).toEqual(['start web', 'start web', 'start web']);
    expect(await stored('web')).toMatchObject({ status: { phase: 'Running' } });
  });

  it('is not started before its volumes are set up, and says that it waits', async () => {
    let isReady = false;
    const prepare = async (): Promise<void> => {
      if (!isReady) throw new Error('no such ConfigMap');
    };
    loop = newLoop({ inputs: { prepare, changed() {}, remove: async () => {}, keepOnly() {} } });
    await bind('web');
    await running();
    await pass(1_000);
    expect(runtime.asked).toEqual([]);
    expect(await stored('web')).toMatchObject({ status: { phase: 'Pending', hostIP: '192.0.2.7' } });
    isReady = true;
    await pass(10_000);
    expect(runtime.asked).toEqual(['start web']);
  });

  it.each([10_800_000, -10_800_000])(
    'is tried again and listed in time, though the clock is set by %s ms',
    async (byMs) => {
      runtime.failStarts = 1;
      await bind('web');
      await running();
      time.setClock(byMs);
      await pass(1_000);
      expect(runtime.asked).toEqual(['start web', 'start web']);
      requests.length = 0;
      await pass(298_000);
      expect(requests.filter(({ path }) => path.startsWith('/api/v1/pods?'))).toHaveLength(0);
      await pass(2_000);
      expect(requests.filter(({ path }) => path.startsWith('/api/v1/pods?'))).toHaveLength(1);
    },
  );

  it('of another node is ignored', async () => {
    await bind('web', { nodeName: 'edge-2' });
    await running();
    expect(runtime.asked).toEqual([]);
  });

  it('is listed in pages', async () => {
    for (const name of ['one', 'two', 'three']) await bind(name);
    const listed: string[] = [];
    instead = ({ method, path }) => {
      if (method !== 'GET' || !path.startsWith('/api/v1/pods?')) return undefined;
      listed.push(path);
      return undefined;
    };
    const paging = newLoop({
      api: { ...api, send: (request) => api.send({ ...request, path: request.path.replace('limit=250', 'limit=2') }) },
    });
    await running(paging);
    expect(listed).toHaveLength(2);
    expect(listed[1]).toMatch(/&continue=/);
    expect(runtime.asked).toHaveLength(3);
  });
});

describe('containers that change', () => {
  const crashing = {
    kind: 'waiting',
    reason: 'CrashLoopBackOff',
    message: 'back-off 10s restarting failed container=main',
  } as const;

  it('are reported at once', async () => {
    await bind('web');
    await running();
    runtime.setState('web', 'main', crashing, { restartCount: 1 });
    await rest();
    expect(await stored('web')).toMatchObject({
      status: {
        containerStatuses: [{ ready: false, restartCount: 1, state: { waiting: { reason: 'CrashLoopBackOff' } } }],
      },
    });
    expect(await conditionOf('web', 'Ready')).toMatchObject({ status: 'False', reason: 'ContainersNotReady' });
    expect(events).toContain('web: Warning BackOff Back-off restarting failed container main');
  });

  it('end the pod when its policy is Never', async () => {
    await bind('job', { restartPolicy: 'Never' });
    await running();
    const over = { kind: 'terminated', exitCode: 3, reason: 'Error', startedAtMs: 0, finishedAtMs: 1_000 } as const;
    runtime.setState('job', 'main', over);
    await rest();
    expect(await stored('job')).toMatchObject({ status: { phase: 'Failed' } });
    expect(loop.activePods()).toEqual([]);
    await changed();
    expect(runtime.asked.filter((each) => each.startsWith('start'))).toEqual(['start job']);
  });

  it('are reported again when another client wrote that they are not ready', async () => {
    await bind('web');
    await running();
    await server.send('PATCH', `${podsIn('default')}/web/status`, {
      contentType: 'application/strategic-merge-patch+json',
      body: { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
    });
    await changed();
    expect(await conditionOf('web', 'Ready')).toMatchObject({ status: 'True' });
  });
});

describe('a pod that does not fit', () => {
  const hungry = { containers: [{ name: 'main', image: 'i', resources: { requests: { cpu: '3' } } }] };

  it('is rejected with an event and a status, and never started', async () => {
    await bind('web', hungry);
    await running();
    expect(runtime.asked).toEqual([]);
    const message = "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000";
    expect(await stored('web')).toMatchObject({
      status: { phase: 'Failed', reason: 'OutOfcpu', message: `Pod was rejected: ${message}` },
    });
    expect(events).toEqual([`web: Warning OutOfcpu ${message}`]);
    expect(counted).toContain('kubelet_admission_rejections_total OutOfcpu');
    await changed();
    expect(events).toHaveLength(1);
  });

  it('leaves its resources to the next', async () => {
    await bind('a', hungry);
    const small = { containers: [{ name: 'main', image: 'i', resources: { requests: { cpu: '2' } } }] };
    await bind('b', small);
    await bind('c', small);
    await running();
    expect(runtime.asked).toEqual(['start b']);
    expect(await stored('c')).toMatchObject({ status: { reason: 'OutOfcpu' } });
  });

  it('is removed when it is deleted', async () => {
    await bind('web', hungry);
    await running();
    await remove('web');
    await changed();
    expect(await stored('web')).toBeUndefined();
  });

  it('is every pod that is bound during a shutdown', async () => {
    await bind('web');
    const message = 'Pod was rejected as the node is shutting down.';
    await running(newLoop({ gate: () => ({ kind: 'refused', reason: 'NodeShutdown', message }) }));
    expect(await stored('web')).toMatchObject({
      status: { phase: 'Failed', reason: 'NodeShutdown', message: `Pod was rejected: ${message}` },
    });
  });

  it('is every pod when the runtime cannot run pods', async () => {
    runtime = memoryRuntime(time, { reason: 'NoRuntime', message: 'no pods here' });
    await bind('web');
    await running(newLoop());
    expect(await stored('web')).toMatchObject({ status: { phase: 'Failed', reason: 'NoRuntime' } });
  });

  it('is rejected by the topology manager, which releases the resources of removed pods', async () => {
    await bind('good');
    await bind('bad');
    const released: string[] = [];
    const topology = {
      admit: ({ metadata }: KubeObject) =>
        metadata.name === 'bad'
          ? ({ kind: 'refused', reason: 'TopologyAffinityError', message: 'no' } as const)
          : ({ kind: 'admitted' } as const),
      release: (uid: string) => released.push(uid),
    };
    loop = newLoop({ topology });
    await running();
    expect(await stored('bad')).toMatchObject({ status: { reason: 'TopologyAffinityError' } });
    const good = await stored('good');
    await remove('good', { gracePeriodSeconds: 1 });
    await changed();
    expect(released).toEqual([good?.metadata.uid]);
  });
});

describe('a deleted pod', () => {
  it('is stopped with the grace period of the deletion, and then confirmed', async () => {
    await bind('web');
    await running();
    runtime.endsAfterSeconds = 5;
    await remove('web', { gracePeriodSeconds: 20 });
    await changed();
    expect(runtime.asked).toContain('stop web 20');
    expect(await stored('web')).toMatchObject({ metadata: { deletionGracePeriodSeconds: 20 } });
    await pass(5_000);
    expect(await stored('web')).toBeUndefined();
    expect(runtime.asked.at(-1)).toBe('remove web');
    expect(requests.at(-1)).toMatchObject({ method: 'DELETE', body: { gracePeriodSeconds: 0 } });
    expect(events).toContain('web: Normal Killing Stopping container main');
  });

  it('is stopped sooner after a second deletion with a shorter grace period', async () => {
    await bind('web');
    await running();
    runtime.endsAfterSeconds = 1_000;
    await remove('web', { gracePeriodSeconds: 600 });
    await changed();
    await remove('web', { gracePeriodSeconds: 2 });
    await changed();
    await pass(3_000);
    expect(await stored('web')).toBeUndefined();
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual(['stop web 600', 'stop web 2']);
  });

  it('that never ran here is removed at once', async () => {
    await bind('web', {}, { metadata: { name: 'web', finalizers: [] } });
    await remove('web');
    await running();
    expect(runtime.asked.some((each) => each.startsWith('start'))).toBe(false);
    expect(await stored('web')).toBeUndefined();
  });

  it('with a finalizer gets its last status before the deletion is confirmed', async () => {
    await bind('job', {}, { metadata: { name: 'job', finalizers: ['example.com/count'] } });
    await running();
    await remove('job', { gracePeriodSeconds: 3 });
    await changed();
    expect(await stored('job')).toMatchObject({
      status: { phase: 'Succeeded', containerStatuses: [{ state: { terminated: { exitCode: 0 } } }] },
    });
    const deletes = () => requests.filter(({ method }) => method === 'DELETE').length;
    await changed();
    expect(deletes()).toBe(1);
  });

  it('that was deleted by force is stopped and removed', async () => {
    await bind('web');
    await running();
    await server.send('DELETE', `${podsIn('default')}/web`, { body: { gracePeriodSeconds: 0 } });
    expect(await stored('web')).toBeUndefined();
    await changed();
    expect(runtime.asked.slice(1)).toEqual(['stop web 30', 'remove web']);
  });

  it('is not confused with its successor of the same name', async () => {
    await bind('web');
    await running();
    await server.send('DELETE', `${podsIn('default')}/web`, { body: { gracePeriodSeconds: 0 } });
    await bind('web');
    await changed();
    expect(runtime.asked).toEqual(expect.arrayContaining(['start web', 'stop web 30', 'remove web', 'start web']));
    expect(await stored('web')).toMatchObject({ status: { phase: 'Running' } });
  });

  it('is confirmed by its uid: a pod created meanwhile with its name stays', async () => {
    await bind('web');
    await running();
    runtime.endsAfterSeconds = 5;
    await remove('web', { gracePeriodSeconds: 20 });
    await changed();
    await server.send('DELETE', `${podsIn('default')}/web`, { body: { gracePeriodSeconds: 0 } });
    const successor = await bind('web');
    await pass(5_000);
    expect(requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
    expect((await stored('web'))?.metadata.uid).toBe(successor.metadata.uid);
    expect((await stored('web'))?.metadata.deletionTimestamp).toBeUndefined();
  });
});

it('a pod that is active for longer than its deadline fails, and does not start again', async () => {
  await bind('web', { activeDeadlineSeconds: 90 });
  await running();
  await pass(89_000);
  expect(await stored('web')).toMatchObject({ status: { phase: 'Running' } });
  await pass(3_000);
  expect(await stored('web')).toMatchObject({
    status: {
      phase: 'Failed',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
      containerStatuses: [{ ready: false, state: { terminated: {} } }],
    },
  });
  expect(events.filter((event) => /Deadline/.test(event))).toHaveLength(1);
});

it('a container gets another image when its pod does', async () => {
  const used: unknown[] = [];
  const useImages = async ({ spec }: KubePod) => void used.push(spec?.containers?.[0]?.image);
  loop = newLoop({ runtime: { ...runtime, useImages } });
  await bind('web');
  await running(loop);
  expect(used).toEqual([]);
  const [container] = recordsOf(pod('web').spec?.['containers']);
  const body = { spec: { containers: [{ name: container?.['name'], image: 'web:2' }] } };
  const contentType = 'application/strategic-merge-patch+json';
  expect((await server.send('PATCH', `${podsIn('default')}/web`, { body, contentType })).code).toBe(200);
  await changed();
  expect(used[0]).toBe('web:2');
});

describe('an API that cannot be reached', () => {
  it('leaves pods running, and is requested again with growing waits', async () => {
    await bind('web');
    await running();
    instead = () => timedOut;
    requests.length = 0;
    await changed();
    await pass(120_000);
    expect(runtime.asked).toEqual(['start web']);
    expect(requests.length).toBeGreaterThanOrEqual(6);
    expect(requests.length).toBeLessThan(12);
  });

  it('that answers 429 without Retry-After is requested again after an additional random wait', async () => {
    instead = () => ({ kind: 'answered', status: 429, body: {} });
    await running(newLoop({ fraction: () => 0.5 }));
    await pass(6_000);
    expect(requests).toHaveLength(1);
    await pass(1_000);
    expect(requests).toHaveLength(2);
  });

  it('receives the newest status when it recovers', async () => {
    await bind('web');
    await running();
    instead = () => timedOut;
    for (const restartCount of [1, 2, 3]) {
      runtime.setState('web', 'main', { kind: 'running', startedAtMs: time.nowMs() }, { restartCount });
      await rest();
    }
    await pass(10_000);
    instead = () => undefined;
    requests.length = 0;
    await pass(20_000);
    expect(statusWrites()).toBe(1);
    expect(await stored('web')).toMatchObject({ status: { containerStatuses: [{ restartCount: 3 }] } });
  });

  it('delays the confirmation of a deletion, but does not lose it', async () => {
    await bind('web');
    await running();
    await remove('web', { gracePeriodSeconds: 1 });
    instead = ({ method }) => (method === 'DELETE' ? timedOut : undefined);
    await changed();
    await pass(10_000);
    expect(await stored('web')).toBeDefined();
    instead = () => undefined;
    await pass(20_000);
    expect(await stored('web')).toBeUndefined();
  });

  it('admits no pod while the Node cannot be read', async () => {
    await bind('web');
    instead = ({ path }) => (path === '/api/v1/nodes/edge-1' ? timedOut : undefined);
    await running();
    expect(runtime.asked).toEqual([]);
    expect(await stored('web')).toMatchObject({ status: { phase: 'Pending' } });
    instead = () => undefined;
    await pass(5_000);
    expect(runtime.asked).toEqual(['start web']);
  });

  it('does not remove pods after an incomplete list', async () => {
    for (const name of ['one', 'two', 'three']) await bind(name);
    const paging = newLoop({
      api: { ...api, send: (request) => api.send({ ...request, path: request.path.replace('limit=250', 'limit=2') }) },
    });
    await running(paging);
    instead = ({ path }) => (path.includes('continue=') ? timedOut : undefined);
    paging.podsChanged();
    await rest();
    await pass(30_000);
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual([]);
  });
});

describe('an agent that starts again', () => {
  it('keeps the running pods without admitting them again', async () => {
    await bind('web', { nodeSelector: { site: 'harbour' } });
    const stop = await running();
    stop.abort();
    await rest();
    await server.send('PATCH', `${NODES}/edge-1`, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { labels: { site: 'hill' } } },
    });
    events = [];
    loop = newLoop();
    await running();
    expect(await stored('web')).toMatchObject({ status: { phase: 'Running' } });
    expect(events).toEqual([]);
  });

  it('stops the containers of a pod that was deleted meanwhile', async () => {
    await runtime.start({ metadata: { name: 'old', namespace: 'default', uid: 'u-old' }, spec: { containers: [] } });
    await running();
    expect(runtime.asked.slice(1)).toEqual(['stop old 1', 'remove old']);
  });
});

describe('the stop of the agent', () => {
  it('leaves pods running, and confirms no deletion', async () => {
    await bind('web');
    const stop = await running();
    runtime.endsAfterSeconds = 10;
    await bind('other');
    await remove('web', { gracePeriodSeconds: 20 });
    await changed();
    expect([...runtime.asked].sort()).toEqual(['start other', 'start web', 'stop web 20']);
    const sent = requests.length;
    stop.abort();
    await pass(15_000);
    // The containers have exited, and the runtime reported it.
    expect((await runtime.pods())[0]?.containers[0]?.state.kind).toBe('terminated');
    expect(requests).toHaveLength(sent);
    expect(runtime.asked).toHaveLength(3);
    expect(await stored('web')).toMatchObject({ metadata: { deletionGracePeriodSeconds: 20 } });
    // The next agent continues from there.
    runtime.endsAfterSeconds = 0;
    loop = newLoop();
    await running();
    expect(await stored('web')).toBeUndefined();
  });
});

describe('killing a pod', () => {
  const killed = (status: Readonly<Record<string, unknown>>) => terminatedStatus(status, time.nowMs());

  it('resolves when the pod is terminated and reported, and the pod does not start again', async () => {
    const web = await bind('web');
    await running();
    runtime.endsAfterSeconds = 4;
    let over = false;
    const kill = loop.killPod(web, 10, killed).then(() => {
      over = true;
    });
    expect(loop.activePods()).toEqual([]);
    await pass(3_000);
    expect(over).toBe(false);
    await pass(1_000);
    await kill;
    expect(await stored('web')).toMatchObject({
      status: {
        phase: 'Failed',
        reason: 'Terminated',
        message: 'Pod was terminated in response to imminent node shutdown.',
        containerStatuses: [{ ready: false, state: { terminated: { exitCode: 0 } } }],
      },
    });
    expect(await conditionOf('web', 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'TerminationByKubelet',
    });
    await changed();
    expect(runtime.asked.filter((each) => each.startsWith('start'))).toEqual(['start web']);
  });

  it('overrides a deletion with a longer grace period', async () => {
    const web = await bind('web');
    await running();
    runtime.endsAfterSeconds = 1_000;
    await remove('web', { gracePeriodSeconds: 600 });
    await changed();
    const kill = loop.killPod(web, 5, killed);
    await pass(6_000);
    await kill;
    expect(await stored('web')).toBeUndefined();
  });

  it('that is being killed already has the shorter grace period of a shutdown, which waits for it', async () => {
    const web = await bind('web');
    await running();
    runtime.endsAfterSeconds = 1_000;
    void loop.killPod(web, 600, killed).catch(() => undefined);
    await pass(1_000);
    expect(loop.activePods()).toEqual([]);
    expect(loop.unfinishedPods().map(({ metadata }) => metadata.name)).toEqual(['web']);
    let over = false;
    void loop.killPod(web, 5, killed).then(() => {
      over = true;
    });
    await pass(4_000);
    expect(over).toBe(false);
    await pass(2_000);
    expect([over, loop.unfinishedPods()]).toEqual([true, []]);
  });

  it('does not wait for an API that cannot be reached', async () => {
    const web = await bind('web');
    await running();
    instead = () => timedOut;
    await loop.killPod(web, 5, killed);
    instead = () => undefined;
    await pass(5_000);
    expect(await stored('web')).toMatchObject({ status: { reason: 'Terminated' } });
  });

  it('rejects for a pod that does not terminate', async () => {
    const web = await bind('web');
    const stuck: PodRuntime = { ...runtime, stop: () => new Promise(() => {}) };
    loop = newLoop({ runtime: stuck });
    await running();
    const kill = loop.killPod(web, 6, killed).then(
      () => 'ended',
      (error: Error) => error.message,
    );
    await pass(9_000);
    expect(await Promise.race([kill, Promise.resolve('waiting')])).toBe('waiting');
    await pass(1_000);
    expect(await kill).toBe('timeout waiting to kill pod');
  });
});

describe('after a power cut', () => {
  const COMPLETED = { kind: 'terminated', exitCode: 0, reason: 'Completed', startedAtMs: 0, finishedAtMs: 1 } as const;
  let saved: readonly KubePod[];
  let kept: RememberedInputs;
  /** Until it resolves, nothing is written. */
  let disk: Promise<void>;
  const isDown = (): void => {
    instead = () => timedOut;
  };
  const isUp = (): void => {
    instead = () => undefined;
  };
  const memoryOf = (remembered: readonly KubePod[]): PodLoopDependencies['memory'] => ({
    remembered,
    async save(pods) {
      await disk;
      saved = pods;
      kept = inputs.inUse(pods);
    },
  });

  beforeEach(() => {
    saved = [];
    disk = Promise.resolve();
    loop = newLoop({ memory: memoryOf([]) });
  });

  /** The agent and all processes are killed; the machine starts again with what is on its disk, and runs. */
  async function powerCut(whileMs = FIRST_LIST_MS): Promise<void> {
    for (const stop of stops.splice(0)) stop.abort();
    await rest();
    runtime = memoryRuntime(time);
    volumes = memoryVolumes();
    // Through the text of the file.
    loop = newLoop({ memory: memoryOf(JSON.parse(JSON.stringify(saved))) }, JSON.parse(JSON.stringify(kept)));
    await running();
    await pass(whileMs);
  }

  it('without the API its pods start, the most important first, and none restarts when the API returns', async () => {
    await bind('web');
    await bind('gateway', { priorityClassName: 'system-node-critical' });
    await running();
    isDown();
    await powerCut();
    expect(runtime.asked).toEqual(['start gateway', 'start web']);
    await pass(3_600_000);
    isUp();
    await pass(120_000);
    expect(runtime.asked).toEqual(['start gateway', 'start web']);
    expect(await stored('web')).toMatchObject({
      status: { phase: 'Running', containerStatuses: [{ restartCount: 0 }] },
    });
  });

  it('pods have the ConfigMaps and Secrets of before, and later those of the API', async () => {
    const map = (text: string) => ({ metadata: { name: 'settings' }, data: { text }, immutable: true });
    const [path, secrets] = ['configmaps', 'secrets'].map((each) => `/api/v1/namespaces/default/${each}`);
    await server.send('POST', path!, { body: map('old') });
    await server.send('POST', secrets!, { body: { metadata: { name: 'key' }, stringData: { key: 'value' } } });
    await bind('web', {
      containers: [
        {
          ...recordsOf(pod('web').spec?.['containers'])[0],
          env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'key', key: 'key' } } }],
          volumeMounts: [{ name: 'settings', mountPath: '/settings' }],
        },
      ],
      volumes: [{ name: 'settings', configMap: { name: 'settings' } }],
    });
    await running();
    isDown();
    await powerCut();
    const [remembered] = saved;
    const [container] = remembered?.spec?.containers ?? [];
    expect(inputs.inputsOf(remembered!, container!)).toMatchObject({
      kind: 'ready',
      variables: expect.objectContaining({ KEY: 'value' }),
    });
    const file = () => {
      const bytes = volumes.written.get(`${remembered?.metadata.uid}/settings`)?.get('text')?.bytes;
      return bytes && Buffer.from(bytes).toString();
    };
    expect(file()).toBe('old');
    isUp();
    // Another one of this name: the immutable one that is remembered no longer exists.
    await server.send('DELETE', `${path}/settings`);
    await server.send('POST', path!, { body: map('new') });
    const stop = new AbortController();
    stops.push(stop);
    void inputs.run(stop.signal);
    await pass(60_000);
    expect(file()).toBe('new');
  });

  it('pods that the API no longer has, or deletes, end when it returns', async () => {
    for (const name of ['absent', 'deleted', 'web']) await bind(name);
    await running();
    isDown();
    await powerCut();
    isUp();
    await remove('absent', { gracePeriodSeconds: 0 });
    await remove('deleted');
    isDown();
    await pass(10_000);
    isUp();
    await pass(120_000);
    expect(runtime.asked.filter((each) => !each.startsWith('start')).sort()).toEqual([
      'remove absent',
      'remove deleted',
      'stop absent 30',
      'stop deleted 30',
    ]);
    expect(await stored('deleted')).toBeUndefined();
    expect(saved.map(({ metadata }) => metadata.name)).toEqual(['web']);
  });

  it('terminated pods, and those that were being deleted, do not start again', async () => {
    await bind('job', { restartPolicy: 'Never' });
    await bind('deleted');
    await bind('web');
    await running();
    isDown();
    runtime.setState('job', 'main', COMPLETED);
    await rest();
    isUp();
    runtime.endsAfterSeconds = 600;
    await remove('deleted', { gracePeriodSeconds: 900 });
    await changed();
    expect(saved.map(({ metadata }) => metadata.name)).toEqual(['web']);
    isDown();
    await powerCut();
    expect(runtime.asked).toEqual(['start web']);
  });

  it('what the API knows of a pod is on disk before', async () => {
    const gate = Promise.withResolvers<void>();
    const phase = async () => (await stored('job'))?.status?.['phase'];
    await running();
    await bind('job', { restartPolicy: 'Never' });
    disk = gate.promise;
    await changed();
    expect(runtime.asked).toEqual(['start job']);
    expect([await phase(), saved]).toEqual(['Pending', []]);
    gate.resolve();
    await rest();
    expect([await phase(), saved]).toMatchObject(['Running', [{ metadata: { name: 'job' } }]]);

    disk = new Promise(() => undefined);
    runtime.setState('job', 'main', COMPLETED);
    await rest();
    expect([await phase(), saved]).toMatchObject(['Running', [{ metadata: { name: 'job' } }]]);
  });

  it('a disk that does not answer hides for 3 s what a pod does', async () => {
    disk = new Promise(() => undefined);
    await running();
    await bind('web');
    await changed();
    await pass(2_999);
    expect(await stored('web')).toMatchObject({ status: { phase: 'Pending' } });
    await pass(1);
    expect(await stored('web')).toMatchObject({ status: { phase: 'Running' } });
  });

  it('pods that terminated before this agent do not start again', async () => {
    await bind('job', { restartPolicy: 'Never' });
    await server.send('PATCH', `${podsIn('default')}/job/status`, {
      contentType: 'application/merge-patch+json',
      body: { status: { phase: 'Succeeded' } },
    });
    await running();
    expect(saved).toEqual([]);
  });

  it('pods that a shutdown ended start again, unless the API has their end', async () => {
    await bind('unknown');
    await running();
    isDown();
    const [active] = loop.activePods();
    void loop.killPod(active!, 1, (status) => ({ ...status, phase: 'Failed' })).catch(() => undefined);
    await pass(5_000);
    await powerCut();
    expect(runtime.asked).toEqual(['start unknown']);
    isUp();
    await pass(120_000);
    const [again] = loop.activePods();
    void loop.killPod(again!, 1, (status) => ({ ...status, phase: 'Failed' }));
    await pass(5_000);
    isDown();
    await powerCut();
    expect(runtime.asked).toEqual([]);
  });

  it('with a network, nothing starts that the API no longer wants here', async () => {
    await bind('moved');
    await bind('web');
    await running();
    const stopped = stops.splice(0);
    await remove('moved', { gracePeriodSeconds: 0 });
    for (const stop of stopped) stop.abort();
    await powerCut();
    expect(runtime.asked).toEqual(['start web']);
  });

  it('with a network that is up soon after the machine, nothing either', async () => {
    await bind('moved');
    await bind('web');
    await running();
    for (const stop of stops.splice(0)) stop.abort();
    await remove('moved', { gracePeriodSeconds: 0 });
    isDown();
    await powerCut(500);
    expect(runtime.asked).toEqual([]);
    isUp();
    await pass(FIRST_LIST_MS);
    expect(runtime.asked).toEqual(['start web']);
  });

  /** What `web` needs is remembered, and the API leaves requests without an answer until `resolve`. */
  async function silentStart(over: Partial<PodLoopDependencies> = {}): Promise<PromiseWithResolvers<KubeAnswer>> {
    await server.send('POST', '/api/v1/namespaces/default/configmaps', { body: { metadata: { name: 'settings' } } });
    await bind('web', { volumes: [{ name: 'settings', configMap: { name: 'settings' } }] });
    await running();
    for (const stop of stops.splice(0)) stop.abort();
    const answers = Promise.withResolvers<KubeAnswer>();
    runtime = memoryRuntime(time);
    const silent = { send: () => answers.promise, reconnect() {} };
    loop = newLoop({ memory: memoryOf(saved), api: silent, ...over }, kept, silent);
    await running();
    return answers;
  }

  it.each([401, 403])('an API that refuses this machine with %i starts nothing, until it is away', async (status) => {
    await bind('web');
    await running();
    instead = () => ({ kind: 'answered', status, body: {} });
    await powerCut();
    await pass(60_000);
    expect(runtime.asked).toEqual([]);
    isDown();
    await pass(120_000);
    expect(runtime.asked).toEqual(['start web']);
  });

  it('a list that answers while they are about to start decides', async () => {
    const containers = Promise.withResolvers<readonly []>();
    const slow = { ...memoryRuntime(time), pods: () => containers.promise };
    const answers = await silentStart({ runtime: slow });
    await pass(FIRST_LIST_MS);
    answers.resolve({ kind: 'answered', status: 200, body: { items: [] } });
    await rest();
    containers.resolve([]);
    await rest();
    expect(slow.asked).toEqual([]);
  });

  it('a list without an answer delays them by seconds only', async () => {
    const answers = await silentStart();
    expect(runtime.asked).toEqual([]);
    await pass(FIRST_LIST_MS);
    expect(runtime.asked).toEqual(['start web']);
    answers.resolve(timedOut);
  });

  it('while the API is away, what ends by itself is remembered as ended', async () => {
    await bind('job', { restartPolicy: 'Never' });
    await running();
    isDown();
    await powerCut();
    runtime.setState('job', 'main', COMPLETED);
    await pass(60_000);
    await powerCut();
    expect(runtime.asked).toEqual([]);
  });
});

describe('a static pod', () => {
  const manifest: KubePod = {
    metadata: { name: 'fixed' },
    spec: { containers: [{ name: 'main', image: 'busybox' }], terminationGracePeriodSeconds: 1 },
  };
  const fixed = (hash: string): KubePod => staticPod(manifest, 'edge-1', hash, '2026-01-01T00:00:00Z');
  const NAME = 'fixed-edge-1';
  let files: readonly KubePod[];
  const deletions = () => requests.filter(({ method }) => method === 'DELETE');
  const mirrors = () => requests.filter(({ method, path }) => method === 'POST' && path === podsIn('default'));

  beforeEach(async () => {
    files = [fixed('h1')];
    const uid = ((await server.send('GET', `${NODES}/edge-1`)).body as KubeObject).metadata.uid ?? '';
    loop = newLoop({ staticPods: () => files, nodeUid: () => uid });
  });

  it('has a mirror pod, which stays, with its status', async () => {
    await running();
    await changed();
    expect([mirrors().length, deletions()]).toEqual([1, []]);
    expect((await stored(NAME))?.status?.['phase']).toBe('Running');
    requests = [];
    await changed();
    expect(requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  it('has another mirror pod after its manifest changed', async () => {
    await running();
    files = [fixed('h2')];
    await changed();
    await pass(5_000);
    expect(deletions().length).toBeGreaterThan(0);
    expect((await stored(NAME))?.metadata.annotations?.['kubernetes.io/config.mirror']).toBe('h2');
  });

  it('loses its mirror pod with its manifest', async () => {
    await running();
    files = [];
    await changed();
    await pass(5_000);
    expect(await stored(NAME)).toBeUndefined();
    expect(runtime.asked.filter((each) => each.startsWith('start'))).toHaveLength(1);
  });

  it('has a new mirror pod after a user deletes it, and keeps running', async () => {
    await running();
    const before = (await stored(NAME))?.metadata.uid;
    await remove(NAME);
    await changed();
    await pass(5_000);
    await changed();
    await pass(5_000);
    const after = (await stored(NAME))?.metadata;
    expect([after === undefined, after?.uid === before, after?.deletionTimestamp]).toEqual([false, false, undefined]);
    expect(runtime.asked.filter((each) => each.startsWith('start'))).toHaveLength(1);
  });

  it('reports its status again when another client changed that of its mirror pod', async () => {
    await running();
    await server.send('PATCH', `${podsIn('default')}/${NAME}/status`, {
      contentType: 'application/merge-patch+json',
      body: { status: { phase: 'Pending' } },
    });
    await changed();
    await pass(5_000);
    expect((await stored(NAME))?.status?.['phase']).toBe('Running');
  });

  it('has a new mirror pod at once when its status changes and the API has none', async () => {
    await running();
    await remove(NAME, { gracePeriodSeconds: 0 });
    expect(await stored(NAME)).toBeUndefined();
    requests = [];
    runtime.setState(NAME, 'main', { kind: 'running', startedAtMs: time.nowMs() }, { restartCount: 1 });
    await pass(2_000);
    expect(requests.map(({ method }) => method)).toContain('GET');
    expect(mirrors()).toHaveLength(1);
    expect(recordsOf((await stored(NAME))?.status?.['containerStatuses'])[0]).toMatchObject({ restartCount: 1 });
  });
});

it('a pod that is not here has terminated', async () => {
  await running();
  await loop.killPod({ metadata: { name: 'other', uid: 'other' } }, 1, (status) => status);
  expect(runtime.asked).toEqual([]);
});

it('the result of a probe starts the next container of its pod alone, whatever comes of that', async () => {
  let report = (_podUid: string): void => {};
  const probes: PodLoopDependencies['probes'] = {
    update() {},
    readinessOf: () => ({ started: true, ready: true }),
    remove() {},
    onResult(listener) {
      report = listener;
    },
    stop() {},
  };
  loop = newLoop({ probes });
  const { uid = '' } = (await bind('web')).metadata;
  report(uid);
  const stop = await running();
  expect(runtime.asked).toEqual(['start web']);
  runtime.failStarts = 1;
  report(uid);
  report('other');
  await rest();
  expect(runtime.asked).toEqual(['start web', 'start web']);
  stop.abort();
  report(uid);
  await rest();
  expect(runtime.asked).toHaveLength(2);
});
