import { describe, expect, it } from 'vitest';
import { SITE_HUB } from '../../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { answered, refused, timedOut } from '../../../test/support/agent-api.ts';
import { noHeartbeats } from '../../../test/support/memory-heartbeat-file.ts';
import { podLoopParts } from '../../../test/support/pod-loop-parts.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeRequest } from '../../ports/kube-api.ts';
import type { PodRuntime, RunningPod } from '../../ports/pod-runtime.ts';
import type { PodStatus } from '../../rules/shutdown-status.ts';
import { newPodEntry, type PodEntry } from './pod-entry.ts';
import { PodSync, stopGraceSeconds } from './pod-sync.ts';

const POD: KubePod = {
  metadata: { name: 'web', namespace: 'default', uid: 'u1' },
  spec: { containers: [{ name: 'main', image: 'i' }], terminationGracePeriodSeconds: 30 },
};
const DELETED: KubePod = {
  ...POD,
  metadata: { ...POD.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 10 },
};
const entryOf = (pod: KubePod, over: Partial<PodEntry> = {}): PodEntry => ({
  ...newPodEntry(pod, true),
  admission: 'admitted',
  ...over,
});

/** An agent with one pod. `steps` has what it did, in order. */
function agent(entry: PodEntry, over: { readonly hasRunning?: boolean; readonly isStopping?: () => boolean } = {}) {
  const time = new SteppedTime(1_767_225_600_000);
  const steps: string[] = [];
  const sent: KubeRequest[] = [];
  const world = {
    answer: (_request: KubeRequest): KubeAnswer => answered(200, entry.pod),
    faults: {} as Partial<Record<string, Error>>,
    mayStart: [true, true],
    remember: () => Promise.resolve(),
    heartbeat: undefined as { uptimeMs: number; wallMs: number } | undefined,
    resolver: undefined as string | undefined,
  };
  const step = async (name: string): Promise<void> => {
    steps.push(name);
    const fault = world.faults[name];
    if (fault !== undefined) throw fault;
  };
  const running = (isRunning: boolean): RunningPod => ({
    uid: 'u1',
    namespace: 'default',
    name: 'web',
    ip: '10.0.0.5',
    containers: ['main', 'side'].map((name) => ({
      name,
      containerId: `c-${name}`,
      restartCount: 0,
      state:
        isRunning && name === 'main'
          ? { kind: 'running', startedAtMs: 0 }
          : { kind: 'terminated', exitCode: 0, reason: 'Completed', startedAtMs: 0, finishedAtMs: 1 },
    })),
  });
  let pods = over.hasRunning ? [running(true)] : [];
  const runtime: PodRuntime = {
    version: 'memory://1',
    health: async () => ({ kind: 'ready' }),
    pods: async () => pods,
    onChange() {},
    close: async () => {},
    async start() {
      await step('start');
      pods = [running(true)];
    },
    async stop(_uid, graceSeconds) {
      steps.push(`stopping ${entry.stoppingSeconds}`);
      await step(`stop ${graceSeconds}`);
      pods = [running(false)];
    },
    async remove() {
      await step('remove');
      pods = [];
    },
  };
  const entries = new Map([[entry.uid, entry]]);
  const sync = new PodSync({
    ...podLoopParts,
    probes: {
      ...podLoopParts.probes,
      update: () => void steps.push('probe'),
      remove: () => void steps.push('no probe'),
    },
    inputs: {
      ...podLoopParts.inputs,
      prepare: () => step('prepare'),
      changed: () => void steps.push('changed'),
      remove: () => step('remove volumes'),
    },
    topology: { ...podLoopParts.topology, release: () => void steps.push('release') },
    recordEvent: (_pod, { reason, message }) => void steps.push(`${reason} ${message}`),
    meter: { ...podLoopParts.meter, count: (name) => void steps.push(name) },
    api: {
      async send(request) {
        sent.push(request);
        steps.push(`${request.method} ${request.path.split('/').slice(6).join('/')}`);
        return world.answer(request);
      },
      reconnect() {},
    },
    runtime,
    time,
    heartbeats: Object.assign(noHeartbeats(time), { newest: () => world.heartbeat }),
    nodeUid: () => 'n1',
    entries,
    isStopping: over.isStopping ?? (() => false),
    requestList: () => void steps.push('list'),
    offline: { mayStart: () => world.mayStart.shift() ?? false, starts: () => void steps.push('may run') },
    async remember() {
      steps.push('remember');
      await world.remember();
    },
  });
  return { world, steps, sent, time, entries, step: () => sync.step(entry) };
}
const statusOf = ({ sent }: { readonly sent: readonly KubeRequest[] }) =>
  sent.filter(({ method }) => method === 'PATCH').map(({ body }) => (body as KubePod).status);

