import { describe, expect, it } from 'vitest';
import { StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import {
  apiInMemory,
  JSON_PATCH,
  MERGE,
  NODES,
  node,
  pod,
  podsIn,
  STRATEGIC,
} from '../../test/support/api-in-memory.ts';

const YAML = 'application/yaml';

describe('one object', () => {
  it('is created, read, replaced and deleted', async () => {
    const api = apiInMemory();
    const created = await api.send('POST', NODES, { body: node('a', { metadata: { labels: { zone: 'x' } } }) });
    expect(created).toMatchObject({
      code: 201,
      body: { kind: 'Node', metadata: { name: 'a', labels: { zone: 'x' } } },
    });
    expect(created.body.metadata).toMatchObject({ uid: expect.any(String), creationTimestamp: '2026-01-01T00:00:00Z' });
    expect((await api.send('GET', `${NODES}/a`)).body).toEqual(created.body);
    const replaced = await api.send('PUT', `${NODES}/a`, {
      body: { ...created.body, spec: { ...created.body.spec, unschedulable: true } },
    });
    expect(replaced).toMatchObject({ code: 200, body: { spec: { unschedulable: true } } });
    expect(Number(replaced.body.metadata.resourceVersion)).toBeGreaterThan(
      Number(created.body.metadata.resourceVersion),
    );
    expect(await api.send('DELETE', `${NODES}/a`)).toMatchObject({
      code: 200,
      body: {
        kind: 'Status',
        status: 'Success',
        details: { name: 'a', kind: 'nodes', uid: created.body.metadata.uid },
      },
    });
    expect(await api.send('GET', `${NODES}/a`)).toMatchObject({
      code: 404,
      body: { kind: 'Status', reason: 'NotFound', message: 'nodes "a" not found', code: 404 },
    });
  });

  it.each([
    ['a name that is in use', 'POST', NODES, { body: node('a') }, 409, 'AlreadyExists'],
    ['an invalid object', 'POST', NODES, { body: node('A_b') }, 422, 'Invalid'],
    ['no JSON', 'POST', NODES, { body: '{' }, 400, 'BadRequest'],
    ['no object', 'POST', NODES, { body: '[]' }, 400, 'BadRequest'],
    ['another kind', 'POST', NODES, { body: { kind: 'Pod', metadata: { name: 'b' } } }, 400, 'BadRequest'],
    ['a wrong type', 'POST', NODES, { body: node('b', { spec: { unschedulable: 'yes' } }) }, 400, 'BadRequest'],
    [
      'a resourceVersion',
      'POST',
      NODES,
      { body: node('b', { metadata: { resourceVersion: '1' } }) },
      400,
      'BadRequest',
    ],
    ['malformed YAML', 'POST', NODES, { body: 'a: [', contentType: YAML }, 400, 'BadRequest'],
    [
      'YAML with a key twice',
      'POST',
      NODES,
      { body: 'kind: Node\nkind: Node\n', contentType: YAML },
      400,
      'BadRequest',
    ],
    ['YAML that is no object', 'POST', NODES, { body: '- a', contentType: YAML }, 400, 'BadRequest'],
    ['a patch in YAML', 'PATCH', `${NODES}/a`, { body: 'a: b', contentType: YAML }, 415, 'UnsupportedMediaType'],
    ['an unknown media type', 'POST', NODES, { body: '{}', contentType: 'text/plain' }, 415, 'UnsupportedMediaType'],
    ['an unknown patch type', 'PATCH', `${NODES}/a`, { body: {}, contentType: 'a/b' }, 415, 'UnsupportedMediaType'],
    [
      'a body beyond the limit',
      'POST',
      NODES,
      { body: `{"x":"${'x'.repeat(400_000)}"}` },
      413,
      'RequestEntityTooLarge',
    ],
    ['an absent object', 'PATCH', `${NODES}/z`, { body: {}, contentType: MERGE }, 404, 'NotFound'],
    ['an unknown resource', 'GET', '/api/v1/widgets', {}, 404, 'NotFound'],
    ['an unknown path', 'GET', '/nonsense', {}, 404, 'NotFound'],
    ['a verb that is not for the place', 'POST', `${NODES}/a`, { body: {} }, 405, 'MethodNotAllowed'],
    ['a pod without a namespace', 'POST', '/api/v1/pods', { body: pod('p') }, 405, 'MethodNotAllowed'],
    ['an absent namespace', 'POST', podsIn('absent'), { body: pod('p') }, 404, 'NotFound'],
    ['two names', 'PUT', `${NODES}/a`, { body: node('b') }, 400, 'BadRequest'],
    [
      'two namespaces',
      'POST',
      podsIn('default'),
      { body: pod('p', { metadata: { namespace: 'x' } }) },
      400,
      'BadRequest',
    ],
    ['an odd dry run', 'POST', `${NODES}?dryRun=Some`, { body: node('b') }, 422, 'Invalid'],
    ['no credential', 'GET', NODES, { headers: { authorization: '' } }, 401, 'Unauthorized'],
  ] as const)('answers a Status to %s', async (_, method, path, send, code, reason) => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    const answer = await api.send(method, path, send);
    expect(answer).toMatchObject({ code, body: { kind: 'Status', status: 'Failure', reason, code } });
    expect(api.faults).toEqual([]);
  });

  it('is created, replaced and deleted with bodies in YAML', async () => {
    const api = apiInMemory();
    const yaml = (body: string) => ({ body, contentType: `${YAML}; charset=utf-8` });
    const text = 'apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  labels: {site: "1"}\n';
    expect(await api.send('POST', NODES, yaml(text))).toMatchObject({
      code: 201,
      body: { metadata: { labels: { site: '1' } } },
    });
    const strict = await api.send('PUT', `${NODES}/a?fieldValidation=Strict`, yaml(`${text}spec: {colour: red}\n`));
    expect(strict).toMatchObject({ code: 400, body: { message: expect.stringContaining('spec.colour') } });
    expect(await api.send('PUT', `${NODES}/a`, yaml(`${text}spec: {unschedulable: true}\n`))).toMatchObject({
      code: 200,
      body: { spec: { unschedulable: true } },
    });
    expect((await api.send('DELETE', `${NODES}/a`, yaml('propagationPolicy: Background\n'))).code).toBe(200);
  });

  it('stores nothing in a dry run, and answers as if it had', async () => {
    const api = apiInMemory();
    expect(await api.send('POST', `${NODES}?dryRun=All`, { body: node('a') })).toMatchObject({
      code: 201,
      body: { metadata: { name: 'a' } },
    });
    expect((await api.send('GET', `${NODES}/a`)).code).toBe(404);
    const { body } = await api.send('POST', NODES, { body: node('a') });
    const patched = await api.send('PATCH', `${NODES}/a?dryRun=All`, {
      body: { spec: { unschedulable: true } },
      contentType: MERGE,
    });
    expect(patched.body.spec.unschedulable).toBe(true);
    expect((await api.send('POST', `${NODES}?dryRun=All`, { body: node('a') })).code).toBe(409);
    // Only storing refuses a version, as upstream, and after all other checks.
    const versioned = { metadata: { resourceVersion: '1' } };
    expect((await api.send('POST', `${NODES}?dryRun=All`, { body: node('b', versioned) })).code).toBe(201);
    expect((await api.send('POST', NODES, { body: node('A_b', versioned) })).code).toBe(422);
    expect((await api.send('DELETE', `${NODES}/a`, { body: { dryRun: ['All'] } })).code).toBe(200);
    expect((await api.send('GET', `${NODES}/a`)).body).toEqual(body);
  });

  it('refuses, warns of or drops unknown and duplicate fields', async () => {
    const api = apiInMemory();
    const body = '{"metadata":{"name":"a"},"spec":{"colour":"red","unschedulable":false,"unschedulable":true}}';
    expect(await api.send('POST', `${NODES}?fieldValidation=Strict`, { body })).toMatchObject({
      code: 400,
      body: { message: expect.stringMatching(/strict decoding error: .*unknown field "spec.colour"/) },
    });
    const warned = await api.send('POST', `${NODES}?fieldValidation=Warn&dryRun=All`, { body });
    expect(warned.code).toBe(201);
    expect(warned.headers['warning']).toContain('299 - "unknown field \\"spec.colour\\""');
    expect(warned.headers['warning']).toContain('duplicate field \\"spec.unschedulable\\"');
    const ignored = await api.send('POST', `${NODES}?fieldValidation=Ignore`, { body });
    expect(ignored.headers['warning']).toBeUndefined();
    expect(ignored.body.spec).toMatchObject({ unschedulable: true });
    expect(ignored.body.spec.colour).toBeUndefined();
    expect((await api.send('POST', `${NODES}?fieldValidation=Loose`, { body })).code).toBe(422);
  });

  it('keeps an owner that is named twice once, with a warning', async () => {
    const api = apiInMemory();
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'o', uid: 'u' };
    const made = await api.send('POST', NODES, { body: node('a', { metadata: { ownerReferences: [owner, owner] } }) });
    const body = { metadata: { ownerReferences: [owner, { ...owner, uid: 'v' }, owner] } };
    const changed = await api.send('PATCH', `${NODES}/a?fieldValidation=Ignore`, { contentType: MERGE, body });
    expect(made.body.metadata.ownerReferences).toEqual([owner]);
    expect(changed.body.metadata.ownerReferences).toEqual([owner, { ...owner, uid: 'v' }]);
    for (const { headers } of [made, changed]) expect(headers['warning']).toMatch(/duplicate UID\(s\) observed: u"$/);
  });

  it('refuses a patch to a wrong type or an unknown field with 422', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    const send = (query: string, body: object) => api.send('PATCH', `${NODES}/a${query}`, { contentType: MERGE, body });
    const wrong = await send('', { metadata: { annotations: { a: ['b'] } } });
    expect(wrong).toMatchObject({ code: 422, body: { reason: 'Invalid', details: { causes: [{ field: 'patch' }] } } });
    expect(wrong.body.message).toMatch(/^ "" is invalid: patch: Invalid value: "{.*Node in version "v1" cannot be/);
    expect(await send('?fieldValidation=Strict', { spec: { colour: 'red' } })).toMatchObject({
      code: 422,
      body: { message: expect.stringMatching(/: strict decoding error: unknown field "spec.colour"$/) },
    });
  });

  it('gets a name made from generateName', async () => {
    const api = apiInMemory();
    const names = new Set<string>();
    for (let count = 0; count < 5; count += 1) {
      const { code, body } = await api.send('POST', podsIn('default'), {
        body: { ...pod('x'), metadata: { generateName: 'web-' } },
      });
      expect(code).toBe(201);
      names.add(body.metadata.name);
    }
    expect(names.size).toBe(5);
    for (const name of names) expect(name).toMatch(/^web-[a-z0-9]{5}$/);
  });
});

