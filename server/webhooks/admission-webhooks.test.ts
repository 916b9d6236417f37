import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ResourceStorage } from '../../shared/api/resource-storage.ts';
import { endpoints } from '../../shared/kinds/services/serve.ts';
import { silentLog } from '../../test/support/agent-api.ts';
import { type ApiInMemory, apiInMemory, MERGE, pod, podsIn } from '../../test/support/api-in-memory.ts';
import {
  DEFINITIONS,
  widget,
  widgetDefinition,
  widgetsIn,
  widgetVersion,
} from '../../test/support/custom-definition.ts';
import { until } from '../../test/support/until.ts';
import {
  jsonPatch,
  type Respond,
  sendReview,
  startWebhookServer,
  type WebhookServerForTest,
} from '../../test/support/webhook-server.ts';
import { admissionWebhooks } from './admission-webhooks.ts';
import { ANSWER_BYTES_MAX, type WebhookClient, webhookClient } from './webhook-client.ts';

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const VALIDATING = `${GROUP}/validatingwebhookconfigurations`;
const MUTATING = `${GROUP}/mutatingwebhookconfigurations`;
const MAPS = '/api/v1/namespaces/default/configmaps';

let server: WebhookServerForTest;
let client: WebhookClient;

beforeAll(async () => {
  server = await startWebhookServer();
  client = webhookClient();
});
afterEach(() => {
  server.respond.clear();
  server.answer.clear();
  server.reviews.length = 0;
});
afterAll(async () => {
  client.stop();
  await server.stop();
});

const rule = (operations: string[], resources: string[], apiGroups = [''], apiVersions = ['*']) => ({
  operations,
  apiGroups,
  apiVersions,
  resources,
});
const OF_MAPS = [rule(['CREATE', 'UPDATE'], ['configmaps'])];

/** The path is the name. */
const webhook = (name: string, more: object = {}) => ({
  name: `${name}.example.com`,
  clientConfig: { url: `${server.url}/${name}`, caBundle: server.caBundle },
  rules: OF_MAPS,
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  timeoutSeconds: 5,
  ...more,
});

const startApi = (): ApiInMemory =>
  apiInMemory({
    webhooksOf: ({ storageOf }) =>
      admissionWebhooks({
        storageOf: (descriptor) =>
          descriptor === endpoints ? onLoopback(storageOf(descriptor)) : storageOf(descriptor),
        client,
        clock: { nowMs: () => api.nowMs() },
        random: { uuid: () => crypto.randomUUID(), fraction: () => 0 },
        log: silentLog,
      }),
  });
let api: ApiInMemory;

/** No Endpoints on loopback can be created. */
const POD_ADDRESS = '192.0.2.7';
const onLoopback = (storage: ResourceStorage): ResourceStorage => ({
  ...storage,
  async get(namespace, name) {
    const found = await storage.get(namespace, name);
    return found && JSON.parse(JSON.stringify(found).replaceAll(POD_ADDRESS, '127.0.0.1'));
  },
});

async function created(path: string, body: object) {
  const answer = await api.send('POST', path, { body });
  expect([answer.code, answer.body.message]).toEqual([201, undefined]);
  return answer;
}

async function withWebhooks(path: string, ...webhooks: object[]): Promise<void> {
  api = startApi();
  await created(path, { metadata: { name: 'w' }, webhooks });
}

const map = (name: string, data: Record<string, string> = {}) => ({ metadata: { name }, data });
async function put(body: object, query = '') {
  const { code, body: answer, headers } = await api.send('POST', `${MAPS}${query}`, { body });
  return { code, message: answer.message, reason: answer.reason, warning: headers['warning'], body: answer };
}
const adds =
  (key: string, value: string): Respond =>
  () =>
    jsonPatch([{ op: 'add', path: `/data/${key}`, value }]);

