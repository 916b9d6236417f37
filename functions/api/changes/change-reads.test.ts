import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import type { ChangeCursor, ChangesOfResource } from '../../../shared/watches/change-read.ts';
import {
  type ApiInMemory,
  apiInMemory,
  eventsOf,
  MERGE,
  NODES,
  node,
  podsIn,
} from '../../../test/support/api-in-memory.ts';
import { lateReads } from '../../../test/support/late-reads.ts';

const PATH = '/apis/nodekeeper.dev/v1alpha1/changereads';
const MAPS = '/api/v1/namespaces/default/configmaps';
const map = (name: string, data = { text: name }) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});
const core = (resource: string, after: string): ChangeCursor => ({ group: '', resource, after });

const ask = (api: ApiInMemory, resources: unknown, headers: Record<string, string> = {}) =>
  api.send('POST', PATH, { body: { spec: { resources } }, headers });

/** The outcomes of an accepted request. */
async function outcomes(
  api: ApiInMemory,
  resources: readonly ChangeCursor[],
  headers?: Record<string, string>,
): Promise<readonly ChangesOfResource[]> {
  const { code, body } = await ask(api, resources, headers);
  expect(code).toBe(201);
  expect(body).toMatchObject({ apiVersion: 'nodekeeper.dev/v1alpha1', kind: 'ChangeRead', spec: { resources } });
  return body.status.resources;
}

const versionOf = async (api: ApiInMemory, path: string): Promise<string> =>
  (await api.send('GET', path)).body.metadata.resourceVersion;

function changesIn(outcome: ChangesOfResource | undefined) {
  if (outcome?.outcome !== 'changes') throw new Error(`no changes: ${JSON.stringify(outcome)}`);
  return outcome;
}

describe('the changes of a ChangeRead', () => {
  it('are those that a watch sends, of each resource in the order of the request', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    const [nodes, maps] = [await versionOf(api, NODES), await versionOf(api, MAPS)];
    await api.send('POST', NODES, { body: node('b') });
    await api.send('PATCH', `${NODES}/a`, { body: { metadata: { labels: { tier: 'edge' } } }, contentType: MERGE });
    await api.send('DELETE', `${NODES}/b`);
    await api.send('POST', MAPS, { body: map('one') });
    const [ofMaps, ofNodes] = await outcomes(api, [core('configmaps', maps), core('nodes', nodes)]);
    const watched = eventsOf(await api.send('GET', `${NODES}?watch=1&timeoutSeconds=2&resourceVersion=${nodes}`));
    const { changes, through, more } = changesIn(ofNodes);
    expect(changes.map(({ type, object }) => ({ type, object }))).toEqual(
      watched.filter(({ type }) => type !== 'BOOKMARK'),
    );
    expect(changes.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    expect(changes.find(({ type }) => type === 'MODIFIED')?.previous?.labels).not.toHaveProperty('tier');
    expect(more).toBe(false);
    expect(changesIn(ofMaps).changes).toMatchObject([{ type: 'ADDED', object: map('one') }]);
    // The cursor is behind them.
    expect(await outcomes(api, [core('nodes', through)])).toEqual([
      { group: '', resource: 'nodes', outcome: 'changes', through, more: false, changes: [] },
    ]);
  });

  it('wait for a version of the future, as those of a watch', async () => {
    const api = apiInMemory();
    const future = String(Number(await versionOf(api, MAPS)) + 1_000_000_000);
    await api.send('POST', MAPS, { body: map('one') });
    expect(await outcomes(api, [core('configmaps', future)])).toMatchObject([{ through: future, changes: [] }]);
  });

  it('are expired after the time that the change log keeps, but for a resource without any', async () => {
    const api = apiInMemory();
    const version = await versionOf(api, MAPS);
    await api.send('POST', MAPS, { body: map('one') });
    api.advance(2 * 3_600_000);
    const [maps, secrets] = await outcomes(api, [core('configmaps', version), core('secrets', '0')]);
    expect(maps).toEqual({ group: '', resource: 'configmaps', outcome: 'expired' });
    expect(secrets).toMatchObject({ outcome: 'changes', changes: [], more: false });
    // The cursor of a quiet resource is raised before its changes can expire.
    expect(Number(changesIn(secrets).through)).toBe(api.nowMs() * 1_000);
  });
});

