import { describe, expect, it } from 'vitest';
import type { SentParts } from '../../shared/fleet/fleet-store.ts';
import type { NodesPart } from '../../shared/fleet/mark-parts.ts';
import type { MarkDecision } from '../../shared/fleet/marks.rule.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { UNBOUNDED } from '../../shared/ticks/bounded-work.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import type { MonitorDependencies } from './dependencies.ts';
import { distributeMarks } from './distribute-marks.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

/** Silent nodes that were last seen 45 s ago. */
const silent = (count: number, isAccused: (index: number) => boolean) =>
  Array.from({ length: count }, (_, index) => {
    const nodeName = `n${index}`;
    const decision = {
      kind: 'markUnknown',
      nodeName,
      uid: `uid-${nodeName}`,
      zone: 'a',
      from: 'True',
      freshSinceMs: 0,
      ...(isAccused(index) ? { accusation: { shortens: true } } : {}),
    };
    return { decision: decision as unknown as MarkDecision, seen: aNode({ nodeName, renewedAtMs: NOW_MS - 45_000 }) };
  });

async function distributed(
  count: number,
  {
    sentBefore,
    refuses = () => false,
    max = 2,
    hasQueue = true,
    isAccused = () => false,
  }: {
    readonly sentBefore?: SentParts;
    readonly refuses?: (index: number) => boolean;
    readonly max?: number;
    readonly hasQueue?: boolean;
    readonly isAccused?: (index: number) => boolean;
  } = {},
) {
  const parts: NodesPart[] = [];
  const metrics: [string, number][] = [];
  const levels: string[] = [];
  const log = { debug() {}, info() {}, warn: () => levels.push('warn'), error: () => levels.push('error') };
  const partQueue = {
    async send(bodies: readonly string[]) {
      parts.push(...bodies.map((body) => JSON.parse(body) as NodesPart));
      return bodies.flatMap((_, index) => (refuses(index) ? [index] : []));
    },
    async postpone() {},
  };
  const dependencies = {
    ...(hasQueue ? { partQueue } : {}),
    policy: { ...defaultPolicy, nodesMarkedPerTickMax: max },
    clock: { nowMs: () => NOW_MS },
    log,
    meter: { add: (name: string, value: number) => metrics.push([name, value]) },
  } as unknown as MonitorDependencies;
  const at = { nowMs: NOW_MS, budget: UNBOUNDED, tick: { slot: 7, fence: 8 }, zones: new Map(), sentBefore };
  const { here, ...rest } = await distributeMarks(dependencies, silent(count, isAccused), at);
  return { here: here.map(({ decision }) => decision.nodeName), ...rest, parts, metrics, levels };
}
const namesIn = (parts: readonly NodesPart[]) => parts.flatMap(({ ready }) => ready).toSorted();

describe('silent nodes of a tick', () => {
  it('are all marked by it without a queue', async () => {
    const { here, sent, awaited, sentAfter } = await distributed(5, { hasQueue: false });
    expect([here.length, sent, awaited, sentAfter]).toEqual([5, 0, 0, undefined]);
  });

  it('are marked by it while they are few', async () => {
    const { here, sent, awaited, sentAfter, parts, metrics } = await distributed(2);
    expect([here, sent, awaited, sentAfter, parts, metrics]).toEqual([['n0', 'n1'], 0, 0, undefined, [], []]);
  });

  it('are sent in parts when they are many, with what node-marker needs', async () => {
    const { here, sent, awaited, sentAfter, parts, metrics, levels } = await distributed(3);
    expect([here, sent, awaited, namesIn(parts)]).toEqual([[], 3, 0, ['n0', 'n1', 'n2']]);
    expect(parts[0]).toMatchObject({ part: 'nodes', slot: 7, fence: 8, decidedAtMs: NOW_MS, untilMs: NOW_MS + 15_000 });
    expect(sentAfter).toEqual({ fullAtMs: NOW_MS, lastAtMs: NOW_MS });
    expect([metrics, levels]).toEqual([[['sent_nodes', 3]], ['warn']]);
  });

  it('of a part that the queue refuses are marked by it', async () => {
    const first = await distributed(5, { refuses: (index) => index === 0 });
    const { here, sent, parts, metrics, levels } = first;
    // Those that this tick has no time for are due again at the next one.
    expect(first.sentAfter).toBeUndefined();
    expect(here.toSorted()).toEqual(parts[0]?.ready.toSorted());
    expect(here.length + sent).toBe(5);
    expect(here.length).toBeGreaterThan(0);
    expect(metrics).toEqual([['sent_nodes', sent]]);
    expect(levels).toEqual(['warn', 'error']);
  });

  it('that an earlier tick sent are awaited while their part is valid', async () => {
    const sentAt = (secondsAgo: number): SentParts => ({
      fullAtMs: NOW_MS - secondsAgo * 1_000,
      lastAtMs: NOW_MS - secondsAgo * 1_000,
    });
    const awaited = await distributed(3, { sentBefore: sentAt(4) });
    expect([awaited.here, awaited.sent, awaited.awaited, awaited.parts, awaited.sentAfter]).toEqual([
      [],
      0,
      3,
      [],
      undefined,
    ]);
    const again = await distributed(3, { sentBefore: sentAt(20) });
    expect([again.sent, again.awaited]).toEqual([3, 0]);
  });

  it('of machines that others report are marked by it, and are not awaited', async () => {
    const isAccused = (index: number) => index === 0;
    const few = await distributed(2, { isAccused });
    expect([few.here, few.awaited]).toEqual([['n0', 'n1'], 0]);
    const many = await distributed(4, { isAccused });
    expect([many.here, many.sent, many.awaited]).toEqual([['n0'], 3, 0]);
  });
});
