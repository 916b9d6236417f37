import { describe, expect, it } from 'vitest';
import { describe as textOf } from '../../../shared/kinds/descriptions/describe.ts';
import { isJsonObject, type JsonObject } from '../../../shared/kubernetes/json.ts';
import { createOpenApi, type OpenApiResource } from './openapi.ts';
import { definitionsOf } from './swagger.ts';
import { swaggerProtobuf } from './swagger-protobuf.ts';

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const statusPart = { name: 'status', verbs: ['get', 'patch', 'update'] };
const nodes: OpenApiResource = {
  ...{ group: '', version: 'v1', resource: 'nodes', kind: 'Node', namespaced: false, verbs },
  subresources: [statusPart],
};
const pods: OpenApiResource = {
  ...{ group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true, verbs },
  subresources: [statusPart, { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] }],
};
const leases: OpenApiResource = {
  ...{ group: 'coordination.k8s.io', version: 'v1', resource: 'leases', kind: 'Lease', namespaced: true, verbs },
  subresources: [],
};
const reviews: OpenApiResource = {
  ...{
    group: 'authorization.k8s.io',
    version: 'v1',
    resource: 'selfsubjectaccessreviews',
    kind: 'SelfSubjectAccessReview',
  },
  ...{ namespaced: false, verbs: ['create'], subresources: [] },
};

const hash = (body: string): string => `h${body.length}`;
const made = (pathPrefix = '') =>
  createOpenApi({
    resources: [nodes, pods, leases, reviews],
    serverVersion: 'v1.32.0',
    hash,
    pathPrefix,
    describe: textOf,
  });
const documentOf = (path: string): JsonObject => JSON.parse(made().document(path)?.body ?? 'null') as JsonObject;

const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>(
    (inner, key) => (isJsonObject(inner) || Array.isArray(inner) ? (inner as JsonObject)[key] : undefined),
    value,
  );