describe('a validating webhook', () => {
  it('is sent the request, and refuses it with its status', async () => {
    await withWebhooks(VALIDATING, webhook('check'));
    expect(await put(map('a', { x: '1' }), '?fieldManager=me')).toMatchObject({ code: 201 });
    expect(server.reviews).toHaveLength(1);
    const { path, request } = server.reviews[0]!;
    expect(path).toBe('/check');
    expect(request).toMatchObject({
      operation: 'CREATE',
      name: 'a',
      namespace: 'default',
      dryRun: false,
      kind: { group: '', version: 'v1', kind: 'ConfigMap' },
      resource: { group: '', version: 'v1', resource: 'configmaps' },
      userInfo: { username: 'tester', groups: ['system:masters', 'system:authenticated'] },
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'me' },
      object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' }, data: { x: '1' } },
      oldObject: null,
    });
    server.respond.set('/check', () => ({
      allowed: false,
      status: { code: 403, reason: 'Forbidden', message: 'no x' },
    }));
    expect(await put(map('b'))).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message: 'admission webhook "check.example.com" denied the request: no x',
    });
    expect((await api.send('GET', `${MAPS}/b`)).code).toBe(404);
    server.respond.set('/check', () => ({ allowed: false, status: { code: 200, status: 'Success' } }));
    expect(await put(map('b'))).toMatchObject({
      code: 400,
      message: 'admission webhook "check.example.com" denied the request without explanation',
    });
    expect(api.faults).toEqual([]);
  });

  it('sees updates, patches, deletions and dry runs, with the object before', async () => {
    const rules = [rule(['*'], ['configmaps'])];
    await withWebhooks(VALIDATING, webhook('check', { rules }));
    await put(map('a', { x: '1' }));
    expect((await api.send('PATCH', `${MAPS}/a`, { body: { data: { x: '2' } }, contentType: MERGE })).code).toBe(200);
    expect((await api.send('DELETE', `${MAPS}/a`, { body: { dryRun: ['All'] } })).code).toBe(200);
    const seen = server.reviews.map(({ request: { operation, object, oldObject, dryRun } }) => [
      operation,
      object?.['data'],
      oldObject?.['data'],
      dryRun,
    ]);
    expect(seen).toEqual([
      ['CREATE', { x: '1' }, undefined, false],
      ['UPDATE', { x: '2' }, { x: '1' }, false],
      ['DELETE', undefined, { x: '2' }, true],
    ]);
  });

  it('is asked again when the write loses to another one, with the newer object', async () => {
    await withWebhooks(VALIDATING, webhook('check', { rules: [rule(['UPDATE'], ['configmaps'])] }));
    await put(map('a', { x: '1' }));
    const change = (data: object) => api.send('PATCH', `${MAPS}/a`, { body: { data }, contentType: MERGE });
    let other: Promise<{ code: number }> | undefined;
    server.respond.set('/check', async ({ object }) => {
      if (!JSON.stringify(object).includes('"y"')) {
        other ??= change({ y: '3' });
        await other;
      }
      return { allowed: true };
    });
    expect(await change({ x: '2' })).toMatchObject({ code: 200, body: { data: { x: '2', y: '3' } } });
    expect(await other).toMatchObject({ code: 200 });
    expect(server.reviews.map(({ request }) => request.object?.['data'])).toEqual([
      { x: '2' },
      { x: '1', y: '3' },
      { x: '2', y: '3' },
    ]);
  });

  it('adds warnings to the answer', async () => {
    await withWebhooks(VALIDATING, webhook('check'));
    server.respond.set('/check', () => ({ allowed: true, warnings: ['be careful'] }));
    expect((await put(map('a'))).warning).toBe('299 - "be careful"');
  });

  it('is asked at the same time as the others', async () => {
    await withWebhooks(VALIDATING, webhook('one'), webhook('two'));
    const both = Promise.withResolvers<void>();
    for (const path of ['/one', '/two']) {
      server.respond.set(path, async () => {
        if (server.reviews.length === 2) both.resolve();
        await both.promise;
        return { allowed: true };
      });
    }
    expect(await put(map('a'))).toMatchObject({ code: 201 });
  });
});