describe('a consistent ChangeRead', () => {
  it('has what was committed just before it, although reads of the tables may be late', async () => {
    const { items, freeze } = lateReads(memoryItemStore());
    const api = apiInMemory({ items });
    await api.send('POST', MAPS, { body: map('zero') });
    const after = await versionOf(api, MAPS);
    freeze();
    await api.send('POST', MAPS, { body: map('one') });
    const read = async (consistent: boolean) => {
      const { body } = await api.send('POST', PATH, {
        body: { spec: { resources: [core('configmaps', after)], consistent } },
      });
      return changesIn(body.status.resources[0]).changes.map(({ object }) => object.metadata.name);
    };
    expect([await read(false), await read(true)]).toEqual([[], ['one']]);
  });
});

describe('an answer without room', () => {
  it('has the oldest changes, and says which resources have more', async () => {
    const api = apiInMemory();
    const after = await versionOf(api, MAPS);
    const limits = await versionOf(api, '/api/v1/limitranges');
    // A character of three bytes, and one that needs an escape in JSON: what is counted are bytes.
    const data = { text: '\u20ac'.repeat(30_000) };
    for (let index = 0; index < 40; index += 1) await api.send('POST', MAPS, { body: map(`m${index}`, data) });
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    const account = await versionOf(api, accounts);
    await api.send('POST', accounts, { body: { metadata: { name: 'late' } } });
    let cursors = [core('configmaps', after), core('serviceaccounts', account), core('limitranges', limits)];
    const seen: string[] = [];
    let reads = 0;
    for (let more = true; more && reads < 10; reads += 1) {
      const { text, body } = await ask(api, cursors);
      expect(Buffer.byteLength(text)).toBeLessThan(3_000_000);
      const answered: readonly ChangesOfResource[] = body.status.resources;
      const [first, second, third] = answered.map(changesIn);
      if (reads === 0) {
        expect(first?.changes.length).toBeGreaterThan(20);
        expect(second).toMatchObject({ through: account, more: true, changes: [] });
        expect(third).toMatchObject({ through: limits, more: false });
      }
      for (const each of answered.map(changesIn)) {
        seen.push(...each.changes.map(({ object }) => object.metadata.name ?? ''));
      }
      cursors = answered.map((each) => core(each.resource, changesIn(each).through));
      more = answered.some((each) => changesIn(each).more);
    }
    expect(reads).toBe(2);
    expect(seen).toEqual([...Array.from({ length: 40 }, (_, index) => `m${index}`), 'late']);
  });
});

describe('a resource', () => {
  it('that is unknown, or has no change log, does not fail the others', async () => {
    const api = apiInMemory();
    const noLog = { outcome: 'notServed', message: 'it has no change log' };
    const lease = { group: 'coordination.k8s.io', resource: 'leases', after: '1' };
    const ours = (resource: string) => ({ group: 'nodekeeper.dev', resource, after: '1' });
    const event = { group: 'events.k8s.io', resource: 'events', after: '1' };
    const metrics = { group: 'metrics.k8s.io', resource: 'nodes', after: '1' };
    const budget = { group: 'policy', resource: 'poddisruptionbudgets', after: '0' };
    const asked = [core('things', '1'), lease, event, ours('decisions'), ours('nodeidentities'), metrics, budget];
    expect(await outcomes(api, [...asked, core('events', '0')])).toMatchObject([
      { outcome: 'notServed', message: 'there is no such resource' },
      noLog,
      { outcome: 'notServed', message: 'its objects are those of events in API group ""' },
      noLog,
      noLog,
      noLog,
      { outcome: 'changes' },
      { outcome: 'changes' },
    ]);
  });

  it.each([
    ['no resources', [], 'spec.resources'],
    ['too many', Array.from({ length: 101 }, (_, index) => core(`r${index}`, '1')), 'spec.resources'],
    ['the same twice', [core('pods', '1'), core('pods', '2')], 'spec.resources[1]'],
    ['no cursor', [{ group: '', resource: 'pods' }], 'spec.resources[0].after'],
    ['no version', [core('pods', 'now')], 'spec.resources[0].after'],
    ['no name', [core('', '1')], 'spec.resources[0].resource'],
    ['a long name', [core('p'.repeat(254), '1')], 'spec.resources[0].resource'],
    ['a long position', [{ ...core('pods', '1'), from: '\u20ac'.repeat(169) }], 'spec.resources[0].from'],
  ])('is invalid: %s', async (_, resources, field) => {
    const { code, body } = await ask(apiInMemory(), resources);
    expect(code).toBe(422);
    expect(body.details.causes.map((each: { field: string }) => each.field)).toEqual([field]);
  });

  it.each([[['pods']], [{ resource: 'pods' }], ['pods'], [[{ resource: 'pods', after: 1 }]]])(
    'is an object: %j is refused',
    async (resources) => {
      expect((await ask(apiInMemory(), resources)).code).toBe(400);
    },
  );
});