describe('createOpenApi', () => {
  it('lists each group version with a URL that changes with its document', () => {
    const api = made('/prod');
    const body = api.document('api/v1')?.body ?? '';
    expect(JSON.parse(api.index().body)).toMatchObject({
      paths: {
        'api/v1': { serverRelativeURL: `/prod/openapi/v3/api/v1?hash=${hash(body)}` },
        'apis/authorization.k8s.io/v1': {},
        'apis/coordination.k8s.io/v1': {},
      },
    });
    expect(api.document('apis/none/v1')).toBeUndefined();
  });

  it('makes a document once', () => {
    const api = made();
    expect(api.document('api/v1')).toBe(api.document('api/v1'));
    expect(api.index()).toBe(api.index());
  });

  it('offers fieldValidation, dryRun and fieldManager on every write, which lets kubectl rely on the server', () => {
    const paths = at(documentOf('api/v1'), 'paths');
    for (const [path, action] of [
      ['/api/v1/nodes', 'post'],
      ['/api/v1/nodes/{name}', 'put'],
      ['/api/v1/nodes/{name}', 'patch'],
      ['/api/v1/nodes/{name}/status', 'patch'],
      ['/api/v1/namespaces/{namespace}/pods/{name}', 'patch'],
    ] as const) {
      const names = (at(paths, path, action, 'parameters') as { name: string }[]).map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(['fieldValidation', 'dryRun', 'fieldManager']));
    }
  });

  it('ties paths to kinds and actions', () => {
    const paths = at(documentOf('api/v1'), 'paths');
    expect(at(paths, '/api/v1/nodes/{name}', 'patch')).toMatchObject({
      'x-kubernetes-action': 'patch',
      'x-kubernetes-group-version-kind': { group: '', version: 'v1', kind: 'Node' },
    });
    expect(at(paths, '/api/v1/namespaces/{namespace}/pods/{name}/eviction', 'post')).toMatchObject({
      'x-kubernetes-action': 'post',
      'x-kubernetes-group-version-kind': { group: 'policy', version: 'v1', kind: 'Eviction' },
    });
    expect(at(paths, '/api/v1/pods', 'get', 'x-kubernetes-action')).toBe('list');
    expect(at(paths, '/api/v1/pods', 'post')).toBeUndefined();
    const review = at(documentOf('apis/authorization.k8s.io/v1'), 'paths');
    expect(Object.keys(review as JsonObject)).toEqual(['/apis/authorization.k8s.io/v1/selfsubjectaccessreviews']);
  });

  it('describes kinds and fields, merge keys included', () => {
    const schemas = at(documentOf('api/v1'), 'components', 'schemas');
    expect(at(schemas, 'io.k8s.api.core.v1.Node', 'x-kubernetes-group-version-kind')).toEqual([
      { group: '', version: 'v1', kind: 'Node' },
    ]);
    expect(at(schemas, 'io.k8s.api.core.v1.Taint')).toMatchObject({
      required: ['key', 'effect'],
      properties: { effect: { enum: ['NoExecute', 'NoSchedule', 'PreferNoSchedule'] } },
    });
    expect(at(schemas, 'io.k8s.api.core.v1.NodeStatus', 'properties', 'conditions')).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'type',
    });
  });

  it('says where a patch keeps only the members that it lists', () => {
    const deployments = { ...pods, group: 'apps', resource: 'deployments', kind: 'Deployment', subresources: [] };
    const api = createOpenApi({ resources: [deployments], serverVersion: 'v1.36.3', hash, describe: textOf });
    const schemas = at(JSON.parse(api.document('apis/apps/v1')?.body ?? 'null'), 'components', 'schemas');
    expect(at(schemas, 'io.k8s.api.apps.v1.DeploymentSpec', 'properties', 'strategy')).toMatchObject({
      'x-kubernetes-patch-strategy': 'retainKeys',
    });
  });

  it('refers to nothing that is not there', () => {
    for (const path of ['api/v1', 'apis/coordination.k8s.io/v1', 'apis/authorization.k8s.io/v1']) {
      const document = documentOf(path);
      const known = Object.keys(at(document, 'components', 'schemas') as JsonObject);
      const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
      expect(refs.length).toBeGreaterThan(0);
      expect(refs.map(([, name]) => name).filter((name) => !known.includes(name ?? ''))).toEqual([]);
    }
  });

  it('has a unique name for every operation', () => {
    const ids = [...(made().document('api/v1')?.body ?? '').matchAll(/"operationId":"([^"]+)"/g)].map(([, id]) => id);
    expect(ids.length).toBeGreaterThan(20);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('names the parameters of a PATCH per kind in the protobuf document of version 2', () => {
    const paths = inside(made().swaggerProtobuf(), 8);
    const items = paths.flatMap((path) => inside(path, 2));
    const pod = items.find((item) => textAt(item, 1) === '/api/v1/namespaces/{namespace}/pods/{name}');
    const [patch] = inside(pod ?? Buffer.alloc(0), 2, 8);
    const operation = patch ?? Buffer.alloc(0);
    expect(inside(operation, 8, 1, 2, 3).map((parameter) => textAt(parameter, 4))).toEqual([
      'dryRun',
      'fieldManager',
      'fieldValidation',
      'force',
    ]);
    const [extension] = inside(operation, 13);
    expect(textAt(extension ?? Buffer.alloc(0), 1)).toBe('x-kubernetes-group-version-kind');
    expect(textAt(inside(extension ?? Buffer.alloc(0), 2)[0] ?? Buffer.alloc(0), 2)).toBe(
      'group: ""\nkind: Pod\nversion: v1\n',
    );
  });
});

it('has what kubectl reads of a schema in the protobuf document of version 2', () => {
  const schema = {
    description: 'A widget.',
    type: 'object',
    required: ['spec'],
    properties: { spec: { $ref: '#/definitions/Spec' }, parts: { type: 'array', items: { type: 'string' } } },
    additionalProperties: { default: 1 },
    'x-kubernetes-group-version-kind': [{ group: 'g', version: 'v1', kind: 'Widget' }],
  };
  const [widget = Buffer.alloc(0)] = inside(swaggerProtobuf([], { Widget: schema }, 'v1'), 9, 1);
  expect(textAt(widget, 1)).toBe('Widget');
  const textsAt = (...path: readonly number[]) => inside(widget, 2, ...path).map(String);
  expect(textsAt(4)).toEqual(['A widget.']);
  expect(textsAt(22, 1)).toEqual(['object']);
  expect(textsAt(19)).toEqual(['spec']);
  expect(textsAt(25, 1, 1)).toEqual(['spec', 'parts']);
  expect(textsAt(25, 1, 2, 1)).toEqual(['#/definitions/Spec']);
  expect(textsAt(25, 1, 2, 23, 1, 22, 1)).toEqual(['string']);
  expect(textsAt(21, 1, 5, 2)).toEqual(['1']);
  expect(textsAt(31, 2, 2)).toEqual(['[{"group":"g","version":"v1","kind":"Widget"}]']);
});