describe('the grace period of a stop', () => {
  const kill = (graceSeconds: number) => ({
    kill: { graceSeconds, change: (status: PodStatus) => status, done: Promise.withResolvers<void>() },
  });
  it.each<[string, PodEntry, number | undefined]>([
    ['is none while the pod must run', entryOf(POD), undefined],
    ['is that of the deletion', entryOf(DELETED), 10],
    ['is the shorter one of a kill and a deletion', entryOf(DELETED, kill(3)), 3],
    ['is the shorter one of a deletion and a kill', entryOf(DELETED, kill(60)), 10],
    ['is that of the pod when the API has it no longer', entryOf(POD, { present: false }), 30],
    ['is a second for a pod without a known spec', entryOf({ metadata: POD.metadata }, { present: false }), 1],
    ['is that of the pod when it has finished', entryOf(POD, { status: { phase: 'Succeeded' } }), 30],
    ['is that of a kill when the pod has finished', entryOf(POD, { ...kill(60), status: { phase: 'Failed' } }), 60],
  ])('%s', (_what, entry, seconds) => {
    expect(stopGraceSeconds(entry)).toBe(seconds);
  });
});

describe('a pod that must run', () => {
  it('is started after its volumes, and reported after it is on disk', async () => {
    const entry = entryOf(POD, { adopted: true, stopped: true });
    const { steps, step } = agent(entry);
    await step();
    expect(steps).toEqual([
      'prepare',
      'may run',
      'kubelet_started_pods_total',
      'start',
      'probe',
      'remember',
      'PATCH web/status',
    ]);
    expect(entry).toMatchObject({ started: true, stopped: false, adopted: false, syncAgain: false });
    await step();
    expect(steps.slice(7)).toEqual(['changed', 'probe', 'remember']);
  });

  it('records the start of its containers unless the agent before did', async () => {
    const { steps, step } = agent(entryOf(POD));
    await step();
    expect(steps).toContain('Started Started container main');
  });

  it.each(['waiting', 'refused'] as const)('is left alone while its admission is %s', async (admission) => {
    const { steps, step } = agent(entryOf(POD, { admission }));
    await step();
    expect(steps).toEqual([]);
  });

  it('is left alone when another entry has its place', async () => {
    const { steps, step, entries } = agent(entryOf(POD));
    entries.set('u1', entryOf(POD));
    await step();
    expect(steps).toEqual([]);
  });

  it('reports why its volumes cannot be set up, and is tried again', async () => {
    const found = agent(entryOf(POD));
    found.world.faults = { prepare: new Error('no secret') };
    await expect(found.step()).rejects.toThrow('no secret');
    expect(found.steps).toEqual(['prepare', 'PATCH web/status']);
    expect(statusOf(found)).toMatchObject([{ phase: 'Pending' }]);
  });

  it('that ran before runs on with the volumes of before', async () => {
    const { world, steps, step } = agent(entryOf(POD, { adopted: true }), { hasRunning: true });
    world.faults = { prepare: new Error('no secret') };
    await step();
    expect(steps).toContain('start');
  });

  it('records that it cannot start', async () => {
    const entry = entryOf(POD);
    const { world, steps, step } = agent(entry);
    world.faults = { start: new Error('no image') };
    await expect(step()).rejects.toThrow('no image');
    expect(steps.slice(2)).toEqual([
      'kubelet_started_pods_total',
      'start',
      'kubelet_started_pods_errors_total',
      'FailedSync Error starting pod: no image',
    ]);
    expect(entry.started).toBe(false);
  });

  it('is stopped by the next step, unreported, when its main containers have terminated and others run', async () => {
    const entry = entryOf({ ...POD, spec: { ...POD.spec, restartPolicy: 'Never', containers: [{ name: 'side' }] } });
    entry.started = true;
    const { steps, step } = agent(entry, { hasRunning: true });
    await step();
    expect(entry.syncAgain).toBe(true);
    expect(steps).toEqual(['changed', expect.stringContaining('Started'), 'probe']);
  });

  it('waits at most 3 s for its disk', async () => {
    const found = agent(entryOf(POD));
    found.world.remember = () => new Promise(() => {});
    const stepping = found.step();
    await found.time.pass(2_999);
    expect(found.sent).toEqual([]);
    await found.time.pass(1);
    await stepping;
    expect(found.sent).toHaveLength(1);
  });
});

