/**
 * OpenAPI v2 in protobuf: which kinds accept which parameters in a PATCH, and what kubectl reads of the schemas of
 * custom kinds. kubectl before 1.27 asks this document before a dry run on the server, and for explain; kubectl before
 * 1.29 before it leaves validation to the server. Both do without the definitions of built-in kinds, which are large.
 * Field numbers: gnostic openapiv2/OpenAPIv2.proto.
 */
import { isJsonObject, type JsonObject } from '../../../shared/kubernetes/json.ts';
import { groupVersionPath, type OpenApiResource } from './paths.ts';
import { GVK } from './swagger.ts';

const LENGTH_DELIMITED = 2;
const utf8 = new TextEncoder();

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let left = value; ; left >>>= 7) {
    if (left < 0x80) return [...bytes, left];
    bytes.push((left & 0x7f) | 0x80);
  }
}

type Message = readonly number[];

const part = (field: number, content: Message): Message => [
  ...varint((field << 3) | LENGTH_DELIMITED),
  ...varint(content.length),
  ...content,
];
const text = (field: number, value: string): Message => part(field, [...utf8.encode(value)]);

const PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation', 'force'] as const;

/** ParametersItem > Parameter > NonBodyParameter > QueryParameterSubSchema. */
const queryParameter = (name: string): Message =>
  part(8, part(1, part(2, part(3, [...text(2, 'query'), ...text(4, name), ...text(6, 'string')]))));

const PATCH_PARAMETERS: Message = PARAMETERS.flatMap(queryParameter);

function patchPath({ group, version, resource, kind, namespaced }: OpenApiResource): Message {
  const path = `/${groupVersionPath(group, version)}${namespaced ? '/namespaces/{namespace}' : ''}/${resource}/{name}`;
  const gvk = `group: ${JSON.stringify(group)}\nkind: ${kind}\nversion: ${version}\n`;
  const extension = part(13, [...text(1, GVK), ...part(2, text(2, gvk))]);
  const operation = part(8, [...PATCH_PARAMETERS, ...extension]);
  return part(2, [...text(1, path), ...part(2, operation)]);
}

const named = (field: number, schemas: JsonObject): Message =>
  Object.entries(schemas).flatMap(([name, schema]) => part(field, [...text(1, name), ...part(2, schemaOf(schema))]));

const SELECTABLE = 'x-kubernetes-selectable-fields';
const plain = (path: unknown): unknown => (/^[\w.-]+$/.test(String(path)) ? path : JSON.stringify(path));
const yamlOf = (fields: readonly JsonObject[]): string =>
  fields.map(({ fieldPath }) => `- fieldPath: ${plain(fieldPath)}\n`).join('');

function schemaOf(value: unknown): Message {
  if (!isJsonObject(value)) return [];
  const { $ref, format, description, default: preset, required, additionalProperties, type, items, properties } = value;
  const texts = Object.entries({ 1: $ref, 2: format, 4: description });
  const gvks = value[GVK];
  const selectable = value[SELECTABLE];
  return [
    ...texts.flatMap(([field, each]) => (typeof each === 'string' ? text(Number(field), each) : [])),
    ...(preset === undefined ? [] : part(5, text(2, JSON.stringify(preset)))),
    ...(Array.isArray(required) ? required.flatMap((name) => text(19, String(name))) : []),
    ...(isJsonObject(additionalProperties) ? part(21, part(1, schemaOf(additionalProperties))) : []),
    ...(typeof type === 'string' ? part(22, text(1, type)) : []),
    ...(isJsonObject(items) ? part(23, part(1, schemaOf(items))) : []),
    ...(isJsonObject(properties) ? part(25, named(1, properties)) : []),
    ...(Array.isArray(selectable) ? part(31, [...text(1, SELECTABLE), ...part(2, text(2, yamlOf(selectable)))]) : []),
    ...(gvks === undefined ? [] : part(31, [...text(1, GVK), ...part(2, text(2, JSON.stringify(gvks)))])),
  ];
}

/** The document of these resources. `definitions` are those of v2. */
export function swaggerProtobuf(
  resources: readonly OpenApiResource[],
  definitions: JsonObject,
  serverVersion: string,
): Uint8Array {
  const paths = resources.filter(({ verbs }) => verbs.includes('patch')).flatMap(patchPath);
  return Uint8Array.from([
    ...text(1, '2.0'),
    ...part(2, [...text(1, 'Nodekeeper'), ...text(2, serverVersion)]),
    ...part(8, paths),
    ...part(9, named(1, definitions)),
  ]);
}
