import { describe, expect, it } from 'vitest';
import type { KubeNamespace } from '../../../shared/kinds/types.ts';
import { type DeletionPass, finalizedNamespace, isFinalizedByUs, nextLookMs, withConditions } from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const AT = '2026-01-01T00:00:00Z';
const NOTHING: DeletionPass = { remaining: [], failures: [] };
const namespace = (conditions?: readonly object[]): KubeNamespace => ({
  metadata: { name: 'a' },
  status: { phase: 'Terminating', ...(conditions === undefined ? {} : { conditions }) } as never,
});
const FINE = withConditions(namespace(), NOTHING, NOW_MS)?.status?.conditions ?? [];
const PASS: DeletionPass = {
  remaining: [
    { group: 'apps', resource: 'deployments', count: 2, finalizers: ['b', 'a', 'b'] },
    { group: '', resource: 'pods', count: 3, finalizers: [] },
  ],
  failures: ['z failed', 'a failed'],
};

describe('the conditions of a terminating namespace', () => {
  it('are false after a pass without a problem', () => {
    expect(withConditions(namespace(), NOTHING, NOW_MS)?.status?.phase).toBe('Terminating');
    expect(FINE.map(({ status, lastTransitionTime }) => [status, lastTransitionTime])).toEqual(
      Array(5).fill(['False', AT]),
    );
    expect(FINE).toContainEqual({
      ...{ type: 'NamespaceContentRemaining', status: 'False', lastTransitionTime: AT },
      ...{ reason: 'ContentRemoved', message: 'All content successfully removed' },
    });
  });

  it('name what remains, its finalizers and what failed', () => {
    const conditions = withConditions(namespace(), PASS, NOW_MS)?.status?.conditions ?? [];
    const of = (type: string) => conditions.find((each) => each.type === type);
    expect(of('NamespaceDeletionContentFailure')).toEqual({
      type: 'NamespaceDeletionContentFailure',
      status: 'True',
      lastTransitionTime: AT,
      reason: 'ContentDeletionFailed',
      message: 'Failed to delete all resource types, 2 remaining: a failed, z failed',
    });
    expect(of('NamespaceContentRemaining')).toMatchObject({
      status: 'True',
      reason: 'SomeResourcesRemain',
      message:
        'Some resources are remaining: deployments.apps has 2 resource instances, pods. has 3 resource instances',
    });
    expect(of('NamespaceFinalizersRemaining')).toMatchObject({
      status: 'True',
      reason: 'SomeFinalizersRemain',
      message:
        'Some content in the namespace has finalizers remaining: a in 1 resource instances, b in 2 resource instances',
    });
    expect(of('NamespaceDeletionDiscoveryFailure')).toMatchObject({ status: 'False' });
  });

  it('mention no finalizers where there are none', () => {
    const pass = { ...PASS, remaining: PASS.remaining.slice(1), failures: [] };
    const conditions = withConditions(namespace(), pass, NOW_MS)?.status?.conditions ?? [];
    const failing = conditions.filter(({ status }) => status === 'True').map(({ type }) => type);
    expect(failing).toEqual(['NamespaceContentRemaining']);
  });

  it('are written when one of them changes, and keep the time of a status that does not', () => {
    expect(withConditions(namespace(FINE), NOTHING, NOW_MS + 1_000)).toBeUndefined();
    for (const change of [{ status: 'True' }, { reason: 'x' }, { message: 'x' }]) {
      const before = FINE.map((each, at) => (at === 2 ? { ...each, ...change, lastTransitionTime: 'before' } : each));
      const after = withConditions(namespace(before), NOTHING, NOW_MS)?.status?.conditions?.[2];
      expect(after).toEqual({ ...FINE[2], lastTransitionTime: 'status' in change ? AT : 'before' });
    }
  });

  it('leave those of others in place', () => {
    const other = { type: 'Other', status: 'True' };
    const conditions = withConditions(namespace([FINE[0]!, other]), NOTHING, NOW_MS)?.status?.conditions;
    expect(conditions).toEqual([other, ...FINE]);
  });
});

describe('a terminating namespace is evaluated again', () => {
  const ofGroup = (group: string) => ({
    ...NOTHING,
    remaining: [{ group, resource: 'pods', count: 1, finalizers: [] }],
  });
  const others = { ...NOTHING, remaining: [{ group: '', resource: 'secrets', count: 1, finalizers: ['x'] }] };
  it.each([
    ['with pods', ofGroup(''), 599_999, 5_000],
    ['with pods of another group', ofGroup('metrics.k8s.io'), 0, 15_000],
    ['with other objects', others, 599_999, 15_000],
    ['after ten minutes', ofGroup(''), 600_000, 60_000],
    ['after a long time', others, 900_000, 60_000],
  ])('%s', (_, pass, ageMs, waitMs) => {
    expect(nextLookMs(pass, NOW_MS - ageMs, NOW_MS) - NOW_MS).toBe(waitMs);
  });
});

describe('the finalizer kubernetes of a namespace', () => {
  const held = (spec: string[] | undefined, metadata?: string[]): KubeNamespace => ({
    metadata: { name: 'a', ...(metadata === undefined ? {} : { finalizers: metadata }) },
    spec: spec === undefined ? {} : { finalizers: spec },
  });

  it('is removed, and the namespace with it if nothing else holds it', () => {
    expect(finalizedNamespace(held(['kubernetes']))).toBeUndefined();
    expect(finalizedNamespace(held(undefined))).toBeUndefined();
    expect(finalizedNamespace({ metadata: { name: 'a' } })).toBeUndefined();
    expect(finalizedNamespace(held(['x', 'kubernetes']))).toEqual(held(['x']));
    expect(finalizedNamespace(held(['kubernetes'], ['y']))).toEqual(held(undefined, ['y']));
  });

  it('counts as removed when the spec does not have it', () => {
    expect(isFinalizedByUs(held(['kubernetes']))).toBe(false);
    expect(isFinalizedByUs(held(['x']))).toBe(true);
    expect(isFinalizedByUs({ metadata: { name: 'a' } })).toBe(true);
  });
});
