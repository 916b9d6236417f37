/**
 * The form of a response body: the object, a Table, or only the metadata. The `Accept` header and the query parameter
 * `includeObject` choose it. Kubernetes: "Kubernetes API Concepts", receiving resources as Tables.
 *
 * Lambda limits a response to 6 MB. It counts a text body as a JSON string and a binary body as base64. Large texts are
 * compressed for clients that accept gzip. AWS: "Lambda quotas".
 */

import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { KubeObject, ObjectMeta } from '../kinds/types.ts';
import { type HttpRequest, type HttpResponse, statusResponse } from '../kubernetes/http.ts';
import * as status from '../kubernetes/status.ts';
import type { ListedPage } from './resource-storage.ts';

/** A part of the Accept header. */
interface MediaRange {
  /** Lower case, such as application/json. */
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

/** Ranges beyond this many are not read. */
const RANGES_MAX = 32;

/** The ranges of an Accept header, most wanted first; an absent or empty header accepts everything. */
export function mediaRanges(accept: string | undefined): MediaRange[] {
  if (accept === undefined || accept.trim() === '') return [{ type: '*/*', parameters: {}, quality: 1 }];
  return accept
    .split(',', RANGES_MAX)
    .map((text) => {
      const [type = '', ...rest] = text.split(';').map((part) => part.trim());
      const parameters: Record<string, string> = {};
      for (const part of rest) {
        const [name = '', value = ''] = part.split('=', 2);
        parameters[name.trim().toLowerCase()] = value.trim().replace(/^"(.*)"$/, '$1');
      }
      const quality = Number(parameters['q'] ?? '1');
      return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 1 : quality };
    })
    .filter((range) => range.type !== '' && range.quality > 0)
    .sort((left, right) => right.quality - left.quality);
}

export type MetaVersion = 'v1' | 'v1beta1';

export type AnswerForm =
  | { readonly kind: 'object' }
  | { readonly kind: 'table'; readonly version: MetaVersion }
  | { readonly kind: 'partialMetadata'; readonly version: MetaVersion };

/**
 * The form of an answer. It is always JSON, also if the client asked for another type: every client that prefers
 * protobuf accepts JSON too, and a 406 would help no client.
 */
export function answerForm(accept: string | undefined): AnswerForm {
  for (const { type, parameters } of mediaRanges(accept)) {
    if (type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue;
    const { as, v, g } = parameters;
    if (as === undefined) return { kind: 'object' };
    if (g !== undefined && g !== 'meta.k8s.io') continue;
    if (v !== 'v1' && v !== 'v1beta1') continue;
    if (as === 'Table') return { kind: 'table', version: v };
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
      return { kind: 'partialMetadata', version: v };
    }
  }
  return { kind: 'object' };
}

/** What a row carries besides its cells: query parameter includeObject. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** undefined: not one of the three, which is a 400. */
export function parseIncludeObject(text: string | null | undefined): IncludeObject | undefined {
  if (text === undefined || text === null || text === '') return 'Metadata';
  return text === 'None' || text === 'Metadata' || text === 'Object' ? text : undefined;
}

/** Metadata of a list answer. */
export interface ListMeta {
  readonly resourceVersion?: string;
  /** Present when there is more: the token to go on with. */
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export interface TableRow {
  readonly cells: readonly unknown[];
  readonly object?: unknown;
}

export interface Table {
  readonly kind: 'Table';
  readonly apiVersion: string;
  readonly metadata: ListMeta;
  readonly columnDefinitions: readonly unknown[] | null;
  readonly rows: readonly TableRow[];
}

// The metadata of a row omits managedFields: no client reads them there, and they are most of the bytes.
function rowMetadata(meta: ObjectMeta): ObjectMeta {
  const { managedFields: _managedFields, ...rest } = meta;
  return rest;
}

export const partialMetadata = (object: KubeObject, version: MetaVersion = 'v1'): KubeObject => ({
  kind: 'PartialObjectMetadata',
  apiVersion: `meta.k8s.io/${version}`,
  metadata: object.metadata,
});

export const partialMetadataList = (
  objects: readonly KubeObject[],
  metadata: ListMeta,
  version: MetaVersion = 'v1',
): Record<string, unknown> => ({
  kind: 'PartialObjectMetadataList',
  apiVersion: `meta.k8s.io/${version}`,
  metadata,
  items: objects.map((object) => partialMetadata(object, version)),
});

export interface TableOptions {
  readonly nowMs: number;
  readonly includeObject?: IncludeObject;
  readonly version?: MetaVersion;
  readonly metadata?: ListMeta;
  /** Watches define the columns in their first event only. */
  readonly withoutColumns?: boolean;
}

function rowObject(
  descriptor: ResourceDescriptor,
  object: KubeObject,
  include: IncludeObject,
  version: MetaVersion,
): unknown {
  if (include === 'None') return undefined;
  if (include === 'Object') return descriptor.servedFrom?.toServed(object) ?? object;
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: rowMetadata(object.metadata),
  };
}