describe('versions', () => {
  it('stay when nothing changes, whatever way it is said', async () => {
    const api = apiInMemory();
    const { body } = await api.send('POST', NODES, { body: node('a', { metadata: { labels: { zone: 'x' } } }) });
    api.advance(5_000);
    const path = `${NODES}/a`;
    const answers = [
      await api.send('PUT', path, { body }),
      await api.send('PATCH', path, { body: { metadata: { labels: { zone: 'x', none: null } } }, contentType: MERGE }),
      await api.send('PATCH', path, { body: { spec: { taints: body.spec.taints } }, contentType: STRATEGIC }),
      await api.send('PATCH', path, { body: [{ op: 'test', path: '/kind', value: 'Node' }], contentType: JSON_PATCH }),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ code: 200, body });
  });

  it('are preconditions in PUT and PATCH, and of a deletion', async () => {
    const api = apiInMemory();
    const { body: first } = await api.send('POST', NODES, { body: node('a') });
    const { body: second } = await api.send('PATCH', `${NODES}/a`, {
      body: { spec: { unschedulable: true } },
      contentType: MERGE,
    });
    const stale = first.metadata.resourceVersion;
    const inPatch = { body: { metadata: { resourceVersion: stale } }, contentType: MERGE };
    for (const [answer, kind] of [
      [await api.send('PUT', `${NODES}/a`, { body: first }), 'nodes'],
      [await api.send('PATCH', `${NODES}/a`, inPatch), 'nodes'],
      [await api.send('DELETE', `${NODES}/a`, { body: { preconditions: { resourceVersion: stale } } }), 'Node'],
      [await api.send('DELETE', `${NODES}/a`, { body: { preconditions: { uid: 'other' } } }), 'Node'],
    ] as const) {
      expect(answer).toMatchObject({ code: 409, body: { reason: 'Conflict', details: { name: 'a', kind } } });
    }
    const { resourceVersion, uid } = second.metadata;
    const right = await api.send('DELETE', `${NODES}/a`, { body: { preconditions: { resourceVersion, uid } } });
    expect(right.code).toBe(200);
  });

  it('come with uids: a PUT with the uid of another object is a conflict, also when none is stored', async () => {
    const api = apiInMemory();
    const { body: stored } = await api.send('POST', NODES, { body: node('a') });
    const other = { ...stored, metadata: { ...stored.metadata, uid: 'other' } };
    const message = (uid: string) =>
      `Operation cannot be fulfilled on nodes "a": Precondition failed: UID in precondition: other, UID in object meta: ${uid}`;
    expect(await api.send('PUT', `${NODES}/a`, { body: other })).toMatchObject({
      code: 409,
      body: { reason: 'Conflict', message: message(stored.metadata.uid) },
    });
    expect((await api.send('PUT', `${NODES}/a`, { body: stored })).code).toBe(200);
    await api.send('DELETE', `${NODES}/a`);
    expect(await api.send('PUT', `${NODES}/a`, { body: other })).toMatchObject({
      code: 409,
      body: { message: message('') },
    });
  });

  it('are wanted in a PUT where overwriting unseen is never meant', async () => {
    const api = apiInMemory();
    const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    const budget = { metadata: { name: 'b' }, spec: { minAvailable: 1, selector: {} } };
    expect((await api.send('POST', budgets, { body: budget })).code).toBe(201);
    expect(await api.send('PUT', `${budgets}/b`, { body: budget })).toMatchObject({
      code: 422,
      body: { details: { causes: [{ field: 'metadata.resourceVersion' }] } },
    });
    expect((await api.send('PUT', `${NODES}/n`, { body: node('n') })).code).toBe(404);
  });
});