describe('a mutating webhook', () => {
  it('changes the object, in the order of names, before defaults and validation', async () => {
    api = startApi();
    await created(MUTATING, { metadata: { name: 'b' }, webhooks: [webhook('second')] });
    await created(MUTATING, { metadata: { name: 'a' }, webhooks: [webhook('first')] });
    await created(VALIDATING, { metadata: { name: 'a' }, webhooks: [webhook('check')] });
    server.respond.set('/first', adds('from', 'first'));
    server.respond.set('/second', ({ object }) =>
      jsonPatch([{ op: 'add', path: '/data/seen', value: String((object?.['data'] as { from?: string })?.from) }]),
    );
    expect((await put(map('a', { x: '1' }))).body.data).toEqual({ x: '1', from: 'first', seen: 'first' });
    expect(server.reviews.at(-1)?.request.object?.['data']).toEqual({ x: '1', from: 'first', seen: 'first' });
    server.respond.set('/second', () => jsonPatch([{ op: 'add', path: '/data', value: { 'not/a/key': '' } }]));
    expect(await put(map('b', { x: '1' }))).toMatchObject({ code: 422, message: expect.stringContaining('not/a/key') });
  });

  it('is asked again after a change of a later one, with reinvocationPolicy IfNeeded', async () => {
    await withWebhooks(MUTATING, webhook('first', { reinvocationPolicy: 'IfNeeded' }), webhook('second'));
    server.respond.set('/second', adds('second', '1'));
    expect(await put(map('a', { x: '1' }))).toMatchObject({ code: 201 });
    expect(server.reviews.map(({ path }) => path)).toEqual(['/first', '/second', '/first']);
    server.reviews.length = 0;
    server.respond.set('/second', () => ({ allowed: true }));
    await put(map('b'));
    expect(server.reviews.map(({ path }) => path)).toEqual(['/first', '/second']);
  });

  it('does not change what the server sets, and drops fields that the kind does not have', async () => {
    await withWebhooks(MUTATING, webhook('patch'));
    server.respond.set('/patch', () =>
      jsonPatch([
        { op: 'add', path: '/metadata/uid', value: 'mine' },
        { op: 'add', path: '/metadata/deletionTimestamp', value: '2026-01-01T00:00:00Z' },
        { op: 'add', path: '/unknown', value: 1 },
        { op: 'add', path: '/metadata/labels', value: { a: 'b' } },
      ]),
    );
    const { code, body } = await put(map('a'));
    expect([code, body.metadata.labels, body.unknown, body.metadata.deletionTimestamp]).toEqual([
      201,
      { a: 'b' },
      undefined,
      undefined,
    ]);
    expect(body.metadata.uid).not.toBe('mine');
  });

  it.each([
    ['a test that fails', [{ op: 'test', path: '/data/x', value: '2' }], 'returned an invalid patch'],
    ['a wrong type', [{ op: 'add', path: '/data', value: 'text' }], 'returned an invalid patch'],
    ['another name', [{ op: 'replace', path: '/metadata/name', value: 'b' }], 'must mutate neither metadata.name'],
    ['an unknown operation', [{ op: 'paint', path: '/data' }], 'returned an invalid patch'],
  ])('fails the request for a patch with %s', async (_, operations, message) => {
    await withWebhooks(MUTATING, webhook('patch', { failurePolicy: 'Ignore' }));
    server.respond.set('/patch', () => jsonPatch(operations));
    expect(await put(map('a', { x: '1' }))).toMatchObject({ code: 500, message: expect.stringContaining(message) });
    expect((await api.send('GET', `${MAPS}/a`)).code).toBe(404);
  });

  it('cannot change a deletion', async () => {
    await withWebhooks(MUTATING, webhook('patch', { rules: [rule(['DELETE'], ['configmaps'])] }));
    server.respond.set('/patch', () => jsonPatch([{ op: 'add', path: '/data', value: {} }]));
    await put(map('a'));
    const { code, body } = await api.send('DELETE', `${MAPS}/a`);
    expect([code, body.message]).toEqual([
      500,
      'Internal error occurred: admission webhook "patch.example.com" attempted to modify the object, which is not supported for this operation',
    ]);
  });
});

