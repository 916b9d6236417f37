import { cloneJson, getMember, isJsonObject, type JsonObject, nestsDeeperThan, setMember } from '../json.ts';
import { malformed, PATCH_DEPTH_MAX, type PatchResult } from './result.ts';

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