describe('patches', () => {
  it.each([
    [MERGE, { spec: { taints: [{ key: 'k', effect: 'NoExecute' }] }, metadata: { labels: { b: '2', a: null } } }],
    [STRATEGIC, { spec: { taints: [{ key: 'k', effect: 'NoExecute' }] }, metadata: { labels: { b: '2', a: null } } }],
    [
      JSON_PATCH,
      [
        { op: 'replace', path: '/spec/taints', value: [{ key: 'k', effect: 'NoExecute' }] },
        { op: 'add', path: '/metadata/labels/b', value: '2' },
        { op: 'remove', path: '/metadata/labels/a' },
      ],
    ],
  ])('of type %s change what they name', async (contentType, body) => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a', { metadata: { labels: { a: '1', c: '3' } } }) });
    const answer = await api.send('PATCH', `${NODES}/a`, { body, contentType });
    expect(answer).toMatchObject({ code: 200, body: { metadata: { labels: { b: '2', c: '3' } } } });
    expect(answer.body.metadata.labels.a).toBeUndefined();
    expect(answer.body.spec.taints).toEqual([expect.objectContaining({ key: 'k', effect: 'NoExecute' })]);
  });

  it('of conditions merge by type, on the status alone', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    const post = (type: string, status: string) =>
      api.send('PATCH', `${NODES}/a/status`, {
        body: { spec: { unschedulable: true }, status: { conditions: [{ type, status }] } },
        contentType: STRATEGIC,
      });
    await post('Ready', 'True');
    await post('DiskPressure', 'False');
    const { body } = await post('Ready', 'False');
    expect(body.status.conditions.map((each: { type: string; status: string }) => [each.type, each.status])).toEqual([
      ['Ready', 'False'],
      ['DiskPressure', 'False'],
    ]);
    expect(body.spec.unschedulable).toBeUndefined();
  });

  it('that fail their test say so and change nothing', async () => {
    const api = apiInMemory();
    const { body } = await api.send('POST', NODES, { body: node('a') });
    const patch = [
      { op: 'add', path: '/spec/unschedulable', value: true },
      { op: 'test', path: '/kind', value: 'Pod' },
    ];
    expect(await api.send('PATCH', `${NODES}/a`, { body: patch, contentType: JSON_PATCH })).toMatchObject({
      code: 422,
      body: { reason: 'Invalid' },
    });
    expect((await api.send('GET', `${NODES}/a`)).body).toEqual(body);
  });
});