describe('a change by a mutating webhook that cannot be stored', () => {
  it('fails the request: that of a body which is no object of its resource', async () => {
    const rules = [rule(['*'], ['pods/eviction'])];
    await withWebhooks(MUTATING, webhook('patch', { rules }));
    await created(podsIn('default'), pod('p'));
    server.respond.set('/patch', () => jsonPatch([{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }]));
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } };
    const { code, body } = await api.send('POST', `${podsIn('default')}/p/eviction`, { body: eviction });
    expect([code, body.message]).toEqual([500, expect.stringContaining('attempted to modify the object')]);
    expect(server.reviews[0]?.request).toMatchObject({ kind: { kind: 'Eviction' }, operation: 'CREATE' });
    expect((await api.send('GET', `${podsIn('default')}/p`)).code).toBe(200);
  });
});

describe('a webhook that fails', () => {
  const cases: [string, (path: string) => void, string][] = [
    ['answers no JSON', (path) => server.answer.set(path, (answer) => answer.end('garbage')), 'the answer is no JSON'],
    [
      'answers no review',
      (path) => server.answer.set(path, (answer) => answer.end('{}')),
      'received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview',
    ],
    [
      'answers with another uid',
      (path) => server.respond.set(path, () => ({ uid: 'other', allowed: true })),
      'received invalid webhook response: expected response.uid=',
    ],
    [
      'answers 500',
      (path) => server.answer.set(path, (answer) => answer.writeHead(500).end('boom')),
      'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
    ],
    [
      'redirects',
      (path) =>
        server.answer.set(path, (answer) => answer.writeHead(307, { location: `${server.url}/elsewhere` }).end()),
      'failed to call webhook: the server answered 307: redirects are not followed',
    ],
    [
      'answers too much',
      (path) => server.answer.set(path, (answer) => answer.end('x'.repeat(10 * ANSWER_BYTES_MAX))),
      `failed to call webhook: the answer is longer than ${ANSWER_BYTES_MAX} bytes`,
    ],
    [
      'closes the connection',
      (path) => server.answer.set(path, (answer) => answer.destroy()),
      'failed to call webhook: Post ',
    ],
    [
      'answers with a patch that is none',
      (path) => server.respond.set(path, () => ({ allowed: true, patchType: 'JSONPatch', patch: '!' })),
      'received undecodable patch in webhook response',
    ],
    [
      'answers with a patch without its type',
      (path) => server.respond.set(path, () => ({ allowed: true, patch: 'W10=' })),
      'received invalid webhook response: webhook returned response.patch but not response.patchType',
    ],
  ];
  it.each(cases)('and %s refuses the write, unless failurePolicy is Ignore', async (_, prepare, message) => {
    await withWebhooks(MUTATING, webhook('bad'));
    prepare('/bad');
    const refused = await put(map('a'));
    expect(refused).toMatchObject({ code: 500, reason: 'InternalError' });
    expect(refused.message).toContain('Internal error occurred: failed calling webhook "bad.example.com": ');
    expect(refused.message).toContain(message);
    await withWebhooks(MUTATING, webhook('bad', { failurePolicy: 'Ignore' }));
    expect(await put(map('a'))).toMatchObject({ code: 201 });
    expect(server.reviews.every(({ path }) => path === '/bad')).toBe(true);
  });

  it('and does not answer is waited for timeoutSeconds', async () => {
    await withWebhooks(VALIDATING, webhook('hangs', { timeoutSeconds: 1 }));
    server.answer.set('/hangs', () => {});
    const started = performance.now();
    expect(await put(map('a'))).toMatchObject({
      code: 500,
      message: `Internal error occurred: failed calling webhook "hangs.example.com": failed to call webhook: Post "${server.url}/hangs?timeout=1s": context deadline exceeded`,
    });
    expect(performance.now() - started).toBeGreaterThan(900);
    await withWebhooks(VALIDATING, webhook('hangs', { timeoutSeconds: 1, failurePolicy: 'Ignore' }));
    expect(await put(map('a'))).toMatchObject({ code: 201 });
  });

  it('and sends a part of its answer is waited for timeoutSeconds', async () => {
    await withWebhooks(VALIDATING, webhook('hangs', { timeoutSeconds: 1 }));
    server.answer.set('/hangs', (answer) => answer.write('{'));
    expect((await put(map('a'))).message).toContain('context deadline exceeded');
  });

  it('does not get more time than the request has', async () => {
    await withWebhooks(MUTATING, webhook('one', { failurePolicy: 'Ignore' }), webhook('two'));
    server.respond.set('/one', () => {
      api.advance(40_000);
      return { allowed: true };
    });
    expect(await put(map('a'))).toMatchObject({
      code: 504,
      message: 'request did not complete within requested timeout',
    });
    expect(server.reviews.map(({ path }) => path)).toEqual(['/one']);
  });

  it('does not delay writes that it is not asked about', async () => {
    await withWebhooks(VALIDATING, webhook('hangs', { timeoutSeconds: 5 }));
    const held: (() => void)[] = [];
    server.answer.set('/hangs', (answer, { uid }) => {
      held.push(() => sendReview(answer, { uid, allowed: true }));
    });
    const writes = Array.from({ length: 20 }, (_, i) => put(map(`a${i}`)));
    await until(() => held.length === 16, { withinMs: 5_000 });
    await created('/api/v1/namespaces/default/secrets', { metadata: { name: 's' } });
    expect(server.reviews).toHaveLength(16);
    server.answer.clear();
    for (const release of held) release();
    expect((await Promise.all(writes)).map(({ code }) => code)).toEqual(writes.map(() => 201));
  });
});

