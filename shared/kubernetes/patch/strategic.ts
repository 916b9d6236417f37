import { cloneJson, getMember, isJsonObject, type JsonObject, nestsDeeperThan, setMember } from '../json.ts';
import { type ListSchema, memberSchema, type Schema } from '../schema.ts';
import { malformed, PATCH_DEPTH_MAX, PatchRefused, type PatchResult, PatchWork } from './result.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const ELEMENT_ORDER = '$setElementOrder/';
const DELETE_FROM_LIST = '$deleteFromPrimitiveList/';

/**
 * Applies `application/strategic-merge-patch+json`: a merge patch in which the schema decides which lists are merged,
 * and the merge key of each. Lists without a patch strategy, such as taints and tolerations, are replaced.
 *
 * Directives: `$patch` (replace, delete, merge) in an object or list item, `$retainKeys`, `$setElementOrder/<list>`,
 * `$deleteFromPrimitiveList/<list>`; null removes a member. The result contains no directives.
 *
 * Source: Kubernetes documentation, "Strategic merge patch"; behaviour as observed on a kube-apiserver.
 */
export function applyStrategicMergePatch(
  target: Readonly<JsonObject>,
  patch: unknown,
  schema: Schema | undefined,
): PatchResult {
  if (!isJsonObject(patch)) return malformed('a strategic merge patch must be a JSON object');
  if (nestsDeeperThan(patch, PATCH_DEPTH_MAX)) return malformed(`a patch nests at most ${PATCH_DEPTH_MAX} levels deep`);
  try {
    return { kind: 'patched', object: mergeObject(cloneJson(target), patch, schema, new PatchWork()) };
  } catch (error) {
    if (error instanceof PatchRefused) return error.refusal;
    throw error;
  }
}

/** Merges the patch into `current`. `current` is changed: it is part of the result, not of the target. */
function mergeObject(current: JsonObject, patch: JsonObject, schema: Schema | undefined, work: PatchWork): JsonObject {
  const directive = readDirective(patch);
  if (directive === 'delete') return {};
  if (directive === 'replace') return newObject(patch, schema, work);

  retainKeys(current, patch, work);
  deleteFromPrimitiveLists(current, patch, work);
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined || isDirective(key)) continue;
    if (value === null) {
      delete current[key];
      continue;
    }
    setMember(current, key, mergeValue(getMember(current, key), value, memberSchema(schema, key), work));
  }
  orderElements(current, patch, schema, work);
  return current;
}

function mergeValue(current: unknown, value: unknown, schema: Schema | undefined, work: PatchWork): unknown {
  if (isJsonObject(value)) {
    const merges = isJsonObject(current) && !(schema?.kind === 'struct' && schema.patchStrategy === 'replace');
    return merges ? mergeObject(current, value, schema, work) : newObject(value, schema, work);
  }
  if (Array.isArray(value)) {
    const strategy = schema?.kind === 'list' ? schema : undefined;
    return mergeList(Array.isArray(current) ? current : [], value, strategy, work);
  }
  return value;
}

/** The object that a patch makes where the target has none: its content without directives and nulls. */
function newObject(patch: JsonObject, schema: Schema | undefined, work: PatchWork): JsonObject {
  const { [DIRECTIVE]: _directive, ...content } = patch;
  // A spread copies an own member `__proto__` as data, so it does not change the prototype.
  return mergeObject({}, content, schema, work);
}

function mergeList(
  current: unknown[],
  patch: readonly unknown[],
  schema: ListSchema | undefined,
  work: PatchWork,
): unknown[] {
  work.spend(current.length + patch.length);
  const replaced = patch.some((item) => isJsonObject(item) && getMember(item, DIRECTIVE) === 'replace');
  const merges = schema !== undefined && schema.patchStrategy !== 'replace';
  if (!merges || replaced) {
    return patch.filter((item) => !isListDirective(item)).map((item) => newItem(item, schema?.items, work));
  }
  if (schema.mergeKey === undefined) return mergePrimitives(current, patch);
  return mergeItems(current, patch, schema, schema.mergeKey, work);
}

/** True for an item that adds nothing: it contains only a directive, or it has `$patch: delete`. */
function isListDirective(item: unknown): boolean {
  if (!isJsonObject(item)) return false;
  const directive = readDirective(item);
  return directive === 'delete' || (directive === 'replace' && Object.keys(item).length === 1);
}

function newItem(item: unknown, schema: Schema | undefined, work: PatchWork): unknown {
  if (isJsonObject(item)) return newObject(item, schema, work);
  return cloneJson(item);
}

function mergePrimitives(current: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const merged = [...current];
  const known = new Set(current.map(identity));
  for (const item of patch) {
    if (isJsonObject(item) && readDirective(item) !== undefined) continue;
    const id = identity(item);
    if (known.has(id)) continue;
    known.add(id);
    merged.push(cloneJson(item));
  }
  return merged;
}

