import { describe, expect, it } from 'vitest';
import {
  answered,
  refused,
  scriptedApi,
  silentLog,
  silentMeter,
  timedOut,
  virtualTime,
} from '../../test/support/agent-api.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { AgentMeter } from '../ports/meter.ts';
import { createEventRecorder, EVENTS_DROPPED_METRIC } from './events.ts';

const T0 = Date.UTC(2026, 0, 2, 3, 4, 5);
const pod = { metadata: { name: 'web', namespace: 'shop', uid: 'u-1' } };
const warning = (message: string) => ({ type: 'Warning', reason: 'OutOfcpu', message }) as const;

function recorderWith(answer: (request: KubeRequest) => KubeAnswer) {
  const api = scriptedApi(answer);
  const time = virtualTime(T0);
  const dropped: string[] = [];
  const meter: AgentMeter = {
    ...silentMeter,
    count: (name, labels = {}) => {
      if (name === EVENTS_DROPPED_METRIC) dropped.push(labels['reason'] ?? '');
    },
  };
  return { api, time, dropped, events: createEventRecorder({ nodeName: 'edge-1', api, time, log: silentLog, meter }) };
}

describe('events of the agent', () => {
  it('name their source, their object and their reason', async () => {
    const { api, events } = recorderWith(() => answered(201));
    events.aboutPod(pod, warning('no room'));
    events.aboutNode({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' });
    expect(await events.flush()).toBe(true);
    expect(api.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /api/v1/namespaces/shop/events',
      'POST /api/v1/namespaces/default/events',
    ]);
    expect(api.requests[0]?.body).toMatchObject({
      metadata: { namespace: 'shop', name: expect.stringMatching(/^web\.[0-9a-f]+$/) },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name: 'web', namespace: 'shop', uid: 'u-1' },
      type: 'Warning',
      reason: 'OutOfcpu',
      message: 'no room',
      count: 1,
      source: { component: 'kubelet', host: 'edge-1' },
      firstTimestamp: '2026-01-02T03:04:05Z',
    });
    expect(api.requests[1]?.body).toMatchObject({ involvedObject: { kind: 'Node', name: 'edge-1', uid: 'edge-1' } });
  });

  it('count their repetitions', async () => {
    const { api, events } = recorderWith(({ method }) => answered(method === 'POST' ? 201 : 200));
    events.aboutPod(pod, warning('no room'));
    await events.flush();
    events.aboutPod(pod, warning('no room'));
    events.aboutPod(pod, warning('no room'));
    await events.flush();
    expect(api.requests.map(({ method }) => method)).toEqual(['POST', 'PATCH']);
    expect(api.requests[1]).toMatchObject({ body: { count: 3 }, contentType: 'application/merge-patch+json' });
  });

  it('are created again after the server deleted them', async () => {
    const { api, events } = recorderWith(({ method }) =>
      method === 'POST' ? answered(201) : refused(404, 'NotFound'),
    );
    events.aboutPod(pod, warning('no room'));
    await events.flush();
    events.aboutPod(pod, warning('no room'));
    expect(await events.flush()).toBe(false);
    expect(await events.flush()).toBe(true);
    expect(api.requests.map(({ method }) => method)).toEqual(['POST', 'PATCH', 'POST']);
  });

  it('wait while the server cannot be reached, and are dropped after twelve attempts', async () => {
    const { api, events, dropped } = recorderWith(() => timedOut);
    events.aboutPod(pod, warning('no room'));
    for (let attempt = 1; attempt < 12; attempt += 1) expect(await events.flush()).toBe(false);
    expect(await events.flush()).toBe(true);
    expect(api.requests).toHaveLength(12);
    expect(dropped).toEqual(['unreachable']);
  });

  it('are dropped at once when the server refuses them', async () => {
    const { events, dropped } = recorderWith(() => refused(403, 'Forbidden'));
    events.aboutPod(pod, warning('no room'));
    expect(await events.flush()).toBe(true);
    expect(dropped).toEqual(['refused']);
  });

  it('are dropped when 200 wait', () => {
    const { events, dropped } = recorderWith(() => timedOut);
    for (let index = 0; index < 210; index += 1) {
      events.aboutPod({ metadata: { ...pod.metadata, uid: `u-${index}` } }, warning('no room'));
    }
    expect(dropped).toEqual(Array.from({ length: 10 }, () => 'queue'));
  });

  it('about one object are dropped after 25 in a row, and one more is sent after 5 minutes', async () => {
    const { events, dropped, time } = recorderWith(() => answered(201));
    for (let index = 0; index < 27; index += 1) events.aboutPod(pod, warning(`no room for ${index}`));
    expect(dropped).toEqual(['spam', 'spam']);
    await time.sleep(300_000);
    events.aboutPod(pod, warning('one'));
    events.aboutPod(pod, warning('two'));
    expect(dropped).toEqual(['spam', 'spam', 'spam']);
  });

  it('that are recorded during a flush are sent by it', async () => {
    const time = new SteppedTime(T0);
    const sentAtMs: number[] = [];
    const stop = new AbortController();
    const api: KubeApi = {
      async send() {
        sentAtMs.push(time.monotonicMs());
        if (sentAtMs.length < 3) events.aboutPod(pod, warning(`no room for ${sentAtMs.length}`));
        return answered(201);
      },
      reconnect() {},
    };
    const events = createEventRecorder({ nodeName: 'edge-1', api, time, log: silentLog, meter: silentMeter });
    events.aboutPod(pod, warning('no room'));
    void events.run(stop.signal);
    await time.pass(1_000);
    expect(sentAtMs).toEqual([0, 0, 0]);
    stop.abort();
  });

  it('that were recorded before the agent stops are still sent', async () => {
    const stop = new AbortController();
    const api = scriptedApi(() => answered(201));
    const time = new SteppedTime(T0);
    const events = createEventRecorder({ nodeName: 'edge-1', api, time, log: silentLog, meter: silentMeter });
    const running = events.run(stop.signal);
    await time.pass(1_000);
    stop.abort();
    events.aboutPod(pod, warning('no room'));
    await running;
    expect(api.requests).toHaveLength(1);
  });

  it('delay a shutdown by two seconds at most', async () => {
    const time = new SteppedTime(T0);
    const api: KubeApi = {
      send: ({ signal }) =>
        new Promise((resolve) => {
          signal?.addEventListener('abort', () => resolve(timedOut));
        }),
      reconnect() {},
    };
    const events = createEventRecorder({ nodeName: 'edge-1', api, time, log: silentLog, meter: silentMeter });
    for (const message of ['one', 'two', 'three']) events.aboutPod(pod, warning(message));
    let over = false;
    const draining = events.drain().then(() => {
      over = true;
    });
    await time.pass(1_900);
    expect(over).toBe(false);
    await time.pass(100);
    await draining;
  });

  it.each([3_600_000, -3_600_000])(
    'are counted and limited by the monotonic clock when the wall clock is set by %s ms',
    async (byMs) => {
      const time = new SteppedTime(T0);
      const api = scriptedApi(({ method }) => answered(method === 'POST' ? 201 : 200));
      const dropped: string[] = [];
      const meter = { ...silentMeter, count: (name: string) => dropped.push(name) };
      const events = createEventRecorder({ nodeName: 'edge-1', api, time, log: silentLog, meter });
      for (let count = 0; count < 25; count += 1) events.aboutPod(pod, warning('no room'));
      await events.flush();
      time.setClock(byMs);
      events.aboutPod(pod, warning('no room'));
      expect(dropped).toHaveLength(1);
      await time.pass(300_000);
      events.aboutPod(pod, warning('no room'));
      await events.flush();
      expect(dropped).toHaveLength(1);
      expect(api.requests.map(({ method }) => method)).toEqual(['POST', 'PATCH']);
    },
  );

  it('are sent by the loop until it is stopped', async () => {
    const stop = new AbortController();
    const api = scriptedApi(() => answered(201));
    const time = virtualTime(T0, () => stop.abort());
    const events = createEventRecorder({ nodeName: 'edge-1', api, time, log: silentLog, meter: silentMeter });
    events.aboutPod(pod, warning('no room'));
    await events.run(stop.signal);
    expect(api.requests).toHaveLength(1);
  });
});
