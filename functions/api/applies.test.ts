import { describe, expect, it } from 'vitest';
import { APPLY, type ApiInMemory, apiInMemory, MERGE, NODES, node } from '../../test/support/api-in-memory.ts';

const apply = (api: ApiInMemory, manager: string, body: unknown, query = '') =>
  api.send('PATCH', `${NODES}/a?fieldManager=${manager}${query}`, { body, contentType: APPLY });
const config = (labels: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'a', labels },
});
// biome-ignore lint/suspicious/noExplicitAny: entries are looked into.
const entriesOf = (body: any): any[] => body.metadata.managedFields ?? [];

describe('server-side apply', () => {
  it('creates what is absent, and a second time changes nothing', async () => {
    const api = apiInMemory();
    const first = await apply(api, 'alpha', config({ zone: 'x' }));
    expect(first).toMatchObject({ code: 201, body: { metadata: { name: 'a', labels: { zone: 'x' } } } });
    expect(entriesOf(first.body)).toMatchObject([
      { manager: 'alpha', operation: 'Apply', fieldsV1: { 'f:metadata': { 'f:labels': { 'f:zone': {} } } } },
    ]);
    api.advance(5_000);
    expect(await apply(api, 'alpha', config({ zone: 'x' }))).toMatchObject({ code: 200, body: first.body });
  });

  it('accepts YAML as well as JSON', async () => {
    const api = apiInMemory();
    const yaml = 'apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  labels: {zone: x}\nspec:\n  unschedulable: yes\n';
    expect(await apply(api, 'alpha', yaml)).toMatchObject({
      code: 201,
      body: { metadata: { labels: { zone: 'x' } }, spec: { unschedulable: true } },
    });
    const flow = "{apiVersion: v1, kind: Node, metadata: {name: a, labels: {'zone': 'y',},},}";
    expect(await apply(api, 'alpha', flow)).toMatchObject({ code: 200, body: { metadata: { labels: { zone: 'y' } } } });
    expect((await apply(api, 'alpha', 'a: [')).code).toBe(400);
    expect((await apply(api, 'alpha', 'a: 1\na: 2\n')).code).toBe(400);
    expect((await apply(api, 'alpha', 'just text')).code).toBe(400);
  });

  it('removes what its manager leaves out and no other manager owns', async () => {
    const api = apiInMemory();
    await apply(api, 'alpha', config({ mine: 'x', ours: 'y' }));
    await apply(api, 'beta', config({ ours: 'y' }));
    const { body } = await apply(api, 'alpha', config({}));
    expect(body.metadata.labels).toMatchObject({ ours: 'y' });
    expect(body.metadata.labels.mine).toBeUndefined();
  });

  it('meets the fields of others as a conflict, unless forced', async () => {
    const api = apiInMemory();
    await apply(api, 'alpha', config({ zone: 'x' }));
    const refused = await apply(api, 'beta', config({ zone: 'y' }));
    expect(refused).toMatchObject({
      code: 409,
      body: {
        reason: 'Conflict',
        message: 'Apply failed with 1 conflict: conflict with "alpha": .metadata.labels.zone',
        details: { causes: [{ reason: 'FieldManagerConflict', field: '.metadata.labels.zone' }] },
      },
    });
    const forced = await apply(api, 'beta', config({ zone: 'y' }), '&force=true');
    expect(forced).toMatchObject({ code: 200, body: { metadata: { labels: { zone: 'y' } } } });
  });

  it('meets what was written otherwise, too', async () => {
    const api = apiInMemory();
    await api.send('POST', `${NODES}?fieldManager=kubectl-create`, { body: node('a') });
    await api.send('PATCH', `${NODES}/a?fieldManager=kubectl-cordon`, {
      body: { spec: { unschedulable: true } },
      contentType: MERGE,
    });
    const { body } = await apply(api, 'alpha', { ...config({}), spec: { unschedulable: false } });
    expect(body.message).toContain('conflict with "kubectl-cordon" using v1');
  });

  it.each([
    ['without a manager', '', config({}), 422],
    ['of another name', 'alpha', { ...config({}), metadata: { name: 'b' } }, 400],
    ['of another kind', 'alpha', { ...config({}), kind: 'Pod' }, 400],
    ['with managedFields', 'alpha', { ...config({}), metadata: { managedFields: [{ manager: 'x' }] } }, 400],
    ['with a wrong type', 'alpha', { ...config({}), spec: { unschedulable: 'yes' } }, 400],
    ['with an invalid value', 'alpha', { ...config({ zone: '/' }) }, 422],
    ['with an unknown field', 'alpha', { ...config({}), colour: 'red' }, 400],
  ])('%s is refused', async (_, manager, body, code) => {
    const api = apiInMemory();
    expect((await apply(api, manager, body, '&fieldValidation=Strict')).code).toBe(code);
    expect((await api.send('GET', `${NODES}/a`)).code).toBe(404);
  });

  it('in YAML with a duplicate key is refused if it is strict; else the last value counts', async () => {
    const api = apiInMemory();
    const text = 'apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  labels:\n    zone: v\n    zone: w\n';
    const body = Buffer.from(text);
    const send = (validation: string) =>
      api.send('PATCH', `${NODES}/a?fieldManager=m&fieldValidation=${validation}`, { body, contentType: APPLY });
    const duplicate = 'yaml: unmarshal errors:\n  line 7: key "zone" already set in map';
    expect(await send('Strict')).toMatchObject({
      code: 400,
      body: { message: `strict decoding error: ${duplicate}` },
    });
    const warned = await send('Warn');
    expect(warned).toMatchObject({ code: 201, body: { metadata: { labels: { zone: 'w' } } } });
    expect(warned.headers['warning']).toMatch(/line 7: key .*zone.* already set in map/);
    expect((await send('Ignore')).headers['warning']).toBeUndefined();
  });

  it.each(['Ignore', 'Warn', 'Strict'])(
    'with unknown fields is refused, with fieldValidation=%s',
    async (validation) => {
      const api = apiInMemory();
      const send = (body: object) => apply(api, 'alpha', body, `&fieldValidation=${validation}`);
      const place = 'failed to create typed patch object (/a; /v1, Kind=Node): ';
      const undeclared = 'field not declared in schema';
      const one = await send({ ...config({}), spec: { colour: 'red' } });
      expect(one).toMatchObject({ code: 400, body: { message: `${place}.spec.colour: ${undeclared}` } });
      const two = await send({ ...config({}), size: 1, spec: { colour: 'red' } });
      const message = `${place}errors:\n  .size: ${undeclared}\n  .spec.colour: ${undeclared}`;
      expect(two).toMatchObject({ code: 400, body: { message } });
    },
  );

  it('creates no object in the place of one with a uid', async () => {
    const named = config({});
    expect(await apply(apiInMemory(), 'alpha', { ...named, metadata: { ...named.metadata, uid: '88e00824' } })).toEqual(
      expect.objectContaining({
        code: 409,
        body: expect.objectContaining({
          message: expect.stringContaining(
            'the provided object specified uid 88e00824, and no existing object was found',
          ),
        }),
      }),
    );
  });

  it('as a dry run stores nothing', async () => {
    const api = apiInMemory();
    expect((await apply(api, 'alpha', config({}), '&dryRun=All')).code).toBe(201);
    expect((await api.send('GET', `${NODES}/a`)).code).toBe(404);
  });
});

