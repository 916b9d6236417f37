/** The shape of a CustomResourceDefinition. Source: apiextensions-apiserver pkg/apis/apiextensions/v1/types.go. */

import {
  always,
  any,
  bool,
  embedded,
  type Field,
  int32,
  int64,
  keyedList,
  kindStruct,
  list,
  optionalStruct,
  pointer,
  required,
  type Schema,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema.ts';
import { metadata } from '../upstream.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from './resource.ts';

const PACKAGE = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1';
const STRING: Schema = { kind: 'string' };

const texts = (description: string): Field => list(STRING, description);
const flag = (description: string): Field => bool(description);
const amount = (description: string): Field => pointer(int64(description));
const decimal = (description: string): Field => ({
  schema: { kind: 'number', format: 'double' },
  description,
  presence: 'pointer',
  required: false,
});

/** A schema has schemas within: its fields are filled in below. */
const schemaFields: Record<string, Field> = {};
const jsonSchema: StructSchema = struct(
  `${PACKAGE}.JSONSchemaProps`,
  'A JSON schema, as OpenAPI v3 has it.',
  schemaFields,
);

const schemas = (description: string): Field => list(jsonSchema, description);
const schemaMap = (description: string): Field => ({
  schema: { kind: 'map', values: jsonSchema, atomic: false },
  description,
  presence: 'optional',
  required: false,
});

const validationRule = struct(`${PACKAGE}.ValidationRule`, 'A rule in CEL.', {
  fieldPath: text('Path of the field that a failure is reported for.'),
  message: text('Shown when the rule fails.'),
  messageExpression: text('An expression. Its value is shown when the rule fails.'),
  optionalOldSelf: pointer(bool('Evaluates a transition rule also on creation.')),
  reason: pointer(text('Reason of the failure that a client reads.')),
  rule: required(text('The expression. The object is valid while it is true.')),
});

Object.assign(schemaFields, {
  $ref: pointer(text('Not supported.')),
  $schema: text('URI of the dialect.'),
  additionalItems: any('Not supported.'),
  additionalProperties: any('The schema of members without a property, or true.'),
  allOf: schemas('All of these must hold.'),
  anyOf: schemas('One of these must hold.'),
  default: any('The value of an absent member.'),
  definitions: schemaMap('Not supported.'),
  dependencies: any('Not supported.'),
  description: text('What the value means.'),
  enum: list({ kind: 'any' }, 'The permitted values.'),
  example: any('An example.'),
  exclusiveMaximum: flag('The maximum itself is not permitted.'),
  exclusiveMinimum: flag('The minimum itself is not permitted.'),
  externalDocs: any('A link to documentation.'),
  format: text('A format of the type, such as date-time.'),
  id: text('Not supported.'),
  items: optionalStruct(jsonSchema, 'The schema of the items of a list.'),
  maxItems: amount('Most items.'),
  maxLength: amount('Most characters.'),
  maxProperties: amount('Most members.'),
  maximum: decimal('Largest number.'),
  minItems: amount('Fewest items.'),
  minLength: amount('Fewest characters.'),
  minProperties: amount('Fewest members.'),
  minimum: decimal('Smallest number.'),
  multipleOf: decimal('The number is a multiple of this one.'),
  not: optionalStruct(jsonSchema, 'This must not hold.'),
  nullable: flag('Null is permitted.'),
  oneOf: schemas('Exactly one of these must hold.'),
  pattern: text('A regular expression (RE2) that the text matches.'),
  patternProperties: schemaMap('Not supported.'),
  properties: schemaMap('The schema of each member.'),
  required: texts('Members that must be present.'),
  title: text('A title.'),
  type: text('object, array, string, integer, number or boolean.'),
  uniqueItems: flag('Must not be true.'),
  'x-kubernetes-embedded-resource': flag('The value is an object with apiVersion, kind and metadata.'),
  'x-kubernetes-int-or-string': flag('The value is an integer or a text.'),
  'x-kubernetes-list-map-keys': texts('The members that identify an item of a list of type map.'),
  'x-kubernetes-list-type': pointer(text('atomic, set or map.')),
  'x-kubernetes-map-type': pointer(text('granular or atomic.')),
  'x-kubernetes-preserve-unknown-fields': pointer(bool('Members without a schema are kept.')),
  'x-kubernetes-validations': keyedList(validationRule, 'Rules in CEL.', { mergeKey: 'rule' }),
});

const names = struct(`${PACKAGE}.CustomResourceDefinitionNames`, 'Names of the kind.', {
  categories: texts('Groups of kinds that it is listed with, such as all.'),
  kind: required(text('The kind, in CamelCase.')),
  listKind: text('Kind of the list. Default: the kind and List.'),
  plural: required(text('The name in paths, in lower case.')),
  shortNames: texts('Short names.'),
  singular: text('The name of one. Default: the kind in lower case.'),
});

const column = struct(`${PACKAGE}.CustomResourceColumnDefinition`, 'A column of kubectl get.', {
  description: text('What the column shows.'),
  format: text('Format of the type.'),
  jsonPath: required(text('Where the value is, such as .spec.replicas.')),
  name: required(text('The heading.')),
  priority: int32('Above 0: only with -o wide.'),
  type: required(text('boolean, date, integer, number or string.')),
});

const scale = struct(`${PACKAGE}.CustomResourceSubresourceScale`, 'Where replicas are counted.', {
  labelSelectorPath: pointer(text('Where the selector of the pods is, as text.')),
  specReplicasPath: required(text('Where the wanted number is.')),
  statusReplicasPath: required(text('Where the present number is.')),
});

const subresources = struct(`${PACKAGE}.CustomResourceSubresources`, 'Subresources of the kind.', {
  scale: optionalStruct(scale, 'Serves the subresource scale.'),
  status: any('Serves the subresource status.'),
});

const version = struct(`${PACKAGE}.CustomResourceDefinitionVersion`, 'One version of the kind.', {
  additionalPrinterColumns: list(column, 'Columns of kubectl get. Default: the age.'),
  deprecated: flag('Requests are answered with a warning.'),
  deprecationWarning: pointer(text('The text of this warning.')),
  name: required(text('Name of the version, such as v1.')),
  schema: optionalStruct(
    struct(`${PACKAGE}.CustomResourceValidation`, 'The schema of the objects.', {
      openAPIV3Schema: optionalStruct(jsonSchema, 'The schema.'),
    }),
    'The schema of the objects.',
  ),
  selectableFields: list(
    struct(`${PACKAGE}.SelectableField`, 'A field that a field selector may name.', {
      jsonPath: required(text('Where the value is, such as .spec.colour.')),
    }),
    'Fields that a field selector may name.',
  ),
  served: required(bool('Whether the version is served.')),
  storage: required(bool('Whether objects are stored in it. True for one version.')),
  subresources: optionalStruct(subresources, 'Subresources of the version.'),
});

const conversion = struct(`${PACKAGE}.CustomResourceConversion`, 'How objects are converted between versions.', {
  strategy: required(text('None: only apiVersion changes. Webhook is refused here.')),
  webhook: any('Refused here.'),
});

const condition = struct(`${PACKAGE}.CustomResourceDefinitionCondition`, 'One condition.', {
  lastTransitionTime: always(time('When the status changed.')),
  message: text('Details for people.'),
  observedGeneration: int64('The generation that the condition is about.'),
  reason: text('The cause, in one word.'),
  status: required(text('True, False or Unknown.')),
  type: required(text('NamesAccepted, Established, Terminating or another.')),
});

export const customResourceDefinition: StructSchema = kindStruct(
  `${PACKAGE}.CustomResourceDefinition`,
  CUSTOM_RESOURCE_DEFINITIONS,
  'Adds a kind to the API. Its objects are stored, validated and served like others.',
  {
    metadata,
    spec: required(
      embedded(
        struct(`${PACKAGE}.CustomResourceDefinitionSpec`, 'The kind.', {
          conversion: optionalStruct(conversion, 'How objects are converted between versions.'),
          group: required(text('API group.')),
          names: embedded(names, 'Names of the kind.'),
          preserveUnknownFields: flag('Must be false.'),
          scope: required(text('Cluster or Namespaced.')),
          versions: required(list(version, 'Versions of the kind.')),
        }),
        'The kind.',
      ),
    ),
    status: optionalStruct(
      struct(`${PACKAGE}.CustomResourceDefinitionStatus`, 'What is served of it.', {
        acceptedNames: optionalStruct(names, 'Names that are served.'),
        conditions: keyedList(condition, 'Conditions.', { mergeKey: 'type' }),
        observedGeneration: int64('The generation that was acted on.'),
        storedVersions: texts('Versions in which objects may be stored.'),
      }),
      'What is served of it.',
    ),
  },
);
