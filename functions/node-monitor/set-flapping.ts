/**
 * A node begins or ends flapping: taint, condition, event and record, in one commit with its row. The row decides: a
 * commit is refused when the node was marked since the row was read, and two ticks never begin twice.
 */

import type { TickMark } from '../../shared/decisions/ledger.ts';
import { nodeFlapping } from '../../shared/events/event-text.ts';
import { eventWrite } from '../../shared/events/record-event.ts';
import { flappingDraft } from '../../shared/fleet/marks/decisions.ts';
import type { MonitorDecision } from '../../shared/fleet/marks/rule.ts';
import { changeNode, withTaints } from '../../shared/fleet/nodes/change-node.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health-row.ts';
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
  const isRecent = (mark: number): boolean =>
    policy.flapThreshold > 0 && (mark + policy.flapWindowSeconds) * 1_000 >= nowMs;
  const flaps =
    verdict.kind === 'begin'
      ? packedFlaps({ ...history, isFlapping: true }, policy)
      : packedFlaps({ isFlapping: false, marksSeconds: history.marksSeconds.filter(isRecent) }, policy);
  const events: ObjectWrite[] = [];
  if (verdict.kind === 'begin') {
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
  const what = verdict.kind === 'begin' ? 'taint the flapping node' : 'remove the taint of a flapping node';
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
