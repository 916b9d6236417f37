/**
 * managedFields of a write: the writer owns the fields that it changes. Server-side apply computes the object to store
 * from a body of type `application/apply-patch+yaml`.
 */

import { NODES_GROUP } from '../../../shared/access/authorize.ts';
import type { Call } from '../../../shared/api/call.ts';
import type { ResourceStorage } from '../../../shared/api/resource-storage.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { storedAs } from '../../../shared/kinds/registry.ts';
import { schemaFor } from '../../../shared/kinds/schemas.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { forbiddenField, invalidValue, required } from '../../../shared/kubernetes/causes.ts';
import { typeFaultMessage } from '../../../shared/kubernetes/decode.ts';
import { inUnicode, parseJson } from '../../../shared/kubernetes/json.ts';
import { apiVersionOf } from '../../../shared/kubernetes/normal-form.ts';
import type { applyServerSide } from '../../../shared/kubernetes/patch/apply.ts';
import {
  fieldManagerFault,
  managerFromUserAgent,
  trackUpdate,
  type Writer,
} from '../../../shared/kubernetes/patch/managed-fields.ts';
import { isAskedFor } from '../../../shared/kubernetes/request.ts';
import {
  type FieldValidation,
  type ReadYaml,
  refuseFields,
  refuseTooLarge,
} from '../../../shared/kubernetes/request-body.ts';
import type { StructSchema } from '../../../shared/kubernetes/schema.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { type WriteOptions, withManagedFields } from './write-options.ts';

export function writerOf({ request, descriptor, target, nowMs }: Call, optionsKind: string): Writer {
  const named = request.query.get('fieldManager') ?? '';
  const fault = fieldManagerFault(named);
  if (fault !== undefined) {
    throw status.invalid({ group: 'meta.k8s.io', kind: optionsKind }, '', [invalidValue('fieldManager', named, fault)]);
  }
  return {
    manager: named === '' ? managerFromUserAgent(request.headers['user-agent'] ?? '') : named,
    apiVersion: apiVersionOf(descriptor),
    subresource: target.subresource,
    time: formatTime(nowMs),
  };
}

/** Fields that a write to this (sub)resource never changes. The body is ignored there. */
export function untouchedBy(descriptor: ResourceDescriptor, subresource: string): readonly (readonly string[])[] {
  if (subresource === 'status') {
    const { custom } = descriptor;
    return custom === undefined ? [['spec']] : [['metadata'], ...contentOf(custom.schema).map((name) => [name])];
  }
  return descriptor.subresources.some((each) => each.name === 'status') ? [['status']] : [];
}

/** Members that a write of the status leaves as they are. */
const contentOf = ({ fields }: StructSchema): string[] =>
  Object.keys(fields).filter((name) => !['apiVersion', 'kind', 'metadata', 'status'].includes(name));

export const keepsManagedFields = (storage: ResourceStorage, namespace: string): boolean =>
  storage.keepsManagedFields?.(namespace) !== false;

/**
 * The tracking of managedFields for one write. None where the storage keeps no managedFields. The status that a node
 * posts leaves them as they are: no other client applies it, and tracking would add half of the cost of a status post.
 */
export function trackingOf(call: Call, storage: ResourceStorage, optionsKind: string): Pick<WriteOptions, 'track'> {
  const { target, user } = call;
  const writer = writerOf(call, optionsKind);
  if (!keepsManagedFields(storage, target.namespace)) return {};
  if (target.subresource === 'status' && user.groups.includes(NODES_GROUP)) {
    return { track: (next, live) => withManagedFields(next, live?.metadata.managedFields) };
  }
  const stored = storedAs(call.descriptor);
  const schema = schemaFor(stored);
  const ignored = untouchedBy(stored, target.subresource);
  return {
    track(next, live) {
      const managedFields = trackUpdate({
        schema,
        live,
        next,
        writer: { ...writer, apiVersion: apiVersionOf(stored) },
        ignored,
      });
      return withManagedFields(next, managedFields);
    },
  };
}

export interface ApplyBody {
  readonly applied: unknown;
  /** Members that occur twice, as messages name them. */
  readonly duplicates: readonly string[];
}

