/** Server-side apply: the body of `application/apply-patch+yaml` turned into the object to store. */

import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { applyServerSide } from '../../kube/patch/apply.ts';
import type { Writer } from '../../kube/patch/managed-fields.ts';
import { decodeObject, type FieldValidation, readJson, refuseTooLarge } from '../../kube/request/body.ts';
import { isAskedFor } from '../../kube/request/options.ts';
import { fieldWarnings, strictDecodingMessage, typeFaultMessage } from '../../kube/schema/decode.ts';
import type { StructSchema } from '../../kube/schema/schema.ts';
import * as status from '../../kube/status.ts';
import type { KubeObject } from '../../kube/types.ts';
import { forbiddenField, required } from '../../kube/validation/causes.ts';
import { inUnicode } from '../../kube/wire/json.ts';
import type { JsonObject } from '../../kube/wire/json-value.ts';

export type YamlResult =
  | { readonly kind: 'read'; readonly value: unknown }
  | { readonly kind: 'malformed'; readonly message: string };

/** One YAML document. A key given twice is malformed. */
export type ReadYaml = (text: string) => YamlResult;

export interface ApplyBody {
  readonly applied: unknown;
  readonly duplicateFields: readonly string[];
}

/** kubectl sends JSON, which is YAML; people and scripts send either. */
export function readApplyBody(body: Uint8Array, readYaml: ReadYaml): ApplyBody {
  refuseTooLarge(body);
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  if (text.trimStart().startsWith('{')) {
    const read = readJson(body);
    return { applied: read.anyValue, duplicateFields: read.duplicateFields };
  }
  const read = readYaml(text);
  if (read.kind === 'malformed') throw status.badRequest(`error decoding YAML: ${read.message}`);
  return { applied: inUnicode(text, read.value), duplicateFields: [] };
}

const PATCH_OPTIONS = { group: 'meta.k8s.io', kind: 'PatchOptions' } as const;

/** `force` is for apply alone, and there a manager must give its name: its set of fields hangs on it. */
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

export interface ApplySettings {
  readonly descriptor: ResourceDescriptor;
  readonly schema: StructSchema;
  readonly writer: Writer;
  readonly force: boolean;
  readonly validation: FieldValidation;
  /** Paths this write does not touch. */
  readonly ignored: readonly (readonly string[])[];
}

/** The object after applying, `live` being what is stored in the version that is served; and what to warn of. */
export function applied(
  settings: ApplySettings,
  body: ApplyBody,
  live: KubeObject | undefined,
): { readonly object: KubeObject; readonly warnings: readonly string[] } {
  const { descriptor, schema, writer, force, validation, ignored } = settings;
  const result = applyServerSide({
    schema,
    live: live as JsonObject | undefined,
    applied: body.applied,
    writer,
    force,
    ignored,
  });
  switch (result.kind) {
    case 'malformed':
      throw status.badRequest(
        typeFaultMessage(descriptor.kind, descriptor.version, result.typeFaults) ?? result.message,
      );
    case 'conflict':
      throw status.applyConflict(result.message, result.causes);
    case 'applied': {
      const strict = strictDecodingMessage(result.unknownFields, body.duplicateFields);
      if (validation === 'Strict' && strict !== undefined) throw status.badRequest(strict);
      const read = { value: result.object, duplicateFields: [] };
      return {
        object: decodeObject(descriptor, schema, read, 'Ignore').object,
        warnings: validation === 'Warn' ? fieldWarnings(result.unknownFields, body.duplicateFields) : [],
      };
    }
    default:
      throw status.internalError(`apply to ${descriptor.resource}: ${result satisfies never}`);
  }
}