describe('a pod that may not start yet', () => {
  const wait = async (pod: KubePod, over: Partial<PodEntry> = {}, mayStart = [false]) => {
    const entry = entryOf(pod, over);
    const found = agent(entry);
    found.world.mayStart = mayStart;
    found.world.heartbeat = { uptimeMs: 1, wallMs: 1 };
    await found.step();
    return { ...found, entry };
  };

  it('says so once, and requests a list after a heartbeat since the last one', async () => {
    const { steps, entry, step, world } = await wait(POD);
    expect(steps).toEqual([expect.stringContaining('WaitingForHeartbeat'), 'list', 'remember', 'PATCH web/status']);
    expect(entry.isWaitingForHeartbeat).toBe(true);
    entry.listedAfter = world.heartbeat;
    await step();
    expect(steps.slice(4)).toEqual(['remember']);
  });

  it('does not start either when its volumes needed too long', async () => {
    const { steps } = await wait(POD, {}, [true, false]);
    expect(steps).toContain('prepare');
    expect(steps).not.toContain('start');
  });

  it('needs no list where it waits for a permit of its site', async () => {
    const metadata = {
      ...POD.metadata,
      annotations: { [SITE_HUB]: 'hub', 'nodekeeper.dev/offline-stop-after': '10m' },
    };
    expect((await wait({ ...POD, metadata })).steps).not.toContain('list');
  });
});

describe('a pod that must stop', () => {
  it('is stopped, and then removed when its deletion is confirmed', async () => {
    const entry = entryOf(DELETED, { started: true });
    const { steps, step, sent, entries } = agent(entry, { hasRunning: true });
    await step();
    expect(steps).toEqual([
      'no probe',
      'Killing Stopping container main',
      'stopping 10',
      'stop 10',
      'DELETE web',
      'remove volumes',
      'remove',
      'release',
    ]);
    expect(sent.map(({ method }) => method)).toEqual(['DELETE']);
    expect(entries.size).toBe(0);
    expect(entry).toMatchObject({ stopped: true, present: false, deletionConfirmed: true });
    expect(entry).not.toHaveProperty('stoppingSeconds');
  });

  it('without events when the API has it no longer', async () => {
    const { steps, step } = agent(entryOf(POD, { present: false }), { hasRunning: true });
    await step();
    expect(steps).toEqual(['no probe', 'stopping 30', 'stop 30', 'remove volumes', 'remove', 'release']);
  });

  it('is stopped again after a stop that failed', async () => {
    const entry = entryOf(DELETED);
    const { steps, step, world } = agent(entry, { hasRunning: true });
    world.faults = { 'stop 10': new Error('timeout') };
    await expect(step()).rejects.toThrow('timeout');
    expect(entry).toMatchObject({ stopped: false });
    expect(entry).not.toHaveProperty('stoppingSeconds');
    world.faults = {};
    await step();
    expect(steps.filter((each) => each === 'stop 10')).toHaveLength(2);
  });

  it('is removed after a removal that failed, without another confirmation', async () => {
    const { steps, step, world, entries, sent } = agent(entryOf(DELETED));
    world.faults = { 'remove volumes': new Error('EBUSY') };
    await expect(step()).rejects.toThrow('EBUSY');
    expect(entries.size).toBe(1);
    expect(steps).not.toContain('remove');
    world.faults = {};
    await step();
    expect(steps.slice(-3)).toEqual(['remove volumes', 'remove', 'release']);
    expect([entries.size, sent.length]).toEqual([0, 1]);
  });

  it.each<[string, KubeAnswer]>([
    ['is accepted for later', answered(202, DELETED)],
    [
      'leaves its finalizers',
      answered(200, { ...DELETED, metadata: { ...DELETED.metadata, finalizers: ['example.com/a'] } }),
    ],
  ])('stays while its deletion %s, and is not confirmed again', async (_what, answer) => {
    const { steps, step, world, entries, sent } = agent(entryOf(DELETED));
    world.answer = () => answer;
    await step();
    await step();
    expect([entries.size, sent.length, steps.includes('remove')]).toEqual([1, 1, false]);
  });

  it.each<[string, KubeAnswer]>([
    ['is missing', refused(404, 'NotFound')],
    ['has another pod of its name', answered(200, { metadata: { uid: 'u2', finalizers: ['example.com/a'] } })],
  ])('is removed when the API %s', async (_what, answer) => {
    const { step, world, entries } = agent(entryOf(DELETED));
    world.answer = () => answer;
    await step();
    expect(entries.size).toBe(0);
  });

  it('stays while its deletion is not answered', async () => {
    const { step, world, entries } = agent(entryOf(DELETED));
    world.answer = () => timedOut;
    await expect(step()).rejects.toThrow('delete: no answer');
    expect(entries.size).toBe(1);
  });

  it('is neither confirmed nor removed by an agent that stops', async () => {
    const { step, sent, entries } = agent(entryOf(DELETED), { hasRunning: true, isStopping: () => true });
    await step();
    expect([sent, entries.size]).toEqual([[], 1]);
  });

  it.each<[string, Partial<PodEntry>, object | undefined]>([
    ['gets its last status first', {}, { phase: 'Succeeded' }],
    [
      'keeps its last status',
      { status: { phase: 'Failed', reason: 'Evicted' } },
      { phase: 'Failed', reason: 'Evicted' },
    ],
    ['that was refused gets none', { admission: 'refused' }, undefined],
  ])('and has a finalizer %s', async (_what, over, status) => {
    const pod = { ...DELETED, metadata: { ...DELETED.metadata, finalizers: ['example.com/a'] } };
    const found = agent(entryOf(pod, over), { hasRunning: over.status === undefined && over.admission === undefined });
    await found.step();
    const statuses = statusOf(found);
    expect(statuses).toEqual(status === undefined ? [] : [expect.objectContaining(status)]);
    expect(found.sent.at(-1)?.method).toBe('DELETE');
  });

  it('and has ended in the API is confirmed without a status', async () => {
    const pod = {
      ...DELETED,
      metadata: { ...DELETED.metadata, finalizers: ['a'] },
      status: { phase: 'Failed' as const },
    };
    const found = agent(entryOf(pod));
    await found.step();
    expect(found.sent.map(({ method }) => method)).toEqual(['DELETE']);
  });
});

