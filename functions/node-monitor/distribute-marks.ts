/**
 * Which of a tick's marks the tick writes itself, and which it sends to node-marker (docs/decisions/0027).
 *
 *   in a valid part of an earlier tick ── nothing to do: node-marker has them, or will not act on them any more
 *   a shortened grace period ── the tick marks it: node-marker does not read the reports of other machines
 *   of the others, at most nodesMarkedPerTickMax ── the tick marks them
 *   more ── parts to the queue; the tick marks the nodes of parts that the queue did not accept
 *
 * A tick that is killed before it finishes, or has a part refused, stores no times: the next one sends its nodes again.
 * A repeated part is harmless: node-marker finds its nodes marked.
 */

import type { TickMark } from '../../shared/decisions/ledger.ts';
import type { SentParts } from '../../shared/fleet/fleet-store.ts';
import * as metric from '../../shared/fleet/mark-metrics.ts';
import type { Marking, MarkToDo } from '../../shared/fleet/mark-nodes.ts';
import { isSent, nodesParts, partValidMs, sentAfter } from '../../shared/fleet/mark-parts.ts';
import { deadlineMs } from '../../shared/fleet/nodes/health.ts';
import { NODES } from '../../shared/kinds/nodes/resource.ts';
import { shardOf } from '../../shared/store/layout.ts';
import type { MonitorDependencies } from './dependencies.ts';

export interface Distribution {
  /** To be marked by this tick. */
  readonly here: readonly MarkToDo[];
  readonly sent: number;
  /** In valid parts of earlier ticks. */
  readonly awaited: number;
  /** To be stored with the end of the tick; undefined: this tick did not send every part. */
  readonly sentAfter: SentParts | undefined;
}

export async function distributeMarks(
  { partQueue, policy, clock, log, meter }: MonitorDependencies,
  todo: readonly MarkToDo[],
  at: Marking & { readonly tick: Required<TickMark>; readonly sentBefore: SentParts | undefined },
): Promise<Distribution> {
  if (partQueue === undefined) return { here: todo, sent: 0, awaited: 0, sentAfter: undefined };
  const { nowMs, sentBefore } = at;
  const validMs = partValidMs(policy.nodeMonitorPeriodSeconds);
  const shortened = todo.filter(isShortened);
  const due = todo.filter(
    (each) =>
      !isShortened(each) &&
      !isSent(deadlineMs(each.seen, each.decision.freshSinceMs, policy), sentBefore, { nowMs, validMs }),
  );
  const awaited = todo.length - shortened.length - due.length;
  if (due.length <= policy.nodesMarkedPerTickMax) {
    return { here: [...shortened, ...due], sent: 0, awaited, sentAfter: undefined };
  }
  const parts = nodesParts(due, {
    ...at,
    validMs,
    shardOf: (nodeName) => shardOf(nodeName, NODES.shards),
  });
  const refused = await partQueue.send(
    parts.map(({ part }) => JSON.stringify(part)),
    clock.nowMs(),
  );
  const notSent = refused.flatMap((index) => parts[index]!.todo);
  const sent = due.length - notSent.length;
  meter.add(metric.SENT_NODES, sent, 'Count');
  log.warn('silent nodes sent to node-marker', { nodes: sent, parts: parts.length - refused.length });
  if (refused.length > 0) log.error('the queue of node-marker refused parts', { parts: refused.length });
  // Two times describe all parts. What was refused must not look sent: it may not be marked within this tick.
  const isAllSent = refused.length === 0;
  const after = isAllSent ? sentAfter(sentBefore, { nowMs, validMs }) : undefined;
  return { here: [...shortened, ...notSent], sent, awaited, sentAfter: after };
}

const isShortened = ({ decision }: MarkToDo): boolean => decision.accusation?.shortens === true;
