/**
 * The shape of a CustomResourceDefinition; its texts are in descriptions.ts. Source: apiextensions-apiserver
 * pkg/apis/apiextensions/v1/types.go.
 */

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

const word = text('');
const flag = bool('');
const anything = any('');
const texts = list(STRING, '');
const amount = pointer(int64(''));
const decimal: Field = {
  schema: { kind: 'number', format: 'double' },
  description: '',
  presence: 'pointer',
  required: false,
};

/** A schema has schemas within: its fields are filled in below. */
const schemaFields: Record<string, Field> = {};
const jsonSchema: StructSchema = struct(`${PACKAGE}.JSONSchemaProps`, '', schemaFields);

const schemas = list(jsonSchema, '');
const schemaMap: Field = {
  schema: { kind: 'map', values: jsonSchema, atomic: false },
  description: '',
  presence: 'optional',
  required: false,
};

const validationRule = struct(`${PACKAGE}.ValidationRule`, '', {
  fieldPath: word,
  message: word,
  messageExpression: word,
  optionalOldSelf: pointer(flag),
  reason: pointer(word),
  rule: required(word),
});

Object.assign(schemaFields, {
  $ref: pointer(word),
  $schema: word,
  additionalItems: anything,
  additionalProperties: anything,
  allOf: schemas,
  anyOf: schemas,
  default: anything,
  definitions: schemaMap,
  dependencies: anything,
  description: word,
  enum: list({ kind: 'any' }, ''),
  example: anything,
  exclusiveMaximum: flag,
  exclusiveMinimum: flag,
  externalDocs: anything,
  format: word,
  id: word,
  items: optionalStruct(jsonSchema, ''),
  maxItems: amount,
  maxLength: amount,
  maxProperties: amount,
  maximum: decimal,
  minItems: amount,
  minLength: amount,
  minProperties: amount,
  minimum: decimal,
  multipleOf: decimal,
  not: optionalStruct(jsonSchema, ''),
  nullable: flag,
  oneOf: schemas,
  pattern: word,
  patternProperties: schemaMap,
  properties: schemaMap,
  required: texts,
  title: word,
  type: word,
  uniqueItems: flag,
  'x-kubernetes-embedded-resource': flag,
  'x-kubernetes-int-or-string': flag,
  'x-kubernetes-list-map-keys': texts,
  'x-kubernetes-list-type': pointer(word),
  'x-kubernetes-map-type': pointer(word),
  'x-kubernetes-preserve-unknown-fields': pointer(flag),
  'x-kubernetes-validations': keyedList(validationRule, '', { mergeKey: 'rule' }),
});

const names = struct(`${PACKAGE}.CustomResourceDefinitionNames`, '', {
  categories: texts,
  kind: required(word),
  listKind: word,
  plural: required(word),
  shortNames: texts,
  singular: word,
});

const column = struct(`${PACKAGE}.CustomResourceColumnDefinition`, '', {
  description: word,
  format: word,
  jsonPath: required(word),
  name: required(word),
  priority: int32(''),
  type: required(word),
});

const scale = struct(`${PACKAGE}.CustomResourceSubresourceScale`, '', {
  labelSelectorPath: pointer(word),
  specReplicasPath: required(word),
  statusReplicasPath: required(word),
});

const subresources = struct(`${PACKAGE}.CustomResourceSubresources`, '', {
  scale: optionalStruct(scale, ''),
  status: anything,
});

const version = struct(`${PACKAGE}.CustomResourceDefinitionVersion`, '', {
  additionalPrinterColumns: list(column, ''),
  deprecated: flag,
  deprecationWarning: pointer(word),
  name: required(word),
  schema: optionalStruct(
    struct(`${PACKAGE}.CustomResourceValidation`, '', {
      openAPIV3Schema: optionalStruct(jsonSchema, ''),
    }),
    '',
  ),
  selectableFields: list(
    struct(`${PACKAGE}.SelectableField`, '', {
      jsonPath: required(word),
    }),
    '',
  ),
  served: required(flag),
  storage: required(flag),
  subresources: optionalStruct(subresources, ''),
});

const conversion = struct(`${PACKAGE}.CustomResourceConversion`, '', {
  strategy: required(word),
  webhook: anything,
});

const condition = struct(`${PACKAGE}.CustomResourceDefinitionCondition`, '', {
  lastTransitionTime: always(time('')),
  message: word,
  observedGeneration: int64(''),
  reason: word,
  status: required(word),
  type: required(word),
});

export const customResourceDefinition: StructSchema = kindStruct(
  `${PACKAGE}.CustomResourceDefinition`,
  CUSTOM_RESOURCE_DEFINITIONS,
  '',
  {
    metadata,
    spec: required(
      embedded(
        struct(`${PACKAGE}.CustomResourceDefinitionSpec`, '', {
          conversion: optionalStruct(conversion, ''),
          group: required(word),
          names: embedded(names, ''),
          preserveUnknownFields: flag,
          scope: required(word),
          versions: required(list(version, '')),
        }),
        '',
      ),
    ),
    status: optionalStruct(
      struct(`${PACKAGE}.CustomResourceDefinitionStatus`, '', {
        acceptedNames: optionalStruct(names, ''),
        conditions: keyedList(condition, '', { mergeKey: 'type' }),
        observedGeneration: int64(''),
        storedVersions: texts,
      }),
      '',
    ),
  },
);
