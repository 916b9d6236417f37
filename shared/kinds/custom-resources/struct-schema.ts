/**
 * The schema of a custom resource for the machinery of all kinds: reading bodies, field ownership and OpenAPI.
 * Source: k8s.io/apiextensions-apiserver pkg/controller/openapi/builder/builder.go.
 */

import { defined } from '../../defined.ts';
import { type DecodeOptions, decodeStrict, type TypeFault } from '../../kubernetes/decode.ts';
import { isJsonObject, type JsonObject } from '../../kubernetes/json.ts';
import {
  type Decoded,
  type Field,
  type GroupVersionKind,
  kindStruct,
  type MapSchema,
  pointer,
  type Schema,
  type StructSchema,
  typeMetaFields,
} from '../../kubernetes/schema.ts';
import { metadata } from '../upstream.ts';
import { OBJECT_META, pruned } from './prune.ts';
import type { SchemaNode } from './schema-node.ts';

/** Objects without a schema: each member is owned by itself, and a list is owned as one value. */
const ANYTHING: MapSchema = (() => {
  const anything: { kind: 'map'; values: Schema; atomic: boolean } = {
    kind: 'map',
    values: { kind: 'any' },
    atomic: false,
  };
  anything.values = anything;
  return anything;
})();

export function structSchemaOf(gvk: GroupVersionKind, node: SchemaNode): StructSchema {
  const name = `${gvk.group.split('.').reverse().join('.')}.${gvk.version}.${gvk.kind}`;
  const own = fieldsOf(node, name);
  for (const [property, { schema }] of node.properties)
    own[property] = { ...own[property]!, openApi: schema as JsonObject };
  const fields = { ...own, ...typeMetaFields(), metadata };
  const { properties: _properties, ...root } = node.schema as JsonObject;
  return {
    ...kindStruct(name, gvk, node.schema.description ?? '', fields),
    ...(node.keepsUnknown ? { others: ANYTHING } : {}),
    read: (value, options) => readBy(node, value, options),
    openApi: root,
  };
}

function fieldsOf({ properties }: SchemaNode, parent: string): Record<string, Field> {
  return Object.fromEntries(
    [...properties].map(([name, node]): [string, Field] => {
      const { default: preset, description = '' } = node.schema;
      const field = pointer({
        schema: schemaOf(node, `${parent}.${name}`),
        description,
        presence: 'pointer',
        required: false,
      });
      return [name, typeof preset === 'string' ? { ...field, defaultText: preset } : field];
    }),
  );
}

function schemaOf(node: SchemaNode, name: string): Schema {
  const { schema, items, additional } = node;
  const isAtomic = schema['x-kubernetes-map-type'] === 'atomic';
  if (items !== undefined) {
    const listType = schema['x-kubernetes-list-type'];
    return {
      kind: 'list',
      items: schemaOf(items, name),
      listType: listType === 'set' || listType === 'map' ? listType : 'atomic',
      mapKeys: schema['x-kubernetes-list-map-keys'] ?? [],
      patchStrategy: 'replace',
      mergeKey: undefined,
    };
  }
  if (typeof additional === 'object') return { kind: 'map', values: schemaOf(additional, name), atomic: isAtomic };
  if (additional === 'any' || (node.properties.size === 0 && node.keepsUnknown))
    return isAtomic ? { kind: 'any' } : ANYTHING;
  if (node.types.includes('object')) {
    return {
      kind: 'struct',
      name,
      description: '',
      fields: fieldsOf(node, name),
      atomic: isAtomic,
      gvks: [],
      ...(node.keepsUnknown || node.isEmbedded ? { others: ANYTHING } : {}),
    };
  }
  const scalar = SCALARS.find((kind) => kind === schema.type);
  // Texts of some formats are other values for expressions.
  return scalar === undefined || TYPED_FORMATS.has(schema.format ?? '') ? { kind: 'any' } : { kind: scalar };
}

const SCALARS = ['string', 'boolean', 'integer', 'number'] as const;
const TYPED_FORMATS = new Set(['byte', 'duration', 'date', 'date-time']);

/** Values of the wrong type are kept: validation refuses them with the texts of the schema. */
function readBy(node: SchemaNode, value: JsonObject, options: DecodeOptions): Decoded {
  const unknownFields: string[] = [];
  const typeFaults: TypeFault[] = [];
  const { metadata: meta = {}, ...rest } = value;
  const read = pruned(node, rest, '', unknownFields, typeFaults, options.keepsNulls) as JsonObject;
  if (!isJsonObject(meta)) {
    const message = `json: cannot unmarshal ${Array.isArray(meta) ? 'array' : typeof meta} into Go struct field ObjectMeta.metadata of type v1.ObjectMeta`;
    return { value: read, unknownFields, typeFaults: [{ path: 'metadata', message }] };
  }
  const decoded = decodeStrict(OBJECT_META, meta, options);
  const { apiVersion, kind, ...content } = read;
  typeFaults.unshift(...decoded.typeFaults.map(({ path, message }) => ({ path: `metadata.${path}`, message })));
  return {
    value: { ...defined({ apiVersion, kind }), metadata: decoded.value, ...content },
    unknownFields: [...decoded.unknownFields.map((path) => `metadata.${path}`), ...unknownFields],
    typeFaults,
  };
}
