/**
 * Reads request bodies: media type, size, JSON and the fields of the kind. A decoded object has only fields of the
 * right type. `fieldValidation` decides whether unknown and duplicate fields are refused, reported as warnings or
 * ignored (Kubernetes: "Kubernetes API Concepts", field validation). Upstream accepts YAML in every write ("Alternate
 * representations").
 */

import type { StoredResource } from '../kinds/stored-resource.ts';
import type { KubeObject, OwnerReference } from '../kinds/types.ts';
import { notSupported } from './causes.ts';
import { decodeStrict, fieldWarnings, typeFaultMessage } from './decode.ts';
import { type HttpRequest, isProtobuf, PROTOBUF_MEDIA_TYPE } from './http.ts';
import { fieldFaults, getMember, inUnicode, isJsonObject, type JsonObject, parseJson } from './json.ts';
import type { ExpectedType } from './protobuf.ts';
import type { ProtobufTable } from './protobuf-table.ts';
import { type OptionsKind, optionsFault } from './request.ts';
import type { StructSchema } from './schema.ts';
import * as status from './status.ts';
import { unknownConversion } from './status.ts';

/** Upstream accepts 3 MB. A DynamoDB item has at most 400 KB. */
export const BODY_BYTES_MAX = 393_216;

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

export interface ReadBody {
  readonly value: JsonObject;
  /** Members that occur twice in the text, as messages name them. */
  readonly duplicates: readonly string[];
  /** A whole body in JSON. */
  readonly text?: string;
  /**
   * True for a body in protobuf. Its fields have numbers, so an unknown field is one of a newer client, not a misspelt
   * one. Protobuf decoders ignore it.
   */
  readonly ignoresUnknownFields?: boolean;
}

/** Media types of bodies that the API accepts; it reads YAML as JSON (withJsonBody). */
const ACCEPTED = ['application/json', 'application/yaml', PROTOBUF_MEDIA_TYPE];
const JSON_TYPES = new Set(['', 'application/json', 'text/json', '*/*']);

export const mediaTypeOf = (headers: Readonly<Record<string, string>>): string =>
  (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

/** Media types of patches. */
export const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
] as const;
export type PatchType = (typeof PATCH_TYPES)[number];

export const isPatchType = (mediaType: string): mediaType is PatchType =>
  (PATCH_TYPES as readonly string[]).includes(mediaType);

/** @throws StatusError 422 for an unknown value */
export function fieldValidationOf(query: URLSearchParams, kind: OptionsKind): FieldValidation {
  const value = query.get('fieldValidation') ?? '';
  if (value === '' || value === 'Warn') return 'Warn';
  if (value === 'Strict' || value === 'Ignore') return value;
  throw optionsFault(kind, [notSupported('fieldValidation', value, ['', 'Ignore', 'Strict', 'Warn'])]);
}

export function refuseTooLarge(body: Uint8Array, bytesMax: number = BODY_BYTES_MAX): void {
  if (body.byteLength > bytesMax) throw status.requestEntityTooLarge(`limit is ${bytesMax} bytes`);
}

/** Parses a JSON body of any type. `value` is {} unless the body is an object. @throws StatusError 400 */
export function readJson(body: Uint8Array): ReadBody & { readonly anyValue: unknown } {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  const parsed = parseJson(text);
  if (parsed.kind === 'malformed')
    throw status.badRequest(`the body of the request was in an unknown format - ${parsed.message}`);
  return {
    anyValue: parsed.value,
    value: isJsonObject(parsed.value) ? parsed.value : {},
    duplicates: parsed.duplicates,
    text,
  };
}

interface ObjectBody {
  /** The protobuf messages that are known here. Called for a body in protobuf. */
  readonly messages: () => Promise<ProtobufTable>;
  /** apiVersion and kind of the path, for a protobuf body that names none. */
  readonly expected?: ExpectedType | undefined;
  /** Absent: BODY_BYTES_MAX. */
  readonly bytesMax?: number | undefined;
  /** Media types for the message of a 415. */
  readonly accepted?: readonly string[];
}

/**
 * Reads an object, as JSON or protobuf.
 *
 * @throws StatusError 400, 413, 415
 */
export async function readObjectBody(
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
  { messages, expected, bytesMax, accepted = ACCEPTED }: ObjectBody,
): Promise<ReadBody> {
  refuseTooLarge(body, bytesMax);
  const mediaType = mediaTypeOf(headers);
  if (mediaType === PROTOBUF_MEDIA_TYPE || isProtobuf(body)) {
    const { decodeProtobuf } = await import('./protobuf.ts');
    const decoded = decodeProtobuf(await messages(), body, expected);
    if (decoded.kind !== 'decoded') throw status.badRequest(decoded.message);
    return { value: decoded.object, duplicates: [], ignoresUnknownFields: true };
  }
  if (!JSON_TYPES.has(mediaType)) throw status.unsupportedMediaType(accepted);
  const read = readJson(body);
  if (!isJsonObject(read.anyValue)) {
    throw status.badRequest('the object provided is unrecognized (must be of type Object)');
  }
  return read;
}