describe('deletion', () => {
  it('waits for finalizers, then removes the object with the last of them', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a', { metadata: { finalizers: ['example.org/hold'] } }) });
    expect(await api.send('DELETE', `${NODES}/a`)).toMatchObject({
      code: 200,
      body: { kind: 'Node', metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 } },
    });
    const add = { body: { metadata: { finalizers: ['example.org/hold', 'example.org/more'] } }, contentType: MERGE };
    expect((await api.send('PATCH', `${NODES}/a`, add)).code).toBe(422);
    const lift = { body: { metadata: { finalizers: null } }, contentType: MERGE };
    expect((await api.send('PATCH', `${NODES}/a`, lift)).code).toBe(200);
    expect((await api.send('GET', `${NODES}/a`)).code).toBe(404);
  });

  it('applies the grace period of a bound pod, which a second one may only shorten', async () => {
    const api = apiInMemory();
    const path = `${podsIn('default')}/p`;
    await api.send('POST', podsIn('default'), { body: pod('p', { spec: { nodeName: 'a' } }) });
    const marked = await api.send('DELETE', path);
    expect(marked.body.metadata).toMatchObject({
      deletionGracePeriodSeconds: 30,
      deletionTimestamp: '2026-01-01T00:00:30Z',
    });
    const longer = await api.send('DELETE', path, { body: { gracePeriodSeconds: 60 } });
    expect(longer.body).toEqual(marked.body);
    const shorter = await api.send('DELETE', path, { body: { gracePeriodSeconds: 5 } });
    expect(shorter.body.metadata).toMatchObject({ deletionGracePeriodSeconds: 5 });
    expect((await api.send('DELETE', `${path}?gracePeriodSeconds=0`)).code).toBe(200);
    expect((await api.send('GET', path)).code).toBe(404);
  });

  it('of an unbound pod is at once', async () => {
    const api = apiInMemory();
    await api.send('POST', podsIn('default'), { body: pod('p') });
    expect((await api.send('DELETE', `${podsIn('default')}/p`)).body).toMatchObject({ kind: 'Pod' });
    expect((await api.send('GET', `${podsIn('default')}/p`)).code).toBe(404);
  });

  it('of a collection deletes what the selector matches', async () => {
    const api = apiInMemory();
    for (const [name, zone] of [
      ['a', 'x'],
      ['b', 'y'],
      ['c', 'x'],
    ] as const) {
      await api.send('POST', NODES, { body: node(name, { metadata: { labels: { zone } } }) });
    }
    expect((await api.send('DELETE', `${NODES}?labelSelector=zone%3Dx`)).body.items).toHaveLength(2);
    expect(
      (await api.send('GET', NODES)).body.items.map((each: { metadata: { name: string } }) => each.metadata.name),
    ).toEqual(['b']);
  });
});

