import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory, MERGE, pod, podsIn, READY } from '../../test/support/api-in-memory.ts';
import { DEFINITIONS, widget, widgetDefinition, widgetsIn } from '../../test/support/custom-definition.ts';

const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const PODS = podsIn('default');
const CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses';

async function withPods(names: readonly string[], graceSeconds = 0): Promise<ApiInMemory> {
  const api = apiInMemory();
  for (const name of names) {
    const spec = { nodeName: 'a', terminationGracePeriodSeconds: graceSeconds };
    await api.send('POST', PODS, { body: pod(name, { metadata: { labels: { app: 'web' } }, spec }) });
    await api.send('PATCH', `${PODS}/${name}/status`, { body: { status: READY }, contentType: MERGE });
  }
  return api;
}
const budget = (api: ApiInMemory, name: string, spec: Record<string, unknown>) =>
  api.send('POST', BUDGETS, {
    body: { metadata: { name }, spec: { selector: { matchLabels: { app: 'web' } }, ...spec } },
  });
const evict = (api: ApiInMemory, name: string, body: Record<string, unknown> = {}) =>
  api.send('POST', `${PODS}/${name}/eviction`, {
    body: { kind: 'Eviction', apiVersion: 'policy/v1', metadata: { name }, ...body },
  });
const left = async (api: ApiInMemory): Promise<string[]> =>
  (await api.send('GET', PODS)).body.items.map((each: { metadata: { name: string } }) => each.metadata.name);

describe('an eviction', () => {
  it('without a budget deletes, in every form of the request', async () => {
    const api = await withPods(['p', 'q', 'r']);
    for (const [name, form] of [
      ['p', {}],
      ['q', { apiVersion: 'policy/v1beta1' }],
      ['r', { apiVersion: undefined, kind: undefined }],
    ] as const) {
      expect(await evict(api, name, form)).toMatchObject({ code: 201, body: { kind: 'Status', status: 'Success' } });
    }
    expect(await left(api)).toEqual([]);
  });

  it('marks a pod that needs time, says why, and is granted once', async () => {
    const api = await withPods(['p', 'q'], 30);
    await budget(api, 'b', { maxUnavailable: 1 });
    expect((await evict(api, 'p')).code).toBe(201);
    const { body } = await api.send('GET', `${PODS}/p`);
    expect(body.metadata.deletionGracePeriodSeconds).toBe(30);
    expect(body.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }),
    );
    expect((await evict(api, 'q')).code).toBe(429);
    // It is going anyway: asking again disrupts nothing.
    expect((await evict(api, 'p')).code).toBe(201);
  });

  it('that a budget does not allow is 429 with the counts, and no wait that clients would keep to themselves', async () => {
    const api = await withPods(['p', 'q']);
    await budget(api, 'b', { minAvailable: 2 });
    const answer = await evict(api, 'p');
    expect(answer).toMatchObject({
      code: 429,
      body: {
        reason: 'TooManyRequests',
        message: "Cannot evict pod as it would violate the pod's disruption budget.",
        details: {
          causes: [
            { reason: 'DisruptionBudget', message: 'The disruption budget b needs 2 healthy pods and has 2 currently' },
          ],
        },
      },
    });
    expect(answer.headers['retry-after']).toBeUndefined();
    expect(await left(api)).toEqual(['p', 'q']);
  });

  it('evicts pods that do no work whatever the budget', async () => {
    const api = await withPods(['p']);
    await api.send('POST', PODS, { body: pod('pending', { metadata: { labels: { app: 'web' } } }) });
    await budget(api, 'b', { minAvailable: '100%' });
    expect((await evict(api, 'pending')).code).toBe(201);
    expect((await evict(api, 'p')).code).toBe(429);
  });

  it('needs every budget of the pod', async () => {
    const api = await withPods(['p', 'q', 'r']);
    await budget(api, 'loose', { maxUnavailable: 2 });
    await budget(api, 'strict', { maxUnavailable: 0 });
    expect((await evict(api, 'p')).code).toBe(429);
    await api.send('DELETE', `${BUDGETS}/strict`);
    expect((await evict(api, 'p')).code).toBe(201);
  });

  it('evicts a pod with as many owners as there may be, which may all be replaced', async () => {
    const api = apiInMemory();
    for (const name of ['a', 'b', 'c']) await budget(api, name, { maxUnavailable: '100%' });
    const ownedBy = (kind: string) => ({
      labels: { app: 'web' },
      ownerReferences: Array.from({ length: 40 }, (_, index) => ({
        ...{ apiVersion: 'v1', kind, name: 'n', uid: `${kind}-${index}` },
      })),
    });
    await api.send('POST', PODS, { body: pod('p', { metadata: ownedBy('Node'), spec: { nodeName: 'a' } }) });
    const owners = { body: { metadata: ownedBy('Job') }, contentType: MERGE };
    expect((await api.send('PATCH', `${PODS}/p`, owners)).code).toBe(200);
    await api.send('PATCH', `${PODS}/p/status`, { body: { status: READY }, contentType: MERGE });
    expect((await evict(api, 'p', { deleteOptions: { gracePeriodSeconds: 0 } })).code).toBe(201);
    expect(await left(api)).toEqual([]);
  });

  it('as a dry run decides and evicts nothing', async () => {
    const api = await withPods(['p', 'q']);
    expect((await evict(api, 'p', { deleteOptions: { dryRun: ['All'] } })).code).toBe(201);
    await budget(api, 'b', { minAvailable: 2 });
    expect((await evict(api, 'p', { deleteOptions: { dryRun: ['All'] } })).code).toBe(429);
    expect(await left(api)).toEqual(['p', 'q']);
  });

  it.each([
    ['of an absent pod', 'absent', {}, 404],
    ['that names another pod', 'p', { metadata: { name: 'q' } }, 400],
    ['of another kind', 'p', { kind: 'Pod' }, 400],
    ['on another uid', 'p', { deleteOptions: { preconditions: { uid: 'x' } } }, 409],
    ['with a grace that is no number', 'p', { deleteOptions: { gracePeriodSeconds: 'soon' } }, 400],
  ])('%s is refused', async (_, name, body, code) => {
    const api = await withPods(['p']);
    expect((await evict(api, name, body)).code).toBe(code);
    expect(await left(api)).toEqual(['p']);
  });

  it('never evicts more than the budget allows, however many concurrent requests', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `p${index}`);
    for (const graceSeconds of [0, 30]) {
      const api = await withPods(names, graceSeconds);
      await budget(api, 'b', { minAvailable: 13 });
      const answers = await Promise.all(names.map((name) => evict(api, name)));
      expect(answers.filter(({ code }) => code === 201)).toHaveLength(7);
      expect(answers.filter(({ code }) => code === 429)).toHaveLength(13);
      const { body } = await api.send('GET', `${BUDGETS}/b`);
      expect(body.status).toMatchObject({ currentHealthy: 13, desiredHealthy: 13, disruptionsAllowed: 0 });
      expect(api.faults).toEqual([]);
    }
  });
});

