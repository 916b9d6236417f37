/**
 * A node begins or ends flapping: taint, condition, event and record, in one commit with its row. The row decides: a
 * commit is refused when the node was marked since the row was read, and two ticks never begin twice.
 */

import type { TickMark } from '../../shared/decisions/ledger.ts';
import { nodeFlapping } from '../../shared/events/event-text.ts';
import { eventWrite } from '../../shared/events/record-event.ts';
import { flappingDraft } from '../../shared/fleet/mark-decisions.ts';
import type { MonitorDecision } from '../../shared/fleet/marks.rule.ts';
import { changeNode, withTaints } from '../../shared/fleet/nodes/change-node.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { flapsChanged } from '../../shared/fleet/nodes/health-store.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import { flapHistoryOf, flappingState, flapText, packedFlaps } from '../../shared/fleet/silences/flapping.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import type { MonitorDependencies } from './dependencies.ts';

export async function setFlapping(
  dependencies: MonitorDependencies,
  decision: Extract<MonitorDecision, { kind: 'setFlapping' }>,
  { seen, nowMs, tick }: { readonly seen: NodeHealth; readonly nowMs: number; readonly tick: TickMark },
): Promise<void> {
  const { objects, ledger, policy, random } = dependencies;
  const { nodeName, uid, verdict } = decision;
  const history = flapHistoryOf(seen.flaps, nowMs, policy);
  const isBegin = verdict.kind === 'begin';
  const hasMarks = isBegin || verdict.sinceSeconds !== undefined;
  const flaps = hasMarks ? packedFlaps({ ...history, isFlapping: isBegin }, policy) : undefined;
  const events: ObjectWrite[] = [];
  if (isBegin) {
    const text = nodeFlapping(flapText(verdict, policy), { stableSeconds: policy.flapStableSeconds });
    const about = { kind: 'Node', namespace: '', name: nodeName, uid } as const;
    events.push(eventWrite({ ...text, about, once: nowMs }, { nowMs, eventUid: random.uuid() }));
  }
  const extra = [flapsChanged(seen, flaps), ledger.write(flappingDraft(decision, history, { nowMs, policy }), tick)];
  const outcome = await changeNode(objects, { nodeName, uid, nowMs }, (node) => ({
    next: withFlapping(node, decision, { nowMs, policy }),
    events,
    extra,
  }));
  if (outcome.kind !== 'tooLarge') return;
  const what = isBegin ? 'taint the flapping node' : 'remove the taint of a flapping node';
  await reportUnwritable(dependencies, { kind: 'Node', object: outcome.node, what, nowMs });
}

function withFlapping(
  node: KubeNode,
  { verdict }: Extract<MonitorDecision, { kind: 'setFlapping' }>,
  at: Parameters<typeof flappingState>[2],
): KubeNode {
  const stored = { taints: node.spec?.taints ?? [], conditions: node.status?.conditions ?? [] };
  const { taints, conditions } = flappingState(stored, verdict, at);
  return withTaints({ ...node, status: { ...node.status, conditions: [...conditions] } }, taints);
}