/** With `fieldValidation=Strict`. @throws `refuse` of unknown or duplicate fields */
export function refuseFields(faults: readonly string[], refuse: Refuse = status.badRequest): void {
  if (faults.length > 0) throw refuse(`strict decoding error: ${faults.join(', ')}`);
}

type Refuse = (fault: string) => status.StatusError;

export interface DecodedObject {
  readonly object: KubeObject;
  /** Paths in the body that the schema has not. */
  readonly unknownFields: readonly string[];
  /** For `Warning` headers. */
  readonly warnings: readonly string[];
}

/** @throws StatusError 400 when the body names another kind than `kind` */
export function refuseOtherKind(kind: string, { kind: named = '', apiVersion = '' }: KubeObject): void {
  if (named !== '' && named !== kind) throw status.badRequest(unknownConversion({ apiVersion, kind: named }, kind));
}

const REPEATED_OWNERS =
  '.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ';

/** Each owner once. Source: apiserver, pkg/endpoints/handlers/rest.go (dedupOwnerReferencesAndAddWarning). */
function withoutRepeats(owners: readonly OwnerReference[] = []): {
  readonly ownerReferences?: OwnerReference[];
  readonly repeated: readonly string[];
} {
  const distinct = new Map(owners.map((owner) => [JSON.stringify(owner), owner]));
  if (distinct.size === owners.length) return { repeated: [] };
  const others = owners.filter((owner) => distinct.get(JSON.stringify(owner)) !== owner);
  const uids = others.map(({ uid }) => uid).join(', ');
  return { ownerReferences: [...distinct.values()], repeated: [`${REPEATED_OWNERS}${uids}`] };
}

/** The normalised object. @throws `refuse` of a wrong type, and with Strict of unknown or duplicate fields */
export function decodeObject(
  descriptor: Pick<StoredResource, 'kind' | 'version'>,
  schema: StructSchema,
  read: ReadBody,
  validation: FieldValidation,
  refuse: Refuse = status.badRequest,
): DecodedObject {
  const decoded = decodeStrict(schema, read.value);
  const typeFault = typeFaultMessage(descriptor.kind, descriptor.version, decoded.typeFaults);
  if (typeFault !== undefined) throw refuse(typeFault);
  const unknownFields = read.ignoresUnknownFields === true ? [] : decoded.unknownFields;
  const { duplicates, text } = read;
  // Upstream finds both in one pass, but for a custom resource.
  const isOnePass = text !== undefined && schema.read === undefined && duplicates.length > 0;
  const faults = isOnePass ? fieldFaults(text, unknownFields) : fieldWarnings(unknownFields, duplicates);
  if (validation === 'Strict') refuseFields(faults, refuse);
  const { metadata = {}, ...object } = decoded.value as unknown as KubeObject;
  const sent = getMember(isJsonObject(read.value['metadata']) ? read.value['metadata'] : {}, 'managedFields');
  // An empty list is no list for all other rules. Here it asks for the removal of all entries, as one empty entry does.
  const managedFields = Array.isArray(sent) && sent.length === 0 ? { managedFields: [{}] } : {};
  const { repeated, ...owners } = withoutRepeats(metadata.ownerReferences);
  const warnings = [...(validation === 'Warn' ? faults : []), ...repeated];
  return { object: { ...object, metadata: { ...metadata, ...managedFields, ...owners } }, unknownFields, warnings };
}

export type YamlResult =
  /** `duplicates`: one text that names all of them; none: there are none. */
  | { readonly kind: 'read'; readonly value: unknown; readonly duplicates: readonly string[] }
  | { readonly kind: 'malformed'; readonly message: string };

/** Reads one YAML document. */
export type ReadYaml = (text: string) => YamlResult | Promise<YamlResult>;

const YAML = 'application/yaml';

/**
 * The request with its body in JSON, which every verb reads. Other bodies are left as they are. A patch is never YAML,
 * except an apply, which has a media type of its own.
 *
 * @throws StatusError 400 for malformed YAML and for a duplicate key, 413
 */
export async function withJsonBody(
  request: HttpRequest,
  readYaml: ReadYaml | undefined,
  bytesMax?: number,
): Promise<HttpRequest> {
  const { body } = request;
  if (mediaTypeOf(request.headers) !== YAML || request.method === 'PATCH' || body.byteLength === 0) return request;
  refuseTooLarge(body, bytesMax);
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  if (readYaml === undefined) throw status.unsupportedMediaType(['application/json']);
  const read = await readYaml(text);
  if (read.kind === 'malformed') throw status.badRequest(`error decoding YAML: ${read.message}`);
  // JSON has no place for them.
  refuseFields(read.duplicates);
  return {
    ...request,
    headers: { ...request.headers, 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(inUnicode(text, read.value))),
  };
}
