import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import {
  answeredTiming,
  followedTiming,
  heartbeatUrlOf,
  leasePath,
  logsVersionOf,
  nameFraction,
  needsOwner,
  nodePath,
  podsVersionOf,
  renewedLease,
} from './lease.ts';

const NOW_MS = 1_700_000_000_000;
const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' };
const node = { metadata: { name: 'n1', uid: 'u1' } };
const annotated = (annotations?: Record<string, string>): KubeObject => ({
  metadata: annotations === undefined ? {} : { annotations },
});

it('a name is a fixed share of the interval: another function would move the heartbeats of a running fleet', () => {
  const shares = ['', 'n1', 'node-a'].map((name) => nameFraction(name).toFixed(6));
  expect(shares).toEqual(['0.668922', '0.664784', '0.233427']);
});

describe('a Lease', () => {
  it('has the name of its Node in its path', () => {
    expect([leasePath('a/b'), nodePath('a/b')]).toEqual([
      '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a%2Fb',
      '/api/v1/nodes/a%2Fb',
    ]);
  });

  it('is renewed: holder, owner and the annotations of others stay', () => {
    const base: KubeObject = {
      kind: 'Lease',
      metadata: {
        name: 'n1',
        resourceVersion: '5',
        ownerReferences: [{ ...owner, uid: 'other' }],
        annotations: {
          'example.com/a': 'b',
          'nodekeeper.dev/pods-version': '1',
          'nodekeeper.dev/logs-version': '2',
          'nodekeeper.dev/heartbeat-url': 'https://x',
          'nodekeeper.dev/silent-machines': 'machine n2',
        },
      },
      spec: { holderIdentity: 'someone', leaseTransitions: 3, leaseDurationSeconds: 1, renewTime: 'old' },
    };
    expect(renewedLease(base, { leaseDurationSeconds: 40, nowMs: NOW_MS, node })).toEqual({
      kind: 'Lease',
      metadata: {
        name: 'n1',
        resourceVersion: '5',
        ownerReferences: [{ ...owner, uid: 'other' }],
        annotations: { 'example.com/a': 'b' },
      },
      spec: {
        holderIdentity: 'someone',
        leaseTransitions: 3,
        leaseDurationSeconds: 40,
        renewTime: '2023-11-14T22:13:20.000000Z',
      },
    });
  });

  it('has an owner added, and no empty annotations', () => {
    const bare = { metadata: { name: 'n1', annotations: { 'nodekeeper.dev/pods-version': '1' } } };
    const timing = { leaseDurationSeconds: 40, nowMs: NOW_MS };
    expect(needsOwner(bare)).toBe(true);
    expect(needsOwner({ metadata: { ownerReferences: [owner] } })).toBe(false);
    expect(renewedLease(bare, { ...timing, node }).metadata).toEqual({ name: 'n1', ownerReferences: [owner] });
    expect(renewedLease(bare, timing).metadata).toEqual({ name: 'n1' });
  });

  it('reports machines that are silent on the network of its site', () => {
    const renewal = { leaseDurationSeconds: 40, nowMs: NOW_MS, silentMachines: 'machine n2' };
    const { annotations } = renewedLease(annotated({ 'example.com/a': 'b' }), renewal).metadata;
    expect(annotations).toEqual({ 'example.com/a': 'b', 'nodekeeper.dev/silent-machines': 'machine n2' });
  });

  it('names versions of pods and logs', () => {
    const lease = annotated({ 'nodekeeper.dev/pods-version': '1', 'nodekeeper.dev/logs-version': '2' });
    expect([podsVersionOf(lease), logsVersionOf(lease)]).toEqual(['1', '2']);
    expect([podsVersionOf(annotated()), logsVersionOf(annotated())]).toEqual([undefined, undefined]);
  });
});

describe('the timing in an answer', () => {
  const timing = (interval?: string, duration?: string) =>
    answeredTiming(
      annotated({
        ...(interval === undefined ? {} : { 'nodekeeper.dev/beat-interval-seconds': interval }),
        ...(duration === undefined ? {} : { 'nodekeeper.dev/lease-duration-seconds': duration }),
      }),
    );

  it.each([
    ['10', '40', 10_000, 40],
    ['10', '30', 10_000, 30],
    ['3600', '14400', 3_600_000, 14_400],
  ])('is used: %s of %s s', (interval, duration, intervalMs, durationSeconds) => {
    expect(timing(interval, duration)).toEqual({ intervalMs, durationSeconds });
  });

  it.each([
    ['10', '29'],
    ['3601', '14404'],
    ['0', '40'],
    ['010', '40'],
    ['-1', '40'],
    ['1.5', '40'],
    ['1e1', '40'],
    ['10 ', '40'],
    ['10', '1000000000'],
    ['10', undefined],
    [undefined, '40'],
    [undefined, undefined],
  ])('is not used: %s of %s s', (interval, duration) => {
    expect(timing(interval, duration)).toBeUndefined();
  });

  const followed = { intervalMs: 10_000, durationSeconds: 40 };
  const longer = { intervalMs: 20_000, durationSeconds: 80 };

  it('is followed at once unless the interval is longer', () => {
    const shorter = { intervalMs: 5_000, durationSeconds: 20 };
    expect(followedTiming({ ...followed, longerSinceMs: 5 }, shorter, 100)).toEqual(shorter);
    const same = { intervalMs: 10_000, durationSeconds: 60 };
    expect(followedTiming({ ...followed, longerSinceMs: 5 }, same, 100, true)).toEqual(same);
  });

  it('is followed after five minutes if the interval is longer, unless a relay may have made it up', () => {
    const waiting = followedTiming(followed, longer, 1_000);
    expect(waiting).toEqual({ ...followed, longerSinceMs: 1_000 });
    expect(followedTiming(waiting, longer, 300_999)).toEqual(waiting);
    expect(followedTiming(waiting, longer, 301_000, true)).toEqual(waiting);
    expect(followedTiming(waiting, longer, 301_000)).toEqual(longer);
  });
});

describe('the URL for heartbeats', () => {
  const urlOf = (url: unknown) =>
    heartbeatUrlOf({ metadata: { annotations: { 'nodekeeper.dev/heartbeat-url': url } } });

  it.each(['https://x.lambda-url.example', 'https://192.0.2.1:8443'])('is %s', (url) => {
    expect(urlOf(url)).toBe(url);
  });

  it.each(['http://x', 'https://x/path', 'https://user@x', 'https://', ' https://x', 'https://x ', 'https://X', 5])(
    'is not %j',
    (url) => {
      expect(urlOf(url)).toBeUndefined();
    },
  );

  it('is none in other answers', () => {
    expect([undefined, null, 'x', {}, { metadata: {} }, { metadata: null }].map(heartbeatUrlOf)).toEqual(
      new Array(6).fill(undefined),
    );
  });
});