describe('a namespace', () => {
  const NAMESPACES = '/api/v1/namespaces';

  it('is marked by a DELETE, refuses new objects, and keeps its objects', async () => {
    const api = apiInMemory();
    await api.send('POST', NAMESPACES, { body: { metadata: { name: 'team' } } });
    await api.send('POST', podsIn('team'), { body: pod('free') });
    expect((await api.send('DELETE', `${NAMESPACES}/team`)).body).toMatchObject({ status: { phase: 'Terminating' } });
    expect((await api.send('GET', podsIn('team'))).body.items).toHaveLength(1);
    expect(await api.send('POST', podsIn('team'), { body: pod('late') })).toMatchObject({
      code: 403,
      body: { details: { causes: [{ reason: 'NamespaceTerminating' }] } },
    });
  });

  it('is removed at once when no component has a finalizer in it, and never when the cluster needs it', async () => {
    const api = apiInMemory();
    await api.send('POST', NAMESPACES, { body: { metadata: { name: 'team' } } });
    const { body } = await api.send('GET', `${NAMESPACES}/team`);
    await api.send('PUT', `${NAMESPACES}/team/finalize`, { body: { ...body, spec: {} } });
    expect((await api.send('DELETE', `${NAMESPACES}/team`)).body).toMatchObject({ status: 'Success' });
    expect((await api.send('GET', `${NAMESPACES}/team`)).code).toBe(404);
    expect((await api.send('DELETE', `${NAMESPACES}/default`)).code).toBe(403);
    expect((await api.send('GET', NAMESPACES)).body.items).toHaveLength(4);
  });
});

