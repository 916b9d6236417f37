/** The patch types. A patch becomes a function that changes the stored object. */

import type { StoredResource } from '../../kinds/stored-resource.ts';
import type { KubeObject } from '../../kinds/types.ts';
import { invalidValue } from '../causes.ts';
import { cloneJson, getMember, isJsonObject, type JsonObject, nestsDeeperThan, setMember } from '../json.ts';
import { decodeObject, type FieldValidation, type PatchType, readJson, refuseTooLarge } from '../request-body.ts';
import type { StructSchema } from '../schema.ts';
import * as status from '../status.ts';
import { applyJsonPatch } from './json-patch.ts';
import { malformed, PATCH_DEPTH_MAX, type PatchResult } from './result.ts';
import { applyStrategicMergePatch } from './strategic.ts';

function accept(result: PatchResult): JsonObject {
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
      throw status.internalError(`patch: ${result satisfies never}`);
  }
}

/** As upstream, a 422 without a kind: the patch could be read, its result cannot. */
export const refusedPatch = (value: unknown, fault: string) =>
  status.invalid({ group: '', kind: '' }, '', [invalidValue('patch', JSON.stringify(value), fault)]);

/**
 * Parses the patch once. The transform may run several times, once per stored version. `warnings` returns those of the
 * last run.
 */
export function patchTransform(
  descriptor: StoredResource & { readonly bodyBytesMax?: number },
  schema: StructSchema,
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
    const value = accept(result);
    const { duplicates } = read;
    const decoded = decodeObject(descriptor, schema, { value, duplicates }, validation, (fault) =>
      refusedPatch(value, fault),
    );
    warnings = decoded.warnings;
    return decoded.object;
  };
  return { transform, warnings: () => warnings };
}

/**
 * What the caller makes of the stored object; it may throw a StatusError. `old` is undefined when nothing is stored.
 */
export type Transform = (old: KubeObject) => KubeObject | Promise<KubeObject>;

/**
 * Applies `application/merge-patch+json` (RFC 7396) to an object: members merge, null removes, lists and all else are
 * replaced. A patch of an API object must itself be an object.
 */
export function applyMergePatch(target: Readonly<JsonObject>, patch: unknown): PatchResult {
  if (!isJsonObject(patch)) return malformed('a merge patch must be a JSON object');
  if (nestsDeeperThan(patch, PATCH_DEPTH_MAX)) return malformed(`a patch nests at most ${PATCH_DEPTH_MAX} levels deep`);
  return { kind: 'patched', object: mergeValue(target, patch) as JsonObject };
}

/** The merge rule of RFC 7396 §2 for any two values. Neither is changed, the result shares nothing with them. */
export function mergeValue(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return cloneJson(patch);
  const merged: JsonObject = isJsonObject(target) ? cloneJson(target) : {};
  mergeInto(merged, patch);
  return merged;
}

function mergeInto(merged: JsonObject, patch: JsonObject): void {
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined) continue;
    if (value === null) {
      delete merged[key];
    } else if (isJsonObject(value)) {
      const current = getMember(merged, key);
      const child: JsonObject = isJsonObject(current) ? current : {};
      mergeInto(child, value);
      setMember(merged, key, child);
    } else {
      setMember(merged, key, cloneJson(value));
    }
  }
}
