import { beforeEach, describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { answered } from '../../../test/support/agent-api.ts';
import { noHeartbeats } from '../../../test/support/memory-heartbeat-file.ts';
import { podLoopParts } from '../../../test/support/pod-loop-parts.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import type { PodRuntime, RunningPod } from '../../ports/pod-runtime.ts';
import { newPodEntry, type PodEntry } from './pod-entry.ts';
import { PodWorkers } from './pod-workers.ts';

const pod: KubePod = { metadata: { name: 'web', namespace: 'a', uid: 'u1' }, spec: { containers: [{ name: 'main' }] } };
const RUNNING: RunningPod = {
  ...{ uid: 'u1', namespace: 'a', name: 'web' },
  containers: [{ name: 'main', state: { kind: 'running', startedAtMs: 0 }, restartCount: 0 }],
};

let time: SteppedTime;
let entry: PodEntry;
let entries: Map<string, PodEntry>;
/** What happened, in order. */
let seen: string[];
let isFailing: boolean;
let isStopping: boolean;
/** The runtime runs the pod. */
let isRunning: boolean;
let remembered: number;
/** The current step ends with it. */
let gate: PromiseWithResolvers<void> | undefined;
let workers: PodWorkers;

beforeEach(() => {
  time = new SteppedTime(0);
  entry = { ...newPodEntry(pod, true), admission: 'admitted', started: true };
  entries = new Map([['u1', entry]]);
  [seen, isFailing, isStopping, gate] = [[], false, false, undefined];
  [isRunning, remembered] = [false, 0];
  const runtime: Partial<PodRuntime> = {
    async pods() {
      if (isRunning) return [RUNNING];
      await gate?.promise;
      return [];
    },
    async stop(uid, graceSeconds) {
      seen.push(`stop ${uid} ${graceSeconds}`);
      await gate?.promise;
      if (isFailing) throw new Error('it does not stop');
    },
  };
  workers = new PodWorkers({
    ...podLoopParts,
    time,
    heartbeats: noHeartbeats(time),
    runtime: runtime as PodRuntime,
    api: { send: async () => answered(200, { metadata: {} }), reconnect() {} },
    log: {
      ...podLoopParts.log,
      warn: (_, fields) => void seen.push(`failed ${fields?.['attempt']} ${fields?.['why']}`),
    },
    inputs: {
      ...podLoopParts.inputs,
      changed() {
        seen.push('step');
        if (isFailing) throw new Error('broken');
      },
    },
    entries,
    isStopping: () => isStopping,
    requestList: () => {},
    offline: { mayStart: () => true, starts: () => {} },
    remember: async () => {
      remembered += 1;
    },
    onRetry: () => void seen.push(`retry at ${entry.retryAtMs}`),
    onStep: () => {},
  });
});

describe('the steps of a pod', () => {
  it('are one at a time; requests during a step cause one more', async () => {
    gate = Promise.withResolvers();
    workers.request(entry);
    await settle();
    for (let request = 0; request < 3; request += 1) workers.request(entry);
    expect(seen).toEqual(['step']);
    gate.resolve();
    await workers.settled();
    expect(seen).toEqual(['step', 'step']);
    expect(entry.sync).toBeUndefined();
    workers.request(entry);
    await workers.settled();
    expect(seen).toHaveLength(3);
  });

  it('end when the agent stops, whatever was requested', async () => {
    gate = Promise.withResolvers();
    workers.request(entry);
    await settle();
    workers.request(entry);
    isStopping = true;
    gate.resolve();
    await workers.settled();
    expect(seen).toEqual(['step']);
  });

  it('that fail are repeated later and later, ten times in a row', async () => {
    isFailing = true;
    const waits: (number | undefined)[] = [];
    for (let attempt = 1; attempt <= 11; attempt += 1) {
      workers.request(entry);
      await workers.settled();
      waits.push(entry.retryAtMs);
    }
    const seconds = waits.map((waitMs) => (waitMs === undefined ? undefined : waitMs / 1_000));
    // After the tenth the pod waits for the next list, and begins again.
    expect(seconds).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, undefined, 1]);
    expect(seen.slice(0, 4)).toEqual(['step', 'failed 1 broken', 'retry at 1000', 'step']);
    // The pod may have been removed by a step that failed later.
    expect(remembered).toBe(11);
    expect(seen.filter((each) => each.startsWith('failed')).at(-2)).toBe('failed 10 broken');
    isFailing = false;
    workers.request(entry);
    await workers.settled();
    expect([entry.failures, entry.retryAtMs]).toEqual([0, undefined]);
  });
});

describe('a stop under way', () => {
  const stopping = async (graceSeconds: number) => {
    entry.kill = { graceSeconds, change: (status) => status, done: Promise.withResolvers<void>() };
    isRunning = true;
    gate = Promise.withResolvers();
    workers.request(entry);
    await settle();
    return {
      shorten(to: number) {
        entry.kill = { ...entry.kill!, graceSeconds: to };
        workers.request(entry);
      },
    };
  };
  const stops = () => seen.filter((each) => each.startsWith('stop'));

  it('is shortened, and never lengthened', async () => {
    const { shorten } = await stopping(30);
    shorten(40);
    shorten(30);
    shorten(10);
    shorten(20);
    expect(stops()).toEqual(['stop u1 30', 'stop u1 10']);
    gate?.resolve();
    await workers.settled();
  });

  it('that fails fails once', async () => {
    const { shorten } = await stopping(30);
    shorten(10);
    isFailing = true;
    isStopping = true;
    gate?.resolve();
    await workers.settled();
    expect(seen.filter((each) => each.startsWith('failed'))).toEqual(['failed 1 it does not stop']);
  });

  it('is none while the pod runs', async () => {
    gate = Promise.withResolvers();
    workers.request(entry);
    await settle();
    entry.kill = { graceSeconds: 5, change: (status) => status, done: Promise.withResolvers<void>() };
    workers.request(entry);
    expect(stops()).toEqual([]);
    isStopping = true;
    gate.resolve();
    await workers.settled();
  });
});