describe('a webhook is asked about', () => {
  const seen = () => server.reviews.map(({ request: { name } }) => name);

  it('what its match conditions hold for', async () => {
    const matchConditions = [{ name: 'marked', expression: "has(object.data) && object.data.x == '1'" }];
    await withWebhooks(VALIDATING, webhook('check', { matchConditions }));
    await put(map('a', { x: '1' }));
    await put(map('b', { x: '2' }));
    expect(seen()).toEqual(['a']);
  });

  it('nothing when a condition cannot be evaluated, and the write is refused unless failurePolicy is Ignore', async () => {
    const matchConditions = [{ name: 'marked', expression: 'object.data.missing == "1"' }];
    await withWebhooks(VALIDATING, webhook('check', { matchConditions }));
    expect(await put(map('a', { x: '1' }))).toMatchObject({
      code: 403,
      message: `configmaps "a" is forbidden: match condition 'marked' resulted in error: no such key: missing`,
    });
    await withWebhooks(VALIDATING, webhook('check', { matchConditions, failurePolicy: 'Ignore' }));
    expect(await put(map('a', { x: '1' }))).toMatchObject({ code: 201 });
    expect(seen()).toEqual([]);
  });

  it('objects with the labels that it selects, as webhooks before left them', async () => {
    const objectSelector = { matchLabels: { checked: 'yes' } };
    await withWebhooks(MUTATING, webhook('labels'), webhook('selects', { objectSelector }));
    server.respond.set('/labels', ({ name }) =>
      name === 'a'
        ? jsonPatch([{ op: 'add', path: '/metadata/labels', value: { checked: 'yes' } }])
        : { allowed: true },
    );
    await put(map('a'));
    await put(map('b'));
    expect(server.reviews.map(({ path, request }) => `${path} ${request.name}`)).toEqual([
      '/labels a',
      '/selects a',
      '/labels b',
    ]);
  });

  it('objects of namespaces that it selects', async () => {
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': 'other' } };
    await withWebhooks(VALIDATING, webhook('check', { namespaceSelector }));
    await created('/api/v1/namespaces', { metadata: { name: 'other' } });
    await put(map('a'));
    await created('/api/v1/namespaces/other/configmaps', map('b'));
    expect(seen()).toEqual(['b']);
  });

  it('a write in another version of a resource, in the version that its rules name', async () => {
    const rules = [rule(['CREATE'], ['horizontalpodautoscalers'], ['autoscaling'], ['v1'])];
    const hpas = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
    const spec = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' }, maxReplicas: 3 };
    await withWebhooks(MUTATING, webhook('convert', { rules }), webhook('exact', { rules, matchPolicy: 'Exact' }));
    server.respond.set('/convert', () =>
      jsonPatch([{ op: 'add', path: '/spec/targetCPUUtilizationPercentage', value: 60 }]),
    );
    const { body } = await created(hpas, { metadata: { name: 'h' }, spec });
    expect(server.reviews.map(({ path }) => path)).toEqual(['/convert']);
    expect(server.reviews[0]?.request).toMatchObject({
      kind: { group: 'autoscaling', version: 'v1' },
      requestKind: { group: 'autoscaling', version: 'v2' },
      resource: { group: 'autoscaling', version: 'v1', resource: 'horizontalpodautoscalers' },
      object: { apiVersion: 'autoscaling/v1' },
    });
    expect(body.spec.metrics).toEqual([
      { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } } },
    ]);
  });

  it('custom resources in any served version', async () => {
    api = startApi();
    const versions = [widgetVersion('v1'), widgetVersion('v2', { storage: false })];
    await created(DEFINITIONS, widgetDefinition(versions));
    const rules = [rule(['CREATE'], ['widgets'], ['example.com'], ['v1'])];
    await created(VALIDATING, { metadata: { name: 'w' }, webhooks: [webhook('check', { rules })] });
    await created(widgetsIn('default', 'v2'), widget('a', { size: 1 }, 'v2'));
    expect(server.reviews[0]?.request).toMatchObject({
      kind: { group: 'example.com', version: 'v1', kind: 'Widget' },
      requestKind: { version: 'v2' },
      object: { apiVersion: 'example.com/v1', spec: { size: 1 } },
    });
  });

  it('scales, evictions and connections, and not about configurations and policies', async () => {
    const rules = [rule(['*'], ['*/*'], ['*'])];
    api = startApi();
    const spec = {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    };
    await created('/apis/apps/v1/namespaces/default/deployments', { metadata: { name: 'd' }, spec });
    await created(VALIDATING, { metadata: { name: 'all' }, webhooks: [webhook('all', { rules })] });
    server.respond.set('/all', () => ({ allowed: false }));
    const scale = { metadata: { name: 'd', namespace: 'default' }, spec: { replicas: 2 } };
    expect((await api.send('PUT', '/apis/apps/v1/namespaces/default/deployments/d/scale', { body: scale })).code).toBe(
      400,
    );
    expect(server.reviews[0]?.request).toMatchObject({ kind: { kind: 'Scale' }, subResource: 'scale' });
    server.reviews.length = 0;
    // A cluster with a webhook that refuses everything can be repaired.
    expect(
      (await api.send('PATCH', `${VALIDATING}/all`, { body: { metadata: { labels: { a: 'b' } } }, contentType: MERGE }))
        .code,
    ).toBe(200);
    expect((await api.send('DELETE', `${VALIDATING}/all`)).code).toBe(200);
    expect(server.reviews).toEqual([]);
    expect(await put(map('a'))).toMatchObject({ code: 201 });
  });
});

