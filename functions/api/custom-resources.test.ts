/** Definitions and their objects, through the API. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { JsonSchema } from '../../shared/kinds/custom-resources/schema-node.ts';
import {
  APPLY,
  type ApiAnswer,
  type ApiInMemory,
  apiInMemory,
  eventsOf,
  JSON_PATCH,
  MERGE,
  STRATEGIC,
  TABLE,
} from '../../test/support/api-in-memory.ts';
import {
  DEFINITIONS,
  longSchema,
  WIDGET_SCHEMA,
  widget,
  widgetDefinition,
  widgetsIn,
  widgetVersion,
} from '../../test/support/custom-definition.ts';
import { PROTOBUF, protobufBody } from '../../test/support/protobuf-body.ts';

let api: ApiInMemory;
const WIDGETS = widgetsIn('default');
const define = (definition = widgetDefinition()): Promise<ApiAnswer> =>
  api.send('POST', DEFINITIONS, { body: definition });
const withRules = (rules: object[]) => {
  const openAPIV3Schema = { ...WIDGET_SCHEMA, 'x-kubernetes-validations': rules as never };
  return widgetDefinition([widgetVersion('v1', { schema: { openAPIV3Schema } })]);
};
const make = (name: string, spec?: object): Promise<ApiAnswer> =>
  api.send('POST', WIDGETS, { body: widget(name, spec) });
const causesOf = ({ body }: ApiAnswer): readonly string[] =>
  (body.details?.causes ?? []).map(({ field, message }: { field: string; message: string }) => `${field}: ${message}`);

beforeEach(() => {
  api = apiInMemory();
});

describe('a definition', () => {
  it('is served at once: with defaults, accepted names, conditions and its storage version', async () => {
    const { code, body, headers } = await define();
    expect(code).toBe(201);
    expect(headers['warning']).toBeUndefined();
    expect(body.spec).toMatchObject({
      conversion: { strategy: 'None' },
      names: { singular: 'widget', listKind: 'WidgetList' },
    });
    expect(body.status).toMatchObject({
      acceptedNames: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'] },
      storedVersions: ['v1'],
      conditions: [
        { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts' },
        { type: 'Established', status: 'True' },
      ],
    });
    expect((await api.send('GET', `${DEFINITIONS}/widgets.example.com`)).body.spec).toEqual(body.spec);
    expect((await make('a')).code).toBe(201);
    expect(api.faults).toEqual([]);
  });

  it('is read in protobuf too, as Go clients send it: without empty members', async () => {
    const kept = { type: 'string', minLength: 0, enum: ['a', 'b'], default: 'a' };
    const item = { ...kept, nullable: false, description: '' };
    const schemaWith = (each: object) => ({
      type: 'object',
      properties: {
        list: { type: 'array', items: each },
        map: { type: 'object', additionalProperties: { type: 'number', minimum: 0.5 } },
        open: { type: 'object', additionalProperties: true },
        closed: { type: 'object', additionalProperties: false },
        texts: { type: 'object', additionalProperties: each },
      },
    });
    const openAPIV3Schema = schemaWith(item) as JsonSchema;
    const definition = widgetDefinition([{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }]);
    const body = protobufBody({ ...definition });
    const answer = await api.send('POST', DEFINITIONS, { body, contentType: PROTOBUF });
    expect(answer.body.spec.versions[0].schema.openAPIV3Schema).toEqual(schemaWith(kept));
  });

  it('has no namespace, although the body names one, as any object that is cluster-scoped', async () => {
    const definition = widgetDefinition();
    const { code, body } = await define({ ...definition, metadata: { ...definition.metadata, namespace: 'default' } });
    expect([code, body.metadata.namespace]).toEqual([201, undefined]);
  });

  it('in a group of the community says who approved it', async () => {
    const definition = widgetDefinition();
    const approved = { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/kubernetes/pull/1' };
    const { body } = await define({
      ...definition,
      metadata: { name: 'widgets.sigs.k8s.io', annotations: approved },
      spec: { ...definition.spec!, group: 'sigs.k8s.io' },
    });
    const type = 'KubernetesAPIApprovalPolicyConformant';
    expect(body.status.conditions).toContainEqual(
      expect.objectContaining({ type, status: 'True', reason: 'ApprovedAnnotation' }),
    );
  });

  it('that wants a name of another of its group is not served, and says which', async () => {
    await define();
    const other = await define(widgetDefinition(undefined, { plural: 'gadgets', kind: 'Widget', shortNames: ['wd'] }));
    expect(other.body.status.conditions).toMatchObject([
      { type: 'NamesAccepted', status: 'False', reason: 'ListKindConflict', message: '"WidgetList" is already in use' },
      { type: 'Established', status: 'False', reason: 'NotAccepted' },
    ]);
    expect((await api.send('GET', '/apis/example.com/v1/namespaces/default/gadgets')).code).toBe(404);
  });

  it('of two at once with one kind only one is served', async () => {
    const names = ['alphas', 'betas', 'gammas'];
    const answers = await Promise.all(
      names.map((plural) =>
        define(
          widgetDefinition(undefined, { plural, shortNames: [plural.slice(0, 2)], singular: plural.slice(0, -1) }),
        ),
      ),
    );
    expect(answers.map(({ code }) => code)).toEqual([201, 201, 201]);
    const served = answers.filter(({ body }) => body.status.conditions[1].status === 'True');
    expect(served).toHaveLength(1);
  });

  it.each([
    [
      'name',
      { metadata: { name: 'x.example.com' } },
      'metadata.name: Invalid value: "x.example.com": must be spec.names.plural+"."+spec.group',
    ],
    [
      'scope',
      { spec: { ...widgetDefinition().spec, scope: 'All' } },
      'spec.scope: Unsupported value: "All": supported values: "Cluster", "Namespaced"',
    ],
    [
      'storage versions',
      { spec: { ...widgetDefinition().spec, versions: [widgetVersion('v1'), widgetVersion('v2')] } },
      'spec.versions: Invalid value: ["v1","v2"]: must have exactly one version marked as storage version',
    ],
    [
      'webhook',
      { spec: { ...widgetDefinition().spec, conversion: { strategy: 'Webhook', webhook: {} } } },
      'spec.conversion.strategy: Forbidden: no program outside is called for a conversion: convert objects with a client of your own, and serve versions with strategy None',
    ],
  ])('with a wrong %s is refused', async (_what, change, cause) => {
    const answer = await api.send('POST', DEFINITIONS, { body: { ...widgetDefinition(), ...change } });
    expect(answer.code).toBe(422);
    expect(causesOf(answer)).toContain(cause);
  });

  it('with rules in CEL is stored; one with a rule that does not compile is refused', async () => {
    const { code, headers, body } = await define(withRules([{ rule: 'self.spec.size > 1' }]));
    expect(code).toBe(201);
    expect(headers['warning']).toBeUndefined();
    expect(body.spec.versions[0].schema.openAPIV3Schema['x-kubernetes-validations']).toEqual([
      { rule: 'self.spec.size > 1' },
    ]);
    const wrong = await api.send('PUT', `${DEFINITIONS}/widgets.example.com`, {
      body: { ...body, spec: withRules([{ rule: 'self.spec.weight > 1' }]).spec },
    });
    expect(wrong.code).toBe(422);
    expect(causesOf(wrong)[0]).toMatch(
      /^spec\.validation\.openAPIV3Schema\.x-kubernetes-validations\[0\]\.rule: Invalid value: .*compilation failed: ERROR: <input>:1:10: undefined field 'weight'/,
    );
  });

  const keyword: JsonSchema = {
    type: 'string',
    maxLength: 5_000,
    'x-kubernetes-validations': [{ rule: "self.contains('keyword')" }],
  };
  const pairs = (key: JsonSchema, bounds: readonly (number | undefined)[]): JsonSchema => ({
    type: 'array',
    ...(bounds[0] && { maxItems: bounds[0] }),
    items: {
      type: 'object',
      ...(bounds[1] && { maxProperties: bounds[1] }),
      additionalProperties: { type: 'object', required: ['key'], properties: { key } },
    },
    'x-kubernetes-validations': [{ rule: 'self.all(x, x.all(y, x[y].key == x[y].key))' }],
  });
  const tooDear = (what: string, factor: string): string =>
    `Forbidden: ${what} exceeds budget by factor of ${factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
  const TOTAL = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
  const CONTRIBUTED =
    'Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
  const ofValue = (...texts: string[]): string[] =>
    texts.map((text) => `$.properties[value].x-kubernetes-validations[0].${text}`);
  const notTooDear: [JsonSchema, string[]][] = [
    [pairs({ type: 'string', maxLength: 10 }, [10, 10]), []],
    [pairs({ type: 'number' }, [4]), []],
    [{ type: 'integer', 'x-kubernetes-validations': [{ rule: 'self < 1024' }] }, []],
  ];
  /** The cases of upstream's TestValidateCustomResourceDefinitionValidation about costs, and those of messages. */
  it.each<[string, JsonSchema, readonly string[]]>([
    ...notTooDear.map(([schema, causes], i): [string, JsonSchema, string[]] => [`few values, ${i}`, schema, causes]),
    ...[pairs({ type: 'string' }, []), pairs({ type: 'string', maxLength: 10 }, [])].map(
      (schema, i): [string, JsonSchema, string[]] => [
        `two loops without a bound, ${i}`,
        schema,
        [
          ...ofValue(`rule: ${tooDear('estimated rule cost', 'more than 100x')}`, `rule: ${CONTRIBUTED}`),
          `$: ${tooDear(TOTAL, 'more than 100x')}`,
        ],
      ],
    ),
    [
      'a total that is too high',
      {
        type: 'object',
        properties: {
          list: { type: 'array', maxItems: 100_000, items: keyword },
          map: { type: 'object', maxProperties: 1_000, additionalProperties: keyword },
          field: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 50 && self < 100' }] },
        },
      },
      [
        `$.properties[value].properties[list].items.x-kubernetes-validations[0].rule: ${tooDear('estimated rule cost', '20.0x')}`,
        `$.properties[value].properties[list].items.x-kubernetes-validations[0].rule: ${CONTRIBUTED}`,
        `$.properties[value].properties[map].additionalProperties.x-kubernetes-validations[0].rule: ${CONTRIBUTED}`,
        `$: ${tooDear(TOTAL, '2.0x')}`,
      ],
    ],
    [
      'a rule of the items of lists without a bound',
      {
        type: 'array',
        items: {
          type: 'array',
          maxItems: 10,
          items: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self + self + self + self > 1' }] },
        },
      },
      [
        `$.properties[value].items.items.x-kubernetes-validations[0].rule: ${tooDear('estimated rule cost', '1.258291x')}`,
      ],
    ],
    [
      'a rule of the items of lists with bounds',
      {
        type: 'array',
        maxItems: 2_000,
        items: {
          type: 'array',
          maxItems: 1_000,
          items: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self + self + self + self > 1' }] },
        },
      },
      [`$.properties[value].items.items.x-kubernetes-validations[0].rule: ${tooDear('estimated rule cost', '1.6x')}`],
    ],
    [
      'a message that is too dear, which is made once',
      {
        type: 'array',
        maxItems: 1_000,
        items: {
          ...keyword,
          'x-kubernetes-validations': [
            { rule: 'true', messageExpression: "self.matches('^a+[^0123456789]b?c*$') ? 'a' : 'b'" },
          ],
        },
      },
      [],
    ],
    [
      'a message that is too dear',
      {
        type: 'string',
        'x-kubernetes-validations': [
          { rule: 'true', messageExpression: `self.matches('${'abcdefgh'.repeat(25)}') ? 'a' : 'b'` },
        ],
      },
      ofValue(`messageExpression: ${tooDear('estimated messageExpression cost', '1.6x')}`),
    ],
  ])('is answered by the estimated cost of its rules: %s', async (_what, value, causes) => {
    const openAPIV3Schema: JsonSchema = { type: 'object', properties: { value } };
    const version = widgetVersion('v1', { schema: { openAPIV3Schema }, subresources: {}, selectableFields: [] });
    const answer = await define(widgetDefinition([version]));
    const texts = causesOf(answer).map((text) => text.replace('spec.validation.openAPIV3Schema', '$'));
    expect({ code: answer.code, texts }).toEqual({ code: causes.length === 0 ? 201 : 422, texts: causes });
  });

  it('of 1.4 million characters is stored in parts, listed, watched, and replaced', async () => {
    const large = widgetDefinition([
      widgetVersion('v1', { schema: { openAPIV3Schema: longSchema(1_400_000) }, selectableFields: [] }),
    ]);
    const before = (await api.send('GET', DEFINITIONS)).body.metadata.resourceVersion;
    const created = await define(large);
    expect(created.code).toBe(201);
    const read = await api.send('GET', `${DEFINITIONS}/widgets.example.com`);
    expect(read.body.spec).toEqual(created.body.spec);
    expect((await api.send('GET', DEFINITIONS)).body.items).toHaveLength(1);
    const watched = eventsOf(
      await api.send('GET', `${DEFINITIONS}?watch=1&resourceVersion=${before}&timeoutSeconds=1`),
    );
    expect(watched.map(({ object }) => object.spec)).toEqual([created.body.spec]);
    const relabelled = await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
      contentType: MERGE,
      body: { metadata: { labels: { a: 'b' } } },
    });
    expect(relabelled.body.spec).toEqual(created.body.spec);
    const replaced = await api.send('PUT', `${DEFINITIONS}/widgets.example.com`, {
      body: { ...widgetDefinition(), metadata: relabelled.body.metadata },
    });
    expect(replaced.code).toBe(200);
    expect((await api.send('GET', `${DEFINITIONS}/widgets.example.com`)).body.spec).toEqual(replaced.body.spec);
    expect(api.faults).toEqual([]);
  });

  it('of more than 1.5 million characters is refused', async () => {
    const answer = await define(
      widgetDefinition([
        widgetVersion('v1', { schema: { openAPIV3Schema: longSchema(1_900_000) }, selectableFields: [] }),
      ]),
    );
    expect([answer.code, answer.body.reason]).toEqual([413, 'RequestEntityTooLarge']);
  });

  it('keeps a former storage version among those that objects may be stored in', async () => {
    await define();
    const next = await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
      contentType: MERGE,
      body: { spec: { versions: [widgetVersion('v1', { storage: false }), widgetVersion('v2')] } },
    });
    expect(next.body.status.storedVersions).toEqual(['v1', 'v2']);
    const without = await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
      contentType: MERGE,
      body: { spec: { versions: [widgetVersion('v2')] } },
    });
    expect(causesOf(without)[0]).toContain('status.storedVersions[0]: Invalid value: "v1": missing from spec.versions');
  });

  it('that is deleted accepts no object, and is held until its objects are deleted', async () => {
    await define();
    await make('a');
    const deleted = await api.send('DELETE', `${DEFINITIONS}/widgets.example.com`);
    expect(deleted.body.metadata.finalizers).toEqual(['customresourcecleanup.apiextensions.k8s.io']);
    expect(deleted.body.status.conditions.at(-1)).toMatchObject({
      type: 'Terminating',
      status: 'True',
      reason: 'InstanceDeletionPending',
    });
    const message =
      'widgets.example.com "b" is forbidden: create not allowed while custom resource definition is terminating';
    expect(await make('b')).toMatchObject({ code: 403, body: { reason: 'Forbidden', message } });
    expect(await api.send('POST', `${WIDGETS}?dryRun=All`, { body: widget('b') })).toMatchObject({ code: 403 });
    expect((await api.send('GET', `${WIDGETS}/a`)).code).toBe(200);
  });
});

