/** Definitions that upstream refuses, each with its cause. */
import { describe, expect, it } from 'vitest';
import { widgetDefinition, widgetVersion } from '../../../test/support/custom-definition.ts';
import { compilePattern } from '../../patterns.ts';
import { ruleFaults } from '../custom-resources/rules.ts';
import type { JsonSchema } from '../custom-resources/schema-node.ts';
import { withCondition } from './definition.ts';
import { validateDefinition } from './validate.ts';

const NOW = '2026-01-01T00:00:00Z';
const stored = (definition = widgetDefinition()) => ({
  ...definition,
  metadata: { ...definition.metadata, uid: 'u', creationTimestamp: NOW },
  spec: { ...definition.spec!, names: { singular: 'widget', listKind: 'WidgetList', ...definition.spec!.names } },
  status: { storedVersions: ['v1'], ...definition.status },
});
const causesOf = (definition = stored(), old?: ReturnType<typeof stored>): readonly string[] =>
  validateDefinition(definition, old, { subresource: '', compilePattern }).map(
    ({ field, message }) => `${field}: ${message}`,
  );
const causesOfSchema = (schema: JsonSchema, more = {}): readonly string[] =>
  causesOf(
    stored(
      widgetDefinition([
        widgetVersion('v1', { schema: { openAPIV3Schema: schema }, selectableFields: [], subresources: {}, ...more }),
      ]),
    ),
  ).map((text) => text.replaceAll('spec.validation.openAPIV3Schema', '$'));
const inSpec = (spec: JsonSchema): JsonSchema => ({ type: 'object', properties: { spec } });

it('rules that a stored definition has may stay although one is too dear', () => {
  const withRule = (rule: string, description: string) =>
    stored(
      widgetDefinition([
        widgetVersion('v1', {
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description,
              properties: { a: { type: 'array', items: { type: 'string' }, 'x-kubernetes-validations': [{ rule }] } },
            },
          },
          subresources: {},
          selectableFields: [],
        }),
      ]),
    );
  const refusal = (definition: ReturnType<typeof stored>, old?: ReturnType<typeof stored>): readonly string[] =>
    validateDefinition(definition, old, { subresource: '', compilePattern, ruleFaults }).map(({ message }) =>
      message.replace(/ \(.*/, ''),
    );
  const dear = withRule('self.all(x, self.size() > 1 && self.size() > 2 && self.size() > 3)', 'a');
  const tooDear = ['Forbidden: estimated rule cost exceeds budget by factor of 1.258290x'];
  expect(refusal(dear)).toEqual(tooDear);
  expect(refusal(dear, dear)).toEqual([]);
  expect(refusal(withRule('self.all(x, self.size() > 1 && self.size() > 2 && self.size() > 3)', 'b'), dear)).toEqual(
    tooDear,
  );
  const all = withRule('self.all(x, self.all(y, true))', 'a');
  expect(refusal(all, all)).toEqual([
    'Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema',
    'Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x',
  ]);
});

it('what all versions share is reported once, for the definition', () => {
  const wrong = { schema: { openAPIV3Schema: { type: 'array' } }, selectableFields: [], subresources: {} };
  const of = (...more: object[]) =>
    causesOf(
      stored(widgetDefinition(more.map((each, at) => widgetVersion(`v${at + 1}`, { ...each, storage: at === 0 })))),
    );
  const places = (causes: readonly string[]) =>
    new Set(causes.map((cause) => cause.slice(0, cause.indexOf('.openAPI'))));
  expect(places(of(wrong, wrong))).toEqual(new Set(['spec.validation']));
  expect(places(of(wrong, {}))).toEqual(new Set(['spec.versions[0].schema']));
});