// The table of a single object has the resourceVersion of that object: a watch continues from there.
function soleVersion(objects: readonly KubeObject[]): ListMeta {
  const resourceVersion = objects.length === 1 ? objects[0]?.metadata.resourceVersion : undefined;
  return resourceVersion === undefined ? {} : { resourceVersion };
}

/** A table of objects as they are stored. */
export function buildTable(
  descriptor: ResourceDescriptor,
  objects: readonly KubeObject[],
  options: TableOptions,
): Table {
  const version = options.version ?? 'v1';
  const include = options.includeObject ?? 'Metadata';
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: options.metadata ?? soleVersion(objects),
    columnDefinitions: options.withoutColumns === true ? null : descriptor.columns,
    rows: objects.map((object) => {
      const shown = rowObject(descriptor, object, include, version);
      return { cells: descriptor.row(object, options.nowMs), ...defined({ object: shown }) };
    }),
  };
}

export interface Shape {
  readonly form: AnswerForm;
  /** How much of each object a row of a Table repeats. */
  readonly includeObject: IncludeObject;
}

/** What clients may accept. The answer is JSON in each case: it is YAML too, and Go clients read the Content-Type. */
const ANSWERED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
const WILDCARDS = ['*/*', 'application/*'];
const META_FORMS = ['PartialObjectMetadata', 'PartialObjectMetadataList'];

function isAnswered({ type, parameters }: MediaRange, hasTable: boolean): boolean {
  const { as, g = 'meta.k8s.io', v } = parameters;
  if (as === undefined) return ANSWERED.includes(type) || WILDCARDS.includes(type);
  // Tables exist in JSON only, and every kind of object has its metadata.
  const isForm = (type !== ANSWERED[2] && hasTable && as === 'Table') || META_FORMS.includes(as);
  return isForm && g === 'meta.k8s.io' && (v === 'v1' || v === 'v1beta1');
}

/** @throws StatusError 406 when the Accept header names only types that are not answered */
export function refuseUnacceptable(accept: string, hasTable: boolean): void {
  if (!mediaRanges(accept).some((range) => isAnswered(range, hasTable))) throw status.notAcceptable(ANSWERED);
}

/** @throws StatusError 400 for an unknown `includeObject`, 406 for an Accept header without a type that is answered */
export function negotiateShape(accept: string, query: URLSearchParams): Shape {
  refuseUnacceptable(accept, true);
  const includeObject = parseIncludeObject(query.get('includeObject'));
  if (includeObject === undefined) {
    throw status.badRequest('includeObject must be one of "None", "Metadata", "Object"');
  }
  return { form: answerForm(accept), includeObject };
}

const served = (descriptor: ResourceDescriptor, object: KubeObject): KubeObject =>
  descriptor.servedFrom?.toServed(object) ?? object;

/** The response body for one object. */
export function shapeObject(descriptor: ResourceDescriptor, object: KubeObject, shape: Shape, nowMs: number): unknown {
  switch (shape.form.kind) {
    case 'table':
      return buildTable(descriptor, [object], {
        nowMs,
        includeObject: shape.includeObject,
        version: shape.form.version,
        ...defined({ metadata: versionOnly(object.metadata.resourceVersion) }),
      });
    case 'partialMetadata':
      return partialMetadata(object, shape.form.version);
    default:
      return served(descriptor, object);
  }
}

