import { describe, expect, it } from 'vitest';
import { apiInMemory, eventsOf, NODES, node, podsIn } from '../../test/support/api-in-memory.ts';

const PODS = podsIn('default');
const PRIORITY_CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses';

describe('options that fail validation', () => {
  it.each([
    [
      'GET',
      `${NODES}?resourceVersionMatch=Exact`,
      'resourceVersionMatch is forbidden unless resourceVersion is provided',
    ],
    ['GET', `${NODES}?resourceVersionMatch=Exact&resourceVersion=0`, 'resourceVersionMatch "exact" is forbidden for'],
    ['GET', `${NODES}?resourceVersionMatch=Old&resourceVersion=1`, 'supported values: "Exact", "NotOlderThan", ""'],
    [
      'GET',
      `${NODES}?resourceVersionMatch=NotOlderThan&resourceVersion=0&continue=x`,
      'resourceVersionMatch is forbidden when continue is provided',
    ],
    ['GET', `${NODES}?sendInitialEvents=false`, 'sendInitialEvents is forbidden for list'],
    ['GET', `${NODES}?watch=1&sendInitialEvents=true`, 'requires setting resourceVersionMatch to NotOlderThan'],
    ['GET', `${NODES}?watch=1&resourceVersionMatch=NotOlderThan`, 'for watch unless sendInitialEvents is provided'],
  ])('%s %s is 422 of ListOptions', async (method, path, message) => {
    expect(await apiInMemory().send(method, path)).toMatchObject({
      code: 422,
      body: {
        reason: 'Invalid',
        message: expect.stringContaining(message),
        details: { group: 'meta.k8s.io', kind: 'ListOptions' },
      },
    });
  });

  it('of a write name the options of its verb', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    const refused = async (method: string, path: string, contentType?: string) => {
      const { body } = await api.send(method, path, { body: node('a'), ...(contentType ? { contentType } : {}) });
      return [body.details?.kind, body.message];
    };
    const dryRun = 'dryRun: Unsupported value: ["true"]: supported values: "All"';
    const headOf = (kind: string) => `${kind}.meta.k8s.io "" is invalid: `;
    expect(await refused('POST', `${NODES}?dryRun=true`)).toEqual(['CreateOptions', headOf('CreateOptions') + dryRun]);
    expect(await refused('PUT', `${NODES}/a?dryRun=true`)).toEqual(['UpdateOptions', headOf('UpdateOptions') + dryRun]);
    expect(await refused('PATCH', `${NODES}/a?dryRun=true`, 'application/merge-patch+json')).toEqual([
      'PatchOptions',
      headOf('PatchOptions') + dryRun,
    ]);
    expect(await refused('POST', `${NODES}?fieldValidation=Loose`)).toEqual([
      'CreateOptions',
      `${headOf('CreateOptions')}fieldValidation: Unsupported value: "Loose": supported values: "", "Ignore", "Strict", "Warn"`,
    ]);
  });

  it('of a deletion are those of its body, or else of its query', async () => {
    const api = apiInMemory();
    const remove = (query: string, body?: object) =>
      api.send('DELETE', `${NODES}/a${query}`, body === undefined ? {} : { body });
    await api.send('POST', NODES, { body: node('a') });
    const kind = { details: { kind: 'DeleteOptions' } };
    expect(await remove('?propagationPolicy=Never')).toMatchObject({
      code: 422,
      body: {
        ...kind,
        message: expect.stringContaining(
          'Unsupported value: "Never": supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
      },
    });
    expect(await remove('', { propagationPolicy: 'Orphan', orphanDependents: true })).toMatchObject({
      code: 422,
      body: { ...kind, message: expect.stringContaining('cannot be both set') },
    });
    expect(await remove('?dryRun=All')).toMatchObject({ code: 200 });
    expect(await remove('?propagationPolicy=Never', { dryRun: ['All'] })).toMatchObject({ code: 200 });
    expect(await api.send('GET', `${NODES}/a`)).toMatchObject({ code: 200 });
  });
});

describe('the preconditions of a deletion', () => {
  it('name the kind and both values, as upstream', async () => {
    const api = apiInMemory();
    const created = await api.send('POST', PRIORITY_CLASSES, { body: { metadata: { name: 'p' }, value: 1 } });
    const { uid, resourceVersion } = created.body.metadata;
    const remove = (preconditions: object) => api.send('DELETE', `${PRIORITY_CLASSES}/p`, { body: { preconditions } });
    expect(await remove({ uid: 'nope' })).toMatchObject({
      code: 409,
      body: {
        message: `Operation cannot be fulfilled on PriorityClass.scheduling.k8s.io "p": the UID in the precondition (nope) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
        details: { name: 'p', group: 'scheduling.k8s.io', kind: 'PriorityClass' },
      },
    });
    expect(await remove({ resourceVersion: '1' })).toMatchObject({
      code: 409,
      body: {
        message: expect.stringContaining(
          `the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
        ),
      },
    });
  });
});

