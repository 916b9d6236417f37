/**
 * Marks the pods of a node not ready. A pod and its event are one commit.
 * Source: MarkPodsNotReady in pkg/controller/util/node/controller_utils.go.
 */
import { podNotReady } from '../events/event-text.ts';
import { eventWrite, subjectOf } from '../events/record-event.ts';
import type { KubeObject, ObjectRef } from '../kinds/types.ts';
import type { ObjectWrite } from '../store/object-store.ts';
import { inParts, UNBOUNDED, type WorkBudget, workInHalves } from '../ticks/bounded-work.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';
import { markPodNotReady, type PodConditionParts } from './nodes/conditions.ts';
import { podsMarked } from './nodes/health-store.ts';
import { type ReportDependencies, reportUnwritable } from './nodes/report-unwritable.ts';

/** 3 actions per pod, 2 per event, and up to 12 heads: 77 of 100. Larger parts are marked in halves. */
const PODS_PER_COMMIT_MAX = 13;
/** In addition to one for each pod that may be too large. */
const COMMIT_ATTEMPTS_MAX = 6;

const podRef = (pod: KubeObject): ObjectRef => ({
  resource: 'pods',
  namespace: pod.metadata.namespace ?? '',
  name: pod.metadata.name ?? '',
});

function marked(pod: KubeObject, nowMs: number): KubeObject | undefined {
  const conditions = pod.status?.['conditions'] as PodConditionParts[] | undefined;
  const next = markPodNotReady(conditions, nowMs);
  return next === undefined ? undefined : { ...pod, status: { ...pod.status, conditions: next } };
}

/** Whether a pod is Ready: a mark changes it. */
export const isMarkable = (pod: KubeObject): boolean => marked(pod, 0) !== undefined;

/**
 * Marks the pods of a node, and records that none is left.
 * @throws AggregateError when single pods could not be written
 */
export async function markPodsOfNode(
  dependencies: WorkDependencies,
  { nodeName, uid }: { readonly nodeName: string; readonly uid: string },
  { nowMs, budget }: { readonly nowMs: number; readonly budget: WorkBudget },
): Promise<void> {
  const pods = (await dependencies.objects.listByNode(nodeName)).filter(isMarkable);
  const { left, faults } = await markPods(dependencies, pods, nowMs, budget);
  if (left === 0) await dependencies.items.write(podsMarked(nodeName, uid));
  if (faults.length > 0) throw new AggregateError(faults, `pods of ${nodeName} could not be marked`);
}

export interface PodMarks {
  readonly marked: number;
  /** Not written because of concurrent commits or a fault: try again. Pods that are too large are not counted. */
  readonly left: number;
  /** Faults of single pods; the other pods were marked. */
  readonly faults: readonly unknown[];
}

/** Marks these pods. A pod that was replaced or moved to another node since it was read is skipped. */
export async function markPods(
  dependencies: ReportDependencies,
  pods: readonly KubeObject[],
  nowMs: number,
  budget: WorkBudget = UNBOUNDED,
): Promise<PodMarks> {
  let marked = 0;
  let left = 0;
  const faults: unknown[] = [];
  for (const part of inParts(pods, PODS_PER_COMMIT_MAX)) {
    const outcome = await workInHalves(part, budget, async (some) => {
      const done = await markPart(dependencies, some, nowMs);
      if (done === 'split') return 'split';
      marked += done.marked;
      return 'done';
    });
    left += outcome.left;
    faults.push(...outcome.faults);
  }
  return { marked, left, faults };
}

async function markPart(
  dependencies: ReportDependencies,
  part: readonly KubeObject[],
  nowMs: number,
): Promise<{ readonly marked: number } | 'split'> {
  const { objects, random } = dependencies;
  let waiting = part.map((pod) => ({ pod, hasEvent: false }));
  for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX + part.length; attempt += 1) {
    const writes: ObjectWrite[] = [];
    const events: ObjectWrite[] = [];
    const kept: typeof waiting = [];
    for (const each of waiting) {
      const next = marked(each.pod, nowMs);
      if (next === undefined) continue;
      kept.push(each);
      writes.push({ kind: 'update', ref: podRef(each.pod), object: next, previous: each.pod });
      if (each.hasEvent) continue;
      const about = subjectOf('Pod', each.pod);
      events.push(eventWrite({ ...podNotReady, about, once: nowMs }, { nowMs, eventUid: random.uuid() }));
    }
    waiting = kept;
    if (waiting.length === 0) return { marked: 0 };
    const outcome = await objects.commit({ writes: [...writes, ...events] });
    if (outcome.kind === 'committed') return { marked: waiting.length };
    if (outcome.kind === 'overfull') return 'split';
    if (outcome.kind === 'tooLarge') {
      const object = waiting[outcome.index]!.pod;
      await reportUnwritable(dependencies, { kind: 'Pod', object, what: 'mark the pod not ready', nowMs });
      waiting = waiting.filter((_, index) => index !== outcome.index);
      continue;
    }
    if (outcome.kind !== 'conflict') continue;
    // All are read again: when one pod has changed, others may have too.
    const nodeNames = waiting.map(({ pod }) => pod.spec?.['nodeName']);
    const uids = waiting.map(({ pod }) => pod.metadata.uid);
    const isEvent = outcome.index >= writes.length;
    const stored = await objects.getMany(waiting.map(({ pod }) => podRef(pod)));
    waiting = stored.flatMap((pod, index) =>
      pod === undefined || pod.metadata.uid !== uids[index] || pod.spec?.['nodeName'] !== nodeNames[index]
        ? []
        : [{ pod, hasEvent: waiting[index]!.hasEvent || isEvent }],
    );
  }
  return 'split';
}
