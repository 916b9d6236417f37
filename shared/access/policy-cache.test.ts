import { describe, expect, it } from 'vitest';
import type { KubeClusterRole, KubeRoleBinding } from '../kinds/types.ts';
import { type PolicyCacheOptions, policyCache } from './policy-cache.ts';

const NAME_CHARACTERS = 99_000;
const LONG = 'x'.repeat(NAME_CHARACTERS);

/** Views of a cache with nothing by default, at one time. */
function cacheOf(list: PolicyCacheOptions['list'], commits: readonly number[]) {
  const changes = { newestCommits: async () => commits };
  const cache = policyCache({ changes, list, defaultRoles: [], defaultBindings: [] });
  return (namespace: string) => cache.view(namespace, { nowMs: 0, ageMaxMs: 5_000 });
}

/** Every namespace has an endless list of RoleBindings that are as large as the store allows. */
function endlessBindings() {
  const read: string[] = [];
  const list: PolicyCacheOptions['list'] = async (kind, { namespace, limit, continueAfter = '0' }) => {
    if (kind !== 'rolebindings') return { items: [] };
    if (continueAfter === '0') read.push(namespace);
    const items = Array.from({ length: limit }, (_, index): KubeRoleBinding => {
      const name = `b${Number(continueAfter) + index}`;
      return { metadata: { name, namespace }, subjects: [{ kind: 'User', name: LONG }] };
    });
    return { items, next: String(Number(continueAfter) + limit) };
  };
  return { read, view: cacheOf(list, [0, 0, 0, 1]) };
}

it('evaluates at most ten million characters of one kind in one namespace, the first ones', async () => {
  const { roleBindings } = await endlessBindings().view('a');
  expect(roleBindings[0]?.metadata.name).toBe('b0');
  expect(roleBindings.length).toBeGreaterThan(50);
  expect(roleBindings.length * NAME_CHARACTERS).toBeLessThanOrEqual(10_000_000);
});

it('keeps as many namespaces in memory as fit, the recent ones', async () => {
  const { read, view } = endlessBindings();
  const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
  for (const name of names) await view(name);
  await view('n11');
  expect(read).toEqual(names);
  await view('n0');
  expect(read).toEqual([...names, 'n0']);
});

it('combines the rules of a role once until a role or a binding of the cluster changes', async () => {
  let version = 1;
  const part: KubeClusterRole = { metadata: { name: 'part', labels: { of: 'whole' } }, rules: [{ verbs: ['get'] }] };
  const whole: KubeClusterRole = {
    metadata: { name: 'whole' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { of: 'whole' } }] },
  };
  const cache = policyCache({
    changes: { newestCommits: async () => [version, 1, 1, 1] },
    list: async (kind) => ({ items: kind === 'clusterroles' ? [part] : [] }),
    defaultRoles: [whole],
    defaultBindings: [],
  });
  const rulesAt = async (nowMs: number) =>
    (await cache.view('a', { nowMs, ageMaxMs: 1_000 })).rulesOf('ClusterRole', 'whole');
  const first = await rulesAt(0);
  expect(first).toEqual([{ verbs: ['get'] }]);
  expect(await rulesAt(5_000)).toBe(first);
  version = 2;
  expect(await rulesAt(10_000)).not.toBe(first);
  expect(await rulesAt(10_000)).toEqual(first);
});

describe('the policies of a namespace', () => {
  function policies() {
    const reads: string[] = [];
    const list: PolicyCacheOptions['list'] = async (_, { namespace }) => {
      reads.push(namespace);
      return { items: [] };
    };
    return { reads, view: cacheOf(list, [0, 0, 1, 0]) };
  }

  it.each([
    [499, 1],
    [500, 2],
  ])('outlive those of %i others: read %i times', async (count, times) => {
    const { reads, view } = policies();
    await view('first');
    for (let other = 0; other < count; other += 1) await view(`other-${other}`);
    await view('first');
    expect(reads.filter((each) => each === 'first')).toHaveLength(times);
  });

  it('that were viewed again are not dropped before older ones', async () => {
    const { reads, view } = policies();
    const others = Array.from({ length: 499 }, (_, index) => `other-${index}`);
    for (const name of ['first', ...others, 'first', 'another', 'first']) await view(name);
    expect(reads).toEqual(['first', ...others, 'another']);
  });

  it.each([['x'.repeat(64)], ['-a'], ['a-'], ['A'], ['a.b'], ['']])(
    'are not read for %j, which is none',
    async (text) => {
      const { reads, view } = policies();
      await view(text);
      expect(reads).toEqual([]);
    },
  );

  it('are read for the longest name', async () => {
    const { reads, view } = policies();
    await view('x'.repeat(63));
    expect(reads).toHaveLength(1);
  });
});
