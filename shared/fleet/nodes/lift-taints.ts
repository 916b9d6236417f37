/**
 * Removes or replaces our NoExecute taints at once, without a rate limit.
 *
 * Ends a promise of silence: its time is over, or the node sends heartbeats again.
 */
import type { TickMark } from '../../decisions/ledger.ts';
import type { KubeNode } from '../../kinds/types.ts';
import type { WorkDependencies } from '../../ticks/dependencies.ts';
import { changeNode, type NodeChangeOutcome, withTaints } from './change-node.ts';
import { readyStatusOf } from './conditions.ts';
import { withoutPlannedSilence } from './node-digest.ts';
import { liftNoExecute, type NoExecuteKind, noExecuteOf, swapNoExecute, wantedNoExecute } from './node-taints.ts';
import { plannedUntilMs } from './planned-silence.ts';
import { type ReportDependencies, reportUnwritable } from './report-unwritable.ts';
import { liftDraft, swapDraft } from './taint-decisions.ts';

interface Target {
  readonly nodeName: string;
  readonly uid: string;
  readonly nowMs: number;
  /** For the decision record. */
  readonly tick?: TickMark;
}

const situationOf = ({ nodeName, uid, nowMs }: Target, node: KubeNode) => ({
  nodeName,
  uid,
  nowMs,
  ready: readyStatusOf(node.status?.conditions),
  noExecute: noExecuteOf(node.spec?.taints ?? []),
});

/** Removes both. With reason `ready` only while the node is Ready; in total disruption from any node. */
export const liftTaints = (
  { objects, ledger }: Pick<WorkDependencies, 'objects' | 'ledger'>,
  target: Target,
  reason: 'ready' | 'totalDisruption',
): Promise<NodeChangeOutcome> =>
  changeNode(objects, target, (node) => {
    if (reason === 'ready' && readyStatusOf(node.status?.conditions) !== 'True') return undefined;
    const taints = liftNoExecute(node.spec?.taints ?? []);
    if (taints === undefined) return undefined;
    const record = ledger.write(liftDraft(situationOf(target, node), reason), target.tick);
    return { next: withTaints(node, taints), extra: [record] };
  });

/** Replaces the other taint by `to`, while the node's Ready status requires `to`. The time of the taint stays. */
export async function swapTaints(
  dependencies: ReportDependencies,
  target: Target,
  to: NoExecuteKind,
): Promise<NodeChangeOutcome> {
  const { objects, ledger } = dependencies;
  let stored: KubeNode | undefined;
  const outcome = await changeNode(objects, target, (node) => {
    stored = node;
    if (wantedNoExecute(readyStatusOf(node.status?.conditions)) !== to) return undefined;
    const taints = swapNoExecute(node.spec?.taints ?? [], to, target.nowMs);
    if (taints === undefined) return undefined;
    const from = to === 'notReady' ? 'unreachable' : 'notReady';
    const record = ledger.write(swapDraft(situationOf(target, node), from, to), target.tick);
    return { next: withTaints(node, taints), extra: [record] };
  });
  if (outcome.kind === 'tooLarge' && stored !== undefined) {
    const { nowMs } = target;
    await reportUnwritable(dependencies, { kind: 'Node', object: stored, what: 'replace its NoExecute taint', nowMs });
  }
  return outcome;
}

interface EndedSilence {
  readonly nodeName: string;
  readonly uid: string;
  /** The promise to end. A newer one stays. Epoch milliseconds. */
  readonly plannedUntilMs: number;
}

/** The row stores whole seconds. */
const sameSecond = (one: number, other: number): boolean => Math.ceil(one / 1_000) === Math.ceil(other / 1_000);

/** Removes annotations, taint and condition in one write. The record follows from the change of the Node. */
export async function endPlannedSilence(
  dependencies: ReportDependencies,
  { nodeName, uid, plannedUntilMs: ended }: EndedSilence,
  nowMs: number,
): Promise<void> {
  let stored: KubeNode | undefined;
  const outcome = await changeNode(dependencies.objects, { nodeName, uid, nowMs }, (node) => {
    stored = node;
    const untilMs = plannedUntilMs(node.metadata.annotations);
    if (untilMs === undefined || !sameSecond(untilMs, ended)) return undefined;
    return { next: withoutPlannedSilence(node, nowMs) };
  });
  if (outcome.kind === 'tooLarge' && stored !== undefined) {
    await reportUnwritable(dependencies, { kind: 'Node', object: stored, what: 'end its planned silence', nowMs });
  }
}