describe('a pod that was refused', () => {
  it('is reported and not stopped', async () => {
    const found = agent(entryOf(POD, { admission: 'refused', status: { phase: 'Failed', reason: 'OutOfcpu' } }));
    await found.step();
    expect(found.steps).toEqual(['PATCH web/status', 'remember']);
    expect(statusOf(found)).toMatchObject([{ phase: 'Failed', reason: 'OutOfcpu' }]);
  });

  it('and has left the API is stopped and removed', async () => {
    const { steps, step } = agent(entryOf(POD, { admission: 'refused', status: { phase: 'Failed' }, present: false }));
    await step();
    expect(steps).toEqual(['no probe', 'remove volumes', 'remove', 'release']);
  });
});

describe('a pod that has finished', () => {
  it('is stopped where containers run, and reported', async () => {
    const found = agent(entryOf(POD, { status: { phase: 'Succeeded' } }), { hasRunning: true });
    await found.step();
    expect(found.steps).toEqual([
      'no probe',
      'Killing Stopping container main',
      'stopping 30',
      'stop 30',
      'remember',
      'PATCH web/status',
    ]);
  });

  it('in the API alone is not reported', async () => {
    const { steps, step } = agent(entryOf({ ...POD, status: { phase: 'Succeeded' } }));
    await step();
    expect(steps).toEqual(['no probe']);
  });
});

describe('a pod that the agent terminates', () => {
  const killed = (over: Partial<PodEntry> = {}, pod = POD) => {
    const done = Promise.withResolvers<void>();
    const change = (status: PodStatus): PodStatus => ({ ...status, reason: 'Evicted' });
    const entry = entryOf(pod, { kill: { graceSeconds: 5, change, done }, ...over });
    let isDone = false;
    void done.promise.then(() => {
      isDone = true;
    });
    return { ...agent(entry, { hasRunning: true }), entry, isDone: () => isDone };
  };

  it('has failed, whatever its containers say, which is reported within 3 s', async () => {
    const found = killed();
    await found.step();
    await settle();
    expect(statusOf(found)).toMatchObject([{ phase: 'Failed', reason: 'Evicted' }]);
    expect(found.sent[0]).toMatchObject({ timeoutMs: 3_000 });
    expect(found.isDone()).toBe(true);
    expect(found.steps).not.toContain('remove');
  });

  it('keeps a status that was terminal before', async () => {
    const found = killed({ status: { phase: 'Succeeded' } });
    await found.step();
    expect(statusOf(found)).toEqual([{ phase: 'Succeeded' }]);
  });

  it('is done although its status cannot be reported', async () => {
    const found = killed();
    found.world.answer = () => timedOut;
    await expect(found.step()).rejects.toThrow('status: no answer');
    await settle();
    expect(found.isDone()).toBe(true);
  });

  it('and that is deleted is confirmed and removed', async () => {
    const found = killed({}, DELETED);
    await found.step();
    expect(found.sent.map(({ method }) => method)).toEqual(['PATCH', 'DELETE']);
    expect(found.entries.size).toBe(0);
  });
});

describe('the report of a status', () => {
  it('has no bound of its own, and is sent once', async () => {
    const found = agent(entryOf(POD));
    await found.step();
    await found.step();
    expect(found.sent).toHaveLength(1);
    expect(found.sent[0]).not.toHaveProperty('timeoutMs');
  });

  it('to an API that lacks the pod requests a list', async () => {
    const found = agent(entryOf(POD));
    found.world.answer = () => refused(404, 'NotFound');
    await expect(found.step()).rejects.toThrow('status: 404');
    expect(found.steps.at(-1)).toBe('list');
  });
});
