import { defined } from '../../../shared/defined.ts';
import { goName } from '../../../shared/kubernetes/decode.ts';
import type { JsonObject } from '../../../shared/kubernetes/json.ts';
import type { Field, Schema, StructSchema } from '../../../shared/kubernetes/schema.ts';

const META = 'io.k8s.apimachinery.pkg';
const QUANTITY = `${META}.api.resource.Quantity`;
const INT_OR_STRING = `${META}.util.intstr.IntOrString`;

const SHARED: Readonly<Record<string, JsonObject>> = {
  [QUANTITY]: {
    description:
      'An amount: a decimal number, with a suffix n, u, m, k, M, G, T, P, E, a binary one Ki, Mi, Gi, Ti, Pi, Ei, or an exponent. 500m is half, 8Gi is 8 times 2 to the 30th.',
    oneOf: [{ type: 'string' }, { type: 'number' }],
  },
  [INT_OR_STRING]: {
    description: 'A whole number or a text, such as the name of a port or a percentage.',
    format: 'int-or-string',
    oneOf: [{ type: 'integer' }, { type: 'string' }],
  },
};

/** The text for a definition or a field of it, where its schema has none. */
export type Describe = (definition: string, field?: string) => string;

/** The `components.schemas` of a document, gathered as they are referred to. */
export class Components {
  readonly schemas: Record<string, JsonObject> = {};
  readonly #describe: Describe;

  constructor(describe: Describe) {
    this.#describe = describe;
  }

  /** A reference to a struct; adds it and all it refers to. */
  ref(struct: StructSchema): JsonObject {
    if (this.schemas[struct.name] === undefined) {
      // Entered first: what it refers to need not enter it again.
      const entry: JsonObject = {};
      this.schemas[struct.name] = entry;
      Object.assign(entry, this.#structSchema(struct));
    }
    return { $ref: `#/components/schemas/${struct.name}` };
  }

  /** The list kind of a struct. Its metadata is a ListMeta; its kind bears the name of the items' kind and `List`. */
  listRef(struct: StructSchema, listMeta: StructSchema): JsonObject {
    const name = `${struct.name}List`;
    this.schemas[name] ??= {
      description: `A list of ${goName(struct)} objects.`,
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: { description: 'Group and version of the API that the list is written in.', type: 'string' },
        kind: { description: 'Kind of the list, in CamelCase.', type: 'string' },
        metadata: this.#reference(listMeta, 'Version of the collection, and how to go on.'),
        items: { description: 'The objects.', type: 'array', items: { allOf: [this.ref(struct)], default: {} } },
      },
      ...gvkExtension(struct.gvks.map((gvk) => ({ ...gvk, kind: `${gvk.kind}List` }))),
    };
    return { $ref: `#/components/schemas/${name}` };
  }

  #structSchema(struct: StructSchema): JsonObject {
    const entries = Object.entries(struct.fields);
    const required = entries.filter(([, field]) => field.required).map(([name]) => name);
    return {
      description: struct.description || this.#describe(struct.name),
      type: 'object',
      ...(required.length > 0 ? { required } : {}),
      properties: Object.fromEntries(
        entries.map(([name, field]) => [
          name,
          field.openApi ?? this.#fieldSchema(field, field.description || this.#describe(struct.name, name)),
        ]),
      ),
      ...struct.openApi,
      ...gvkExtension(struct.gvks),
      ...(struct.atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    };
  }

  #fieldSchema(field: Field, description: string): JsonObject {
    const { schema } = field;
    if (schema.kind === 'struct') return this.#reference(schema, description);
    if (schema.kind === 'quantity') return this.#sharedReference(QUANTITY, description);
    if (schema.kind === 'intOrString') return this.#sharedReference(INT_OR_STRING, description);
    return { description, ...this.#valueSchema(schema), ...defined({ default: field.defaultText }) };
  }

  #reference(struct: StructSchema, description: string): JsonObject {
    const strategy = defined({ 'x-kubernetes-patch-strategy': struct.patchStrategy });
    return { description, allOf: [this.ref(struct)], default: {}, ...strategy };
  }

  #sharedReference(name: string, description: string): JsonObject {
    return { description, allOf: [this.#shared(name)] };
  }

  #shared(name: string): JsonObject {
    this.schemas[name] ??= SHARED[name] ?? {};
    return { $ref: `#/components/schemas/${name}` };
  }

  #valueSchema(schema: Schema): JsonObject {
    switch (schema.kind) {
      case 'struct':
        return { allOf: [this.ref(schema)], default: {} };
      case 'map':
        return {
          type: 'object',
          additionalProperties: this.#valueSchema(schema.values),
          ...(schema.atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
        };
      case 'list':
        return {
          type: 'array',
          items: this.#valueSchema(schema.items),
          'x-kubernetes-list-type': schema.listType,
          ...(schema.listType === 'map' ? { 'x-kubernetes-list-map-keys': schema.mapKeys } : {}),
          ...(schema.patchStrategy === 'replace' ? {} : { 'x-kubernetes-patch-strategy': schema.patchStrategy }),
          ...defined({ 'x-kubernetes-patch-merge-key': schema.mergeKey }),
        };
      case 'quantity':
        return this.#shared(QUANTITY);
      case 'intOrString':
        return this.#shared(INT_OR_STRING);
      case 'any':
        return { type: 'object' };
      case 'time':
      case 'microTime':
        return { type: 'string', format: 'date-time' };
      default:
        return {
          type: schema.kind,
          ...defined({ format: schema.format }),
          ...defined({ enum: schema.values }),
        };
    }
  }
}

function gvkExtension(gvks: readonly unknown[]): JsonObject {
  return gvks.length === 0 ? {} : { 'x-kubernetes-group-version-kind': gvks };
}
