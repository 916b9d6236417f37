import { describe, expect, it } from 'vitest';
import type { GateVerdict } from '../../shared/fleet/gate.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { replayed } from '../../test/support/replayed.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { evictorReplay, holdDraft, holdKey, taintDraft } from './decisions.ts';
import { decideEvictions, type EvictionHold } from './rule.ts';

const NOW_MS = 100_000;
const OPEN: GateVerdict = { kind: 'open' };
const CLOSED: GateVerdict = { kind: 'holding', reasons: ['missedTicks'], sinceMs: 0 };
const policy = { ...defaultPolicy, nodesQueuedPerZoneMax: 7 };
const item = (index: number) => ({ nodeName: `n${index}`, uid: `u${index}`, zone: 'a', addedAtMs: index });

describe('the record of a zone without a taint', () => {
  const limiter = { tatMs: NOW_MS + 1, ratePerSecond: 0.1 };
  const at: Parameters<typeof holdDraft>[1] = {
    nowMs: NOW_MS,
    zone: 'a',
    limiter,
    gate: OPEN,
    totalDisruption: false,
    waiting: [item(0)],
    policy,
  };

  it.each<[string, EvictionHold, Partial<typeof at>, string, string]>([
    [
      'a closed gate',
      { kind: 'gate', reasons: ['missedTicks'] },
      { gate: CLOSED, totalDisruption: true },
      'safety gate closed: node-monitor missed ticks',
      'gate missedTicks',
    ],
    [
      'total disruption',
      { kind: 'totalDisruption' },
      { totalDisruption: true },
      'total disruption, every zone is in full disruption',
      'totalDisruption',
    ],
    [
      'rate 0',
      { kind: 'never' },
      { limiter: { tatMs: undefined, ratePerSecond: 0 } },
      'the eviction rate in this zone state is 0',
      'never',
    ],
    [
      'the token of later',
      { kind: 'rate', untilMs: NOW_MS + 1 },
      {},
      'one taint every 10 s, next at 1970-01-01T00:01:40Z',
      'rate 0.1',
    ],
  ])('%s: its text, its inputs and its outcome, which replays', (_name, hold, over, text, key) => {
    const now = { ...at, ...over };
    const draft = holdDraft(hold, now);
    expect(draft).toEqual({
      act: 'EvictionHeld',
      about: { kind: 'Zone', name: 'a' },
      atMs: NOW_MS,
      reason: `1 node waits for the NoExecute taint: ${text}`,
      rule: 'hold',
      inputs: {
        limiter: now.limiter,
        gate: now.gate === CLOSED ? ['missedTicks'] : [],
        totalDisruption: now.totalDisruption,
        waiting: 1,
        first: ['n0'],
      },
      outcome: hold,
    });
    expect(replayed(draft, evictorReplay)).toEqual(hold);
    expect(holdKey(hold, now.limiter.ratePerSecond)).toBe(key);
  });

  it('counts the nodes that wait, says when it did not read all, and names the first five', () => {
    const waiting = (count: number) =>
      holdDraft({ kind: 'totalDisruption' }, { ...at, waiting: Array.from({ length: count }, (_, i) => item(i)) });
    const reasonOf = (count: number) => waiting(count).reason.split(' for ')[0];
    expect([reasonOf(6), reasonOf(7), reasonOf(8)]).toEqual([
      '6 nodes wait',
      'at least 7 nodes wait',
      'at least 8 nodes wait',
    ]);
    expect(waiting(6).inputs).toMatchObject({ waiting: 6, first: ['n0', 'n1', 'n2', 'n3', 'n4'] });
  });

  it('replays to nothing where nothing holds', () => {
    const draft = holdDraft({ kind: 'never' }, { ...at, limiter: { tatMs: NOW_MS, ratePerSecond: 0.1 } });
    expect(replayed(draft, evictorReplay)).toEqual({ kind: 'nothing' });
  });
});

describe('the record of a NoExecute taint', () => {
  const limiter = { tatMs: undefined, ratePerSecond: 0.2 };
  const draftOf = (ready: 'False' | 'Unknown', more: Partial<NodeHealth> = {}, policy: Policy = defaultPolicy) => {
    const nowMs = NOW_MS;
    const seen = aNode({ nodeName: 'n5', uid: 'u5', zone: 'a', ready, renewedAtMs: 1, suspect: true, ...more });
    const world = { items: [item(5)], nodes: new Map([['n5', seen]]), limiter };
    const at = { nowMs, gate: OPEN, totalDisruption: false, policy, freshSinceMs: 3 };
    const [decision] = decideEvictions(world, at).decisions;
    if (decision?.kind !== 'taint') throw new Error(`decided ${decision?.kind}`);
    return taintDraft(decision, { nowMs, policy, seen, item: item(5), limiter, freshSinceMs: 3, waiting: 4 });
  };

  it.each([
    ['False', 'not-ready', 'notReady'],
    ['Unknown', 'unreachable', 'unreachable'],
  ] as const)('of a node with Ready %s has all that the rule read, and replays', (ready, key, taint) => {
    const draft = draftOf(ready);
    expect(draft).toEqual({
      act: 'Tainted',
      about: { kind: 'Node', name: 'n5', uid: 'u5' },
      atMs: NOW_MS,
      reason: `Ready is ${ready}: node.kubernetes.io/${key}:NoExecute added after 100 s in the eviction queue; zone a: one taint every 5 s`,
      rule: 'eviction',
      inputs: {
        item: { addedAtMs: 5 },
        health: {
          zone: 'a',
          ready,
          excluded: false,
          noExecute: { notReady: false, unreachable: false },
          createdAtMs: 0,
          renewedAtMs: 1,
          statusAtMs: undefined,
        },
        limiter,
        freshSinceMs: 3,
        waiting: 4,
        policy: {
          nodeMonitorGracePeriodSeconds: 40,
          nodeStartupGracePeriodSeconds: 60,
          beatIntervalSeconds: 10,
        },
      },
      outcome: { taint, waitedSeconds: 99.995, ratePerSecond: 0.2 },
    });
    expect(replayed(draft, evictorReplay)).toEqual(draft.outcome);
  });

  it('replays by the times of the profile of the node', () => {
    const fast = { name: 'fast', nodeSelector: {}, nodeMonitorGracePeriodSeconds: 20 };
    const returned = { profile: 'fast', markedAtMs: 10_000, renewedAtMs: NOW_MS - 30_000 };
    const draft = draftOf('Unknown', returned, { ...defaultPolicy, profiles: [fast] });
    expect(replayed(draft, evictorReplay)).toEqual(draft.outcome);
  });

  it('replays to what the rule says of other inputs', () => {
    const draft = draftOf('Unknown');
    const withInputs = (inputs: object) => ({ ...draft, inputs: { ...draft.inputs, ...inputs } }) as typeof draft;
    const { health } = draft.inputs as { health: object };
    expect(replayed(withInputs({ health: { ...health, ready: 'True' } }), evictorReplay)).toEqual({ kind: 'drop' });
    expect(replayed(withInputs({ limiter: { ratePerSecond: 0 } }), evictorReplay)).toEqual({ kind: 'nothing' });
  });
});
