import { describe, expect, it } from 'vitest';
import { servedWorkloads } from '../../../test/support/served-workloads.ts';

const NAMESPACES = '/api/v1/namespaces';
const TEAM = `${NAMESPACES}/team`;

const pod = (name: string, spec: object = {}, metadata: object = {}) => ({
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
});

async function withTeam() {
  const cluster = servedWorkloads();
  await cluster.ok('POST', NAMESPACES, { metadata: { name: 'team' } });
  await cluster.settle();
  return cluster;
}

const names = (list: { items: { metadata: { name: string } }[] }) => list.items.map(({ metadata }) => metadata.name);

describe('the objects of every namespace', () => {
  it('exist when the request that creates the namespace is answered', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', NAMESPACES, { metadata: { name: 'team' } });
    expect(names(await cluster.ok('GET', `${TEAM}/serviceaccounts`))).toEqual(['default']);
    expect(names(await cluster.ok('GET', `${TEAM}/configmaps`))).toEqual(['kube-root-ca.crt']);
  });

  it('are created again after a deletion, and repaired after a change', async () => {
    const cluster = await withTeam();
    await cluster.ok('DELETE', `${TEAM}/serviceaccounts/default`);
    await cluster.ok('DELETE', `${TEAM}/configmaps/kube-root-ca.crt`);
    await cluster.settle();
    expect(names(await cluster.ok('GET', `${TEAM}/serviceaccounts`))).toEqual(['default']);
    const { metadata, ...stored } = await cluster.ok('GET', `${TEAM}/configmaps/kube-root-ca.crt`);
    await cluster.ok('PUT', `${TEAM}/configmaps/kube-root-ca.crt`, { ...stored, metadata, data: { 'ca.crt': 'mine' } });
    await cluster.settle();
    expect((await cluster.ok('GET', `${TEAM}/configmaps/kube-root-ca.crt`)).data).toEqual({ 'ca.crt': '' });
  });

  it('have the certificates of the API, also after these changed', async () => {
    let certificates = 'old';
    const cluster = servedWorkloads({ apiAuthorities: () => certificates });
    await cluster.ok('POST', NAMESPACES, { metadata: { name: 'team' } });
    const published = async () => (await cluster.ok('GET', `${TEAM}/configmaps/kube-root-ca.crt`)).data['ca.crt'];
    expect(await published()).toBe('old');
    certificates = 'new';
    await cluster.settle();
    await cluster.tickAfter(60_000);
    expect(await published()).toBe('new');
  });

  it('are found by a read before the controller ran, also in the namespaces of a new cluster', async () => {
    const cluster = await withTeam();
    await cluster.ok('DELETE', `${TEAM}/serviceaccounts/default`);
    await cluster.ok('GET', `${TEAM}/serviceaccounts/default`);
    await cluster.ok('GET', '/api/v1/namespaces/kube-system/serviceaccounts/default');
    expect((await cluster.api.send('GET', '/api/v1/namespaces/absent/serviceaccounts/default')).code).toBe(404);
  });

  it('are created by the sweep where the records of the stream were lost', async () => {
    const cluster = await withTeam();
    await cluster.ok('DELETE', `${TEAM}/serviceaccounts/default`);
    cluster.loseRecords();
    await cluster.tickAfter(5_000);
    expect(names(await cluster.ok('GET', `${TEAM}/serviceaccounts`))).toEqual(['default']);
  });
});

