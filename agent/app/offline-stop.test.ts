import { beforeEach, describe, expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER } from '../../shared/kinds/pods/offline-stop.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { silentLog, timedOut } from '../../test/support/agent-api.ts';
import { type ApiInMemory, apiInMemory, NODES, node, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { type MemoryHeartbeatFile, memoryHeartbeatFile } from '../../test/support/memory-heartbeat-file.ts';
import { type MemoryRuntime, memoryRuntime } from '../../test/support/memory-runtime.ts';
import { EDGE_1, sendAsEdge1 } from '../../test/support/node-api.ts';
import { podLoopParts } from '../../test/support/pod-loop-parts.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { type ClockReading, clockReading } from '../rules/offline-stop.ts';
import { AnsweredHeartbeats } from './answered-heartbeats.ts';
import { createPodLoop, type PodLoop } from './pod-loop.ts';

const RUN_MS = 7_200_000;
const DAY_MS = 86_400_000;
const OFFLINE_STOP = { [OFFLINE_STOP_AFTER]: '2h' };

let server: ApiInMemory;
let time: SteppedTime;
let runtime: MemoryRuntime;
let file: MemoryHeartbeatFile;
let loop: PodLoop;
let stop: AbortController;
let requests: KubeRequest[];
let events: string[];
let saved: readonly KubePod[];
let staticPods: readonly KubePod[];
/** Resolves when the volumes of a pod are set up. */
let prepare: () => Promise<void>;
/** Before an answer of the API; undefined: it does not answer. */
let instead: (request: KubeRequest) => Promise<KubeAnswer> | undefined;

const isDown = (): void => {
  instead = async () => timedOut;
};
const isUp = (): void => {
  instead = () => undefined;
};

const api = {
  async send(request: KubeRequest): Promise<KubeAnswer> {
    requests.push(request);
    const other = await instead(request);
    if (other !== undefined) return other;
    return sendAsEdge1(server, request);
  },
  reconnect() {},
};

/** An agent process that starts, with what the previous one kept. */
async function startAgent(remembered: readonly KubePod[] = saved): Promise<void> {
  const heartbeats = new AnsweredHeartbeats({ time, log: silentLog, file });
  await heartbeats.read();
  loop = createPodLoop({
    ...podLoopParts,
    api,
    runtime,
    inputs: { ...podLoopParts.inputs, prepare: () => prepare() },
    heartbeats,
    memory: {
      remembered,
      save: async (pods) => {
        saved = pods;
      },
    },
    staticPods: () => staticPods,
    time,
    recordEvent: ({ metadata }, { type, reason }) => {
      if (reason !== 'Started') events.push(`${metadata.name}: ${type} ${reason}`);
    },
  });
  stop = new AbortController();
  void loop.run(stop.signal);
  await rest();
}

async function stopAgent(): Promise<void> {
  stop.abort();
  await rest();
}

/** The machine starts again: its processes, and what is in memory, no longer exist. */
async function reboot(): Promise<void> {
  await stopAgent();
  runtime = memoryRuntime(time);
  file = memoryHeartbeatFile();
  await startAgent();
}

/** Waits until no request is under way. Time does not pass. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 60; turn += 1) await settle();
}

async function pass(milliseconds: number, partMs = 60_000): Promise<void> {
  for (let passedMs = 0; passedMs < milliseconds; passedMs += partMs) {
    await time.pass(Math.min(partMs, milliseconds - passedMs));
    await rest();
  }
}

/** A heartbeat is answered. @param sentAt default: it is answered at once */
async function beat(sentAt: ClockReading = clockReading(time)): Promise<void> {
  loop.heartbeatAnswered(sentAt);
  await rest();
}

async function bind(name: string, metadata: object = { annotations: OFFLINE_STOP }): Promise<void> {
  const spec = { ...pod(name).spec, nodeName: 'edge-1', terminationGracePeriodSeconds: 30 };
  const { code } = await server.send('POST', podsIn('default'), {
    body: pod(name, { metadata: { name, ...metadata }, spec }),
  });
  expect(code).toBe(201);
}

async function list(): Promise<void> {
  loop.podsChanged();
  await rest();
}

const stored = async (name: string): Promise<KubePod | undefined> => {
  const answer = await server.send('GET', `${podsIn('default')}/${name}`);
  return answer.code === 200 ? (answer.body as KubePod) : undefined;
};

/** `web` runs, and a heartbeat was answered now. */
async function runWeb(): Promise<void> {
  await bind('web');
  await startAgent();
  await beat();
  expect(runtime.asked).toEqual(['start web']);
}

beforeEach(async () => {
  stop?.abort();
  server = apiInMemory({
    users: EDGE_1,
  });
  time = new SteppedTime(server.nowMs());
  runtime = memoryRuntime(time);
  file = memoryHeartbeatFile();
  requests = [];
  events = [];
  saved = [];
  staticPods = [];
  prepare = async () => {};
  isUp();
  await server.send('POST', NODES, { body: node('edge-1') });
  await server.send('PATCH', `${NODES}/edge-1/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { allocatable: { cpu: '2', memory: '4Gi', pods: '10', 'ephemeral-storage': '10Gi' } } },
  });
});

describe('a pod that must not run on two machines starts', () => {
  it('when a list contains it that was requested after an answered heartbeat, and says why it waits', async () => {
    await bind('web');
    await bind('free', {});
    await startAgent();
    await list();
    expect(runtime.asked).toEqual(['start free']);
    expect((await stored('web'))?.status).toMatchObject({
      phase: 'Pending',
      containerStatuses: [{ state: { waiting: { reason: 'WaitingForHeartbeat' } } }],
    });
    expect(events).toEqual(['web: Normal WaitingForHeartbeat']);
    await beat();
    expect(runtime.asked).toEqual(['start free', 'start web']);
    expect((await stored('web'))?.status).toMatchObject({ phase: 'Running' });
  });

  it('not by a list that was requested before the heartbeat', async () => {
    await bind('web');
    const list = Promise.withResolvers<void>();
    const lists: string[] = [];
    instead = ({ method, path }) => {
      if (method !== 'GET' || !path.startsWith('/api/v1/pods?')) return undefined;
      lists.push(runtime.asked.join());
      return lists.length > 1 ? undefined : list.promise.then(() => undefined as never);
    };
    await startAgent();
    await beat();
    list.resolve();
    await rest();
    expect(lists).toEqual(['', '']);
    expect(runtime.asked).toEqual(['start web']);
  });

  it('only within its time after that heartbeat, whatever was answered since', async () => {
    const volumes = Promise.withResolvers<void>();
    let prepared = 0;
    prepare = () => {
      prepared += 1;
      return volumes.promise;
    };
    await bind('web');
    await startAgent();
    const sentAt = clockReading(time);
    await pass(60_000);
    expect(prepared).toBe(0);
    await beat(sentAt);
    expect(prepared).toBe(1);
    isDown();
    await pass(RUN_MS - 60_000, 600_000);
    await beat();
    volumes.resolve();
    await rest();
    expect(runtime.asked).toEqual([]);
    isUp();
    await pass(120_000);
    expect(runtime.asked).toEqual(['start web']);
  });

  it('at once when it arrives at a machine with heartbeats', async () => {
    await startAgent();
    await beat();
    await bind('web');
    await list();
    expect(runtime.asked).toEqual(['start web']);
    expect(events).toEqual([]);
  });
});

describe('without answered heartbeats such a pod', () => {
  it('is stopped at its time and not before, for good', async () => {
    await runWeb();
    isDown();
    await pass(RUN_MS - 1, 600_000);
    expect(runtime.asked).toEqual(['start web']);
    await pass(1);
    expect(runtime.asked).toEqual(['start web', 'stop web 30']);
    expect(events).toContain('web: Warning OfflineStop');
    expect(saved).toEqual([]);
    await pass(600_000);
    isUp();
    await beat();
    await pass(600_000);
    expect((await stored('web'))?.status).toMatchObject({
      phase: 'Failed',
      reason: 'OfflineStop',
      message: expect.stringMatching(/no heartbeat was answered for 2h0m0s \(nodekeeper.dev\/offline-stop-after: 2h\)/),
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'DisruptionTarget', status: 'True' })]),
    });
    expect(runtime.asked.filter((each) => each.startsWith('start'))).toEqual(['start web']);
    await server.send('DELETE', `${podsIn('default')}/web`);
    await list();
    expect(await stored('web')).toBeUndefined();
  });

  it('is stopped also while a list hangs, and others run on', async () => {
    await bind('free', {});
    await runWeb().catch(() => undefined);
    const never = new Promise<never>(() => {});
    instead = ({ method }) => (method === 'GET' ? never : undefined);
    await list();
    await pass(RUN_MS, 600_000);
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual(['stop web 30']);
  });

  it('runs on when a heartbeat is answered in time, counted from when it was sent', async () => {
    await runWeb();
    isDown();
    await pass(RUN_MS - 5_000, 600_000);
    const sentAt = clockReading(time);
    await pass(4_999);
    await beat(sentAt);
    await pass(RUN_MS - 5_000, 600_000);
    expect(runtime.asked).toEqual(['start web']);
    await pass(1);
    expect(runtime.asked).toEqual(['start web', 'stop web 30']);
  });

  it('has its grace period and no more, also when a deletion asked for more', async () => {
    await runWeb();
    runtime.endsAfterSeconds = 3_600;
    await pass(RUN_MS - 60_000, 600_000);
    await server.send('DELETE', `${podsIn('default')}/web`, { body: { gracePeriodSeconds: 900 } });
    await list();
    isDown();
    await pass(60_000);
    expect(runtime.asked).toEqual(['start web', 'stop web 900', 'stop web 30']);
    const runs = async () => (await runtime.pods())[0]?.containers[0]?.state.kind;
    await pass(29_000, 1_000);
    expect(await runs()).toBe('running');
    await pass(1_000);
    expect(await runs()).toBe('terminated');
    isUp();
    await pass(120_000);
    expect(await stored('web')).toBeUndefined();
  });

  it('is stopped without the rest of its grace period when the machine was suspended for longer', async () => {
    await runWeb();
    isDown();
    time.suspend(RUN_MS + 10_000);
    await pass(10_000, 1_000);
    expect(runtime.asked).toEqual(['start web', 'stop web 10']);
  });

  it('is stopped as soon as anything says that the machine was suspended', async () => {
    await runWeb();
    time.suspend(2 * RUN_MS);
    loop.podsChanged();
    await rest();
    expect(runtime.asked).toEqual(['start web', 'stop web 0']);
  });

  it('that never started is not checked any more once it has failed', async () => {
    runtime.failStarts = Number.POSITIVE_INFINITY;
    await bind('web');
    await startAgent();
    await beat();
    await pass(RUN_MS, 600_000);
    expect((await stored('web'))?.status).toMatchObject({ phase: 'Failed', reason: 'OfflineStop' });
    const checks = () => time.waits.filter((waitMs) => waitMs === 10_000).length;
    const before = checks();
    await pass(600_000);
    expect(checks()).toBe(before);
  });

  it('is stopped after a suspend although a heartbeat is answered first', async () => {
    await runWeb();
    time.suspend(RUN_MS + 3_600_000);
    await beat();
    expect(runtime.asked).toEqual(['start web', 'stop web 0']);
  });

  it('that is stopping when the machine is suspended is killed at the end of its grace period', async () => {
    await runWeb();
    runtime.endsAfterSeconds = 3_600;
    isDown();
    await pass(RUN_MS, 600_000);
    time.suspend(60_000);
    await pass(10_000, 1_000);
    expect(runtime.asked).toEqual(['start web', 'stop web 30', 'stop web 0']);
  });

  it.each([
    ['a step of the wall clock back changes nothing', -DAY_MS, RUN_MS - 1],
    ['a step forwards stops it early', DAY_MS, 0],
  ])('%s', async (_, stepMs, runsMs) => {
    await runWeb();
    isDown();
    time.setClock(stepMs);
    await pass(runsMs, 600_000);
    expect(runtime.asked).toEqual(['start web']);
    await pass(10_000, 1_000);
    expect(runtime.asked[1]).toMatch(/^stop web/);
  });

  it('that is static ignores the annotation', async () => {
    staticPods = [
      {
        ...pod('own'),
        metadata: {
          name: 'own',
          namespace: 'default',
          uid: 'own',
          annotations: { ...OFFLINE_STOP, 'kubernetes.io/config.source': 'file' },
        },
      },
    ];
    isDown();
    await startAgent();
    await pass(2 * RUN_MS, 600_000);
    expect(runtime.asked).toEqual(['start own']);
  });
});

describe('an agent that starts again within the boot', () => {
  it('counts from the heartbeat of the agent before, also without remembered pods', async () => {
    await runWeb();
    await stopAgent();
    isDown();
    await pass(60_000);
    await startAgent([]);
    await pass(RUN_MS - 60_001, 600_000);
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual([]);
    await pass(1);
    expect(runtime.asked.at(-1)).toBe('stop web 30');
    isUp();
    await pass(120_000);
    expect((await stored('web'))?.status).toMatchObject({ phase: 'Failed', reason: 'OfflineStop' });
  });

  it('stops a pod that ran too long meanwhile, although a heartbeat is answered first', async () => {
    await runWeb();
    await stopAgent();
    await pass(2 * RUN_MS, RUN_MS);
    const list = Promise.withResolvers<void>();
    instead = () => list.promise.then(() => undefined as never);
    await startAgent();
    await beat();
    list.resolve();
    await rest();
    expect(runtime.asked.slice(0, 2)).toEqual(['start web', 'stop web 0']);
    expect((await stored('web'))?.status?.message).toContain('no heartbeat was answered for 4h0m0s');
  });

  it('without a known heartbeat waits for 10 s for the first one', async () => {
    await runWeb();
    await stopAgent();
    file = memoryHeartbeatFile();
    isDown();
    await startAgent();
    await pass(9_999, 1_000);
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual([]);
    await pass(1);
    expect(runtime.asked.at(-1)).toBe('stop web 0');
  });

  it('runs the pod on if the first one is answered in that time', async () => {
    await runWeb();
    await stopAgent();
    file = memoryHeartbeatFile();
    await startAgent();
    await pass(9_000, 1_000);
    await beat();
    await pass(RUN_MS - 1, 600_000);
    expect(runtime.asked.filter((each) => each.startsWith('stop'))).toEqual([]);
  });

  it('has the heartbeats in a file only while such a pod is here', async () => {
    await bind('free', {});
    await startAgent();
    await list();
    for (let beats = 0; beats < 3; beats += 1) await beat();
    expect([runtime.asked, file.writes]).toEqual([['start free'], 0]);
    await bind('web');
    await list();
    expect(file).toMatchObject({ writes: 1, kept: clockReading(time) });
    await pass(10_000);
    await beat();
    expect(file).toMatchObject({ writes: 2, kept: clockReading(time) });
    time.suspend(RUN_MS);
    await beat();
    expect((await stored('web'))?.status).toMatchObject({ phase: 'Failed', reason: 'OfflineStop' });
    const { writes } = file;
    await pass(10_000);
    await beat();
    expect(file.writes).toBe(writes);
  });
});

describe('after a reboot', () => {
  it.each([0, DAY_MS, -DAY_MS])('it waits for the API, with a wall clock that is %i ms wrong', async (stepMs) => {
    await runWeb();
    expect(saved).toHaveLength(1);
    isDown();
    time.setClock(stepMs);
    await reboot();
    await pass(2 * RUN_MS, 600_000);
    expect(runtime.asked).toEqual([]);
    isUp();
    await pass(120_000);
    expect(runtime.asked).toEqual([]);
    expect((await stored('web'))?.status?.containerStatuses).toMatchObject([
      { state: { waiting: { reason: 'WaitingForHeartbeat' } } },
    ]);
    await beat();
    expect(runtime.asked).toEqual(['start web']);
    expect((await stored('web'))?.status).toMatchObject({ phase: 'Running' });
  });

  it('starts also a pod that the runtime knows from before', async () => {
    await runWeb();
    isDown();
    await stopAgent();
    const state = { kind: 'terminated', exitCode: 137, reason: 'Error', startedAtMs: 0, finishedAtMs: 1 } as const;
    runtime.setState('web', 'main', state);
    file = memoryHeartbeatFile();
    await startAgent();
    await pass(120_000);
    isUp();
    await beat();
    await pass(120_000);
    expect(runtime.asked).toEqual(['start web', 'start web']);
  });

  it('starts nothing that the cluster has removed', async () => {
    await runWeb();
    isDown();
    await reboot();
    await pass(60_000);
    isUp();
    await server.send('DELETE', `${podsIn('default')}/web`, { body: { gracePeriodSeconds: 0 } });
    await beat();
    await pass(600_000);
    expect(runtime.asked.filter((each) => each.startsWith('start'))).toEqual([]);
  });
});
