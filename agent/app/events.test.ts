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

  it('that are recorded without end do not keep a flush busy without end', async () => {
    let recorded = 0;
    const { api, events } = recorderWith(() => {
      recorded += 1;
      if (recorded < 30) events.aboutPod({ metadata: { name: `p${recorded}`, namespace: 'shop' } }, warning('no room'));
      return answered(201);
    });
    events.aboutPod(pod, warning('no room'));
    expect(await events.flush()).toBe(false);
    expect(api.requests).toHaveLength(20);
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

describe('the sender of events', () => {
  /** Each request waits for its answer. */
  function held() {
    const time = new SteppedTime(T0);
    const waiting: { readonly request: KubeRequest; readonly answer: (answer: KubeAnswer) => void }[] = [];
    const api: KubeApi = {
      send: (request) => new Promise((resolve) => waiting.push({ request, answer: resolve })),
      reconnect() {},
    };
    const events = createEventRecorder({ nodeName: 'edge-1', api, time, log: silentLog, meter: silentMeter });
    const answerAll = async (answer = answered(201)): Promise<number> => {
      await time.pass(0);
      const now = waiting.splice(0);
      for (const each of now) each.answer(answer);
      await time.pass(0);
      return now.length;
    };
    return { time, waiting, events, answerAll };
  }

  it('sends an event at once, also when nothing had to be sent for long', async () => {
    const { time, events, waiting, answerAll } = held();
    const stop = new AbortController();
    const running = events.run(stop.signal);
    await time.pass(45_000);
    events.aboutPod(pod, warning('no room'));
    expect(await answerAll()).toBe(1);
    await time.pass(30_000);
    events.aboutPod(pod, warning('again'));
    expect(await answerAll(timedOut)).toBe(1);
    await time.pass(9_999);
    expect(waiting).toHaveLength(0);
    await time.pass(1);
    expect(await answerAll()).toBe(1);
    stop.abort();
    await running;
  });

  it('sends the same event once, although it is flushed twice at a time', async () => {
    const { events, answerAll } = held();
    events.aboutPod(pod, warning('no room'));
    const flushes = [events.flush(), events.flush()];
    expect(await answerAll()).toBe(1);
    expect([await Promise.all(flushes), await answerAll()]).toEqual([[true, true], 0]);
  });

  it('sends the higher count of an event that is recorded again while it is sent', async () => {
    const { time, events, waiting, answerAll } = held();
    events.aboutPod(pod, warning('no room'));
    const flushed = events.flush();
    await time.pass(0);
    events.aboutPod(pod, warning('no room'));
    await answerAll();
    expect(waiting[0]?.request).toMatchObject({ method: 'PATCH', body: { count: 2 } });
    await answerAll(answered(200));
    expect(await flushed).toBe(true);
  });

  it('stops between two events', async () => {
    const { events, answerAll } = held();
    for (const message of ['one', 'two']) events.aboutPod(pod, warning(message));
    const stop = new AbortController();
    const flushed = events.flush(stop.signal);
    stop.abort();
    await answerAll();
    expect([await flushed, await answerAll()]).toEqual([false, 0]);
  });

  it('stops its last request after two seconds, and has none without events', async () => {
    const { time, events, waiting } = held();
    await events.drain();
    expect(time.waits).toEqual([]);
    events.aboutPod(pod, warning('no room'));
    const drained = events.drain();
    await time.pass(1_999);
    const [sent] = waiting;
    expect(sent?.request.signal?.aborted).toBe(false);
    await time.pass(1);
    await drained;
    expect(sent?.request.signal?.aborted).toBe(true);
  });

  it('counts failures in a row', async () => {
    let failing = true;
    const { events, dropped, api } = recorderWith(({ method }) =>
      failing ? timedOut : answered(method === 'POST' ? 201 : 200),
    );
    events.aboutPod(pod, warning('no room'));
    for (let attempt = 0; attempt < 11; attempt += 1) await events.flush();
    failing = false;
    expect(await events.flush()).toBe(true);
    failing = true;
    events.aboutPod(pod, warning('no room'));
    for (let attempt = 0; attempt < 11; attempt += 1) expect(await events.flush()).toBe(false);
    expect([dropped, api.requests.length]).toEqual([[], 23]);
  });
});