describe('a budget', () => {
  it('is current whenever it is read', async () => {
    const api = await withPods(['p', 'q', 'r']);
    const created = await budget(api, 'b', { maxUnavailable: '34%' });
    expect(created.body.metadata.generation).toBe(1);
    const status = async () => (await api.send('GET', BUDGETS)).body.items[0].status;
    expect(await status()).toEqual({
      observedGeneration: 1,
      expectedPods: 3,
      currentHealthy: 3,
      desiredHealthy: 1,
      disruptionsAllowed: 2,
    });
    await api.send('DELETE', `${PODS}/p`);
    expect(await status()).toMatchObject({
      expectedPods: 2,
      currentHealthy: 2,
      desiredHealthy: 1,
      disruptionsAllowed: 1,
    });
  });

  it('is read whatever owner a pod names', async () => {
    const api = apiInMemory();
    await budget(api, 'b', { maxUnavailable: 1 });
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'x'.repeat(2_000), uid: 'u', controller: true };
    const metadata = { labels: { app: 'web' }, ownerReferences: [owner] };
    expect((await api.send('POST', PODS, { body: pod('p', { metadata }) })).code).toBe(201);
    expect(await api.send('GET', '/apis/policy/v1/poddisruptionbudgets')).toMatchObject({
      code: 200,
      body: { items: [{ status: { disruptionsAllowed: 0 } }] },
    });
  });

  it('counts the pods of a custom resource by its scale', async () => {
    const api = apiInMemory();
    await api.send('POST', DEFINITIONS, { body: widgetDefinition() });
    const made = await api.send('POST', widgetsIn('default'), { body: widget('w', { size: 1, replicas: 3 }) });
    const { uid } = made.body.metadata;
    const owner = { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid, controller: true };
    await api.send('POST', PODS, {
      body: pod('p', { metadata: { labels: { app: 'web' }, ownerReferences: [owner] } }),
    });
    await api.send('PATCH', `${PODS}/p/status`, { body: { status: READY }, contentType: MERGE });
    await budget(api, 'b', { maxUnavailable: '100%' });
    const status = { expectedPods: 3, desiredHealthy: 0, disruptionsAllowed: 1 };
    expect((await api.send('GET', `${BUDGETS}/b`)).body.status).toMatchObject(status);
  });

  it('can be patched although its counts moved', async () => {
    const api = await withPods(['p']);
    await budget(api, 'b', { minAvailable: 1 });
    const patch = { body: { spec: { minAvailable: 0 } }, contentType: MERGE };
    expect(await api.send('PATCH', `${BUDGETS}/b`, patch)).toMatchObject({
      code: 200,
      body: { metadata: { generation: 2 } },
    });
    expect((await api.send('GET', `${BUDGETS}/b`)).body.status).toMatchObject({
      observedGeneration: 2,
      disruptionsAllowed: 1,
    });
  });
});

