import { describe, expect, it } from 'vitest';
import { type Limiter, takeTokenUpdate } from '../../shared/fleet/limiter.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { compareQueueItems, decideEvictions, type EvictionDecision } from './rule.ts';

const item = (nodeName: string, addedAtMs = 0, uid = `uid-${nodeName}`) => ({
  nodeName,
  uid,
  zone: '',
  addedAtMs,
});
const full: Limiter = { tatMs: undefined, ratePerSecond: 0.1 };
const at = {
  nowMs: 100_000,
  gate: { kind: 'open' } as const,
  totalDisruption: false,
  policy: defaultPolicy,
  freshSinceMs: 0,
};
const decide = (
  items: readonly ReturnType<typeof item>[],
  nodes: readonly NodeHealth[],
  limiter: Limiter = full,
  overrides: Partial<Parameters<typeof decideEvictions>[1]> = {},
) =>
  decideEvictions(
    { items, nodes: new Map(nodes.map((node) => [node.nodeName, node])), limiter },
    { ...at, ...overrides },
  );
const dark = (nodeName: string) => aNode({ nodeName, ready: 'Unknown' });

describe('decideEvictions', () => {
  it('taints the node that waits longest, and no other node in this pass', () => {
    const outcome = decide([item('b', 2), item('a', 1)], [dark('a'), dark('b')]);
    expect(outcome.decisions).toMatchObject([{ kind: 'taint', nodeName: 'a', taint: 'unreachable' }]);
    expect(outcome.hold).toBeUndefined();
  });

  it('removes deleted, re-created, Ready, tainted nodes and nodes without Ready, without a token', () => {
    const outcome = decide(
      [item('gone'), item('new', 0, 'old-uid'), item('ready'), item('silent'), item('tainted'), item('z')],
      [
        aNode({ nodeName: 'new', ready: 'False' }),
        aNode({ nodeName: 'ready' }),
        aNode({ nodeName: 'silent', ready: undefined }),
        { ...dark('tainted'), noExecute: { notReady: false, unreachable: true } },
        dark('z'),
      ],
    );
    const reasonOf = (decision: EvictionDecision) => (decision.kind === 'drop' ? decision.reason : decision.kind);
    expect(outcome.decisions.map((decision) => [decision.nodeName, reasonOf(decision)])).toEqual([
      ['gone', 'nodeGone'],
      ['new', 'nodeGone'],
      ['ready', 'ready'],
      ['silent', 'noReadyCondition'],
      ['tainted', 'tainted'],
      ['z', 'taint'],
    ]);
    expect(outcome.decisions[1]).toEqual({ ...item('new', 0, 'old-uid'), kind: 'drop', reason: 'nodeGone' });
  });

  it('taints by the current status, with the token and the time of the wait in seconds', () => {
    const notReady = aNode({ nodeName: 'a', ready: 'False' });
    const { decisions, hold } = decide([{ ...item('a', 97_500), zone: 'z' }], [notReady]);
    expect(decisions).toEqual([
      {
        ...{ kind: 'taint', nodeName: 'a', uid: 'uid-a', zone: 'z', addedAtMs: 97_500 },
        ...{ taint: 'notReady', ready: 'False', waitedSeconds: 2.5, ratePerSecond: 0.1 },
        token: takeTokenUpdate({ nowMs: 100_000, ratePerSecond: 0.1 }),
      },
    ]);
    expect(hold).toBeUndefined();
    // Enqueued by a process with a clock that is ahead.
    expect(decide([item('a', 100_500)], [notReady]).decisions).toMatchObject([{ waitedSeconds: 0 }]);
  });

  it('removes a node with a promise of silence that stands', () => {
    const promised = { ...dark('a'), plannedUntilMs: 100_001 };
    expect(decide([item('a')], [promised]).decisions).toMatchObject([{ kind: 'drop', reason: 'plannedSilence' }]);
    expect(decide([item('a')], [{ ...promised, plannedUntilMs: 100_000 }]).decisions).toMatchObject([
      { kind: 'taint' },
    ]);
  });

  it('removes a node that sends heartbeats again after its mark', () => {
    const back = { ...dark('a'), markedAtMs: 90_000, renewedAtMs: 95_000 };
    expect(decide([item('a')], [back]).decisions).toMatchObject([{ kind: 'drop', reason: 'returning' }]);
  });

  it('swaps the opposite taint without a token, and continues', () => {
    const swap = { ...dark('a'), noExecute: { notReady: true, unreachable: false } };
    const outcome = decide([item('a'), item('b')], [swap, dark('b')]);
    expect(outcome.decisions.map(({ kind }) => kind)).toEqual(['swap', 'taint']);
    expect(outcome.decisions[0]).toEqual({
      ...item('a'),
      ...{ kind: 'swap', from: 'notReady', to: 'unreachable', ready: 'Unknown' },
    });
  });

  it('swaps no taint in total disruption, which removes it', () => {
    const swap = { ...dark('a'), noExecute: { notReady: true, unreachable: false } };
    const outcome = decide([item('a'), item('b')], [swap, dark('b')], full, { totalDisruption: true });
    expect(outcome).toEqual({ decisions: [], hold: { kind: 'totalDisruption' } });
  });

  it('has no decision and no hold without nodes that wait', () => {
    expect(decide([], [dark('a')])).toEqual({ decisions: [], hold: undefined });
  });

  it('returns the hold: closed gate, total disruption, no rate, no token', () => {
    const items = [item('a')];
    const nodes = [dark('a')];
    const holding = { kind: 'holding', reasons: ['missedTicks'], sinceMs: 0 } as const;
    expect(decide(items, nodes, full, { gate: holding }).hold).toEqual({ kind: 'gate', reasons: ['missedTicks'] });
    expect(decide(items, nodes, full, { totalDisruption: true }).hold).toEqual({ kind: 'totalDisruption' });
    expect(decide(items, nodes, { tatMs: 0, ratePerSecond: 0 }).hold).toEqual({ kind: 'never' });
    expect(decide(items, nodes, { tatMs: 100_001, ratePerSecond: 0.1 }).hold).toEqual({
      kind: 'rate',
      untilMs: 100_001,
    });
    expect(decide(items, nodes, { tatMs: 100_000, ratePerSecond: 0.1 }).hold).toBeUndefined();
  });

  it('removes entries while the gate is closed', () => {
    const holding = { kind: 'holding', reasons: ['failingPath'], sinceMs: 0 } as const;
    const outcome = decide([item('a'), item('b')], [aNode({ nodeName: 'a' }), dark('b')], full, { gate: holding });
    expect(outcome.decisions).toMatchObject([{ kind: 'drop', nodeName: 'a', reason: 'ready' }]);
  });
});

const queued = (nodeName: string, addedAtMs: number) => ({ nodeName, uid: `uid-${nodeName}`, addedAtMs });

describe('turns of the eviction queue', () => {
  it('are ordered by the time when they were enqueued, then by name', () => {
    const inTurn = [queued('c', 2), queued('a', 3), queued('b', 3)];
    expect([...inTurn].reverse().sort(compareQueueItems)).toEqual(inTurn);
  });

  it('are equal for the same item', () => {
    expect(compareQueueItems(queued('a', 1), queued('a', 1))).toBe(0);
  });
});
