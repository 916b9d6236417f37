/** Resizes through the loop of pods, over the API and a runtime in memory. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { KubePod, ResourceRequirements } from '../../../shared/kinds/types.ts';
import { timedOut } from '../../../test/support/agent-api.ts';
import { type ApiInMemory, apiInMemory, NODES, node, pod, podsIn } from '../../../test/support/api-in-memory.ts';
import { noHeartbeats } from '../../../test/support/memory-heartbeat-file.ts';
import { type MemoryRuntime, memoryRuntime } from '../../../test/support/memory-runtime.ts';
import { EDGE_1, sendAsEdge1 } from '../../../test/support/node-api.ts';
import { podLoopParts } from '../../../test/support/pod-loop-parts.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../../ports/kube-api.ts';
import { createPodLoop, FIRST_LIST_MS, type PodLoop } from '../pod-loop.ts';
import type { PodLoopDependencies } from './dependencies.ts';

const sized = (cpu: string, memory = '1Gi'): ResourceRequirements => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
});

let server: ApiInMemory;
let time: SteppedTime;
let runtime: MemoryRuntime;
let loop: PodLoop;
let events: string[];
let requests: KubeRequest[];
/** What the API wants for a pod, by name, in place of what it has stored. */
let wanted: Map<string, ResourceRequirements>;
let stop: AbortController;

function withWanted(answer: KubeAnswer): KubeAnswer {
  const { items } = (answer.kind === 'answered' ? answer.body : {}) as { items?: KubePod[] };
  if (answer.kind !== 'answered' || items === undefined) return answer;
  const changed = items.map((each) => {
    const resources = wanted.get(each.metadata.name ?? '');
    if (resources === undefined) return each;
    const containers = (each.spec?.containers ?? []).map((container) => ({ ...container, resources }));
    return { ...each, metadata: { ...each.metadata, generation: 2 }, spec: { ...each.spec, containers } };
  });
  return { ...answer, body: { ...(answer.body as object), items: changed } };
}

async function rest(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await settle();
}
async function pass(milliseconds: number): Promise<void> {
  await time.pass(milliseconds);
  await rest();
}

function startLoop(over: Partial<PodLoopDependencies> = {}): void {
  stop = new AbortController();
  loop = createPodLoop({
    ...podLoopParts,
    api: {
      async send(request) {
        requests.push(request);
        return withWanted(await sendAsEdge1(server, request));
      },
      reconnect() {},
    },
    runtime,
    heartbeats: noHeartbeats(time),
    time,
    recordEvent: ({ metadata }, { reason, message }) => events.push(`${metadata.name} ${reason} ${message}`),
    ...over,
  });
  void loop.run(stop.signal);
}