describe('a definition', () => {
  it('that is valid has no causes', () => {
    expect(causesOf()).toEqual([]);
    expect(causesOf(stored(), stored())).toEqual([]);
  });

  const spec = stored().spec;
  it.each<[string, object, string]>([
    [
      'a group without a dot',
      { group: 'example' },
      'spec.group: Invalid value: "example": should be a domain with at least one dot',
    ],
    ['no group', { group: '' }, 'spec.group: Required value'],
    ['no scope', { scope: '' }, 'spec.scope: Required value'],
    [
      'two versions of one name',
      { versions: [widgetVersion('v1'), widgetVersion('v1', { storage: false })] },
      'spec.versions: Invalid value: ["v1","v1"]: must contain unique version names',
    ],
    [
      'a kind that is its list',
      { names: { ...spec.names, listKind: 'Widget' } },
      'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
    ],
    [
      'preserved unknown fields',
      { preserveUnknownFields: true },
      'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
    ],
    [
      'no schema',
      { versions: [(({ schema: _schema, ...version }) => version)(widgetVersion('v1'))] },
      'spec.versions[0].schema.openAPIV3Schema: Required value',
    ],
    [
      'a column without a type',
      { versions: [widgetVersion('v1', { additionalPrinterColumns: [{ name: 'a', jsonPath: '.a' }] })] },
      'spec.additionalPrinterColumns[0].type: Required value: must be one of boolean,date,integer,number,string',
    ],
    [
      'a column with a path of another form',
      { versions: [widgetVersion('v1', { additionalPrinterColumns: [{ name: 'a', type: 'string', jsonPath: 'a' }] })] },
      'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .',
    ],
    [
      'a scale outside of spec',
      {
        versions: [
          widgetVersion('v1', { subresources: { scale: { specReplicasPath: '.x', statusReplicasPath: '.status.r' } } }),
        ],
      },
      'spec.subresources.scale.specReplicasPath: Invalid value: ".x": should be a json path under .spec',
    ],
    [
      'a selectable list',
      { versions: [widgetVersion('v1', { selectableFields: [{ jsonPath: '.spec.parts' }] })] },
      'spec.selectableFields[0].jsonPath: Invalid value: ".spec.parts": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
    ],
    [
      'a warning without deprecation',
      { versions: [widgetVersion('v1', { deprecationWarning: 'old' })] },
      'spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions',
    ],
  ])('with %s is refused', (_what, change, cause) => {
    expect(causesOf({ ...stored(), spec: { ...spec, ...change } } as never)).toContain(cause);
  });

  it('that is served keeps scope and kind', () => {
    const old = withCondition(stored(), { type: 'Established', status: 'True' }, NOW) as ReturnType<typeof stored>;
    const next = { ...stored(), spec: { ...spec, scope: 'Cluster', names: { ...spec.names, kind: 'Gadget' } } };
    expect(causesOf(next, old)).toEqual([
      'spec.scope: Invalid value: "Cluster": field is immutable',
      'spec.names.kind: Invalid value: "Gadget": field is immutable',
    ]);
  });

  it('of a protected group needs an approval', () => {
    const definition = stored({ ...widgetDefinition(), metadata: { name: 'widgets.x.k8s.io' } });
    expect(causesOf({ ...definition, spec: { ...spec, group: 'x.k8s.io' } })[0]).toContain(
      'metadata.annotations[api-approved.kubernetes.io]: Required value',
    );
  });
});

