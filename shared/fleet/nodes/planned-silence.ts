/**
 * Planned silence: a machine that will sleep, reboot or leave its network announces when it will send heartbeats
 * again. Until then it is not marked, and no pod of it is evicted.
 *
 * The promise is an annotation of the Node. It ends
 *   - at its time;
 *   - when the annotation is removed;
 *   - when the node sends a heartbeat after it was silent for more than one grace period.
 * From the end on, silence is counted anew: the node is marked one grace period later, plus one period at most.
 *
 * The promise is bounded for a node itself, because a compromised machine could hide its own loss. The row has the
 * end, so the deadline is max(last sign of life, end) + grace period and does not depend on when a tick runs. Taint
 * and condition follow from the annotation in the same write. A promise in the Lease would cost something in each
 * heartbeat. NoExecute taints are not removed at the begin: that would undo evictions that have begun elsewhere.
 *
 * health-stream finds the return after a silence, because the digest of a node with a promise is suspect. node-monitor
 * finds it too, if that record is lost. If both miss it, the promise ends at its time. Silence before a full grace
 * period that our own outage started does not count.
 */
import type { NodeCondition, Taint } from '../../kubernetes/kubernetes.ts';
import { parseRfc3339, rfc3339 } from '../../kubernetes/rfc3339.ts';
import { conditionOf } from './conditions.ts';
import { addTaint, hasTaint, removeTaints, type TaintIdentity, type TaintList } from './taint.ts';

export const PLANNED_UNTIL_ANNOTATION = 'nodekeeper.dev/planned-silence-until';
export const PLANNED_REASON_ANNOTATION = 'nodekeeper.dev/planned-silence-reason';
export const PLANNED_SILENCE_TAINT: TaintIdentity = Object.freeze({
  key: 'nodekeeper.dev/planned-silence',
  effect: 'NoSchedule',
});
export const PLANNED_SILENCE_CONDITION = 'PlannedSilence';

/** Longest promise of a person. Seconds; 30 days. */
export const PLANNED_SILENCE_SECONDS_MAX = 30 * 86_400;
const REASON_CHARACTERS_MAX = 200;

type Annotations = Readonly<Record<string, string>> | undefined;

/** The promised end; undefined without a promise, or with a text that is no time. Epoch milliseconds. */
export function plannedUntilMs(annotations: Annotations): number | undefined {
  const text = annotations?.[PLANNED_UNTIL_ANNOTATION];
  return text === undefined ? undefined : parseRfc3339(text);
}

export interface PromiseFault {
  readonly annotation: string;
  readonly value: string;
  readonly rule: string;
}

/**
 * Why a promise is not accepted; undefined for one that is, and for one that does not change. `maxSeconds`: how far
 * ahead of our clock its author may promise.
 */
export function promiseFault(
  next: Annotations,
  stored: Annotations,
  at: { readonly nowMs: number; readonly maxSeconds: number },
): PromiseFault | undefined {
  const reason = next?.[PLANNED_REASON_ANNOTATION];
  if (reason !== undefined && reason !== stored?.[PLANNED_REASON_ANNOTATION] && reason.length > REASON_CHARACTERS_MAX) {
    const rule = `must be at most ${REASON_CHARACTERS_MAX} characters`;
    return { annotation: PLANNED_REASON_ANNOTATION, value: reason, rule };
  }
  const value = next?.[PLANNED_UNTIL_ANNOTATION];
  if (value === undefined || value === stored?.[PLANNED_UNTIL_ANNOTATION]) return undefined;
  const fault = (rule: string): PromiseFault => ({ annotation: PLANNED_UNTIL_ANNOTATION, value, rule });
  const untilMs = parseRfc3339(value);
  if (untilMs === undefined) return fault('must be a time in RFC 3339, such as 2026-01-31T18:00:00Z');
  if (at.maxSeconds === 0) return fault('nodes may not promise silence: maxPlannedSilenceSeconds of the policy is 0');
  const latest = rfc3339(at.nowMs + at.maxSeconds * 1_000);
  if (untilMs > at.nowMs + at.maxSeconds * 1_000) return fault(`must be at most ${at.maxSeconds} s ahead: ${latest}`);
  return untilMs <= at.nowMs ? fault(`must be in the future, at most ${latest}`) : undefined;
}

interface Silenceable {
  readonly annotations: Annotations;
  readonly taints: TaintList;
  readonly conditions: readonly NodeCondition[];
}

export interface SilenceMarks {
  readonly taints: readonly Taint[];
  readonly conditions: readonly NodeCondition[];
}

/** Taint and condition of a Node that follow from its promise; undefined if it has them. */
export function silenceMarks(node: Silenceable, nowMs: number): SilenceMarks | undefined {
  const untilMs = plannedUntilMs(node.annotations);
  const stands = untilMs !== undefined && untilMs > nowMs;
  const condition = conditionOf(node.conditions, PLANNED_SILENCE_CONDITION);
  const text = stands ? messageOf(untilMs, node.annotations) : 'The planned silence has ended.';
  const status = stands ? 'True' : 'False';
  const isTainted = hasTaint(node.taints, PLANNED_SILENCE_TAINT);
  const hasCondition = stands
    ? condition?.status === 'True' && condition.message === text
    : condition === undefined || condition.status === 'False';
  if (isTainted === stands && hasCondition) return undefined;
  const changed: NodeCondition = {
    type: PLANNED_SILENCE_CONDITION,
    status,
    reason: stands ? 'Announced' : 'Ended',
    message: text,
    lastTransitionTime: condition?.status === status ? (condition.lastTransitionTime ?? null) : rfc3339(nowMs),
  };
  const others = node.conditions.filter(({ type }) => type !== PLANNED_SILENCE_CONDITION);
  return {
    taints: stands
      ? addTaint(node.taints, { ...PLANNED_SILENCE_TAINT })
      : removeTaints(node.taints, [PLANNED_SILENCE_TAINT]),
    conditions: hasCondition ? node.conditions : [...others, changed],
  };
}

function messageOf(untilMs: number, annotations: Annotations): string {
  const reason = annotations?.[PLANNED_REASON_ANNOTATION] ?? '';
  return `No heartbeat is expected until ${rfc3339(untilMs)}${reason === '' ? '' : `: ${reason}`}`;
}

/** Annotations without the promise. */
export function withoutPromise(annotations: Annotations): Record<string, string> {
  const { [PLANNED_UNTIL_ANNOTATION]: _until, [PLANNED_REASON_ANNOTATION]: _reason, ...others } = annotations ?? {};
  return others;
}
