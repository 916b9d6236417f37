import { expect, it } from 'vitest';
import { nodeKeyStore } from '../../shared/access/node-key-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { apiInMemory, MERGE, NODES, node } from '../../test/support/api-in-memory.ts';
import { DEFINITIONS, widgetDefinition } from '../../test/support/custom-definition.ts';
import { mayWithdrawAccess } from './access-withdrawals.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';
const PODS = '/api/v1/namespaces/default/pods';
const ROLE = { metadata: { name: 'r' }, rules: [] };
const BINDING = {
  metadata: { name: 'b' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'otto' }],
};
const POD = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } };

/** Whether a commit of this action is seen. */
async function isSeen(
  act: (send: ReturnType<typeof apiInMemory>['send'], keys: ReturnType<typeof nodeKeyStore>) => Promise<unknown>,
) {
  const items = memoryItemStore({ changesOf: ['objects', 'control'] });
  const api = apiInMemory({ items });
  const keys = nodeKeyStore(items);
  await keys.enrol(
    { nodeName: 'n1', uid: 'u', createdAtMs: 0, keys: [], source: 'user/admin' },
    { nowMs: api.nowMs(), along: [], pause: async () => {} },
  );
  for (const [path, body] of [
    [`${RBAC}/clusterroles`, ROLE],
    [`${RBAC}/clusterrolebindings`, BINDING],
    [ACCOUNTS, { metadata: { name: 'bot' } }],
    [PODS, POD],
    [NODES, node('n1')],
    [DEFINITIONS, widgetDefinition()],
  ] as const) {
    expect((await api.send('POST', path, { body })).code).toBe(201);
  }
  const before = { objects: items.changes('objects').length, control: items.changes('control').length };
  await act(api.send, keys);
  return (['objects', 'control'] as const).some((table) =>
    items.changes(table).slice(before[table]).some(mayWithdrawAccess),
  );
}

it.each([
  [
    'a role is changed',
    (send) =>
      send('PATCH', `${RBAC}/clusterroles/r`, {
        body: { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
        contentType: MERGE,
      }),
  ],
  ['a binding is deleted', (send) => send('DELETE', `${RBAC}/clusterrolebindings/b`)],
  ['a service account is deleted', (send) => send('DELETE', `${ACCOUNTS}/bot`)],
  ['a pod is deleted', (send) => send('DELETE', `${PODS}/p`, { body: { gracePeriodSeconds: 0 } })],
  [
    'a definition is changed',
    (send) =>
      send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
        body: { metadata: { labels: { a: 'b' } } },
        contentType: MERGE,
      }),
  ],
  ['a node is deleted', (send) => send('DELETE', `${NODES}/n1`)],
  ['the keys of a node are deleted', async (_, keys) => keys.remove('n1', (await keys.read('n1'))!)],
] satisfies [string, Parameters<typeof isSeen>[0]][])('all watches are checked after %s', async (_what, act) => {
  expect(await isSeen(act)).toBe(true);
});

it.each([
  ['a pod is created', (send) => send('POST', PODS, { body: { ...POD, metadata: { name: 'q' } } })],
  [
    'the labels of a node change',
    (send) => send('PATCH', `${NODES}/n1`, { body: { metadata: { labels: { a: 'b' } } }, contentType: MERGE }),
  ],
] satisfies [string, Parameters<typeof isSeen>[0]][])('no watch is checked after %s', async (_what, act) => {
  expect(await isSeen(act)).toBe(false);
});
