/** Ends a promise of silence: its time is over, or the node sends heartbeats again. */

import type { KubeNode } from '../../kinds/types.ts';
import { changeNode } from '../nodes/change-node.ts';
import { withoutPlannedSilence } from '../nodes/node-digest.ts';
import { plannedUntilMs } from '../nodes/planned-silence.ts';
import { type ReportDependencies, reportUnwritable } from '../nodes/report-unwritable.ts';

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
