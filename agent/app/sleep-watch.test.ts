import { describe, expect, it } from 'vitest';
import { answered, silentLog } from '../../test/support/agent-api.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import { SleepWatch, type SleepWatchDependencies } from './sleep-watch.ts';

const START_MS = Date.UTC(2026, 0, 1);

/** The watch of a machine that announces these suspends and resumes, then ends. */
async function watched(announced: readonly boolean[], over: Partial<SleepWatchDependencies> = {}) {
  const happened: string[] = [];
  const requests: KubeRequest[] = [];
  const stop = new AbortController();
  const watch = new SleepWatch({
    nodeName: 'n1',
    plannedSilenceOnSleepSeconds: 3_600,
    sleepSignal: {
      async hold() {
        happened.push('hold');
        return {
          async release() {
            happened.push('release');
          },
        };
      },
      async *watch() {
        yield* announced;
      },
    },
    api: {
      async send(request) {
        requests.push(request);
        happened.push('promise');
        return answered(200, {});
      },
    },
    time: {
      nowMs: () => START_MS,
      async sleep() {
        stop.abort();
      },
    },
    log: silentLog,
    onSuspend: (forSeconds) => happened.push(`leave ${forSeconds}`),
    onResume: () => happened.push('beat'),
    ...over,
  });
  await watch.run(stop.signal);
  return { happened, requests };
}

describe('a machine that suspends', () => {
  it('promises nothing once the agent stops', async () => {
    const stop = new AbortController();
    const happened: string[] = [];
    const watch = new SleepWatch({
      nodeName: 'n1',
      plannedSilenceOnSleepSeconds: 60,
      sleepSignal: {
        hold: async () => ({ release: async () => void happened.push('release') }),
        async *watch() {
          stop.abort();
          yield true;
          yield false;
        },
      },
      api: { send: async () => answered(200, {}) },
      time: { nowMs: () => START_MS, sleep: async () => {} },
      log: silentLog,
      onSuspend: () => void happened.push('leave'),
      onResume: () => void happened.push('beat'),
    });
    await watch.run(stop.signal);
    expect(happened).toEqual(['release']);
  });

  it('promises its silence while it holds the lock, and sends a heartbeat after the resume', async () => {
    const { happened, requests } = await watched([true, false]);
    expect(happened).toEqual(['hold', 'leave 3600', 'promise', 'release', 'beat', 'hold', 'release']);
    expect(requests).toMatchObject([
      {
        method: 'PATCH',
        path: '/api/v1/nodes/n1',
        timeoutMs: 2_000,
        body: {
          metadata: {
            annotations: {
              'nodekeeper.dev/planned-silence-until': '2026-01-01T01:00:00Z',
              'nodekeeper.dev/planned-silence-reason': 'The machine suspends',
            },
          },
        },
      },
    ]);
  });

  it.each<[string, KubeAnswer, number]>([
    ['cannot reach the cluster', { kind: 'failed', cause: new Error('no route') } as KubeAnswer, 2],
    ['is not allowed to promise', answered(422, {}), 1],
    ['is answered with a fault', answered(503, {}), 2],
  ])('suspends nevertheless when it %s', async (_what, answer, attempts) => {
    const sent: KubeRequest[] = [];
    const send = async (request: KubeRequest) => {
      sent.push(request);
      return answer;
    };
    const { happened } = await watched([true], { api: { send } });
    expect(sent).toHaveLength(attempts);
    expect(happened).toEqual(['hold', 'leave 3600', 'release']);
  });

  it('holds no lock and sends nothing without plannedSilenceOnSleepSeconds', async () => {
    expect((await watched([true], { plannedSilenceOnSleepSeconds: 0 })).happened).toEqual([]);
  });

  it('runs on without logind', async () => {
    const errors: string[] = [];
    const { happened } = await watched([true], {
      sleepSignal: {
        hold: () => Promise.reject(new Error('no bus')),
        async *watch() {},
      },
      log: { ...silentLog, error: (message) => errors.push(message) },
    });
    expect(happened).toEqual([]);
    expect(errors).toEqual(['Unable to watch the machine for suspends']);
  });

  it('runs on when the lock cannot be released', async () => {
    const errors: string[] = [];
    const { happened } = await watched([true, false], {
      sleepSignal: {
        hold: async () => ({ release: () => Promise.reject(new Error('no bus')) }),
        async *watch() {
          yield* [true, false];
        },
      },
      log: { ...silentLog, error: (message) => errors.push(message) },
    });
    expect(happened).toEqual(['leave 3600', 'promise', 'beat']);
    expect(errors).toContain('Failed to release the lock on the suspend');
  });
});
