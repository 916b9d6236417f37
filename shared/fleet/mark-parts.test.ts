import { describe, expect, it } from 'vitest';
import type { MarkToDo } from './mark-nodes.ts';
import { followUpOf, isSent, nodesParts, partIn, sentAfter } from './mark-parts.ts';
import type { NodeHealth } from './nodes/health.ts';

const VALID_MS = 15_000;
const aNode = (nodeName: string, from: 'True' | 'False' = 'True') =>
  ({ decision: { nodeName, zone: 'a', from }, seen: {} as NodeHealth }) as MarkToDo;
const partsOf = (names: readonly string[]) =>
  nodesParts(
    names.map((name) => aNode(name, name.startsWith('x') ? 'False' : 'True')),
    {
      nowMs: 1_000,
      validMs: VALID_MS,
      tick: { slot: 7, fence: 9 },
      zones: new Map([['a', { zone: 'a', size: 4, healthPercent: 0, unhealthy: 4 }]]),
      shardOf: (name) => Number(name.at(-1)) % 2,
    },
  );

describe('the nodes that a tick sends', () => {
  /** Ticks every five seconds from 0 on, over nodes that became silent at these times. Returns who was sent when. */
  const ticks = (silentSinceMs: readonly number[], untilMs: number) => {
    let sent: ReturnType<typeof sentAfter> | undefined;
    const sentAt: number[][] = silentSinceMs.map(() => []);
    for (let nowMs = 0; nowMs <= untilMs; nowMs += 5_000) {
      const at = { nowMs, validMs: VALID_MS };
      const due = silentSinceMs.flatMap((sinceMs, index) =>
        sinceMs < nowMs && !isSent(sinceMs, sent, at) ? [index] : [],
      );
      for (const index of due) sentAt[index]!.push(nowMs);
      if (due.length > 0) sent = sentAfter(sent, at);
    }
    return sentAt;
  };

  it('are those that became silent since the last one, and all of them when the parts are not valid any more', () => {
    expect(ticks([1_000, 7_000, 12_000], 36_000)).toEqual([
      [5_000, 20_000, 35_000],
      [10_000, 20_000, 35_000],
      [15_000, 20_000, 35_000],
    ]);
  });

  it('wait for no other node: each is sent at the first tick after its grace period', () => {
    expect(ticks([4_999, 5_000], 11_000)).toEqual([[5_000], [10_000]]);
  });

  it('are sent again when our clock stepped back', () => {
    const sent = { fullAtMs: 100_000, lastAtMs: 100_000 };
    expect(isSent(50_000, sent, { nowMs: 101_000, validMs: VALID_MS })).toBe(true);
    expect(isSent(50_000, sent, { nowMs: 60_000, validMs: VALID_MS })).toBe(false);
  });
});

describe('parts', () => {
  it('have nodes of one shard each, and neighbours are of different shards', () => {
    const names = Array.from({ length: 500 }, (_, index) => `${index === 5 ? 'x' : 'n'}${index}`);
    const parts = partsOf(names).map(({ part }) => part);
    const shards = parts.map(({ ready, notReady }) => [...ready, ...notReady].map((name) => Number(name.at(-1)) % 2));
    expect(shards.map((each) => each.length)).toEqual([240, 240, 10, 10]);
    expect(shards.map((each) => [...new Set(each)])).toEqual([[0], [1], [0], [1]]);
    expect(parts[1]).toMatchObject({ notReady: ['x5'], untilMs: 1_000 + VALID_MS });
  });

  it('are the same after their way through the queue', () => {
    const { part } = partsOf(['n0'])[0]!;
    const next = followUpOf(part, { events: [{ nodeName: 'n0', uid: 'u' }], pods: ['n0'] });
    for (const each of [part, next]) expect(partIn(JSON.stringify(each))).toEqual(each);
  });

  it.each([
    '',
    'null',
    '{}',
    '[]',
    '{"part":"nodes"}',
    '{"part":"nodes","slot":1,"fence":1,"decidedAtMs":1,"untilMs":2}',
  ])('are refused if malformed: %s', (body) => {
    expect(partIn(body)).toBeUndefined();
  });

  it('of the longest names fit a message', () => {
    const names = Array.from({ length: 240 }, (_, index) => `${'n'.repeat(250)}${String(index * 2).padStart(3, '0')}`);
    const { part } = partsOf(names)[0]!;
    expect(JSON.stringify(part).length).toBeLessThan(250_000);
  });
});

it('a part has the zones of its nodes', () => {
  const zone = { zone: 'a', size: 4, healthPercent: 0, unhealthy: 4 };
  expect(partsOf(['n1', 'n2']).map(({ part }) => part.zones)).toEqual([[zone], [zone]]);
});