describe('the server of a webhook', () => {
  it('is an endpoint of a Service, by the name of the Service', async () => {
    const service = { namespace: 'default', name: 'hook', path: '/check', port: 8443 };
    await withWebhooks(VALIDATING, webhook('check', { clientConfig: { service, caBundle: server.caBundle } }));
    expect((await put(map('a'))).message).toContain('failed to call webhook: service "hook" not found');
    await created('/api/v1/namespaces/default/services', {
      metadata: { name: 'hook' },
      spec: { ports: [{ name: 'https', port: 8443, targetPort: server.port }] },
    });
    expect((await put(map('a'))).message).toContain(
      'failed to call webhook: no endpoints available for service "hook"',
    );
    await created('/api/v1/namespaces/default/endpoints', {
      metadata: { name: 'hook' },
      subsets: [
        {
          addresses: [{ ip: POD_ADDRESS }],
          notReadyAddresses: [{ ip: '192.0.2.1' }],
          ports: [
            { name: 'other', port: 1 },
            { name: 'https', port: server.port },
          ],
        },
      ],
    });
    expect(await put(map('a'))).toMatchObject({ code: 201 });
    expect(server.reviews.map(({ path }) => path)).toEqual(['/check']);
    expect([...server.serverNames]).toEqual(['hook.default.svc']);
  });

  it('must have a certificate of the authorities of the webhook', async () => {
    await withWebhooks(VALIDATING, webhook('check', { clientConfig: { url: `${server.url}/check` } }));
    expect((await put(map('a'))).message).toContain('certificate');
    expect(server.reviews).toEqual([]);
  });

  it('may be trusted by its own certificate, and is asked at its path without empty segments', async () => {
    const clientConfig = { url: `${server.url}//check/`, caBundle: server.ownBundle };
    await withWebhooks(VALIDATING, webhook('check', { clientConfig }));
    expect(await put(map('a'))).toMatchObject({ code: 201 });
    expect(server.reviews.map(({ path }) => path)).toEqual(['/check']);
  });

  it.each(['https://169.254.169.254/latest', 'https://[fd00:ec2::254]/', 'https://[::ffff:169.254.169.254]/'])(
    'is not at the link-local address of %s',
    async (url) => {
      await withWebhooks(VALIDATING, webhook('check', { clientConfig: { url } }));
      expect((await put(map('a'))).message).toContain('is a link-local address, where the metadata services');
    },
  );
});