beforeEach(async () => {
  server = apiInMemory({ users: EDGE_1 });
  time = new SteppedTime(server.nowMs());
  runtime = memoryRuntime(time);
  [events, requests, wanted] = [[], [], new Map()];
  await server.send('POST', NODES, { body: node('edge-1') });
  await server.send('PATCH', `${NODES}/edge-1/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { allocatable: { cpu: '4', memory: '8Gi', pods: '9', 'ephemeral-storage': '10Gi' } } },
  });
  startLoop();
  return () => stop.abort();
});

async function bind(name: string, resources: ResourceRequirements, more: object = {}): Promise<void> {
  const { spec } = pod(name);
  const containers = [{ name: 'main', image: 'i', resources }];
  const body = pod(name, { spec: { ...spec, ...more, nodeName: 'edge-1', containers } });
  expect((await server.send('POST', podsIn('default'), { body })).code).toBe(201);
}
const statusOf = async (name: string) =>
  ((await server.send('GET', `${podsIn('default')}/${name}`)).body as KubePod).status;
const resizes = async (name: string) =>
  ((await statusOf(name))?.conditions ?? []).filter(({ type }) => type.startsWith('PodResize'));
const actual = async (name: string) => (await statusOf(name))?.containerStatuses?.[0];
/** The API wants these resources, and the next heartbeat says so. */
async function resize(name: string, resources: ResourceRequirements): Promise<void> {
  wanted.set(name, resources);
  loop.podsChanged();
  await rest();
}
const resizeEvents = () => events.filter((each) => each.includes('Resize')).map((each) => each.split(' {')[0]);

describe('a resize of a running pod', () => {
  beforeEach(async () => {
    await bind('web', sized('1'));
    loop.podsChanged();
    await rest();
  });

  it('is applied while its container runs', async () => {
    expect(await actual('web')).toMatchObject({ resources: sized('1'), allocatedResources: sized('1').requests });
    await resize('web', sized('2'));
    expect(await actual('web')).toMatchObject({
      resources: sized('2'),
      allocatedResources: sized('2').requests,
      restartCount: 0,
    });
    expect(await resizes('web')).toEqual([]);
    expect((await statusOf('web'))?.observedGeneration).toBe(2);
    expect(resizeEvents()).toEqual([
      'web ResizeStarted Pod resize started:',
      'web ResizeCompleted Pod resize completed:',
    ]);
    const before = requests.length;
    await resize('web', sized('2'));
    expect(requests.slice(before).map(({ method }) => method)).toEqual(['GET']);
  });

  it('that can never fit is reported, and decided again when the pod changes', async () => {
    await resize('web', sized('5'));
    expect(await resizes('web')).toMatchObject([
      {
        type: 'PodResizePending',
        status: 'True',
        reason: 'Infeasible',
        message: "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000",
        observedGeneration: 2,
      },
    ]);
    expect(await actual('web')).toMatchObject({ resources: sized('1'), allocatedResources: sized('1').requests });
    const before = requests.length;
    loop.podsChanged();
    await rest();
    expect(requests.slice(before).map(({ method }) => method)).toEqual(['GET']);
    await resize('web', sized('1'));
    expect(await resizes('web')).toEqual([]);
    expect(resizeEvents()).toEqual(['web ResizeInfeasible Pod resize Infeasible:']);
    expect(runtime.asked).not.toContain('resize web');
  });

  it.each(['ended by itself', 'been removed'])(
    'that does not fit now is allocated when another pod has %s',
    async (end) => {
      await bind('other', sized('2'), { restartPolicy: 'Never' });
      await resize('web', sized('3'));
      expect(await resizes('web')).toMatchObject([
        {
          reason: 'Deferred',
          message: "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
        },
      ]);
      if (end === 'been removed') {
        await server.send('DELETE', `${podsIn('default')}/other`);
        loop.podsChanged();
      } else {
        const times = { startedAtMs: time.nowMs(), finishedAtMs: time.nowMs() };
        runtime.setState('other', 'main', { kind: 'terminated', exitCode: 0, reason: 'Completed', ...times });
      }
      await rest();
      expect(await resizes('web')).toEqual([]);
      expect(await actual('web')).toMatchObject({ resources: sized('3') });
    },
  );

  it('does not count what other pods want, but what they have', async () => {
    await bind('other', sized('2'));
    loop.podsChanged();
    await rest();
    wanted.set('other', sized('4'));
    await resize('web', sized('2'));
    expect(await actual('web')).toMatchObject({ resources: sized('2') });
    expect(await resizes('other')).toMatchObject([{ reason: 'Deferred' }]);
    await resize('other', sized('1'));
    expect(await resizes('other')).toEqual([]);
  });

  it('that the runtime cannot apply is in progress with its error, and is tried again', async () => {
    runtime.resizeFault = 'cannot decrease memory limits';
    await resize('web', sized('1', '512Mi'));
    expect(await resizes('web')).toMatchObject([
      { type: 'PodResizeInProgress', status: 'True', reason: 'Error', message: runtime.resizeFault },
    ]);
    expect(await actual('web')).toMatchObject({
      resources: sized('1'),
      allocatedResources: sized('1', '512Mi').requests,
    });
    await pass(1_000);
    runtime.resizeFault = undefined;
    await pass(2_000);
    expect(await resizes('web')).toEqual([]);
    expect(await actual('web')).toMatchObject({ resources: sized('1', '512Mi') });
    expect(resizeEvents().map((each) => each?.split(' ')[1])).toEqual([
      'ResizeStarted',
      'ResizeError',
      'ResizeCompleted',
    ]);
  });

  it('survives the agent: the next one knows what is allocated', async () => {
    await resize('web', sized('3'));
    stop.abort();
    await rest();
    wanted.set('web', sized('5'));
    startLoop();
    await rest();
    expect(await resizes('web')).toMatchObject([{ reason: 'Infeasible' }]);
    expect(await actual('web')).toMatchObject({ resources: sized('3'), allocatedResources: sized('3').requests });
    await bind('other', sized('2'));
    loop.podsChanged();
    await rest();
    expect((await statusOf('other'))?.reason).toBe('OutOfcpu');
  });

  it('survives the agent without the API, also if the machine remembers the pod as it was before', async () => {
    const before = (await runtime.pods())[0]!.pod!;
    await resize('web', sized('3'));
    stop.abort();
    await rest();
    const asked = runtime.asked.length;
    const api = { send: async () => timedOut, reconnect() {} };
    startLoop({ api, memory: { remembered: [before], save: async () => undefined } });
    await pass(FIRST_LIST_MS);
    expect(runtime.asked.slice(asked)).toEqual(['start web']);
  });

  it('is not decided while the Node cannot be read', async () => {
    await server.send('DELETE', `${NODES}/edge-1`);
    await resize('web', sized('2'));
    expect(runtime.asked).not.toContain('resize web');
    expect(resizeEvents()).toEqual([]);
  });
});
