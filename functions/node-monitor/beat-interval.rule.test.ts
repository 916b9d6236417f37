import { describe, expect, it } from 'vitest';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { dayOf, rareBeats } from './beat-interval.rule.ts';

const policy: Policy = { ...defaultPolicy, leaseDurationSeconds: 40, nodeMonitorGracePeriodSeconds: 50 };
const node = (over: Partial<Parameters<typeof aNode>[0]> = {}) =>
  aNode({ nodeName: 'n', leaseDurationSeconds: 101, ...over });

describe('nodes with heartbeats too rare', () => {
  it('are reported with the interval, the grace period and the profile', () => {
    expect(rareBeats([node({ leaseDurationSeconds: 120 })], policy, 0)).toEqual([
      {
        nodeName: 'n',
        uid: 'uid-n',
        message:
          'The Lease lasts 120 s, so a kubelet sends a heartbeat every 30 s. The grace period of profile default is 50 s: one lost heartbeat marks the node.',
      },
    ]);
  });

  it.each([
    ['a grace period of exactly two intervals', node({ leaseDurationSeconds: 100 }), 0],
    ['a grace period just below two intervals', node(), 1],
    ['the duration that its profile wants', node({ leaseDurationSeconds: 200 }), 0],
    ['no Lease', node({ leaseDurationSeconds: undefined }), 0],
    ['Ready Unknown', node({ ready: 'Unknown' }), 0],
    ['Ready False', node({ ready: 'False' }), 0],
  ])('%s', (_what, each, count) => {
    expect(rareBeats([each], { ...policy, leaseDurationSeconds: 200 }, 0)).toHaveLength(count);
  });

  it('are compared with their own profile, which the message names', () => {
    const profile = {
      name: 'edge',
      nodeSelector: {},
      nodeMonitorGracePeriodSeconds: 300,
    } as unknown as Policy['profiles'][0];
    const rare = { ...profile, name: 'quick', nodeMonitorGracePeriodSeconds: 20 };
    const profiles = [profile, rare];
    const found = rareBeats([node({ profile: 'edge' }), node({ profile: 'quick' })], { ...policy, profiles }, 0);
    expect(found.map(({ message }) => message)).toEqual([expect.stringContaining('of profile quick is 20 s')]);
  });

  it('are reported up to a hundred at once, and the others an hour later', () => {
    const nodes = [
      node({ ready: 'False' }),
      ...Array.from({ length: 150 }, (_, index) => node({ nodeName: `n${index}` })),
    ];
    const [first, second] = [0, 1].map((hour) =>
      rareBeats(nodes, policy, hour * 3_600_000).map(({ nodeName }) => nodeName),
    );
    expect(first).toEqual(Array.from({ length: 100 }, (_, index) => `n${index}`));
    expect(second?.slice(0, 51)).toEqual([...Array.from({ length: 50 }, (_, index) => `n${100 + index}`), 'n0']);
  });
});

it('has one day from midnight to midnight, UTC', () => {
  expect([0, 86_399_999, 86_400_000].map(dayOf)).toEqual([0, 0, 1]);
});