describe('a configuration of webhooks', () => {
  it('has the defaults of upstream', async () => {
    api = startApi();
    const { timeoutSeconds: _timeout, ...plain } = webhook('check') as ReturnType<typeof webhook> & {
      timeoutSeconds: number;
    };
    const { body } = await created(MUTATING, { metadata: { name: 'w' }, webhooks: [plain] });
    expect(body.metadata.generation).toBe(1);
    expect(body.webhooks[0]).toMatchObject({
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      namespaceSelector: {},
      objectSelector: {},
      reinvocationPolicy: 'Never',
      timeoutSeconds: 10,
      rules: [{ scope: '*' }],
    });
  });

  it('is refused with the reasons of upstream', async () => {
    api = startApi();
    const bad = {
      ...webhook('check'),
      name: 'short.name',
      clientConfig: { url: 'http://user@example.com/?a=b#c' },
      timeoutSeconds: 31,
      failurePolicy: 'Maybe',
      admissionReviewVersions: ['v2'],
      sideEffects: 'Some',
      matchConditions: [{ name: 'c', expression: 'object.' }],
    };
    const { code, body } = await api.send('POST', VALIDATING, { body: { metadata: { name: 'w' }, webhooks: [bad] } });
    expect(code).toBe(422);
    expect(body.details.causes.map(({ field, message }: Record<string, string>) => `${field}: ${message}`)).toEqual([
      'webhooks[0].name: Invalid value: "short.name": should be a domain with at least three segments separated by dots',
      'webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
      'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
      'webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds',
      `webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
      'webhooks[0].clientConfig.url: Invalid value: "user": user information is not permitted in the URL',
      'webhooks[0].clientConfig.url: Invalid value: "c": fragments are not permitted in the URL',
      'webhooks[0].clientConfig.url: Invalid value: "a=b": query parameters are not permitted in the URL',
      'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1',
    ]);
    const matchConditions = [{ name: 'c', expression: 'object.' }];
    const second = await api.send('POST', VALIDATING, {
      body: { metadata: { name: 'w' }, webhooks: [webhook('check', { matchConditions })] },
    });
    expect(second.body.message).toContain('webhooks[0].matchConditions[0].expression: Invalid value: "object."');
  });

  it('is refused with the way without a server where none is called', async () => {
    api = apiInMemory();
    const { code, body } = await api.send('POST', VALIDATING, {
      body: { metadata: { name: 'w' }, webhooks: [webhook('check')] },
    });
    expect([code, body.details.causes[0].field]).toEqual([422, 'webhooks']);
    expect(body.message).toContain('Use a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy');
  });

  it('warns of writes that no webhook is asked about', async () => {
    api = startApi();
    const rules = [rule(['*'], ['leases'], ['*'])];
    const { headers } = await created(VALIDATING, { metadata: { name: 'w' }, webhooks: [webhook('check', { rules })] });
    expect(headers['warning']).toContain('renewals of Leases in kube-node-lease are heartbeats');
  });
});
