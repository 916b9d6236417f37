import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import type { FaultPlan } from '../../simulation/faults/catalogue.ts';
import type { Functions } from '../../simulation/faults/processes.ts';
import type { Broken, LawContext } from '../../simulation/laws/law.ts';
import { type Watcher, type WatchLaw, watchersReceiveEveryChange } from '../../simulation/laws/watches.ts';
import { virtualTime } from '../../simulation/virtual-time.ts';
import { startWatchers, type WatchProgram } from '../../simulation/watchers.ts';

const POD_COUNT = 1_150;
const LINE_MS = 25;
const FIRST_VERSION = 1_000;
const WATCHER: Watcher = { name: 'watcher-1', resource: 'pods', selects: () => true };

const podOf = (index: number): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: `pod-${index}`, namespace: 'default', resourceVersion: String(FIRST_VERSION + index) },
});

/** A watcher with an empty list, and 1,150 pods that are created at one moment. */
function pendingEvents() {
  const time = { nowMs: 0 };
  const broken: Broken[] = [];
  const law: WatchLaw = watchersReceiveEveryChange({
    nowMs: () => time.nowMs,
    calmSinceMs: () => 0,
    clockSlackMs: () => 0,
    fail: (failure: Broken) => broken.push(failure),
  } as unknown as LawContext);
  law.follow(WATCHER);
  law.onListed(WATCHER, '1', []);
  for (let index = 0; index < POD_COUNT; index += 1) {
    const { apiVersion: _, ...body } = podOf(index);
    const o = JSON.stringify(body);
    law.learn([
      {
        key: { table: 'objects', pk: 'o#pods#0', sk: `default/pod-${index}` },
        newImage: { pk: 'o#pods#0', sk: `default/pod-${index}`, o, rv: FIRST_VERSION + index },
        atMs: 0,
      },
      {
        key: { table: 'objects', pk: 'l#pods#0', sk: String(index) },
        newImage: { key: `default/pod-${index}`, t: 'ADDED', o, rv: FIRST_VERSION + index, ttl: 1 },
        atMs: 0,
      },
    ] as unknown as Parameters<WatchLaw['learn']>[0]);
  }
  return { time, law, broken };
}

it('a watcher that receives one line after another is not late (L9)', () => {
  const { time, law, broken } = pendingEvents();
  for (let index = 0; index < POD_COUNT; index += 1) {
    time.nowMs += LINE_MS;
    law.onMoment?.();
    law.onLine(WATCHER);
    law.onEvent(WATCHER, 'ADDED', podOf(index));
  }
  expect(time.nowMs).toBeGreaterThan(20_000);
  expect(broken).toEqual([]);
});

it('a watcher that receives no line for 20 s is late (L9)', () => {
  const { time, law, broken } = pendingEvents();
  law.onLine(WATCHER);
  law.onEvent(WATCHER, 'ADDED', podOf(0));
  time.nowMs = 20_000;
  law.onMoment?.();
  expect(broken).toEqual([]);
  time.nowMs = 20_041;
  law.onMoment?.();
  expect(broken.map(({ law: name }) => name)).toEqual(['L9']);
});

it('a client lists after a poll that refuses the initial state as too large (L9)', async () => {
  const time = virtualTime(0);
  const broken: Broken[] = [];
  const law = watchersReceiveEveryChange({
    nowMs: () => time.nowMs(),
    calmSinceMs: () => 0,
    clockSlackMs: () => 0,
    fail: (failure: Broken) => broken.push(failure),
  } as unknown as LawContext);
  const answer = (status: number, body: string): HttpResponse => ({ status, headers: {}, body });
  const lists: HttpRequest[] = [];
  const api = async (request: HttpRequest): Promise<HttpResponse> => {
    if (request.query.has('sendInitialEvents')) return answer(422, '{"kind":"Status","code":422}');
    if (!request.query.has('watch')) {
      lists.push(request);
      return answer(200, '{"metadata":{"resourceVersion":"1000"},"items":[]}');
    }
    await time.sleep(20_000);
    return answer(200, '');
  };
  startWatchers({
    functions: {
      invoke: async (_name: string, _who: string, run: (program: unknown) => unknown) => ({
        kind: 'done',
        value: await run({ api }),
      }),
    } as unknown as Functions<WatchProgram>,
    law,
    time,
    plan: { severity: () => 0, strikes: () => false } as unknown as FaultPlan,
    // Every client polls, and requests the initial state with its watch.
    fraction: () => 0.3,
    hit: () => {},
    log: () => {},
    onFault: () => {},
  });
  await time.run(60_000, () => {
    law.onMoment?.();
    return false;
  });
  expect(broken).toEqual([]);
  expect(lists).toHaveLength(4);
});
