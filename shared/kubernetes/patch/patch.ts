/** The patch types. A patch becomes a function that changes the stored object. */

import type { StoredResource } from '../../kinds/stored-resource.ts';
import type { JsonObject } from '../json.ts';
import { decodeObject, type FieldValidation, type PatchType, readJson, refuseTooLarge } from '../request/body.ts';
import type { StructSchema } from '../schema.ts';
import * as status from '../status.ts';
import { applyJsonPatch } from './json-patch.ts';
import { applyMergePatch } from './merge.ts';
import type { PatchResult } from './result.ts';
import { applyStrategicMergePatch } from './strategic.ts';
import type { Transform } from './transform.ts';

function accept(descriptor: StoredResource, name: string, result: PatchResult): JsonObject {
  switch (result.kind) {
    case 'patched':
      return result.object;
    case 'malformed':
      throw status.badRequest(result.message);
    case 'tooLarge':
      throw status.requestEntityTooLarge(result.message);
    case 'unprocessable':
      throw status.unprocessable(result.message);
    default:
      throw status.internalError(`patch of ${descriptor.resource} ${name}: ${result satisfies never}`);
  }
}

/**
 * Parses the patch once. The transform may run several times, once per stored version. `warnings` returns those of the
 * last run.
 */
export function patchTransform(
  descriptor: StoredResource & { readonly bodyBytesMax?: number },
  schema: StructSchema,
  name: string,
  type: Exclude<PatchType, 'application/apply-patch+yaml'>,
  body: Uint8Array,
  validation: FieldValidation,
): { readonly transform: Transform; readonly warnings: () => readonly string[] } {
  refuseTooLarge(body, descriptor.bodyBytesMax);
  const read = readJson(body);
  let warnings: readonly string[] = [];
  const transform: Transform = (old) => {
    const target = old as unknown as JsonObject;
    const result =
      type === 'application/json-patch+json'
        ? applyJsonPatch(target, read.anyValue)
        : type === 'application/merge-patch+json'
          ? applyMergePatch(target, read.anyValue)
          : applyStrategicMergePatch(target, read.anyValue, schema);
    const decoded = decodeObject(
      descriptor,
      schema,
      { value: accept(descriptor, name, result), duplicateFields: read.duplicateFields },
      validation,
    );
    warnings = decoded.warnings;
    return decoded.object;
  };
  return { transform, warnings: () => warnings };
}
