/** Memory: bindings that are as large as the store allows, in a namespace of one user, must not end the process. */
import { expect, it } from 'vitest';
import type { ListQuery } from '../api/resource-storage.ts';
import type { KubeClusterRole, KubeRoleBinding } from '../kinds/types.ts';
import { policyCache } from './policy-cache.ts';

const NAME_CHARACTERS = 99_000;
const LONG = 'x'.repeat(NAME_CHARACTERS);

/** Every namespace has an endless list of large RoleBindings. */
function endlessBindings() {
  const read: string[] = [];
  const cache = policyCache({
    changes: { newestCommits: async () => [0, 0, 0, 1] },
    async list(kind, { namespace, limit, continueAfter = '0' }: ListQuery) {
      if (kind !== 'rolebindings') return { items: [] };
      if (continueAfter === '0') read.push(namespace);
      const items = Array.from({ length: limit }, (_, index): KubeRoleBinding => {
        const name = `b${Number(continueAfter) + index}`;
        return { metadata: { name, namespace }, subjects: [{ kind: 'User', name: LONG }] };
      });
      return { items, next: String(Number(continueAfter) + limit) };
    },
    defaultRoles: [],
    defaultBindings: [],
  });
  return { read, view: (namespace: string) => cache.view(namespace, { nowMs: 0, ageMaxMs: 5_000 }) };
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
