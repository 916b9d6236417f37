import { expect, it } from 'vitest';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { badObjectsAffectOnlyThemselves } from '../../simulation/laws/bad-objects.ts';
import type { Broken, LawContext } from '../../simulation/laws/law.ts';
import type { TrueNode } from '../../simulation/laws/truth.ts';

const NOW_MS = 600_000;

/** A zone of five: two wait for a taint, two are Ready, and the objects of the fifth are bad. */
function zoneWithBadNode(badLastBeatMs: number): readonly Broken[] {
  const nodeOf = (name: string, ready: 'True' | 'Unknown', lastHeartbeatAtMs: number): TrueNode => ({
    name,
    uid: name,
    zone: 'zone-0',
    createdAtMs: 0,
    ready,
    noExecute: new Map(),
    noExecuteChangedAtMs: 0,
    noSchedule: new Set(ready === 'Unknown' ? ['node.kubernetes.io/unreachable'] : []),
    lastHeartbeatAtMs,
    steadySinceMs: 0,
    isExcluded: false,
    profile: undefined,
    profileChangedAtMs: undefined,
    plannedUntilMs: undefined,
    promiseEndedAtMs: Number.NEGATIVE_INFINITY,
  });
  const nodes = [
    nodeOf('waiting-1', 'Unknown', 0),
    nodeOf('waiting-2', 'Unknown', 0),
    nodeOf('ready-1', 'True', NOW_MS),
    nodeOf('ready-2', 'True', NOW_MS),
    nodeOf('bad', 'True', badLastBeatMs),
  ];
  const time = { nowMs: 1_000 };
  const broken: Broken[] = [];
  const of = (pick: (policy: Policy) => number): number => pick(defaultPolicy);
  const law = badObjectsAffectOnlyThemselves({
    truth: {
      nodes: new Map(nodes.map((node) => [node.name, node])),
      lastDark: undefined,
      zone: () => ({ ready: 3, notReady: 2 }),
    },
    plan: { last: () => undefined },
    nowMs: () => time.nowMs,
    most: of,
    least: of,
    calmSinceMs: () => 0,
    clockSlackMs: () => 0,
    isPoisoned: (name: string) => name === 'bad',
    fail: (failure: Broken) => broken.push(failure),
  } as unknown as LawContext);
  for (const node of nodes) {
    if (node.ready === 'Unknown') law.onHappened?.({ kind: 'ready', node, from: 'True', to: 'Unknown' }, writer);
  }
  // The rate of the zone is known from the first look.
  for (const atMs of [NOW_MS - 200_000, NOW_MS]) {
    time.nowMs = atMs;
    law.onMoment?.();
  }
  return broken;
}

const writer = { name: 'node-monitor', who: '' };

it('a zone without any taint is late while its node with bad objects beats (L12)', () => {
  const broken = zoneWithBadNode(NOW_MS);
  expect(broken.map(({ law }) => law)).toContain('L12');
  expect(broken[0]?.message).toContain('wait for a taint');
});

it('a silent node with bad objects counts as not ready for its zone (L12)', () => {
  expect(zoneWithBadNode(0)).toEqual([]);
});
