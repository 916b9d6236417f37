/**
 * OpenAPI v2 in protobuf: which kinds accept which parameters in a PATCH, and nothing else. kubectl before 1.27 asks
 * this document before a dry run on the server, and kubectl before 1.29 before it leaves validation to the server. Both
 * then need no definitions. Field numbers: gnostic openapiv2/OpenAPIv2.proto.
 */
import { groupVersionPath, type OpenApiResource } from './paths.ts';

export const OPENAPI_V2_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

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
  const extension = part(13, [...text(1, 'x-kubernetes-group-version-kind'), ...part(2, text(2, gvk))]);
  const operation = part(8, [...PATCH_PARAMETERS, ...extension]);
  return part(2, [...text(1, path), ...part(2, operation)]);
}

/** The document of these resources. */
export function swaggerProtobuf(resources: readonly OpenApiResource[], serverVersion: string): Uint8Array {
  const paths = resources.filter(({ verbs }) => verbs.includes('patch')).flatMap(patchPath);
  return Uint8Array.from([
    ...text(1, '2.0'),
    ...part(2, [...text(1, 'Nodekeeper'), ...text(2, serverVersion)]),
    ...part(8, paths),
  ]);
}