describe('many writers', () => {
  it('L8: of those who name one version exactly one wins', async () => {
    const api = apiInMemory();
    const { body } = await api.send('POST', NODES, { body: node('a') });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, writer) =>
        api.send('PUT', `${NODES}/a`, {
          body: { ...body, metadata: { ...body.metadata, labels: { writer: String(writer) } } },
        }),
      ),
    );
    expect(answers.filter((each) => each.code === 200)).toHaveLength(1);
    expect(answers.filter((each) => each.code === 409)).toHaveLength(39);
    const winner = answers.find((each) => each.code === 200)!;
    expect((await api.send('GET', `${NODES}/a`)).body).toEqual(winner.body);
  });

  it('L8: no acknowledged patch is lost, and none without a version conflicts', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, writer) =>
        api.send('PATCH', `${NODES}/a?fieldManager=w`, {
          body: { metadata: { labels: { [`w${writer}`]: 'here' } } },
          contentType: MERGE,
        }),
      ),
    );
    expect(answers.map((each) => each.code)).toEqual(answers.map(() => 200));
    const { body } = await api.send('GET', `${NODES}/a`);
    expect(Object.keys(body.metadata.labels)).toHaveLength(40);
    const versions = answers.map((each) => each.body.metadata.resourceVersion);
    expect(new Set(versions).size).toBe(40);
  });
});

describe('tables that are throttled', () => {
  it('are answered with 503 and the time to wait, and the fault is logged', async () => {
    const items = memoryItemStore();
    let isThrottled = true;
    const api = apiInMemory({
      items: {
        ...items,
        transact: (writes) =>
          isThrottled
            ? Promise.reject(new StoreFault('throttled', 'hot item', { retryable: true }))
            : items.transact(writes),
      },
    });
    const { code, headers, body } = await api.send('POST', NODES, { body: node('a') });
    expect([code, body.reason]).toEqual([503, 'ServiceUnavailable']);
    expect(headers['retry-after']).toBe(String(body.details.retryAfterSeconds));
    expect(api.faults).toEqual([expect.stringContaining('hot item')]);
    isThrottled = false;
    expect((await api.send('POST', NODES, { body: node('a') })).code).toBe(201);
  });
});

describe('a key with the name of an inherited member', () => {
  it('is stored in a ConfigMap, and refused as an annotation', async () => {
    const api = apiInMemory();
    const path = '/api/v1/namespaces/default/configmaps';
    const body = (name: string, more = '') =>
      `{"metadata":{"name":"${name}"${more}},"data":{"__proto__":"one","constructor":"two"}}`;
    const entries = async () => Object.entries((await api.send('GET', `${path}/a`)).body.data);
    expect((await api.send('POST', path, { body: body('a') })).code).toBe(201);
    expect(await entries()).toEqual([
      ['__proto__', 'one'],
      ['constructor', 'two'],
    ]);
    const patches = {
      'merge-patch': '{"data":{"__proto__":"merge-patch"}}',
      'strategic-merge-patch': '{"data":{"__proto__":"strategic-merge-patch"}}',
      'json-patch': '[{"op":"add","path":"/data/__proto__","value":"json-patch"}]',
    };
    for (const [kind, body] of Object.entries(patches)) {
      const patched = await api.send('PATCH', `${path}/a`, { body, contentType: `application/${kind}+json` });
      expect(patched.code).toBe(200);
      expect((await entries())[0]).toEqual(['__proto__', kind]);
    }
    const annotated = await api.send('POST', path, { body: body('b', ',"annotations":{"__proto__":"x"}') });
    expect(annotated).toMatchObject({ code: 422 });
  });
});
