/** What a hub may follow that is bound to the nodes of a site. */
import { expect, it } from 'vitest';
import type { ChangeCursor, ChangesOfResource } from '../../../shared/watches/change-read.ts';
import { apiInMemory, MERGE, NODES, node, pod, podsIn } from '../../../test/support/api-in-memory.ts';

const PATH = '/apis/nodekeeper.dev/v1alpha1/changereads';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const PODS = podsIn('default');
const IN_DEFAULT = '/api/v1/namespaces/default';
const HUB = { headers: { authorization: 'Bearer hub' } };

/** In the volume of its token. */
const OF_EVERY_POD = 'kube-root-ca.crt';

const podOn = (name: string, nodeName: string, refers: string) =>
  pod(name, {
    spec: {
      nodeName,
      containers: [{ name: 'c', image: 'i', envFrom: [{ configMapRef: { name: refers } }] }],
      volumes: [{ name: 'v', secret: { secretName: refers } }],
    },
  });

/** Two nodes with a pod each, and a hub that is bound to the first one. */
async function site(resources = ['nodes', 'nodes/pods', 'nodes/configmaps']) {
  const api = apiInMemory({ users: { hub: { name: 'hub', groups: [] } } });
  const roleOf = (names: readonly string[]) => ({
    metadata: { name: 'site' },
    rules: [
      { apiGroups: ['nodekeeper.dev'], resources: ['changereads'], verbs: ['create'] },
      { apiGroups: [''], resources, resourceNames: names, verbs: ['get', 'list', 'watch'] },
    ],
  });
  await api.send('POST', `${RBAC}/clusterroles`, { body: roleOf(['n1']) });
  await api.send('POST', `${RBAC}/clusterrolebindings`, {
    body: {
      metadata: { name: 'site' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'site' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'hub' }],
    },
  });
  for (const name of ['n1', 'n2']) {
    await api.send('POST', NODES, { body: node(name) });
    for (const plural of ['configmaps', 'secrets']) {
      await api.send('POST', `${IN_DEFAULT}/${plural}`, { body: { metadata: { name: `of-${name}` } } });
    }
    await api.send('POST', PODS, { body: podOn(`p-${name}`, name, `of-${name}`) });
  }
  await api.send('POST', `${IN_DEFAULT}/configmaps`, { body: { metadata: { name: 'of-none' } } });
  const ask = async (cursor: Omit<ChangeCursor, 'group'>): Promise<ChangesOfResource> => {
    const { code, body } = await api.send('POST', PATH, {
      ...HUB,
      body: { spec: { resources: [{ group: '', ...cursor }] } },
    });
    expect(code).toBe(201);
    return body.status.resources[0];
  };
  const list = async (resource: string) => {
    const outcome = await ask({ resource, after: '0' });
    if (outcome.outcome !== 'listed') throw new Error(JSON.stringify(outcome));
    const { objects, through: after, bounds, next } = outcome;
    expect(next).toBeUndefined();
    return { names: objects.map(({ metadata }) => metadata.name), cursor: { resource, after, bounds } };
  };
  return {
    ...{ api, ask, list },
    bindTo: (names: readonly string[]) => api.send('PUT', `${RBAC}/clusterroles/site`, { body: roleOf(names) }),
  };
}

const changesIn = (outcome: ChangesOfResource) => {
  if (outcome.outcome !== 'changes') throw new Error(JSON.stringify(outcome));
  return outcome.changes.map(({ type, object }) => `${type} ${object.metadata.name}`);
};

it('lists only the nodes that its role names, their pods, and what those refer to', async () => {
  const { list, ask, api } = await site();
  expect((await list('nodes')).names).toEqual(['n1']);
  expect((await list('pods')).names).toEqual(['p-n1']);
  expect((await list('configmaps')).names).toEqual([OF_EVERY_POD, 'of-n1']);
  expect(await ask({ resource: 'secrets', after: '0' })).toMatchObject({ outcome: 'forbidden' });
  expect(await ask({ resource: 'services', after: '0' })).toMatchObject({ outcome: 'forbidden' });
  for (const path of [NODES, PODS, `${IN_DEFAULT}/configmaps/of-n1`]) {
    expect((await api.send('GET', path, HUB)).code).toBe(403);
  }
});

it('has Secrets of its pods with the right to them alone', async () => {
  const { list, ask } = await site(['nodes/secrets']);
  expect((await list('secrets')).names).toEqual(['of-n1']);
  expect(await ask({ resource: 'pods', after: '0' })).toMatchObject({ outcome: 'forbidden' });
});

it('follows their changes, and never sees those of others', async () => {
  const { list, ask, api } = await site();
  const cursors = [await list('nodes'), await list('pods'), await list('configmaps')].map(({ cursor }) => cursor);
  for (const name of ['n1', 'n2']) {
    const label = { body: { metadata: { labels: { a: 'b' } } }, contentType: MERGE };
    await api.send('PATCH', `${NODES}/${name}`, label);
    await api.send('PATCH', `${PODS}/p-${name}`, label);
    await api.send('PATCH', `${IN_DEFAULT}/configmaps/of-${name}`, label);
    await api.send('DELETE', `${PODS}/p-${name}`, { body: { gracePeriodSeconds: 0 } });
  }
  await api.send('POST', PODS, { body: podOn('late', 'n1', 'of-n1') });
  const [nodes, pods] = [await ask(cursors[0]!), await ask(cursors[1]!)];
  expect(changesIn(nodes)).toEqual(['MODIFIED n1']);
  expect(changesIn(pods)).toEqual(['MODIFIED p-n1', 'DELETED p-n1', 'ADDED late']);
  expect(changesIn(await ask(cursors[2]!))).toEqual(['MODIFIED of-n1']);
});

it('lists again when other objects belong to it: another node, or another reference of a pod', async () => {
  const { list, ask, api, bindTo } = await site();
  const [pods, maps] = [(await list('pods')).cursor, (await list('configmaps')).cursor];
  await api.send('POST', PODS, { body: podOn('second', 'n1', 'of-none') });
  const wider = await ask(maps);
  if (wider.outcome !== 'listed') throw new Error(JSON.stringify(wider));
  expect(wider.objects.map(({ metadata }) => metadata.name)).toEqual([OF_EVERY_POD, 'of-n1', 'of-none']);
  expect(changesIn(await ask(pods))).toEqual(['ADDED second']);
  await bindTo(['n1', 'n2']);
  api.advance(60_000);
  expect((await ask(pods)).outcome).toBe('listed');
  await bindTo(['n2']);
  api.advance(60_000);
  expect(await ask(pods)).toMatchObject({ outcome: 'listed', objects: [{ metadata: { name: 'p-n2' } }] });
});

it('answers a copy of a part that the whole has to be listed, once it may be followed', async () => {
  const { list, ask, api } = await site();
  const { cursor } = await list('pods');
  const rules = [
    { apiGroups: ['nodekeeper.dev'], resources: ['changereads'], verbs: ['create'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  ];
  await api.send('PUT', `${RBAC}/clusterroles/site`, { body: { metadata: { name: 'site' }, rules } });
  api.advance(60_000);
  expect(await ask(cursor)).toMatchObject({ outcome: 'expired' });
});
