import { describe, expect, it } from 'vitest';
import type { NodeHealth } from '../../shared/fleet/nodes/health-row.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { Limiter } from '../../shared/fleet/zones/limiter.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { decideEvictions } from './rule.ts';

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
    expect(outcome.decisions.map((decision) => [decision.nodeName, decision.kind])).toEqual([
      ['gone', 'drop'],
      ['new', 'drop'],
      ['ready', 'drop'],
      ['silent', 'drop'],
      ['tainted', 'drop'],
      ['z', 'taint'],
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
  });

  it('removes entries while the gate is closed', () => {
    const holding = { kind: 'holding', reasons: ['failingPath'], sinceMs: 0 } as const;
    const outcome = decide([item('a'), item('b')], [aNode({ nodeName: 'a' }), dark('b')], full, { gate: holding });
    expect(outcome.decisions).toMatchObject([{ kind: 'drop', nodeName: 'a', reason: 'ready' }]);
  });
});