function mergeItems(
  current: readonly unknown[],
  patch: readonly unknown[],
  schema: ListSchema,
  mergeKey: string,
  work: PatchWork,
): unknown[] {
  // An index by key, because a body may have many thousands of items. A duplicate key is merged into its first item.
  const merged: unknown[] = [...current];
  const indicesByKey = new Map<string, number[]>();
  const addToIndex = (item: unknown, index: number): void => {
    const id = isJsonObject(item) ? identity(getMember(item, mergeKey)) : '';
    const known = indicesByKey.get(id);
    if (known === undefined) indicesByKey.set(id, [index]);
    else known.push(index);
  };
  merged.forEach(addToIndex);
  for (const item of patch) {
    if (!isJsonObject(item)) {
      throw new PatchRefused(
        malformed(`a list merged by "${mergeKey}" must contain objects, not ${JSON.stringify(item)}`),
      );
    }
    const key = getMember(item, mergeKey) ?? null;
    if (key === null) {
      throw new PatchRefused(
        malformed(`map: ${JSON.stringify(item)} does not contain declared merge key: ${mergeKey}`),
      );
    }
    const found = indicesByKey.get(identity(key)) ?? [];
    const first = found[0];
    if (readDirective(item) === 'delete') {
      for (const index of found) merged[index] = undefined;
      indicesByKey.delete(identity(key));
    } else if (first === undefined) {
      addToIndex(item, merged.length);
      merged.push(newObject(item, schema.items, work));
    } else {
      merged[first] = mergeObject(merged[first] as JsonObject, item, schema.items, work);
    }
  }
  return merged.filter((item) => item !== undefined);
}

/** A text that is equal for equal JSON scalars. */
function identity(value: unknown): string {
  return JSON.stringify(value) ?? '';
}

function isDirective(key: string): boolean {
  return key === DIRECTIVE || key === RETAIN_KEYS || key.startsWith(ELEMENT_ORDER) || key.startsWith(DELETE_FROM_LIST);
}

function readDirective(patch: JsonObject): 'replace' | 'delete' | 'merge' | undefined {
  const directive = getMember(patch, DIRECTIVE);
  if (directive === undefined) return undefined;
  if (directive === 'replace' || directive === 'delete' || directive === 'merge') return directive;
  throw new PatchRefused(malformed(`unknown patch type: ${JSON.stringify(directive)}`));
}

/** `$retainKeys`: removes all members that it does not list. It must list every member that the patch sets. */
function retainKeys(current: JsonObject, patch: JsonObject, work: PatchWork): void {
  const retained = directiveList(patch, RETAIN_KEYS);
  if (retained === undefined) return;
  const kept = new Set(retained);
  for (const key of Object.keys(patch)) {
    if (!isDirective(key) && patch[key] !== null && !kept.has(key)) {
      throw new PatchRefused(malformed(`${RETAIN_KEYS} must list every field the patch sets: "${key}" is missing`));
    }
  }
  const keys = Object.keys(current);
  work.spend(keys.length);
  for (const key of keys) {
    if (!kept.has(key)) delete current[key];
  }
}

function deleteFromPrimitiveLists(current: JsonObject, patch: JsonObject, work: PatchWork): void {
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(DELETE_FROM_LIST)) continue;
    const unwanted = directiveList(patch, directive) ?? [];
    const key = directive.slice(DELETE_FROM_LIST.length);
    const items = getMember(current, key);
    if (!Array.isArray(items)) continue;
    work.spend(items.length);
    const unwantedIds = new Set(unwanted.map(identity));
    setMember(
      current,
      key,
      items.filter((item) => !unwantedIds.has(identity(item))),
    );
  }
}

/** `$setElementOrder`: sorts merged lists in the requested order. Items that it does not list keep their position. */
function orderElements(current: JsonObject, patch: JsonObject, schema: Schema | undefined, work: PatchWork): void {
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(ELEMENT_ORDER)) continue;
    const order = directiveList(patch, directive) ?? [];
    const key = directive.slice(ELEMENT_ORDER.length);
    const items = getMember(current, key);
    const listSchema = memberSchema(schema, key);
    if (!Array.isArray(items) || listSchema?.kind !== 'list' || listSchema.patchStrategy === 'replace') continue;
    work.spend(items.length + order.length);
    setMember(current, key, arrange(items, order, listSchema.mergeKey));
  }
}

function arrange(items: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): unknown[] {
  const idOf = (item: unknown): string =>
    identity(mergeKey !== undefined && isJsonObject(item) ? getMember(item, mergeKey) : item);
  const rank = new Map<string, number>();
  for (const wanted of order) {
    if (!rank.has(idOf(wanted))) rank.set(idOf(wanted), rank.size);
  }
  const rankOf = (item: unknown): number => rank.get(idOf(item)) ?? 0;
  const ranked = items.filter((item) => rank.has(idOf(item))).sort((left, right) => rankOf(left) - rankOf(right));
  let next = 0;
  return items.map((item) => {
    if (!rank.has(idOf(item))) return item;
    next += 1;
    return ranked[next - 1];
  });
}

function directiveList(patch: JsonObject, directive: string): readonly unknown[] | undefined {
  const value = getMember(patch, directive);
  if (value === undefined) return undefined;
  if (Array.isArray(value)) return value;
  throw new PatchRefused(malformed(`${directive} must be a list`));
}
