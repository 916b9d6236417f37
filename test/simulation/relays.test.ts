/** Sites with relays: the laws hold while relays fail, and bugs of relays, routes and tokens are found. */
import { describe, expect, it } from 'vitest';
import { withRelay } from '../../agent/app/relay-route.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../agent/ports/kube-api.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { RELAY_FAULTS } from '../../simulation/faults/catalogue.ts';
import { runSim } from '../../simulation/run-sim.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';

const TIMEOUT_MS = 240_000;
const SEEDS_MAX = 8;
const SITES = { hours: 0.4, nodes: 16, parts: ['relays'], faults: RELAY_FAULTS, faultsAStorm: 20 } as const;
/** Time enough for faults that rarely strike at the same time. */
const LONGER = { hours: 0.75, nodes: 24 };

describe('the laws of a fleet with relays', () => {
  it('hold without faults, and machines use their relays', { timeout: TIMEOUT_MS }, async () => {
    const result = await runSim({ ...SITES, seed: 1, faults: [] });
    expect(result.failure).toBeUndefined();
    expect(result.marks['relay:stored']).toBeGreaterThan(500);
    expect(result.marks['mark:True>Unknown']).toBeGreaterThan(0);
  });

  it('hold while relays are killed, cut off, lose, delay and repeat heartbeats', { timeout: TIMEOUT_MS }, async () => {
    const result = await runSim({ ...SITES, seed: 5 });
    expect(result.failure).toBeUndefined();
    for (const fault of RELAY_FAULTS) expect(result.faults[fault]).toBeGreaterThan(0);
    for (const mark of ['relay:failed', 'relay:used-again', 'relay:conflict', 'relay:expired'] as const) {
      expect(result.marks[mark]).toBeGreaterThan(0);
    }
  });

  it('hold while both ways of machines hang at once, with the shortest grace period', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const policy = { nodeMonitorGracePeriodSeconds: 23 };
    const result = await runSim({ ...SITES, ...LONGER, seed: 5, policy, faults: ['waysHang'] });
    expect(result.failure).toBeUndefined();
    expect(result.faults.waysHang).toBeGreaterThan(20);
  });

  it('hold with an interval that is too short for a relay, and no machine uses its relay', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const policy = { beatIntervalSeconds: 5, leaseDurationSeconds: 20, nodeMonitorGracePeriodSeconds: 20 };
    const result = await runSim({ ...SITES, seed: 5, policy });
    expect(result.failure).toBeUndefined();
    expect(result.marks['relay:interval-short']).toBeGreaterThan(0);
    expect(result.marks['relay:stored']).toBe(0);
  });
});

/** A relay, with answers that are changed on their way to the machine. */
const relayThat = (relay: KubeApi, answer: (request: KubeRequest) => Promise<KubeAnswer>): KubeApi => ({
  ...relay,
  send: answer,
});

/** The Lease as it was sent, with the next version. */
function acknowledged({ body }: KubeRequest): KubeAnswer {
  const { metadata, ...lease } = body as KubeObject;
  const resourceVersion = String(Number(metadata.resourceVersion) + 1);
  return { kind: 'answered', status: 200, body: { ...lease, metadata: { ...metadata, resourceVersion } } };
}

/** Tokens are checked at the moment of their signature. */
const tokensForEver: NonNullable<SimOptions['plant']> = {
  authenticator: (authenticator) => ({
    authenticate(headers, nowMs) {
      const claims = headers['authorization']?.split('bound.')[1];
      const { iat } = JSON.parse(Buffer.from(claims ?? '', 'base64url').toString('utf8') || '{}') as { iat?: number };
      return authenticator.authenticate(headers, iat === undefined ? nowMs : iat * 1_000);
    },
  }),
};

/** Function heartbeat renews Leases whatever their version is. */
const anyVersion = (items: ItemStore): ItemStore => ({
  ...items,
  write: (write, options) =>
    items.write(
      'when' in write && write.when !== undefined ? { ...write, when: { kind: 'has', attribute: 'pk' } } : write,
      options,
    ),
});

describe('the laws find', () => {
  /** `seed`: the first one that is tried. Default: 1. */
  it.each<{ bug: string; seed?: number; plant: NonNullable<SimOptions['plant']> }>([
    {
      bug: 'a relay that keeps dead machines alive with old heartbeats',
      seed: 5,
      plant: {
        ...tokensForEver,
        items: (items, { name }) => (name === 'heartbeat' ? anyVersion(items) : items),
      },
    },
    { bug: 'machines that do not fall back', plant: { relayRoute: ({ relay }) => relay } },
    {
      bug: 'machines that believe their failing relay',
      plant: {
        relayRoute: ({ relay, ...options }) =>
          withRelay({
            ...options,
            relay: relayThat(relay, async (request) => {
              const answer = await relay.send(request);
              return answer.kind === 'failed' ? acknowledged(request) : answer;
            }),
          }),
      },
    },
  ])('$bug', { timeout: TIMEOUT_MS }, async ({ plant, seed: first = 1 }) => {
    const found: string[] = [];
    const faults = RELAY_FAULTS.filter((name) => name !== 'waysHang');
    for (let seed = first; seed < first + SEEDS_MAX && found.length === 0; seed += 1) {
      const { failure } = await runSim({ ...SITES, faults, seed, plant });
      if (failure !== undefined) found.push(`${failure.law}: ${failure.message}`);
    }
    expect(found).toEqual([expect.stringMatching(/^relays: /)]);
  });
});
