/** Copies of pods in the place of their originals, through the API. */
import { describe, expect, it } from 'vitest';
import { readFence } from '../../shared/store/owners.ts';
import { apiInMemory } from '../../test/support/api-in-memory.ts';

const POLICIES = '/apis/nodekeeper.dev/v1alpha1/sitepolicies';
const DECISIONS = '/apis/nodekeeper.dev/v1alpha1/decisions';
const MOVES = '/apis/nodekeeper.dev/v1alpha1/sitemoves';
const PODS = '/api/v1/namespaces/default/pods';
const SITE_HUB = 'nodekeeper.dev/site-hub';
const UID = '11111111-2222-4333-8444-555555555555';
const OTHER = '99999999-2222-4333-8444-555555555555';

async function site(hub?: string) {
  const api = apiInMemory();
  const me =
    hub ??
    (await api.send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {} })).body.status.userInfo
      .username;
  await api.send('POST', POLICIES, {
    body: { metadata: { name: 'munich' }, spec: { hub: me, nodes: ['m1', 'm2', 'm3'], namespaces: ['default'] } },
  });
  for (const name of ['m1', 'm2', 'm3', 'm4']) {
    await api.send('POST', '/api/v1/nodes', { body: { metadata: { name, annotations: { [SITE_HUB]: me } } } });
  }
  await api.send('POST', PODS, {
    body: {
      metadata: { name: 'p', labels: { app: 'a' }, annotations: { 'nodekeeper.dev/offline-stop-after': '1h' } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    },
  });
  await api.send('POST', `${PODS}/p/binding`, {
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target: { kind: 'Node', name: 'm1' } },
  });
  const { uid } = (await api.send('GET', `${PODS}/p`)).body.metadata;
  const move = (more: object = {}) =>
    api.send('POST', MOVES, {
      contentType: 'application/json',
      body: {
        namespace: 'default',
        name: 'p',
        from: [uid],
        copy: { uid: UID, nodeName: 'm2' },
        decidedAt: '2026-01-01T00:00:00Z',
        why: 'm1 is silent',
        ...more,
      },
    });
  const pods = async () => {
    const { items } = (await api.send('GET', PODS)).body;
    return items.map((each: { metadata: { name: string; uid: string }; spec: { nodeName: string } }) => [
      each.metadata.name,
      each.metadata.uid,
      each.spec.nodeName,
    ]);
  };
  /** About a pod: act, time and text. */
  const acts = async (name: string) => {
    const { items } = (await api.send('GET', `${DECISIONS}?fieldSelector=pod%3Ddefault%2F${name}`)).body;
    return items.map(({ spec }: { spec: { act: string; at: string; reason: string } }) => [
      spec.act,
      spec.at,
      spec.reason,
    ]);
  };
  return { api, uid, move, pods, acts };
}

const COPY = ['p-11111111', UID, 'm2'];