describe('a custom resource', () => {
  beforeEach(async () => {
    await define();
  });

  it('is pruned, gets defaults, and reports unknown fields as asked', async () => {
    const spec = {
      size: 2,
      nope: 1,
      free: { any: { thing: [1] } },
      code: null,
      port: null,
      parts: [{ name: 'x', y: 1 }],
    };
    const warned = await make('a', spec);
    expect(warned.code).toBe(201);
    expect(warned.headers['warning']).toBe(
      '299 - "unknown field \\"spec.nope\\"", 299 - "unknown field \\"spec.parts[0].y\\""',
    );
    expect(warned.body.spec).toEqual({
      size: 2,
      free: { any: { thing: [1] } },
      code: null,
      parts: [{ name: 'x', count: 1 }],
      colour: 'red',
    });
    expect(warned.body.metadata.generation).toBe(1);
    const strict = await api.send('POST', `${WIDGETS}?fieldValidation=Strict`, { body: widget('b', spec) });
    expect(strict).toMatchObject({
      code: 400,
      body: { message: 'strict decoding error: unknown field "spec.nope", unknown field "spec.parts[0].y"' },
    });
    expect(
      (await api.send('POST', `${WIDGETS}?fieldValidation=Ignore`, { body: widget('b', spec) })).headers['warning'],
    ).toBeUndefined();
  });

  it('is refused with the messages of upstream', async () => {
    const answer = await make('a', {
      size: 'x',
      colour: 'green',
      code: 'TOOLONG',
      parts: [{ name: 'p' }, { name: 'p' }],
    });
    expect(answer.code).toBe(422);
    expect(answer.body.message).toMatch(/^Widget.example.com "a" is invalid: \[spec/);
    expect(causesOf(answer)).toEqual([
      'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
      'spec.colour: Unsupported value: "green": supported values: "red", "blue"',
      'spec.code: Invalid value: "TOOLONG": spec.code in body should match \'^[a-z]{1,5}$\'',
      'spec.parts[1]: Duplicate value: {"name":"p"}',
    ]);
    expect(causesOf(await make('Bad_Name'))[0]).toContain('metadata.name: Invalid value: "Bad_Name"');
    expect(causesOf(await api.send('POST', WIDGETS, { body: { ...widget('a'), spec: undefined } }))).toEqual([
      'spec: Required value',
    ]);
    const other = await api.send('POST', WIDGETS, { body: { ...widget('other'), kind: 'Gadget' } });
    expect([other.code, other.body.message]).toEqual([
      422,
      'Gadget.example.com "other" is invalid: kind: Invalid value: "Gadget": must be Widget',
    ]);
    await make('b');
    expect((await api.send('PATCH', `${WIDGETS}/b/scale`, { contentType: STRATEGIC, body: {} })).code).toBe(415);
  });

  it('keeps a value that a newer schema refuses, and changes of it are refused', async () => {
    await make('a', { size: 50 });
    const versions = [
      widgetVersion('v1', {
        schema: {
          openAPIV3Schema: {
            ...WIDGET_SCHEMA,
            properties: {
              ...WIDGET_SCHEMA.properties,
              spec: {
                ...WIDGET_SCHEMA.properties?.['spec'],
                properties: {
                  ...WIDGET_SCHEMA.properties?.['spec']?.properties,
                  size: { type: 'integer', maximum: 10 },
                },
              },
            },
          },
        },
      }),
    ];
    expect(
      (
        await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
          contentType: MERGE,
          body: { spec: { versions } },
        })
      ).code,
    ).toBe(200);
    expect(
      (await api.send('PATCH', `${WIDGETS}/a`, { contentType: MERGE, body: { spec: { colour: 'blue' } } })).code,
    ).toBe(200);
    expect(
      causesOf(await api.send('PATCH', `${WIDGETS}/a`, { contentType: MERGE, body: { spec: { size: 51 } } })),
    ).toEqual(['spec.size: Invalid value: 51: spec.size in body should be less than or equal to 10']);
  });

  it('separates spec and status, and counts changes of the spec', async () => {
    await make('a');
    const path = `${WIDGETS}/a`;
    const status = await api.send('PATCH', `${path}/status`, {
      contentType: MERGE,
      body: { spec: { size: 9 }, status: { replicas: 3 }, metadata: { labels: { a: 'b' } } },
    });
    expect(status.body).toMatchObject({ spec: { size: 1 }, status: { replicas: 3 }, metadata: { generation: 1 } });
    expect(status.body.metadata.labels).toBeUndefined();
    const spec = await api.send('PATCH', path, {
      contentType: MERGE,
      body: { spec: { size: 9 }, status: { replicas: 4 } },
    });
    expect(spec.body).toMatchObject({ spec: { size: 9 }, status: { replicas: 3 }, metadata: { generation: 2 } });
    const wrong = await api.send('PATCH', `${path}/status`, { contentType: MERGE, body: { status: { replicas: -1 } } });
    expect(causesOf(wrong)).toEqual([
      'status.replicas: Invalid value: -1: replicas in body should be greater than or equal to 0',
      '.status.replicas: Invalid value: -1: should be a non-negative integer',
    ]);
  });

  it('has at most as many replicas as an int32 holds', async () => {
    expect(causesOf(await make('a', { size: 1, replicas: 2_147_483_648 }))).toEqual([
      '.spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647',
    ]);
  });

  it('is not found without its namespace in the path; lists and watches are of all namespaces', async () => {
    await make('a', { size: 1 });
    const path = '/apis/example.com/v1/widgets';
    const created = await api.send('POST', path, { body: widget('b') });
    const others = await Promise.all(
      [`${path}/a`, `${path}/a/status`, `${path}/a/scale`].map((each) => api.send('GET', each)),
    );
    expect([created, ...others, await api.send('DELETE', path)].map(({ code }) => code)).toEqual([
      404, 404, 404, 404, 404,
    ]);
    expect((await api.send('GET', path)).body.items).toHaveLength(1);
  });

  it('is refused if an apply sets a field to a null that its schema does not permit; a PUT leaves it out', async () => {
    await make('a', { size: 1, parts: [] });
    const body = {
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name: 'a' },
      spec: { size: 1, parts: null },
    };
    const applied = await api.send('PATCH', `${WIDGETS}/a?fieldManager=me&force=true`, { contentType: APPLY, body });
    expect(causesOf(applied)).toEqual([
      'spec.parts: Invalid value: "null": spec.parts in body must be of type array: "null"',
    ]);
    const { resourceVersion } = (await api.send('GET', `${WIDGETS}/a`)).body.metadata;
    const put = await api.send('PUT', `${WIDGETS}/a`, { body: { ...body, metadata: { name: 'a', resourceVersion } } });
    expect([put.code, put.body.spec]).toEqual([200, { size: 1, colour: 'red' }]);
  });

  it('without a schema has owners of its members too: one remains when its fields are taken over', async () => {
    const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
    const scale = { specReplicasPath: '.spec.replicas[0]', statusReplicasPath: '.status.replicas' };
    const names = { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', shortNames: ['gd'] };
    const version = widgetVersion('v1', { schema: { openAPIV3Schema }, subresources: { scale }, selectableFields: [] });
    await define(widgetDefinition([version], names));
    const path = '/apis/example.com/v1/namespaces/default/gadgets/a';
    const spec = { 'replicas[0]': 1 };
    const body = { apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name: 'a' }, spec };
    await api.send('PATCH', `${path}?fieldManager=applier`, { contentType: APPLY, body });
    const scaled = { contentType: MERGE, body: { spec: { replicas: 5 } } };
    expect((await api.send('PATCH', `${path}/scale?fieldManager=scaler`, scaled)).body.spec).toEqual({ replicas: 5 });
    const { managedFields } = (await api.send('GET', path)).body.metadata;
    expect(managedFields).toMatchObject([
      { manager: 'applier', fieldsV1: { 'f:spec': {} } },
      { manager: 'scaler', subresource: 'scale', fieldsV1: { 'f:spec': { 'f:replicas[0]': {} } } },
    ]);
  });

  it('scales by the paths of its definition', async () => {
    await make('a', { size: 1, replicas: 2 });
    await api.send('PATCH', `${WIDGETS}/a/status`, {
      contentType: MERGE,
      body: { status: { replicas: 1, selector: 'a=b' } },
    });
    expect((await api.send('GET', `${WIDGETS}/a/scale`)).body).toMatchObject({
      kind: 'Scale',
      spec: { replicas: 2 },
      status: { replicas: 1, selector: 'a=b' },
    });
    expect(
      (await api.send('PATCH', `${WIDGETS}/a/scale`, { contentType: MERGE, body: { spec: { replicas: 5 } } })).body
        .spec,
    ).toEqual({ replicas: 5 });
    expect((await api.send('GET', `${WIDGETS}/a`)).body.spec.replicas).toBe(5);
  });

  it('is patched by JSON and merge patch, applied by keys, and not patched strategically', async () => {
    await make('a', { size: 1, parts: [{ name: 'x' }] });
    const path = `${WIDGETS}/a`;
    expect(
      (
        await api.send('PATCH', path, {
          contentType: JSON_PATCH,
          body: [{ op: 'replace', path: '/spec/size', value: 7 }],
        })
      ).body.spec.size,
    ).toBe(7);
    expect((await api.send('PATCH', path, { contentType: STRATEGIC, body: {} })).code).toBe(415);
    const apply = (manager: string, spec: object) =>
      api.send('PATCH', `${path}?fieldManager=${manager}`, { contentType: APPLY, body: { ...widget('a', spec) } });
    expect(
      (await apply('one', { parts: [{ name: 'y', count: 2 }], free: { deep: { a: 1 } } })).body.spec.parts,
    ).toEqual([
      { name: 'x', count: 1 },
      { name: 'y', count: 2 },
    ]);
    expect((await apply('two', { free: { deep: { b: 1 } } })).body.spec.free).toEqual({ deep: { a: 1, b: 1 } });
    expect(await apply('two', { parts: [{ name: 'y', count: 3 }] })).toMatchObject({
      code: 409,
      body: { message: 'Apply failed with 1 conflict: conflict with "one": .spec.parts[name="y"].count' },
    });
    expect((await apply('one', {})).body.spec).toMatchObject({ parts: [{ name: 'x', count: 1 }] });
    expect(
      (await api.send('PATCH', `${WIDGETS}/new?fieldManager=one`, { contentType: APPLY, body: widget('new') })).code,
    ).toBe(201);
  });

  it('is listed as a table, by labels and by its fields, and watched by them', async () => {
    await make('a', { size: 1, colour: 'blue' });
    await make('b', { size: 2 });
    const table = (await api.send('GET', WIDGETS, { accept: TABLE })).body;
    expect(table.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual(['Name', 'Size']);
    expect(table.rows.map(({ cells }: { cells: unknown[] }) => cells)).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    const blue = await api.send('GET', `${WIDGETS}?fieldSelector=spec.colour%3Dblue`);
    const [kind, apiVersion] = ['Widget', 'example.com/v1'];
    expect(blue.body).toMatchObject({ kind: 'WidgetList', items: [{ kind, apiVersion, metadata: { name: 'a' } }] });
    expect((await api.send('GET', `${WIDGETS}?fieldSelector=spec.size%3D1`)).code).toBe(400);
    const { resourceVersion } = blue.body.metadata;
    await api.send('PATCH', `${WIDGETS}/a`, { contentType: MERGE, body: { spec: { colour: 'red' } } });
    await api.send('PATCH', `${WIDGETS}/b`, { contentType: MERGE, body: { spec: { colour: 'blue' } } });
    const events = eventsOf(
      await api.send('GET', `${WIDGETS}?watch=1&resourceVersion=${resourceVersion}&fieldSelector=spec.colour%3Dblue`),
    );
    expect(events.map(({ type, object }) => [type, object.metadata.name, object.kind])).toEqual([
      ['DELETED', 'a', 'Widget'],
      ['ADDED', 'b', 'Widget'],
    ]);
  });

  it('is served in every version, with the defaults of the stored version', async () => {
    await make('a', { size: 3, code: 'abc' });
    const shaped = (shape: string, others: Record<string, JsonSchema>): { openAPIV3Schema: JsonSchema } => {
      const properties = { size: { type: 'integer' }, shape: { type: 'string', default: shape }, ...others };
      return { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } };
    };
    const v1 = widgetVersion('v1', { schema: shaped('square', { code: { type: 'string' } }), selectableFields: [] });
    const v2 = widgetVersion('v2', {
      storage: false,
      deprecated: true,
      schema: shaped('round', {}),
      selectableFields: [],
    });
    await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
      contentType: MERGE,
      body: { spec: { versions: [v1, v2] } },
    });
    const read = await api.send('GET', `${widgetsIn('default', 'v2')}/a`);
    expect(read.body).toMatchObject({ apiVersion: 'example.com/v2' });
    expect(read.body.spec).toEqual({ size: 3, shape: 'square' });
    expect(read.headers['warning']).toBe('299 - "example.com/v2 Widget is deprecated"');
    await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
      contentType: MERGE,
      body: {
        spec: {
          versions: [
            { ...widgetVersion('v1'), deprecated: true },
            { ...v2, deprecated: false },
          ],
        },
      },
    });
    expect((await api.send('GET', `${WIDGETS}/a`)).headers['warning']).toBe(
      '299 - "example.com/v1 Widget is deprecated; use example.com/v2 Widget"',
    );
    expect((await api.send('GET', `${WIDGETS}/a`)).body).toMatchObject({
      apiVersion: 'example.com/v1',
      spec: { code: 'abc' },
    });
    const group = (await api.send('GET', '/apis/example.com')).body;
    expect(group.versions.map(({ version }: { version: string }) => version)).toEqual(['v2', 'v1']);
  });

  it('needs its resourceVersion in a PUT', async () => {
    const { body } = await make('a');
    expect(causesOf(await api.send('PUT', `${WIDGETS}/a`, { body: widget('a', { size: 5 }) }))).toEqual([
      'metadata.resourceVersion: Invalid value: 0x0: must be specified for an update',
    ]);
    expect((await api.send('PUT', `${WIDGETS}/a`, { body: { ...body, spec: { size: 5 } } })).body.spec).toEqual({
      size: 5,
      colour: 'red',
    });
    expect((await api.send('PUT', `${WIDGETS}/a`, { body: { ...body, spec: { size: 6 } } })).code).toBe(409);
  });

  it('is counted by quotas', async () => {
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q' },
      spec: { hard: { 'count/widgets.example.com': '1' } },
    };
    await api.send('POST', '/api/v1/namespaces/default/resourcequotas', { body: quota });
    await api.send('PATCH', '/api/v1/namespaces/default/resourcequotas/q/status', {
      contentType: MERGE,
      body: { status: { hard: { 'count/widgets.example.com': '1' }, used: { 'count/widgets.example.com': '0' } } },
    });
    expect((await make('a')).code).toBe(201);
    const second = await make('b');
    expect(second).toMatchObject({ code: 403 });
    expect(second.body.message).toContain('exceeded quota: q, requested: count/widgets.example.com=1');
  });

  it('is in discovery, in both forms, and in OpenAPI', async () => {
    const entry = {
      name: 'widgets',
      singularName: 'widget',
      namespaced: true,
      kind: 'Widget',
      shortNames: ['wd'],
      categories: ['all'],
      storageVersionHash: 'gIwvi5rymmg=',
    };
    expect((await api.send('GET', '/apis/example.com/v1')).body.resources).toMatchObject([
      entry,
      { name: 'widgets/status' },
      { name: 'widgets/scale', group: 'autoscaling' },
    ]);
    const aggregated = await api.send('GET', '/apis', {
      accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    });
    const group = aggregated.body.items.find(
      ({ metadata }: { metadata: { name: string } }) => metadata.name === 'example.com',
    );
    expect(group).toMatchObject({
      metadata: { name: 'example.com' },
      versions: [{ version: 'v1', resources: [{ resource: 'widgets' }] }],
    });
    const { body } = await api.send('GET', '/openapi/v3/apis/example.com/v1');
    const selectable = { 'x-kubernetes-selectable-fields': [{ fieldPath: 'spec.colour' }] };
    expect(body.components.schemas['com.example.v1.Widget']).toMatchObject({
      'x-kubernetes-group-version-kind': [{ group: 'example.com', version: 'v1', kind: 'Widget' }],
      ...selectable,
      properties: {
        spec: { properties: { size: { description: 'How large it is.', minimum: 1 } } },
        metadata: { allOf: [{}] },
      },
    });
    expect((await api.send('GET', '/openapi/v3')).body.paths['apis/example.com/v1']).toBeDefined();
    expect(
      (await api.send('GET', '/openapi/v2', { accept: 'application/json' })).body.definitions['com.example.v1.Widget'],
    ).toMatchObject(selectable);
    const accept = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
    const v2 = Buffer.from((await api.send('GET', '/openapi/v2', { accept })).bytes).toString('latin1');
    expect(v2).toContain('- fieldPath: spec.colour\n');
    const patch = body.paths['/apis/example.com/v1/namespaces/{namespace}/widgets/{name}'].patch;
    expect(Object.keys(patch.requestBody.content)).not.toContain('application/strategic-merge-patch+json');
  });

  it('is read and written by users with a role that names its group', async () => {
    const allowed = apiInMemory({ items: api.items, users: { reader: { name: 'ann', groups: [] } } });
    const as = { headers: { authorization: 'Bearer reader' } };
    expect((await allowed.send('GET', WIDGETS, as)).code).toBe(403);
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'widgets', labels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' } },
      rules: [{ apiGroups: ['example.com'], resources: ['widgets'], verbs: ['get', 'list'] }],
    };
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'ann' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', name: 'ann', apiGroup: 'rbac.authorization.k8s.io' }],
    };
    await api.send('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { body: role });
    await api.send('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', { body: binding });
    allowed.advance(10_000);
    expect((await allowed.send('GET', WIDGETS, as)).code).toBe(200);
    expect((await allowed.send('POST', WIDGETS, { ...as, body: widget('a') })).code).toBe(403);
  });

  it('is deleted with the others of a collection', async () => {
    await make('a');
    await make('b');
    expect((await api.send('DELETE', WIDGETS)).code).toBe(200);
    expect((await api.send('GET', WIDGETS)).body.items).toEqual([]);
  });
});