describe('the deletion of a namespace', () => {
  it('removes its objects of every kind, and then the namespace', async () => {
    const cluster = await withTeam();
    await cluster.ok('POST', `${TEAM}/pods`, pod('free'));
    await cluster.ok('POST', `${TEAM}/secrets`, { metadata: { name: 's' } });
    await cluster.ok('POST', `${TEAM}/services`, { metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } });
    await cluster.ok('POST', '/apis/apps/v1/namespaces/team/deployments', {
      metadata: { name: 'web' },
      spec: {
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: pod('web').spec },
      },
    });
    await cluster.settle();
    const marked = await cluster.ok('DELETE', TEAM);
    expect(marked).toMatchObject({ kind: 'Namespace', status: { phase: 'Terminating' } });
    expect(await cluster.api.send('POST', `${TEAM}/pods`, { body: pod('late') })).toMatchObject({
      code: 403,
      body: { details: { causes: [{ reason: 'NamespaceTerminating' }] } },
    });
    await cluster.settle();
    expect((await cluster.api.send('GET', TEAM)).code).toBe(404);
    for (const kind of ['pods', 'secrets', 'services', 'configmaps', 'serviceaccounts']) {
      expect(names(await cluster.ok('GET', `${TEAM}/${kind}`))).toEqual([]);
    }
    expect(names(await cluster.ok('GET', '/apis/apps/v1/namespaces/team/replicasets'))).toEqual([]);
  });

  it('waits for the grace period of a pod, and says so in its conditions', async () => {
    const cluster = await withTeam();
    await cluster.ok('POST', `${TEAM}/pods`, pod('bound', { nodeName: 'a' }));
    await cluster.ok('DELETE', TEAM);
    await cluster.settle();
    const { status } = await cluster.ok('GET', TEAM);
    expect(status.conditions).toContainEqual(
      expect.objectContaining({
        type: 'NamespaceContentRemaining',
        status: 'True',
        reason: 'SomeResourcesRemain',
        message: 'Some resources are remaining: pods. has 1 resource instances',
      }),
    );
    expect(status.conditions.map(({ type }: { type: string }) => type)).toHaveLength(5);
    await cluster.ok('DELETE', `${TEAM}/pods/bound?gracePeriodSeconds=0`);
    await cluster.tickAfter(10_000);
    expect((await cluster.api.send('GET', TEAM)).code).toBe(404);
  });

  it('keeps every other object while a pod is left, terminating or not', async () => {
    const cluster = await withTeam();
    await cluster.ok('POST', `${TEAM}/pods`, pod('bound', { nodeName: 'a' }));
    await cluster.ok('POST', `${TEAM}/configmaps`, { metadata: { name: 'c' } });
    await cluster.ok('DELETE', TEAM);
    await cluster.settle();
    expect((await cluster.ok('GET', `${TEAM}/pods/bound`)).metadata).toHaveProperty('deletionTimestamp');
    expect(names(await cluster.ok('GET', `${TEAM}/configmaps`))).toEqual(['c', 'kube-root-ca.crt']);
    await cluster.ok('DELETE', `${TEAM}/pods/bound?gracePeriodSeconds=0`);
    await cluster.tickAfter(10_000);
    expect((await cluster.api.send('GET', TEAM)).code).toBe(404);
  });

  it('waits for finalizers, names them, and is not completed by a change of the namespace', async () => {
    const cluster = await withTeam();
    await cluster.ok('POST', `${TEAM}/configmaps`, { metadata: { name: 'held', finalizers: ['example.com/f'] } });
    await cluster.ok('DELETE', TEAM);
    await cluster.settle();
    const terminating = await cluster.ok('GET', TEAM);
    expect(terminating.status.conditions).toContainEqual(
      expect.objectContaining({
        type: 'NamespaceFinalizersRemaining',
        message: 'Some content in the namespace has finalizers remaining: example.com/f in 1 resource instances',
      }),
    );
    await cluster.ok('PUT', TEAM, { ...terminating, metadata: { ...terminating.metadata, labels: { a: 'b' } } });
    await cluster.settle();
    expect((await cluster.ok('GET', TEAM)).metadata.labels).toMatchObject({ a: 'b' });
    const held = await cluster.ok('GET', `${TEAM}/configmaps/held`);
    await cluster.ok('PUT', `${TEAM}/configmaps/held`, { ...held, metadata: { ...held.metadata, finalizers: [] } });
    await cluster.tickAfter(20_000);
    expect((await cluster.api.send('GET', TEAM)).code).toBe(404);
  });

  it('leaves a namespace to the component that put another finalizer into its spec', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', NAMESPACES, { metadata: { name: 'team' }, spec: { finalizers: ['example.com/f'] } });
    await cluster.ok('DELETE', TEAM);
    await cluster.settle();
    const held = await cluster.ok('GET', TEAM);
    expect(held.spec).toEqual({ finalizers: ['example.com/f'] });
    expect(names(await cluster.ok('GET', `${TEAM}/configmaps`))).toEqual([]);
    await cluster.ok('PUT', `${TEAM}/finalize`, { ...held, spec: {} });
    expect((await cluster.api.send('GET', TEAM)).code).toBe(404);
  });

  it('removes more objects than one pass does', async () => {
    const cluster = await withTeam();
    for (let index = 0; index < 520; index += 1) {
      await cluster.ok('POST', `${TEAM}/configmaps`, { metadata: { name: `c${index}` } });
    }
    await cluster.ok('DELETE', TEAM);
    await cluster.settle();
    await cluster.tickAfter(5_000);
    expect((await cluster.api.send('GET', TEAM)).code).toBe(404);
  });

  it('removes the objects behind a page of held ones, and then only waits', async () => {
    const cluster = await withTeam();
    for (let index = 0; index < 500; index += 1) {
      const metadata = { name: `a${index}`, finalizers: ['example.com/f'] };
      await cluster.ok('POST', `${TEAM}/configmaps`, { metadata });
    }
    await cluster.ok('POST', `${TEAM}/configmaps`, { metadata: { name: 'free' } });
    await cluster.ok('DELETE', TEAM);
    await cluster.settle();
    for (let tick = 1; tick <= 5; tick += 1) await cluster.tickAfter(2_000);
    expect((await cluster.api.send('GET', `${TEAM}/configmaps/free`)).code).toBe(404);
    expect((await cluster.ok('GET', TEAM)).status.conditions).toContainEqual(
      expect.objectContaining({ message: 'Some resources are remaining: configmaps. has 500 resource instances' }),
    );
  });
});