/** Contents of the fields with this path of numbers. Every field of the document has a length. */
function inside(message: Uint8Array, ...path: readonly number[]): readonly Buffer[] {
  const [wanted, ...rest] = path;
  const found: Buffer[] = [];
  for (let at = 0; at < message.length; ) {
    let [tag, length] = [0, 0];
    [tag, at] = varintAt(message, at);
    [length, at] = varintAt(message, at);
    if (tag >> 3 === wanted) found.push(Buffer.from(message.subarray(at, at + length)));
    at += length;
  }
  return rest.length === 0 ? found : found.flatMap((each) => inside(each, ...rest));
}

const textAt = (message: Uint8Array, field: number): string => inside(message, field)[0]?.toString('utf8') ?? '';

function varintAt(message: Uint8Array, from: number): [number, number] {
  let value = 0;
  for (let at = from; at < message.length; at += 1) {
    const byte = message[at] ?? 0;
    value += (byte & 0x7f) * 2 ** (7 * (at - from));
    if (byte < 0x80) return [value, at + 1];
  }
  throw new RangeError('a number without an end');
}

describe('the v2 document', () => {
  const swagger = JSON.parse(made().swagger().body) as JsonObject;

  it('has the paths of all groups, with bodies as parameters', () => {
    expect(at(swagger, 'swagger')).toBe('2.0');
    const post = at(swagger, 'paths', '/api/v1/namespaces/{namespace}/pods', 'post');
    expect(at(post, 'parameters', '0')).toEqual({
      name: 'body',
      in: 'body',
      required: true,
      schema: { $ref: '#/definitions/io.k8s.api.core.v1.Pod' },
    });
    expect(at(post, 'consumes')).toEqual(['application/json']);
    expect(at(post, 'responses', '201', 'schema')).toEqual({ $ref: '#/definitions/io.k8s.api.core.v1.Pod' });
    expect(at(swagger, 'paths', '/apis/coordination.k8s.io/v1/leases', 'get', 'x-kubernetes-action')).toBe('list');
    const dryRun = (at(post, 'parameters') as JsonObject[]).find((each) => each['name'] === 'dryRun');
    expect(dryRun).toMatchObject({ in: 'query', type: 'string', uniqueItems: true });
  });

  it('defines every kind with its group, version and kind, and refers to definitions only', () => {
    const pod = at(swagger, 'definitions', 'io.k8s.api.core.v1.Pod');
    expect(at(pod, 'x-kubernetes-group-version-kind')).toEqual([{ group: '', version: 'v1', kind: 'Pod' }]);
    expect(at(pod, 'properties', 'spec')).toMatchObject({ $ref: '#/definitions/io.k8s.api.core.v1.PodSpec' });
    expect(at(swagger, 'definitions', 'io.k8s.apimachinery.pkg.api.resource.Quantity', 'type')).toBe('string');
    const text = made().swagger().body;
    expect(text).not.toMatch(/components|allOf|oneOf/);
    const names = new Set(Object.keys(swagger['definitions'] as JsonObject));
    for (const [, name = ''] of text.matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g)) expect(names).toContain(name);
  });
});

describe('schemas of custom kinds in v2', () => {
  const OPEN = { 'x-kubernetes-preserve-unknown-fields': true };
  const inV2 = (schema: JsonObject) => definitionsOf([{ paths: {}, components: { schemas: { A: schema } } }])['A'];
  const property = (schema: JsonObject) => at(inV2({ type: 'object', properties: { a: schema } }), 'properties', 'a');

  it('an object with unknown fields has no properties, and no type below the root', () => {
    const gvk = [{ group: 'g', version: 'v1', kind: 'A' }];
    const open = { ...OPEN, type: 'object', properties: { b: { type: 'string' } } };
    expect(inV2({ ...open, 'x-kubernetes-group-version-kind': gvk })).toEqual({
      type: 'object',
      'x-kubernetes-group-version-kind': gvk,
    });
    expect(property(open)).toEqual(OPEN);
    expect(property({ ...OPEN, type: 'array', items: open })).toEqual(OPEN);
  });

  it('a value that may be null has no type, and is not required', () => {
    const properties = { b: { type: 'string', nullable: true }, c: { type: 'string' } };
    expect(property({ type: 'object', properties, required: ['b', 'c'] })).toEqual({
      type: 'object',
      properties: { b: {}, c: { type: 'string' } },
      required: ['c'],
    });
    expect(property({ type: 'object', properties, required: ['b'], nullable: true })).toEqual({});
  });

  it('a property may have the name of a keyword', () => {
    const properties = { not: { type: 'string' }, nullable: { type: 'boolean' }, required: { type: 'string' } };
    expect(property({ type: 'object', properties })).toEqual({ type: 'object', properties });
  });
});