describe('rules in CEL', () => {
  const STATUS = `${WIDGETS}/a/status`;
  it('are evaluated on creation, update, patch, apply, scale and writes of the status', async () => {
    await define(
      withRules([
        { rule: '!has(self.spec.replicas) || self.spec.replicas <= self.spec.size', message: 'too many replicas' },
        { rule: '!has(self.status) || !has(self.status.phase) || self.spec.size > 1', message: 'too small' },
        { rule: 'self.spec.size >= oldSelf.spec.size', message: 'must not shrink', fieldPath: '.spec.size' },
      ]),
    );
    const refused = await make('b', { size: 1, replicas: 2 });
    expect(refused.body.message).toBe('Widget.example.com "b" is invalid: <nil>: Invalid value: too many replicas');
    expect((await make('a', { size: 2 })).code).toBe(201);
    const merge = (path: string, body: object) => api.send('PATCH', path, { contentType: MERGE, body });
    const tooMany = { spec: { replicas: 3 } };
    expect(causesOf(await merge(`${WIDGETS}/a`, tooMany))).toEqual(['<nil>: Invalid value: too many replicas']);
    expect(causesOf(await merge(`${WIDGETS}/a/scale`, tooMany))).toEqual(['<nil>: Invalid value: too many replicas']);
    const shrunk = { apiVersion: 'example.com/v1', kind: 'Widget', spec: { size: 1 } };
    const applied = await api.send('PATCH', `${WIDGETS}/a?fieldManager=m&force=true`, {
      contentType: APPLY,
      body: shrunk,
    });
    expect(causesOf(applied)).toEqual(['spec.size: Invalid value: must not shrink']);
    expect((await merge(STATUS, { status: { phase: 'Fine' } })).code).toBe(200);
    expect((await make('a2', { size: 1 })).code).toBe(201);
    const ofStatus = await merge(`${WIDGETS}/a2/status`, { status: { phase: 'Fine' } });
    expect(causesOf(ofStatus)).toEqual(['<nil>: Invalid value: too small']);
    expect(api.faults).toEqual([]);
  });

  it('that are replaced hold from the next write', async () => {
    const { body } = await define(withRules([{ rule: 'self.spec.size > 1' }]));
    expect((await make('a', { size: 1 })).code).toBe(422);
    const next = { ...body, spec: withRules([{ rule: 'self.spec.size < 2' }]).spec };
    expect((await api.send('PUT', `${DEFINITIONS}/widgets.example.com`, { body: next })).code).toBe(200);
    expect((await make('a', { size: 1 })).code).toBe(201);
    expect((await make('b', { size: 2 })).code).toBe(422);
  });
});

describe('two processes', () => {
  it('the second knows at once what the first has defined, changed and deleted', async () => {
    const other = apiInMemory({ items: api.items });
    const inOther = () => other.send('POST', WIDGETS, { body: { ...widget('x'), metadata: { generateName: 'x-' } } });
    expect((await inOther()).code).toBe(404);
    await define();
    expect((await inOther()).code).toBe(201);
    await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
      contentType: JSON_PATCH,
      body: [{ op: 'replace', path: '/spec/versions/0/served', value: false }],
    });
    expect((await inOther()).code).toBe(404);
    await api.send('PATCH', `${DEFINITIONS}/widgets.example.com`, {
      contentType: JSON_PATCH,
      body: [{ op: 'replace', path: '/spec/versions/0/served', value: true }],
    });
    expect((await inOther()).code).toBe(201);
    await api.send('DELETE', `${DEFINITIONS}/widgets.example.com`);
    expect((await inOther()).code).toBe(403);
  });
});
