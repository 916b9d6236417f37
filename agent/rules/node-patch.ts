/**
 * The strategic merge patch from the Node that was read to the Node that was computed, for the status subresource
 * (staging/src/k8s.io/component-helpers/node/util/status.go).
 *
 * Changes of the spec are left out. Changes of labels and annotations are included. A non-empty address list is
 * replaced as a whole: its merge key is the type, and a dual-stack node has two addresses of one type.
 */
import type { KubeNode, NodeCondition } from '../../shared/kinds/types.ts';
import { cloneJson, isJsonObject, type JsonObject, jsonEqual, setMember } from '../../shared/kubernetes/json.ts';

/** Undefined if nothing changed. */
export function nodeStatusPatch(from: KubeNode, to: KubeNode): JsonObject | undefined {
  const metadata: JsonObject = {};
  for (const field of ['labels', 'annotations'] as const) {
    const difference = mergePatch(from.metadata[field] ?? {}, to.metadata[field] ?? {});
    if (difference !== undefined) metadata[field] = difference;
  }
  const status = statusPatch(from.status ?? {}, to.status ?? {});
  const patch: JsonObject = {};
  if (Object.keys(metadata).length > 0) patch['metadata'] = metadata;
  if (status !== undefined) patch['status'] = status;
  return Object.keys(patch).length > 0 ? patch : undefined;
}

function statusPatch(from: Readonly<JsonObject>, to: Readonly<JsonObject>): JsonObject | undefined {
  const { conditions: fromConditions, addresses: fromAddresses, ...fromRest } = from;
  const { conditions: toConditions, addresses: toAddresses, ...toRest } = to;
  const patch = mergePatch(fromRest, toRest) ?? {};
  const conditions = conditionsPatch(
    (fromConditions ?? []) as readonly NodeCondition[],
    (toConditions ?? []) as readonly NodeCondition[],
  );
  Object.assign(patch, conditions);
  const addresses = addressesPatch(
    (fromAddresses ?? []) as readonly unknown[],
    (toAddresses ?? []) as readonly unknown[],
  );
  if (addresses !== undefined) patch['addresses'] = addresses;
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** Lists are replaced, and removed members become null. */
function mergePatch(from: Readonly<JsonObject>, to: Readonly<JsonObject>): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const [key, value] of Object.entries(to)) {
    const previous = Object.hasOwn(from, key) ? from[key] : undefined;
    if (jsonEqual(previous, value)) continue;
    const nested = isJsonObject(previous) && isJsonObject(value) ? mergePatch(previous, value) : cloneJson(value);
    if (nested !== undefined) setMember(patch, key, nested);
  }
  for (const key of Object.keys(from)) {
    if (from[key] !== undefined && (!Object.hasOwn(to, key) || to[key] === undefined)) setMember(patch, key, null);
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** For each changed condition its type and the changed members, in the order of the computed list. */
function conditionsPatch(from: readonly NodeCondition[], to: readonly NodeCondition[]): JsonObject {
  const previous = new Map(from.map((condition) => [condition.type, condition]));
  const items: JsonObject[] = [];
  for (const condition of to) {
    const known = previous.get(condition.type);
    const difference = mergePatch((known ?? {}) as unknown as JsonObject, condition as unknown as JsonObject);
    if (difference !== undefined) items.push({ ...difference, type: condition.type });
  }
  const wanted = new Set(to.map(({ type }) => type));
  for (const type of previous.keys()) if (!wanted.has(type)) items.push({ $patch: 'delete', type });
  if (items.length === 0) return {};
  return { '$setElementOrder/conditions': to.map(({ type }) => ({ type })), conditions: items };
}

function addressesPatch(from: readonly unknown[], to: readonly unknown[]): unknown[] | undefined {
  if (jsonEqual(from, to)) return undefined;
  const addresses = to.map((address) => cloneJson(address));
  return from.length === 0 ? addresses : [...addresses, { $patch: 'replace' }];
}