const versionOnly = (resourceVersion: string | undefined) =>
  resourceVersion === undefined ? undefined : { resourceVersion };

const inOrder = ({ compareRows }: ResourceDescriptor, items: ListedPage['items']): ListedPage['items'] =>
  compareRows === undefined ? items : items.toSorted(compareRows);

/**
 * The response body for a list, which ends with its array. Items of a plain list have no kind and apiVersion, unless
 * custom, as upstream.
 */
export function shapeList(descriptor: ResourceDescriptor, list: ListedPage, shape: Shape, nowMs: number): object {
  const metadata = {
    resourceVersion: list.resourceVersion,
    ...defined({ continue: list.continueToken === '' ? undefined : list.continueToken }),
  };
  switch (shape.form.kind) {
    case 'table':
      return buildTable(descriptor, inOrder(descriptor, list.items), {
        nowMs,
        includeObject: shape.includeObject,
        version: shape.form.version,
        metadata,
      });
    case 'partialMetadata':
      return partialMetadataList(list.items, metadata, shape.form.version);
    default: {
      const apiVersion = descriptor.group === '' ? descriptor.version : `${descriptor.group}/${descriptor.version}`;
      return {
        kind: descriptor.listKind,
        apiVersion,
        metadata,
        items: list.items.map((object) => {
          const whole = served(descriptor, object);
          if (descriptor.custom !== undefined) return whole;
          const { kind: _kind, apiVersion: _apiVersion, ...rest } = whole;
          return rest;
        }),
      };
    }
  }
}

/** Encoded bytes of a body. Lambda accepts 6,291,556 bytes per response; the difference is for the headers. */
export const RESPONSE_BYTES_MAX = 6_200_000;
/** Length of the JSON of all objects in one response that is not compressed. Characters. */
export const PLAIN_LIST_CHARACTERS_MAX = 4_500_000;
/** Texts longer than this are compressed. Characters. */
const COMPRESS_FROM_CHARACTERS = 1_000_000;
/** A character of JSON text has at most 3 bytes in UTF-8. A character that needs a second JSON escape has 2. */
const BYTES_PER_CHARACTER_MAX = 3;

export type Gzip = (text: string) => Uint8Array | Promise<Uint8Array>;

export const acceptsGzip = (request: HttpRequest): boolean =>
  (request.headers['accept-encoding'] ?? '').split(',').some((range) => {
    const [coding = '', weight = 'q=1'] = range.split(';').map((part) => part.trim().toLowerCase());
    return coding === 'gzip' && weight.startsWith('q=') && Number(weight.slice(2)) > 0;
  });

/** The response with a gzip body, when the body is large and the client accepts gzip. */
export async function compressedIfLarge(
  request: HttpRequest,
  response: HttpResponse,
  gzip: Gzip,
): Promise<HttpResponse> {
  if (typeof response.body !== 'string' || response.body.length <= COMPRESS_FROM_CHARACTERS || !acceptsGzip(request)) {
    return response;
  }
  const encoding = { 'content-encoding': 'gzip', vary: 'Accept-Encoding' };
  return { ...response, headers: { ...response.headers, ...encoding }, body: await gzip(response.body) };
}

/**
 * Length of the encoded body in bytes, to compare with RESPONSE_BYTES_MAX. For a text that fits at
 * BYTES_PER_CHARACTER_MAX this is an upper bound, because the exact length needs a second encoding.
 */
export function payloadBytes({ body }: HttpResponse): number {
  if (typeof body !== 'string') return Math.ceil(body.byteLength / 3) * 4;
  const atMost = body.length * BYTES_PER_CHARACTER_MAX;
  return atMost <= RESPONSE_BYTES_MAX ? atMost : Buffer.byteLength(JSON.stringify(body));
}

/** The response, or a 413 in its place: Lambda would answer a 502 for one that is too large. */
export function permittedResponse(response: HttpResponse): HttpResponse {
  const bytes = payloadBytes(response);
  if (bytes <= RESPONSE_BYTES_MAX) return response;
  const why =
    `the response has ${bytes} bytes, and a function may send ${RESPONSE_BYTES_MAX}: accept gzip, or ask for less, ` +
    'for example /metrics?scope=controller';
  return statusResponse(status.requestEntityTooLarge(why).status);
}