/** kubectl sends JSON, which is YAML too, and costs less to read. People and scripts send either. */
export async function readApplyBody(
  body: Uint8Array,
  readYaml: ReadYaml | undefined,
  bytesMax?: number,
): Promise<ApplyBody> {
  refuseTooLarge(body, bytesMax);
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  const parsed = parseJson(text);
  if (parsed.kind === 'parsed') return { applied: parsed.value, duplicates: parsed.duplicates };
  if (readYaml === undefined) throw status.unsupportedMediaType(['application/json']);
  const read = await readYaml(text);
  if (read.kind === 'malformed') throw status.badRequest(`error decoding YAML: ${read.message}`);
  return { applied: inUnicode(text, read.value), duplicates: read.duplicates };
}

const PATCH_OPTIONS = { group: 'meta.k8s.io', kind: 'PatchOptions' } as const;

/** Only an apply may have `force`. Its manager must be named, because managedFields are kept by that name. */
export function checkApplyOptions(query: URLSearchParams, isApply: boolean): { readonly force: boolean } {
  if (!isApply) {
    if (!query.has('force')) return { force: false };
    throw status.invalid(PATCH_OPTIONS, '', [forbiddenField('force', 'may not be specified for non-apply patch')]);
  }
  if ((query.get('fieldManager') ?? '') === '') {
    throw status.invalid(PATCH_OPTIONS, '', [required('fieldManager', 'is required for apply patch')]);
  }
  return { force: isAskedFor(query, 'force') };
}

/** Most writes are no apply: it is read when it is needed. */
export const loadApply = async () => (await import('../../../shared/kubernetes/patch/apply.ts')).applyServerSide;

export interface ApplySettings {
  readonly applyServerSide: typeof applyServerSide;
  readonly descriptor: ResourceDescriptor;
  readonly schema: StructSchema;
  readonly writer: Writer;
  readonly force: boolean;
  readonly validation: FieldValidation;
  /** Paths that this write does not change. */
  readonly ignored: readonly (readonly string[])[];
  readonly within: readonly RegExp[];
  /** False: the storage keeps no managedFields. */
  readonly isTracked: boolean;
}

/** Source of the text: k8s.io/apimachinery, pkg/util/managedfields/internal/structuredmerge.go. */
export function undeclared(
  { group, version, kind }: Pick<ResourceDescriptor, 'group' | 'version' | 'kind'>,
  object: KubeObject,
  fields: readonly string[],
): string {
  const { namespace = '', name = '' } = object.metadata ?? {};
  const faults = fields.map((field) => `.${field}: field not declared in schema`);
  const all = faults.length === 1 ? faults[0] : `errors:\n${faults.map((fault) => `  ${fault}`).join('\n')}`;
  return `failed to create typed patch object (${namespace}/${name}; ${group}/${version}, Kind=${kind}): ${all}`;
}

/** @param live the stored object in the served version; undefined: none */
export function applied(
  settings: ApplySettings,
  body: ApplyBody,
  live: KubeObject | undefined,
): { readonly object: KubeObject; readonly warnings: readonly string[] } {
  const { descriptor, schema, writer, force, validation, ignored, within, isTracked } = settings;
  const result = settings.applyServerSide({
    schema,
    live,
    applied: body.applied,
    writer,
    force,
    ignored,
    within,
    isTracked,
  });
  switch (result.kind) {
    case 'malformed':
      throw status.badRequest(
        typeFaultMessage(descriptor.kind, descriptor.version, result.typeFaults) ?? result.message,
      );
    case 'conflict':
      throw status.applyConflict(result.message, result.causes);
    case 'applied': {
      const object = result.object as unknown as KubeObject;
      // As upstream, whatever fieldValidation says: a manager cannot own what has no schema.
      if (result.unknownFields.length > 0)
        throw status.badRequest(undeclared(descriptor, object, result.unknownFields));
      if (validation === 'Strict') refuseFields(body.duplicates);
      return { object, warnings: validation === 'Warn' ? body.duplicates : [] };
    }
    default:
      throw status.internalError(`apply to ${descriptor.resource}: ${result satisfies never}`);
  }
}
