/** Whether a computed status is worth a write, and when (pkg/kubelet/kubelet_node_status.go). */
import type { KubeNode, NodeCondition, NodeStatus } from '../../shared/kinds/types.ts';
import { isJsonObject, jsonEqual } from '../../shared/kubernetes/json.ts';
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

/** Sorted by type, without lastHeartbeatTime, which changes in every pass. */
const comparable = (conditions: readonly NodeCondition[] | undefined): unknown[] =>
  (conditions ?? [])
    .map(({ lastHeartbeatTime: _moves, ...rest }) => rest)
    .sort((left, right) => (left.type < right.type ? -1 : 1));

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

/** Labels of the machine that are missing on the node or wrong. */
export function labelsToSet(
  labels: Readonly<Record<string, string>> | undefined,
  platform: { readonly operatingSystem: string; readonly architecture: string },
): Record<string, string> {
  const wanted = { 'kubernetes.io/os': platform.operatingSystem, 'kubernetes.io/arch': platform.architecture };
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => labels?.[key] !== value));
}

export interface ReportState {
  /** Monotonic milliseconds; undefined before the first report of this process. */
  readonly lastReportAtMs: number | undefined;
  /** The current random delay. It spreads the reports of a fleet that started together. Milliseconds. */
  readonly delayMs: number;
}

/** Whether a change is worth a write. A change of annotations alone is not; the next write includes it. */
export function nodeChanged(before: KubeNode, after: KubeNode): boolean {
  return statusChanged(before.status, after.status) || !equalByValue(before.metadata.labels, after.metadata.labels);
}

/**
 * Undefined if no write is due. Otherwise the random delay after the write: a new one if the status changed or was
 * never reported, none if only the report interval was over.
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