describe('resourceVersion', () => {
  it.each([NODES, `${NODES}/a`])('that is no number is 400 at %s', async (path) => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    expect(await api.send('GET', `${path}?resourceVersion=abc`)).toMatchObject({
      code: 400,
      body: {
        message: 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
      },
    });
  });

  it.each([NODES, `${NODES}/a`])('of the future is 504 at %s, a version that was written is not', async (path) => {
    const api = apiInMemory();
    const { body } = await api.send('POST', NODES, { body: node('a') });
    const future = (api.nowMs() + 3_600_000) * 1_000;
    expect(await api.send('GET', `${path}?resourceVersion=${body.metadata.resourceVersion}`)).toMatchObject({
      code: 200,
    });
    expect(await api.send('GET', `${path}?resourceVersion=${future}`)).toMatchObject({
      code: 504,
      headers: { 'retry-after': '1' },
      body: { reason: 'Timeout', details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 } },
    });
  });

  it('excludes a continue token, and an exact one is too old', async () => {
    const api = apiInMemory();
    expect(await api.send('GET', `${NODES}?resourceVersion=5&continue=x`)).toMatchObject({
      code: 400,
      body: { message: 'specifying resource version is not allowed when using continue' },
    });
    expect(await api.send('GET', `${NODES}?resourceVersion=5&resourceVersionMatch=Exact`)).toMatchObject({
      code: 410,
      body: { reason: 'Expired' },
    });
    expect(await api.send('GET', `${NODES}?resourceVersion=5&resourceVersionMatch=NotOlderThan`)).toMatchObject({
      code: 200,
    });
  });
});

describe('timeout', () => {
  it.each(['32s', '0', '1m30s', ''])('may be %j', async (timeout) => {
    expect(await apiInMemory().send('GET', `${NODES}?timeout=${timeout}`)).toMatchObject({ code: 200 });
  });

  it('that is no duration is 400', async () => {
    expect(await apiInMemory().send('GET', `${NODES}?timeout=soon`)).toMatchObject({
      code: 400,
      body: { message: 'invalid timeout specified in the request URL' },
    });
  });
});

describe('the deprecated watch path', () => {
  it('watches a collection, a namespace and one object', async () => {
    const api = apiInMemory();
    for (const name of ['a', 'b']) {
      await api.send('POST', PODS, { body: { metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } } });
    }
    const added = async (path: string) =>
      eventsOf(await api.send('GET', `${path}?timeoutSeconds=1`)).map(({ object }) => object.metadata.name);
    expect(await added('/api/v1/watch/pods')).toEqual(['a', 'b']);
    expect(await added('/api/v1/watch/namespaces/default/pods')).toEqual(['a', 'b']);
    expect(await added('/api/v1/watch/namespaces/default/pods/b')).toEqual(['b']);
    expect(await added('/apis/coordination.k8s.io/v1/watch/leases')).toEqual([]);
    expect(await api.send('DELETE', '/api/v1/watch/namespaces/default/pods/b')).toMatchObject({ code: 404 });
  });
});

describe('the Accept header', () => {
  const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const code = async (method: string, path: string, accept: string) =>
    (await apiInMemory().send(method, path, { accept, body: method === 'POST' ? {} : undefined })).code;

  it.each([
    'text/html',
    'application/xml',
    'application/cbor',
    'application/json;as=Unknown;g=meta.k8s.io;v=v1',
    'application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1',
    'application/json;as=Table;g=meta.k8s.io;v=v9',
  ])('that names only %s is 406', async (accept) => {
    expect(await apiInMemory().send('GET', NODES, { accept })).toMatchObject({
      code: 406,
      body: {
        reason: 'NotAcceptable',
        message:
          'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf',
      },
    });
  });

  it.each(['text/html, */*;q=0.1', 'application/vnd.kubernetes.protobuf', 'application/json;stream=watch', table])(
    'that names %s is answered',
    async (accept) => {
      expect(await code('GET', NODES, accept)).toBe(200);
    },
  );

  it('that wants a table alone is 406 for a review, which has none', async () => {
    expect(await code('POST', REVIEWS, table)).toBe(406);
    expect(await code('POST', REVIEWS, `${table},application/json`)).toBe(422);
  });
});

describe('a body in YAML', () => {
  it.each([
    ['an object', `${podsIn('default')}`],
    ['a review', '/apis/authorization.k8s.io/v1/subjectaccessreviews'],
  ])('of a request that is not permitted is not parsed: %s', async (_, path) => {
    const api = apiInMemory({ users: { stranger: { name: 'stranger', groups: [] } } });
    const headers = { authorization: 'Bearer stranger' };
    const answer = await api.send('POST', path, { body: 'a: "\\q"', contentType: 'application/yaml', headers });
    expect(answer).toMatchObject({ code: 403, body: { reason: 'Forbidden' } });
    expect(await api.send('POST', path, { body: 'a: "\\q"', contentType: 'application/yaml' })).toMatchObject({
      code: 400,
      body: { message: 'error decoding YAML: Invalid escape sequence \\q at line 1, column 5' },
    });
  });
});