describe('a schema', () => {
  it.each<[string, JsonSchema, string]>([
    ['no type', { properties: {} }, '$.type: Required value: must not be empty at the root'],
    [
      'a root that is a list',
      { type: 'array', items: { type: 'string' } },
      '$.type: Invalid value: "array": must be object at the root',
    ],
    [
      'a member without a type',
      inSpec({}),
      '$.properties[spec].type: Required value: must not be empty for specified object fields',
    ],
    [
      'items without a type',
      inSpec({ type: 'array', items: {} }),
      '$.properties[spec].items.type: Required value: must not be empty for specified array items',
    ],
    ['a list without items', inSpec({ type: 'array' }), '$.properties[spec].items: Required value: must be specified'],
    [
      'an unknown type',
      inSpec({ type: 'text' }),
      '$.properties[spec].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
    ],
    [
      'unique items',
      inSpec({ type: 'array', items: { type: 'string' }, uniqueItems: true } as JsonSchema),
      '$.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
    ],
    [
      'properties and additionalProperties',
      inSpec({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } }),
      '$.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive',
    ],
    [
      'additionalProperties at the root',
      { type: 'object', additionalProperties: false },
      '$.additionalProperties: Forbidden: must not be used at the root',
    ],
    [
      'a $ref',
      inSpec({ type: 'object', $ref: '#/x' } as JsonSchema),
      '$.properties[spec].$ref: Forbidden: $ref is not supported',
    ],
    [
      'a type in anyOf',
      inSpec({ type: 'object', anyOf: [{ type: 'object' }] }),
      '$.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural',
    ],
    [
      'a property of anyOf alone',
      inSpec({ type: 'object', anyOf: [{ properties: { a: { minimum: 1 } } }] }),
      '$.properties[spec].properties[a]: Required value: because it is defined in $.properties[spec].anyOf[0].properties[a]',
    ],
    [
      'metadata with labels',
      { type: 'object', properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } } },
      '$.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ],
    [
      'a malformed pattern',
      inSpec({ type: 'string', pattern: '(' }),
      '$.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: ',
    ],
    [
      'a default that is no value of it',
      inSpec({ type: 'integer', default: 'x' }),
      '$.properties[spec].default: Invalid value: "string": $.properties[spec].default in body must be of type integer: "string"',
    ],
    [
      'a default with unknown fields',
      inSpec({ type: 'object', default: { a: 1 } }),
      '$.properties[spec].default: Invalid value: {"a":1}: must not have unknown fields',
    ],
    [
      'a default of metadata',
      {
        type: 'object',
        properties: { metadata: { type: 'object', properties: { name: { type: 'string', default: 'x' } } } },
      },
      '$.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata',
    ],
    [
      'a map list without keys',
      inSpec({ type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } }),
      '$.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map',
    ],
    [
      'an optional key',
      inSpec({
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['a'],
        items: { type: 'object', properties: { a: { type: 'string' } } },
      }),
      '$.properties[spec].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
    ],
    [
      'an embedded resource without members',
      inSpec({ type: 'object', 'x-kubernetes-embedded-resource': true }),
      '$.properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
    ],
    [
      'unknown fields that are not preserved',
      inSpec({ type: 'object', 'x-kubernetes-preserve-unknown-fields': false }),
      '$.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined',
    ],
    [
      'a rule without an expression',
      inSpec({ type: 'string', 'x-kubernetes-validations': [{ rule: ' ' }] }),
      '$.properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified',
    ],
    [
      'a nullable root',
      { type: 'object', nullable: true },
      '$.nullable: Forbidden: nullable cannot be true at the root',
    ],
  ])('with %s is refused', (_what, schema, cause) => {
    expect(causesOfSchema(schema).join('\n')).toContain(cause);
  });

  it('of a kind with a status has no junctor at its root', () => {
    const schema: JsonSchema = { type: 'object', anyOf: [{ required: ['a'] }] };
    expect(causesOfSchema(schema, { subresources: { status: {} } })[0]).toContain(
      'fields are allowed at the root of the schema if the status subresource is enabled',
    );
    expect(causesOfSchema(schema)).toEqual([]);
  });

  it('may have both forms of an integer or a text', () => {
    const both = [{ type: 'integer' }, { type: 'string' }];
    expect(causesOfSchema(inSpec({ 'x-kubernetes-int-or-string': true, anyOf: both }))).toEqual([]);
    expect(
      causesOfSchema(inSpec({ 'x-kubernetes-int-or-string': true, allOf: [{ anyOf: both }, { pattern: 'x' }] })),
    ).toEqual([]);
  });
});