describe('a binding', () => {
  const bind = (api: ApiInMemory, name: string, target: unknown) =>
    api.send('POST', `${PODS}/${name}/binding`, {
      body: { kind: 'Binding', apiVersion: 'v1', metadata: { name }, target },
    });

  it('binds a pod to a node, once', async () => {
    const api = apiInMemory();
    await api.send('POST', PODS, { body: pod('p') });
    expect(await bind(api, 'p', { kind: 'Node', name: 'a' })).toMatchObject({ code: 201, body: { status: 'Success' } });
    const { body } = await api.send('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Da');
    expect(body.items[0].status.conditions).toContainEqual(
      expect.objectContaining({ type: 'PodScheduled', status: 'True' }),
    );
    expect(await bind(api, 'p', { name: 'b' })).toMatchObject({
      code: 409,
      body: { message: expect.stringContaining('pod p is already assigned to node "a"') },
    });
  });

  it('must name a node', async () => {
    const api = apiInMemory();
    await api.send('POST', PODS, { body: pod('p') });
    expect((await bind(api, 'p', {})).code).toBe(422);
    expect((await bind(api, 'p', { kind: 'Pod', name: 'a' })).code).toBe(422);
    expect((await bind(api, 'absent', { name: 'a' })).code).toBe(404);
    expect((await bind(api, 'p', { name: 'x'.repeat(254) })).code).toBe(422);
  });
});

describe('the priority of a pod', () => {
  const spec = (priorityClassName: string) => pod('p', { spec: { priorityClassName } });

  it('is that of its class; system classes are there from the start', async () => {
    const api = apiInMemory();
    const names = (await api.send('GET', CLASSES)).body.items.map(
      (each: { metadata: { name: string } }) => each.metadata.name,
    );
    expect(names).toEqual(['system-cluster-critical', 'system-node-critical']);
    expect((await api.send('POST', CLASSES, { body: { metadata: { name: 'high' }, value: 1_000 } })).code).toBe(201);
    expect((await api.send('POST', PODS, { body: spec('high') })).body.spec).toMatchObject({ priority: 1_000 });
    const system = await api.send('POST', podsIn('kube-system'), { body: spec('system-node-critical') });
    expect(system.body.spec).toMatchObject({ priority: 2_000_001_000, preemptionPolicy: 'PreemptLowerPriority' });
  });

  it('is the default class for those who name none, and 403 for an absent one', async () => {
    const api = apiInMemory();
    expect((await api.send('POST', PODS, { body: pod('zero') })).body.spec.priority).toBe(0);
    await api.send('POST', CLASSES, { body: { metadata: { name: 'usual' }, value: 7, globalDefault: true } });
    expect((await api.send('POST', PODS, { body: pod('p') })).body.spec).toMatchObject({
      priority: 7,
      priorityClassName: 'usual',
    });
    expect(await api.send('POST', PODS, { body: { ...spec('absent'), metadata: { name: 'q' } } })).toMatchObject({
      code: 403,
      body: { message: 'pods "q" is forbidden: no PriorityClass with name absent was found' },
    });
  });
});
