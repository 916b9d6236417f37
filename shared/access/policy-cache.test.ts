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

it('remembers nothing of roles that do not exist: a client may name any number of them', async () => {
  let reads = 0;
  const role: KubeClusterRole = {
    get metadata() {
      reads += 1;
      return { name: 'role' };
    },
  };
  const cache = policyCache({
    changes: { newestCommits: async () => [0, 0, 0, 0] },
    list: async () => ({ items: [] }),
    defaultRoles: [role],
    defaultBindings: [],
  });
  const { rulesOf } = await cache.view('', { nowMs: 0, ageMaxMs: 1_000 });
  const readsOf = (name: string): number => {
    const before = reads;
    rulesOf('ClusterRole', name);
    return reads - before;
  };
  expect([readsOf('absent'), readsOf('absent')]).toEqual([1, 1]);
  readsOf('role');
  expect(readsOf('role')).toBe(0);
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

describe('what is read again', () => {
  const KINDS = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'];
  const named = (name: string): KubeClusterRole => ({ metadata: { name }, rules: [] });

  function watched(options: Partial<PolicyCacheOptions> = {}) {
    const commits = [0, 0, 0, 0];
    const checks: boolean[] = [];
    const lists: string[] = [];
    const cache = policyCache({
      changes: {
        async newestCommits(resources, { consistent }) {
          expect(resources).toEqual(KINDS);
          checks.push(consistent);
          return [...commits];
        },
      },
      async list(kind, { namespace }) {
        lists.push(`${kind}@${namespace}`);
        return { items: [named(`${kind}-stored`)] };
      },
      defaultRoles: [],
      defaultBindings: [],
      ...options,
    });
    const view = (nowMs: number, namespace = 'a') => cache.view(namespace, { nowMs, ageMaxMs: 5_000 });
    return { cache, commits, checks, lists, view };
  }

  it('is checked when the last check is too old, or the clock was set back', async () => {
    const { cache, checks, view } = watched();
    expect(cache.isFresh({ nowMs: 0, ageMaxMs: 5_000 })).toBe(false);
    for (const nowMs of [10_000, 14_999, 5_001]) await view(nowMs);
    expect(checks).toEqual([false]);
    expect(cache.isFresh({ nowMs: 14_999, ageMaxMs: 5_000 })).toBe(true);
    expect(cache.isFresh({ nowMs: 14_999, ageMaxMs: 4_999 })).toBe(false);
    await view(15_000);
    expect(checks).toHaveLength(2);
    await view(10_000);
    expect(checks).toHaveLength(3);
  });

  it('is a kind with a newer commit, in the cluster or in the namespace', async () => {
    const { commits, lists, view } = watched();
    await view(0);
    expect(lists).toEqual([]);
    for (const [index, kind] of KINDS.entries()) {
      commits[index] = 7;
      await view(10_000 * (index + 1));
      await view(10_000 * (index + 1) + 1);
      expect(lists.splice(0)).toEqual([`${kind}@${index < 2 ? '' : 'a'}`]);
    }
    await view(40_002, 'b');
    expect(lists.splice(0)).toEqual(['roles@b', 'rolebindings@b']);
    // An eventually consistent read may return an older head.
    commits.fill(6);
    await view(100_000);
    expect(lists).toEqual([]);
  });

  it('is checked strongly consistent once after a write of this process', async () => {
    const { cache, checks, view } = watched();
    await view(0);
    cache.changed();
    await view(1);
    await view(2);
    expect(checks).toEqual([false, true]);
    await view(10_000);
    expect(checks).toEqual([false, true, false]);
  });

  it('is checked again after a write during a check', async () => {
    let during = (): void => {};
    const checks: boolean[] = [];
    const { cache, view } = watched({
      changes: {
        async newestCommits(_, { consistent }) {
          checks.push(consistent);
          during();
          return [0, 0, 0, 0];
        },
      },
    });
    during = () => cache.changed();
    await view(0);
    during = () => {};
    await view(1);
    await view(2);
    expect(checks).toEqual([false, true]);
  });

  it('has the default roles and bindings, by name, which hide stored ones of the same name', async () => {
    const builtIn = (name: string): KubeClusterRole => ({ ...named(name), rules: [{ verbs: ['get'] }] });
    const { cache, commits, view } = watched({
      list: async (kind) => ({
        items: kind.startsWith('cluster') ? [named('a'), named('b'), named('c')] : [named('r')],
      }),
      defaultRoles: [builtIn('b'), builtIn('d')],
      defaultBindings: [{ metadata: { name: 'b' }, subjects: [] }],
    });
    expect(await cache.clusterRoles(0)).toEqual([builtIn('b'), builtIn('d')]);
    commits.fill(1);
    const { clusterRoleBindings, roleBindings, rulesOf, namespace } = await view(10_000);
    expect(await cache.clusterRoles(10_000)).toEqual([named('a'), builtIn('b'), named('c'), builtIn('d')]);
    expect(clusterRoleBindings).toEqual([named('a'), { metadata: { name: 'b' }, subjects: [] }, named('c')]);
    expect([roleBindings, namespace]).toEqual([[named('r')], 'a']);
    expect(rulesOf('ClusterRole', 'b')).toEqual([{ verbs: ['get'] }]);
    expect(rulesOf('ClusterRole', 'r')).toBeUndefined();
    expect(rulesOf('Role', 'r')).toEqual([]);
    expect(rulesOf('Role', 'b')).toBeUndefined();
    // Only the bindings are read again: the roles are still merged.
    commits[1] = 2;
    await view(20_000);
    expect(await cache.clusterRoles(20_000)).toEqual([named('a'), builtIn('b'), named('c'), builtIn('d')]);
  });

  it('is checked for the list of ClusterRoles, too, when it is older than five seconds', async () => {
    const { cache, checks } = watched();
    for (const nowMs of [0, 4_999, 5_000]) await cache.clusterRoles(nowMs);
    expect(checks).toHaveLength(2);
  });

  it('is listed in pages of a hundred, a hundred of them at most', async () => {
    const pages: unknown[] = [];
    const { commits, view } = watched({
      async list(kind, { limit, continueAfter }) {
        if (kind !== 'roles') return { items: [] };
        pages.push([limit, continueAfter]);
        return { items: [named(`r${pages.length}`)], next: `r${pages.length}` };
      },
    });
    commits[2] = 1;
    const { rulesOf } = await view(0);
    expect(pages).toHaveLength(100);
    expect(pages.slice(0, 3)).toEqual([
      [100, undefined],
      [100, 'r1'],
      [100, 'r2'],
    ]);
    expect([rulesOf('Role', 'r1'), rulesOf('Role', 'r100')]).toEqual([[], []]);
  });
});
