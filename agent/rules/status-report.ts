/** Whether a computed status is worth a write, and when (pkg/kubelet/kubelet_node_status.go). */
import type { KubeNode, NodeCondition, NodeStatus } from '../../shared/kube/types.ts';
import { isJsonObject, jsonEqual } from '../../shared/kube/wire/json-value.ts';
import { sameQuantity } from './node-resources.ts';

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (Array.isArray(value) && value.length === 0) ||
  (isJsonObject(value) && Object.keys(value).length === 0);

/** Equal by value, where missing and empty lists or maps are the same. */
function equalByValue(left: unknown, right: unknown): boolean {
  if (isEmpty(left) && isEmpty(right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => equalByValue(item, right[index]));
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return jsonEqual(left, right);
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((key) =>
    equalByValue(left[key], right[key]),
  );
}

function sameResources(
  left: Readonly<Record<string, string>> | undefined,
  right: Readonly<Record<string, string>> | undefined,
): boolean {
  const names = new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})]);
  return [...names].every((name) => sameQuantity(left?.[name], right?.[name]));
}

/** By type, without the time of the heartbeat, which moves in every pass. */
const comparable = (conditions: readonly NodeCondition[] | undefined): unknown[] =>
  (conditions ?? [])
    .map(({ lastHeartbeatTime: _moves, ...rest }) => rest)
    .sort((left, right) => (left.type < right.type ? -1 : left.type > right.type ? 1 : 0));

export function statusChanged(before: NodeStatus | undefined, after: NodeStatus | undefined): boolean {
  if (before === undefined || after === undefined) return before !== after;
  const { conditions, capacity, allocatable, ...rest } = before;
  const { conditions: conditionsAfter, capacity: capacityAfter, allocatable: allocatableAfter, ...restAfter } = after;
  return !(
    equalByValue(comparable(conditions), comparable(conditionsAfter)) &&
    sameResources(capacity, capacityAfter) &&
    sameResources(allocatable, allocatableAfter) &&
    equalByValue(rest, restAfter)
  );
}

/** Labels that must be on the node and right, and are not. */
export function labelsToSet(
  labels: Readonly<Record<string, string>> | undefined,
  platform: { readonly operatingSystem: string; readonly architecture: string },
): Record<string, string> {
  const wanted = { 'kubernetes.io/os': platform.operatingSystem, 'kubernetes.io/arch': platform.architecture };
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => labels?.[key] !== value));
}

export interface ReportState {
  /** On the monotonic clock; undefined before this process reported for the first time. Milliseconds. */
  readonly lastReportAtMs: number | undefined;
  /** The random extra in force, which keeps a fleet that started together from reporting together. Milliseconds. */
  readonly delayMs: number;
}

/** Whether what makes a node worth a write differs. Annotations alone do not; they go along with the next write. */
export function nodeChanged(before: KubeNode, after: KubeNode): boolean {
  return statusChanged(before.status, after.status) || !equalByValue(before.metadata.labels, after.metadata.labels);
}

/**
 * Undefined when there is nothing to write; else the random extra that will be in force after the write: a new one when
 * something changed or nothing was ever reported, none when only the time was up.
 *
 * @param fraction yields a number in [0, 1)
 */
export function reportDue(
  state: ReportState,
  input: {
    readonly changed: boolean;
    /** On the monotonic clock. Milliseconds. */
    readonly nowMs: number;
    readonly reportFrequencyMs: number;
    readonly fraction: () => number;
  },
): { readonly delayMs: number } | undefined {
  const { changed, nowMs, reportFrequencyMs, fraction } = input;
  if (changed || state.lastReportAtMs === undefined) return { delayMs: (fraction() - 0.5) * reportFrequencyMs };
  return nowMs - state.lastReportAtMs >= reportFrequencyMs + state.delayMs ? { delayMs: 0 } : undefined;
}