describe('managedFields', () => {
  it('say who wrote what, by name or by program', async () => {
    const api = apiInMemory();
    const created = await api.send('POST', NODES, { body: node('a', { metadata: { labels: { zone: 'x' } } }) });
    expect(entriesOf(created.body)).toMatchObject([{ manager: 'tester', operation: 'Update', apiVersion: 'v1' }]);
    const patched = await api.send('PATCH', `${NODES}/a?fieldManager=kubectl-label`, {
      body: { metadata: { labels: { zone: 'y' } } },
      contentType: MERGE,
    });
    const owner = entriesOf(patched.body).find((each) => each.manager === 'kubectl-label');
    expect(owner.fieldsV1).toEqual({ 'f:metadata': { 'f:labels': { 'f:zone': {} } } });
    const status = await api.send('PATCH', `${NODES}/a/status?fieldManager=k`, {
      body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
      contentType: MERGE,
    });
    expect(entriesOf(status.body).find((each) => each.manager === 'k')).toMatchObject({ subresource: 'status' });
    expect((await api.send('POST', `${NODES}?fieldManager=${'x'.repeat(129)}`, { body: node('b') })).code).toBe(422);
  });

  it('have no owner for what admission adds to a pod', async () => {
    const api = apiInMemory();
    const body = { metadata: { name: 'a' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const { body: pod } = await api.send('POST', '/api/v1/namespaces/default/pods', { body });
    expect(pod.spec).toMatchObject({ serviceAccountName: 'default', priority: 0, tolerations: expect.any(Array) });
    const [{ 'f:spec': spec }] = entriesOf(pod).map(({ fieldsV1 }) => fieldsV1);
    expect(Object.keys(spec).toSorted()).toEqual([
      'f:containers',
      'f:dnsPolicy',
      'f:enableServiceLinks',
      'f:restartPolicy',
      'f:schedulerName',
      'f:securityContext',
      'f:terminationGracePeriodSeconds',
    ]);
    expect(spec['f:containers']['k:{"name":"c"}']).not.toHaveProperty('f:volumeMounts');
  });

  it('are removed by an empty list, and begin again with the next apply', async () => {
    const api = apiInMemory();
    await apply(api, 'alpha', config({ zone: 'x' }));
    const replaced = await api.send('PUT', `${NODES}/a`, {
      body: node('a', { metadata: { labels: { zone: 'x' }, managedFields: [] } }),
    });
    expect(entriesOf(replaced.body)).toEqual([]);
    const labels = { body: { metadata: { labels: { zone: 'y' } } }, contentType: MERGE };
    expect(entriesOf((await api.send('PATCH', `${NODES}/a`, labels)).body)).toEqual([]);
    const message = 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .metadata.labels.zone';
    expect(await apply(api, 'alpha', config({ zone: 'x' }))).toMatchObject({ code: 409, body: { message } });
    const same = await apply(api, 'alpha', config({ zone: 'y' }));
    expect(entriesOf(same.body).map(({ manager }) => manager)).toEqual(['alpha', 'before-first-apply']);
  });

  it('are not changed by a node that writes its status', async () => {
    const api = apiInMemory({ groups: ['system:masters', 'system:nodes'] });
    const created = await api.send('POST', NODES, { body: node('a') });
    const body = { ...created.body, metadata: { ...created.body.metadata, managedFields: [{}] } };
    const written = await api.send('PUT', `${NODES}/a/status`, { body });
    expect(entriesOf(written.body)).toEqual(entriesOf(created.body));
  });

  it('are not kept of node leases, which stay small', async () => {
    const api = apiInMemory();
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'a' },
      spec: { holderIdentity: 'a' },
    };
    const applied = await api.send('PATCH', `${path}/a?fieldManager=x`, { body: lease, contentType: APPLY });
    expect(applied.code).toBe(201);
    expect(entriesOf(applied.body)).toEqual([]);
    const other = { ...lease, spec: { holderIdentity: 'b' } };
    expect((await api.send('PATCH', `${path}/a?fieldManager=x`, { body: other, contentType: APPLY })).code).toBe(200);
  });

  it('of a status report that a node makes of itself are left out', async () => {
    const api = apiInMemory({ groups: ['system:masters', 'system:nodes'] });
    await api.send('POST', NODES, { body: node('a') });
    const { body } = await api.send('PATCH', `${NODES}/a/status`, {
      body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
      contentType: MERGE,
    });
    expect(entriesOf(body).some((each) => each.subresource === 'status')).toBe(false);
  });
});