describe('a user', () => {
  const users = {
    hub: { name: 'system:serviceaccount:default:hub', groups: [] },
    viewer: { name: 'vera', groups: ['nodekeeper:viewers'] },
    machine: { name: 'system:node:n1', groups: ['system:nodes'] },
  };
  const as = (token: keyof typeof users) => ({ authorization: `Bearer ${token}` });
  const bind = (api: ApiInMemory, role: string) =>
    api.send('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      body: {
        metadata: { name: role.replaceAll(':', '-') },
        subjects: [{ kind: 'User', name: users.hub.name }],
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      },
    });

  it('may read changes with the role of hubs, and those of Secrets with another one', async () => {
    const api = apiInMemory({ users });
    const asked = [core('secrets', '0'), core('pods', '0'), core('bootstraptokens', '0')];
    expect((await ask(api, asked, as('hub'))).code).toBe(403);
    expect((await bind(api, 'system:nodekeeper:hub')).code).toBe(201);
    api.advance(10_000);
    expect(await outcomes(api, asked, as('hub'))).toMatchObject([
      {
        outcome: 'forbidden',
        message: expect.stringMatching(/cannot list resource "secrets" in API group "" at the cluster scope/),
      },
      { outcome: 'changes' },
      { outcome: 'notServed' },
    ]);
    for (const [path, code] of [
      ['/api/v1/secrets', 403],
      ['/apis/nodekeeper.dev/v1alpha1/bootstraptokens', 403],
      ['/apis/nodekeeper.dev/v1alpha1/nodeidentities', 200],
      [podsIn('default'), 200],
      ['/metrics', 403],
    ] as const) {
      expect([path, (await api.send('GET', path, { headers: as('hub') })).code]).toEqual([path, code]);
    }
    await bind(api, 'system:nodekeeper:hub-secrets');
    api.advance(10_000);
    expect((await outcomes(api, asked, as('hub')))[0]).toMatchObject({ outcome: 'changes' });
  });

  it('who may only read objects may not; a machine may, and learns of pods what policies are about', async () => {
    const api = apiInMemory({ users });
    expect((await ask(api, [core('pods', '0')], as('viewer'))).code).toBe(403);
    const containers = [{ name: 'c', image: 'i', env: [{ name: 'KEY', value: 'secret' }] }];
    const pod = { metadata: { name: 'p', annotations: { note: 'secret' } }, spec: { containers } };
    await api.send('POST', podsIn('default'), { body: pod });
    const [listed, secrets] = await outcomes(api, [core('pods', '0'), core('secrets', '0')], as('machine'));
    expect([listed?.outcome, secrets?.outcome]).toEqual(['listed', 'forbidden']);
    expect(JSON.stringify(listed)).not.toContain('secret');
    const { through } = listed as { through: string };
    await api.send('PATCH', `${podsIn('default')}/p`, {
      body: { metadata: { labels: { a: 'b' } } },
      contentType: MERGE,
    });
    const [changed] = await outcomes(api, [core('pods', through)], as('machine'));
    expect(changesIn(changed).changes.map(({ object }) => object.metadata.labels)).toEqual([{ a: 'b' }]);
    expect(JSON.stringify(changed)).not.toContain('secret');
  });

  it('may only create one', async () => {
    const api = apiInMemory();
    expect((await api.send('GET', PATH)).code).toBe(405);
    expect((await api.send('POST', `${PATH}/one`, { body: {} })).code).toBe(405);
  });
});
