import { expect, it } from 'vitest';
import { HEARTBEAT_LIMITS } from '../../shared/access/request-throttle.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { EndpointAnswer, EndpointRequest } from '../../simulation/endpoint.ts';
import type { Process } from '../../simulation/faults/processes.ts';
import { GREEDY, GREEDY_COST_MS } from '../../simulation/greedy-identity.ts';
import type { Broken, LawContext } from '../../simulation/laws/law.ts';
import { identitiesKeepTheirShare, type SharesLaw } from '../../simulation/laws/shares.ts';
import type { TimedChange } from '../../simulation/recent-changes.ts';

const BEAT: EndpointRequest = {
  who: 'm-1',
  method: 'PATCH',
  path: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/m-1',
};
const LIST: EndpointRequest = { who: 'm-1', method: 'GET', path: '/api/v1/nodes' };
const OVER_LIMIT: EndpointAnswer = { status: 429, body: { message: 'it sends too many requests' } };
const { burstMs, share } = HEARTBEAT_LIMITS.node.time;

/** A law in a world where one identity is greedy and nothing else is wrong. */
function lawInCalm() {
  const world = { nowMs: 1_000_000, isCalm: true, calmSinceMs: 0 };
  const broken: string[] = [];
  const asked: Record<string, number> = {};
  const law = identitiesKeepTheirShare(
    {
      nowMs: () => world.nowMs,
      calmSinceMs: () => (world.isCalm ? world.calmSinceMs : undefined),
      most: (of: (policy: Policy) => number) => of(defaultPolicy),
      clockSlackMs: () => 0,
      isPoisoned: () => false,
      plan: { severity: () => 1 },
      fail: ({ message }: Broken) => broken.push(message),
    } as unknown as LawContext,
    (mark) => {
      asked[mark] = (asked[mark] ?? 0) + 1;
    },
  );
  return { law, world, broken, asked };
}

const gate = (law: SharesLaw, reasons: readonly string[]): void =>
  law.onHappened?.(
    {
      kind: 'control',
      change: { key: { table: 'control', pk: 'fleet', sk: 'state' }, newImage: { gate: JSON.stringify({ reasons }) } },
    } as unknown as Parameters<NonNullable<SharesLaw['onHappened']>>[0],
    { name: 'node-monitor', who: '' },
  );

it('a share of the time is the burst, and then its part of the time that passes', () => {
  const { law, world, broken } = lawInCalm();
  const process = { name: 'heartbeat' } as Process;
  for (let spentMs = 0; spentMs <= burstMs; spentMs += GREEDY_COST_MS.heartbeat) {
    law.onSpent(process, GREEDY_COST_MS.heartbeat);
  }
  world.nowMs += GREEDY_COST_MS.heartbeat / share;
  law.onSpent(process, GREEDY_COST_MS.heartbeat);
  expect(broken).toEqual([]);
  law.onSpent(process, GREEDY_COST_MS.heartbeat);
  expect(broken).toEqual([expect.stringContaining(`${GREEDY} used 1 s of the 5 s of a process of heartbeat`)]);
});

it('requests of others wait no longer than the burst and two requests', () => {
  const { law, broken, asked } = lawInCalm();
  law.onTurn(BEAT, 1_000);
  law.onTurn(LIST, 3_000);
  expect(broken).toEqual([]);
  law.onTurn(BEAT, 1_001);
  law.onTurn(LIST, 3_001);
  expect(broken).toEqual([
    expect.stringContaining('m-1 waited 1.001 s for function heartbeat'),
    expect.stringContaining('m-1 waited 3.001 s for function api'),
  ]);
  expect(asked).toEqual({ 'shares:heartbeat-turn': 2, 'shares:api-turn': 2 });
});

it('others are not refused', () => {
  const { law, broken } = lawInCalm();
  law.onAnswer(BEAT, { status: 429, body: { message: 'too many requests' } });
  law.onAnswer({ ...BEAT, who: GREEDY }, OVER_LIMIT);
  expect(broken).toEqual([]);
  law.onAnswer(BEAT, OVER_LIMIT);
  expect(broken).toEqual([expect.stringContaining('m-1 was refused')]);
});

it('the gate stays open', () => {
  const { law, broken } = lawInCalm();
  gate(law, []);
  expect(broken).toEqual([]);
  gate(law, ['failingPath']);
  gate(law, ['failingPath']);
  expect(broken).toEqual(['the gate closed because of failingPath']);
});

it('ticks that were missing before the calm may close the gate for one grace period, if no probe fails', () => {
  const graceMs = defaultPolicy.nodeMonitorGracePeriodSeconds * 1_000;
  const closedBy = (reasons: readonly string[], options: { calmForMs: number; probeFailedMsAgo?: number }) => {
    const { law, world, broken } = lawInCalm();
    world.calmSinceMs = world.nowMs - options.calmForMs;
    if (options.probeFailedMsAgo !== undefined) {
      world.nowMs -= options.probeFailedMsAgo;
      law.onProbe({ kind: 'failed', reason: 'answered 429' });
      world.nowMs += options.probeFailedMsAgo;
    }
    law.onProbe({ kind: 'accepted' });
    gate(law, reasons);
    return broken.length;
  };
  expect(closedBy(['failingPath'], { calmForMs: graceMs })).toBe(0);
  expect(closedBy(['failingPath'], { calmForMs: graceMs, probeFailedMsAgo: graceMs + 1 })).toBe(0);
  expect(closedBy(['failingPath'], { calmForMs: graceMs, probeFailedMsAgo: graceMs })).toBe(1);
  expect(closedBy(['failingPath'], { calmForMs: graceMs + 1 })).toBe(1);
  expect(closedBy(['missedTicks', 'failingPath'], { calmForMs: graceMs })).toBe(1);
});

it('a refusal is recorded within two and a half minutes of calm', () => {
  const { law, world, broken } = lawInCalm();
  const refuse = (): void => law.onAnswer({ ...BEAT, who: GREEDY }, OVER_LIMIT);
  const passMs = (ms: number): void => {
    world.nowMs += ms;
    law.onMoment?.();
  };
  refuse();
  passMs(150_000);
  law.learn([{ key: { table: 'objects', pk: 'd#01', sk: `node.${GREEDY}.1-a` } } as TimedChange]);
  passMs(150_000);
  refuse();
  world.isCalm = false;
  passMs(150_001);
  world.isCalm = true;
  passMs(150_001);
  expect(broken).toEqual([]);
  refuse();
  passMs(150_001);
  expect(broken).toEqual([`no decision says that ${GREEDY} was refused 150.001 s ago`]);
});
