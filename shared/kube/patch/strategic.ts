import { type ListSchema, memberSchema, type Schema } from '../schema/schema.ts';
import { cloneJson, getMember, isJsonObject, type JsonObject, nestsDeeperThan, setMember } from '../wire/json-value.ts';
import { malformed, PATCH_DEPTH_MAX, PatchRefused, type PatchResult, PatchWork } from './result.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const ELEMENT_ORDER = '$setElementOrder/';
const DELETE_FROM_LIST = '$deleteFromPrimitiveList/';

/**
 * Applies `application/strategic-merge-patch+json`: like a merge patch, but the schema says which lists merge, and by
 * what key. Lists that the schema does not know, taints and tolerations among them, are replaced.
 *
 * Directives: `$patch` (replace, delete, merge) in an object or list item, `$retainKeys`, `$setElementOrder/<list>`,
 * `$deleteFromPrimitiveList/<list>`; null removes a member. They never end up in the result.
 *
 * Source: Kubernetes documentation, "Strategic merge patch"; behaviour as seen from a kube-apiserver.
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

/** Merges into `current`, which belongs to the result already. */
function mergeObject(current: JsonObject, patch: JsonObject, schema: Schema | undefined, work: PatchWork): JsonObject {
  const directive = readDirective(patch);
  if (directive === 'delete') return {};
  if (directive === 'replace') return fresh(patch, schema, work);

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
    const merges = isJsonObject(current) && !(schema?.kind === 'struct' && schema.replacedOnPatch === true);
    return merges ? mergeObject(current, value, schema, work) : fresh(value, schema, work);
  }
  if (Array.isArray(value)) {
    const strategy = schema?.kind === 'list' ? schema : undefined;
    return mergeList(Array.isArray(current) ? current : [], value, strategy, work);
  }
  return value;
}

/** What a patch object stands for where there was nothing: its content without directives and nulls. */
function fresh(patch: JsonObject, schema: Schema | undefined, work: PatchWork): JsonObject {
  const { [DIRECTIVE]: _directive, ...content } = patch;
  // Spreading keeps `__proto__` as an own member only if it was one, so this is as safe as setMember.
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
    return patch.filter((item) => !isListDirective(item)).map((item) => freshItem(item, schema?.items, work));
  }
  if (schema.mergeKey === undefined) return mergePrimitives(current, patch);
  return mergeItems(current, patch, schema, schema.mergeKey, work);
}

/** An item that is nothing but a directive, or that says of itself to be deleted, adds nothing. */
function isListDirective(item: unknown): boolean {
  if (!isJsonObject(item)) return false;
  const directive = readDirective(item);
  return directive === 'delete' || (directive === 'replace' && Object.keys(item).length === 1);
}

function freshItem(item: unknown, schema: Schema | undefined, work: PatchWork): unknown {
  if (isJsonObject(item)) return fresh(item, schema, work);
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
  // Indexed, as a body may hold many thousands of items; a key that stands twice is merged into its first holder.
  const merged: unknown[] = [...current];
  const places = new Map<string, number[]>();
  const place = (item: unknown, index: number): void => {
    const id = isJsonObject(item) ? identity(getMember(item, mergeKey)) : '';
    const known = places.get(id);
    if (known === undefined) places.set(id, [index]);
    else known.push(index);
  };
  merged.forEach(place);
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
    const found = places.get(identity(key)) ?? [];
    const first = found[0];
    if (readDirective(item) === 'delete') {
      for (const index of found) merged[index] = undefined;
      places.delete(identity(key));
    } else if (first === undefined) {
      place(item, merged.length);
      merged.push(fresh(item, schema.items, work));
    } else {
      merged[first] = mergeObject(merged[first] as JsonObject, item, schema.items, work);
    }
  }
  return merged.filter((item) => item !== undefined);
}

/** Two JSON scalars have the same identity when they are equal. */
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

/** `$retainKeys` lists the members that stay; one that the patch sets must be among them. */
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

/** Brings lists that were merged into the order a client asks for. Items it does not name keep their place. */
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
