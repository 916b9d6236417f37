/**
 * Nodes that do not exist although pods have their name. These pods count nowhere. If such a Node is created again
 * after a decision, they count in its zone, and a rule across nodes may no longer hold. So the binding has the
 * condition that the Node still does not exist (bind.ts).
 */

import type { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { requiredCounts } from './pod-affinity.rule.ts';
import { hardSpreadCounts } from './topology-spread.rule.ts';

/** Names of missing Nodes with pods that a hard rule of either side relates to this pod. Almost always none. */
export function relatedMissingNodes(pod: SchedulablePod, snapshot: Snapshot): readonly string[] {
  const { missingNodes } = snapshot;
  if (missingNodes.size === 0) return [];
  const counts = [...requiredCounts(pod, snapshot), ...hardSpreadCounts(pod, snapshot)];
  return [...missingNodes].filter((name) => counts.some((byNode) => byNode.has(name)));
}