describe('a pod that the hub of its site has moved', () => {
  it('has the place of the original, once, and keeps its labels and its hub', async () => {
    const { api, uid, move, pods } = await site();
    for (let times = 0; times < 2; times += 1) expect((await move()).body).toEqual({ outcome: 'done' });
    expect(await pods()).toEqual([COPY]);
    const { metadata } = (await api.send('GET', `${PODS}/p-11111111`)).body;
    expect(metadata.labels).toEqual({ app: 'a' });
    expect(metadata.annotations).toMatchObject({ 'nodekeeper.dev/copy-of': uid, [SITE_HUB]: expect.any(String) });
  });

  it('has the place of an earlier copy', async () => {
    const { uid, move, pods } = await site();
    await move();
    expect((await move({ from: [uid, UID], copy: { uid: OTHER, nodeName: 'm3' } })).body).toEqual({ outcome: 'done' });
    expect(await pods()).toEqual([['p-99999999', OTHER, 'm3']]);
  });

  it('makes its controller read its pods again', async () => {
    const { api, move } = await site();
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: OTHER, controller: true };
    await api.send('PATCH', `${PODS}/p`, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { ownerReferences: [owner] } },
    });
    expect(await readFence(api.items, OTHER)).toBe(0);
    await move();
    expect(await readFence(api.items, OTHER)).toBe(1);
  });

  it('raises no claim of a controller that a client names', async () => {
    const { api } = await site();
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: OTHER, controller: true };
    const metadata = { name: 'q', annotations: { 'nodekeeper.dev/copy-of': UID }, ownerReferences: [owner] };
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    expect((await api.send('POST', PODS, { body: { metadata, spec } })).code).toBe(201);
    expect(await readFence(api.items, OTHER)).toBe(0);
  });

  it('is refused after the copy was deleted: nothing is created again', async () => {
    const { api, move, pods } = await site();
    await move();
    await api.send('DELETE', `${PODS}/p-11111111`, { body: { gracePeriodSeconds: 0 } });
    expect((await move()).body.outcome).toBe('refused');
    expect(await pods()).toEqual([]);
  });

  it('is refused if the original was deleted', async () => {
    const { api, uid, move, pods } = await site();
    await api.send('DELETE', `${PODS}/p`);
    expect((await move()).body).toEqual({ outcome: 'refused', reason: 'the pod was deleted' });
    expect(await pods()).toEqual([['p', uid, 'm1']]);
  });

  it.each([
    ['to a machine that no policy names', { copy: { uid: UID, nodeName: 'm4' } }],
    ['of another uid', { from: [OTHER] }],
  ])('is refused %s', async (_, more) => {
    const { uid, move, pods } = await site();
    expect((await move(more)).body.outcome).toBe('refused');
    expect(await pods()).toEqual([['p', uid, 'm1']]);
  });

  it('is refused from another hub', async () => {
    const { move } = await site('system:serviceaccount:kube-system:hub');
    expect((await move()).body.reason).toContain('does not decide about the pod');
  });

  it.each([{ from: [] }, { copy: { uid: 'u', nodeName: 'm2' } }, { copy: { uid: UID } }])(
    'is 400 with %j',
    async (more) => {
      expect((await (await site()).move(more)).code).toBe(400);
    },
  );

  it('is recorded with the time of the hub and that of the cluster, once', async () => {
    const { move, acts } = await site();
    for (let times = 0; times < 2; times += 1) await move();
    expect(await acts('p')).toEqual([
      ['PodMoved', '2026-01-01T00:00:00.000000Z', expect.stringContaining('from node m1 to m2 as p-11111111')],
    ]);
    expect(await acts('p-11111111')).toEqual([
      ['PodMoveMerged', expect.any(String), expect.stringContaining('moved at 2026-01-01T00:00:00Z: m1 is silent')],
    ]);
  });

  it('is recorded as refused', async () => {
    const { api, move, acts } = await site();
    await api.send('DELETE', `${PODS}/p`);
    await move();
    expect(await acts('p')).toEqual([['PodMoveRefused', expect.any(String), expect.stringContaining('was deleted')]]);
  });
});

describe('a pod that the hub of its site gives up', () => {
  it('is deleted without its machine, and recorded', async () => {
    const { move, pods, acts } = await site();
    for (let times = 0; times < 2; times += 1) {
      expect((await move({ copy: undefined })).body).toEqual({ outcome: 'done' });
    }
    expect(await pods()).toEqual([]);
    expect(await acts('p')).toEqual([['PodGivenUp', expect.any(String), expect.stringContaining('m1 is silent')]]);
  });

  it('is kept if the hub does not decide about it, and of another uid', async () => {
    const { move, pods } = await site('system:serviceaccount:kube-system:hub');
    expect((await move({ copy: undefined })).body.outcome).toBe('refused');
    expect(await pods()).toHaveLength(1);
    const own = await site();
    await own.move({ copy: undefined, from: [OTHER] });
    expect(await own.pods()).toHaveLength(1);
  });
});
