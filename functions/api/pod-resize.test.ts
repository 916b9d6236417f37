import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory } from '../../test/support/api-in-memory.ts';

const DEFAULT = '/api/v1/namespaces/default';
const POD = `${DEFAULT}/pods/p`;
const RESIZE = `${POD}/resize`;
const APPLY = 'application/apply-patch+yaml';
const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';

const requests = (cpu: string, memory = '1Mi') => ({ requests: { cpu, memory } });
const withResources = (resources: object) => ({ spec: { containers: [{ name: 'c', resources }] } });

async function withPod(api: ApiInMemory = apiInMemory(), resources: object = requests('1')) {
  const pod = {
    metadata: { name: 'p', labels: { app: 'a' } },
    spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i:1', resources }] },
  };
  expect((await api.send('POST', `${DEFAULT}/pods`, { body: pod })).code).toBe(201);
  return {
    api,
    read: async () => (await api.send('GET', POD)).body,
    resize: (resources: object, query = '') =>
      api.send('PATCH', `${RESIZE}${query}`, { body: withResources(resources), contentType: STRATEGIC }),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: as in the answers of the API.
const resourcesOf = ({ body }: { readonly body: any }) => body.spec.containers[0].resources;

describe('a resize', () => {
  it('is a patch of any type or an update, and is read as the pod', async () => {
    const { api, read, resize } = await withPod();
    expect(resourcesOf(await resize(requests('2')))).toEqual(requests('2'));
    const replace = [{ op: 'replace', path: '/spec/containers/0/resources/requests/cpu', value: '3' }];
    const byJson = await api.send('PATCH', RESIZE, { body: replace, contentType: 'application/json-patch+json' });
    expect(resourcesOf(byJson)).toEqual(requests('3'));
    const pod = await read();
    const [container] = pod.spec.containers;
    const next = (cpu: string) => ({ spec: { containers: [{ ...container, resources: requests(cpu) }] } });
    const merged = await api.send('PATCH', RESIZE, { body: next('4'), contentType: MERGE });
    expect(resourcesOf(merged)).toEqual(requests('4'));
    const { metadata } = merged.body;
    const updated = await api.send('PUT', RESIZE, { body: { metadata, spec: { ...pod.spec, ...next('5').spec } } });
    expect(resourcesOf(updated)).toEqual(requests('5'));
    expect((await api.send('GET', RESIZE)).body).toEqual(await read());
  });

  it('changes nothing else, and is tracked as its own writer', async () => {
    const { api, read } = await withPod();
    const before = await read();
    const body = {
      metadata: { labels: { app: 'b' } },
      spec: { activeDeadlineSeconds: 9, containers: [{ name: 'c', image: 'i:2', resources: requests('2') }] },
      status: { phase: 'Running' },
    };
    const query = '?fieldManager=vpa';
    const { body: after } = await api.send('PATCH', RESIZE + query, { body, contentType: STRATEGIC });
    const [container] = before.spec.containers;
    expect(after).toMatchObject({
      ...before,
      metadata: { labels: { app: 'a' }, generation: 2, resourceVersion: expect.any(String) },
      spec: { ...before.spec, containers: [{ ...container, resources: requests('2') }] },
    });
    expect(after.spec.activeDeadlineSeconds).toBeUndefined();
    expect(after.metadata.managedFields.find(({ manager }: { manager: string }) => manager === 'vpa')).toMatchObject({
      subresource: 'resize',
      operation: 'Update',
      fieldsV1: {
        'f:spec': { 'f:containers': { 'k:{"name":"c"}': { 'f:resources': { 'f:requests': { 'f:cpu': {} } } } } },
      },
    });
  });

  it('that is applied owns resources alone, which another manager takes over by force', async () => {
    const { api } = await withPod();
    const apply = (manager: string, cpu: string, more = '') =>
      api.send('PATCH', `${RESIZE}?fieldManager=${manager}${more}`, {
        body: {
          ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', labels: { app: 'b' } } },
          spec: { containers: [{ name: 'c', image: 'i:2', resources: { requests: { cpu } } }] },
        },
        contentType: APPLY,
      });
    const { code, body } = await apply('one', '2', '&force=true');
    expect([code, body.metadata.labels, body.spec.containers[0]]).toEqual([
      200,
      { app: 'a' },
      expect.objectContaining({ image: 'i:1', resources: requests('2') }),
    ]);
    const entry = body.metadata.managedFields.find(({ manager }: { manager: string }) => manager === 'one');
    expect(entry.fieldsV1).toEqual({
      'f:spec': { 'f:containers': { 'k:{"name":"c"}': { 'f:resources': { 'f:requests': { 'f:cpu': {} } } } } },
    });
    const refused = await apply('two', '3');
    expect(refused.code).toBe(409);
    expect(refused.body.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      '.spec.containers[name="c"].resources.requests.cpu',
    ]);
    expect(resourcesOf(await apply('two', '3', '&force=true'))).toEqual(requests('3'));
  });

  it('of a pod with another uid is refused', async () => {
    const { api, read } = await withPod();
    const body = { metadata: { uid: 'other' }, ...withResources(requests('2')) };
    const { code, body: refused } = await api.send('PATCH', RESIZE, { body, contentType: STRATEGIC });
    expect([code, refused.message]).toEqual([422, expect.stringContaining('metadata.uid: Invalid value: "other"')]);
    expect((await read()).metadata.generation).toBe(1);
  });

  it('of an absent pod is not found, and a dry run stores nothing', async () => {
    const { api, read, resize } = await withPod();
    const absent = await api.send('PATCH', `${DEFAULT}/pods/q/resize`, { body: {}, contentType: MERGE });
    expect(absent.code).toBe(404);
    expect(resourcesOf(await resize(requests('2'), '?dryRun=All'))).toEqual(requests('2'));
    expect((await read()).metadata.generation).toBe(1);
  });

  it('needs a permission of its own, which neither a node nor the role edit has', async () => {
    const users = {
      editor: { name: 'editor', groups: [] },
      node: { name: 'system:node:n', groups: ['system:nodes'] },
      resizer: { name: 'resizer', groups: [] },
    };
    const { api } = await withPod(apiInMemory({ users }));
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const rules = [{ apiGroups: [''], resources: ['pods/resize'], verbs: ['patch'] }];
    await api.send('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'resizer' }, rules } });
    for (const [user, name] of [
      ['editor', 'edit'],
      ['resizer', 'resizer'],
    ] as const) {
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
      const subjects = [{ apiGroup: roleRef.apiGroup, kind: 'User', name: user }];
      await api.send('POST', `${rbac}/clusterrolebindings`, { body: { metadata: { name }, roleRef, subjects } });
    }
    const codeFor = async (user: string) =>
      (
        await api.send('PATCH', RESIZE, {
          body: withResources(requests('2')),
          contentType: STRATEGIC,
          headers: { authorization: `Bearer ${user}` },
        })
      ).code;
    expect([await codeFor('node'), await codeFor('editor'), await codeFor('resizer')]).toEqual([403, 403, 200]);
  });
});

describe('the generation of a pod', () => {
  it('grows with its spec and its deletion, and not with labels or its status', async () => {
    const { api, read } = await withPod();
    const patch = async (body: object, subresource = '') =>
      (await api.send('PATCH', `${POD}${subresource}`, { body, contentType: STRATEGIC })).body.metadata.generation;
    expect((await read()).metadata.generation).toBe(1);
    expect(await patch({ metadata: { labels: { b: 'c' } } })).toBe(1);
    expect(await patch({ status: { phase: 'Running' } }, '/status')).toBe(1);
    expect(await patch({ spec: { containers: [{ name: 'c', image: 'i:2' }] } })).toBe(2);
    expect((await api.send('DELETE', POD)).body.metadata.generation).toBe(3);
  });

  it('that a node observed is kept when a writer of the status does not know it', async () => {
    const { api } = await withPod();
    const report = async (status: object) => (await api.send('PUT', `${POD}/status`, { body: { status } })).body.status;
    const condition = (more: object = {}) => ({ type: 'Ready', status: 'True', ...more });
    const observed = { observedGeneration: 1 };
    await report({ ...observed, conditions: [condition(observed)] });
    const kept = await report({ conditions: [condition(), { ...condition(), type: 'Other' }] });
    expect(kept.observedGeneration).toBe(1);
    const generations = (conditions: readonly Record<string, unknown>[]) =>
      conditions.map((each) => each['observedGeneration']);
    expect(generations(kept.conditions)).toEqual([1, undefined]);
    const twice = [condition({ observedGeneration: 2 }), condition({ observedGeneration: 3 })];
    await report({ ...observed, conditions: twice });
    const { conditions } = await report({ conditions: [condition(), condition(), condition()] });
    expect(generations(conditions)).toEqual([2, 3, undefined]);
  });
});

describe('admission of a resize', () => {
  const limited = async (...limits: object[]) => {
    const found = await withPod();
    const body = { metadata: { name: 'l' }, spec: { limits } };
    await found.api.send('POST', `${DEFAULT}/limitranges`, { body });
    found.api.advance(60_000);
    return found;
  };

  it('refuses what a LimitRange forbids, and adds its defaults', async () => {
    const { resize } = await limited({ type: 'Container', max: { cpu: '2' }, default: { cpu: '2', memory: '2Mi' } });
    expect((await resize(requests('3'))).body.message).toContain('must be less than or equal to cpu limit of 2');
    const over = await resize({ ...requests('1'), limits: { cpu: '3' } });
    expect([over.code, over.body.message]).toEqual([
      403,
      'pods "p" is forbidden: maximum cpu usage per Container is 2, but limit is 3',
    ]);
    expect(resourcesOf(await resize(requests('2')))).toEqual({ ...requests('2'), limits: { cpu: '2', memory: '2Mi' } });
  });

  it('has no LimitRange for a pod that is being deleted', async () => {
    const { api, resize } = await limited({ type: 'Container', min: { cpu: '1' }, default: { cpu: '2' } });
    await api.send('DELETE', POD);
    expect(resourcesOf(await resize(requests('500m')))).toEqual(requests('500m'));
  });

  it('charges a quota with what the pod then needs more, also while its node still has the former resources', async () => {
    const sized = (cpu: string) => ({ ...requests(cpu), limits: { cpu } });
    const { api, resize } = await withPod(apiInMemory(), sized('1'));
    const quota = `${DEFAULT}/resourcequotas/q`;
    const hard = { 'requests.cpu': '4', 'limits.cpu': '4' };
    await api.send('POST', `${DEFAULT}/resourcequotas`, { body: { metadata: { name: 'q' }, spec: { hard } } });
    const used = { 'requests.cpu': '1', 'limits.cpu': '1' };
    await api.send('PATCH', `${quota}/status`, { body: { status: { hard, used } }, contentType: MERGE });
    api.advance(60_000);
    const usedNow = async () => Object.values((await api.send('GET', quota)).body.status.used);
    const refused = await resize(sized('5'));
    expect([refused.code, refused.body.message]).toEqual([
      403,
      'pods "p" is forbidden: exceeded quota: q, requested: limits.cpu=4,requests.cpu=4, used: limits.cpu=1,requests.cpu=1, limited: limits.cpu=4,requests.cpu=4',
    ]);
    expect([(await resize(sized('3'))).code, await usedNow()]).toEqual([200, ['3', '3']]);
    const containerStatuses = [{ name: 'c', allocatedResources: { cpu: '3' }, resources: sized('3') }];
    await api.send('PATCH', `${POD}/status`, { body: { status: { containerStatuses } }, contentType: MERGE });
    // Smaller, and as large as before again: the node has promised as much all the time.
    expect((await resize(sized('1'))).code).toBe(200);
    expect([(await resize(sized('3'))).code, await usedNow()]).toEqual([200, ['3', '3']]);
  });

  it('is that of policies which name the subresource', async () => {
    const { api, resize } = await withPod();
    const resourceRules = [
      { apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['pods/resize'] },
    ];
    const validations = [{ expression: 'false', message: 'no resize' }];
    const spec = { matchConstraints: { resourceRules }, validations };
    const policies = '/apis/admissionregistration.k8s.io/v1';
    await api.send('POST', `${policies}/validatingadmissionpolicies`, { body: { metadata: { name: 'x' }, spec } });
    await api.send('POST', `${policies}/validatingadmissionpolicybindings`, {
      body: { metadata: { name: 'x' }, spec: { policyName: 'x', validationActions: ['Deny'] } },
    });
    api.advance(60_000);
    const refused = await resize(requests('2'));
    expect([refused.code, refused.body.message]).toEqual([422, expect.stringContaining('no resize')]);
    const labels = { metadata: { labels: { b: 'c' } } };
    expect((await api.send('PATCH', POD, { body: labels, contentType: MERGE })).code).toBe(200);
  });
});
