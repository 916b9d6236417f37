/**
 * node-marker: the marks of a mass failure, in parts that node-monitor sends (shared/fleet/mark-parts.ts).
 *
 *   a part of nodes ── still valid? ── gate open? ── read the nodes again ── mark silent ones ── send the follow-up
 *   a follow-up     ── record the events of these marks ── mark the pods of these nodes
 *
 * The tick has decided, and this process must not mark more than the tick would:
 *   - A part has a deadline. After it, the tick sends the nodes again.
 *   - The record of the safety gate is read for each part. While the gate is closed, or ticks are missing, nothing is
 *     marked. A new grace period since the decision counts.
 *   - The rule is evaluated on rows that are read now, for the moment of the decision: a node that has sent a heartbeat
 *     since is not silent. The clock of this process decides about no node.
 *   - The mark itself is conditional on these rows, as the mark of a tick is.
 *
 * A part may arrive late, twice, at once in two processes, or be received again after a kill. Nodes that are marked are
 * no candidates. The events of a part have names that follow from it, so they are recorded once.
 */
import { nodeNotReady } from '../../shared/events/event-text.ts';
import { recordEvents } from '../../shared/events/record-event.ts';
import type { FleetState } from '../../shared/fleet/fleet-store.ts';
import { gateVerdictFor, gateVerdictOf } from '../../shared/fleet/gate.ts';
import { type MarkedNode, type MarkToDo, markNodes, reportMarks } from '../../shared/fleet/mark-nodes.ts';
import { type FollowUpPart, followUpOf, type MarkPart, type NodesPart, partIn } from '../../shared/fleet/mark-parts.ts';
import { markPodsOfNode } from '../../shared/fleet/mark-pods.ts';
import { decideMark } from '../../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { readHealth } from '../../shared/fleet/nodes/health-store.ts';
import { NODES } from '../../shared/kinds/nodes/resource.ts';
import { shardOf } from '../../shared/store/layout.ts';
import { groupedBy, type WorkBudget, workThrough, workUntil } from '../../shared/ticks/bounded-work.ts';
import type { MarkerDependencies } from './dependencies.ts';

/** Nodes with pods to mark, at once. */
const PODS_CONCURRENCY_MAX = 8;
/** A part that fails this often is left to the next tick. */
const RECEIVES_MAX = 4;
const RETRY_SECONDS = 1;

export interface ReceivedPart {
  readonly body: string;
  /** 1 for the first delivery. */
  readonly receives: number;
  /** Time limit of the caller. Milliseconds. */
  readonly budgetMs?: number | undefined;
}

export type PartOutcome =
  | { readonly kind: 'done'; readonly marked: number }
  /** The deadline of the part is over, or the gate is closed. */
  | { readonly kind: 'dropped'; readonly reason: 'expired' | 'gate' }
  | { readonly kind: 'malformed' }
  /** Parts of the work failed. `retrySeconds` undefined: the next tick does it. */
  | { readonly kind: 'failed'; readonly faults: readonly unknown[]; readonly retrySeconds: number | undefined };

/** Never rejects: a part that fails does not fail the others of its batch. */
export async function onMarkPart(dependencies: MarkerDependencies, received: ReceivedPart): Promise<PartOutcome> {
  const part = partIn(received.body);
  if (part === undefined) return { kind: 'malformed' };
  try {
    const outcome = await workOn(dependencies, part, received);
    return outcome.kind === 'failed' ? failed(outcome.faults, received) : outcome;
  } catch (fault) {
    return failed([fault], received);
  }
}

const failed = (faults: readonly unknown[], { receives }: ReceivedPart): PartOutcome => ({
  kind: 'failed',
  faults,
  retrySeconds: receives < RECEIVES_MAX ? RETRY_SECONDS * 2 ** (receives - 1) : undefined,
});

type WorkOutcome =
  | Extract<PartOutcome, { kind: 'done' | 'dropped' }>
  | { readonly kind: 'failed'; readonly faults: readonly unknown[] };

function workOn(dependencies: MarkerDependencies, part: MarkPart, received: ReceivedPart): Promise<WorkOutcome> {
  const nowMs = dependencies.clock.nowMs();
  const budget = workUntil(dependencies.clock, Math.min(part.untilMs, nowMs + (received.budgetMs ?? Infinity)));
  return part.part === 'nodes'
    ? markPart(dependencies, part, { nowMs, budget, receives: received.receives })
    : followUp(dependencies, part, budget);
}

interface PartWork {
  readonly nowMs: number;
  readonly budget: WorkBudget;
  readonly receives: number;
}

async function markPart(dependencies: MarkerDependencies, part: NodesPart, at: PartWork): Promise<WorkOutcome> {
  const { fleet, items, policy } = dependencies;
  const isExpired = at.nowMs >= part.untilMs;
  if (isExpired && at.receives === 1) return { kind: 'dropped', reason: 'expired' };
  const [state, rows] = await Promise.all([fleet.readState(), readHealth(items, [...part.ready, ...part.notReady])]);
  const todo = isExpired ? [] : silentNodes(dependencies, part, rows, { state, nowMs: at.nowMs });
  const isHeld = todo.length === 0 && gateVerdictFor(state.gate, { nowMs: at.nowMs, policy }).kind === 'holding';
  const outcome = await markNodes(
    dependencies,
    todo,
    {
      nowMs: part.decidedAtMs,
      budget: at.budget,
      tick: { slot: part.slot, fence: part.fence },
      zones: new Map(part.zones.map((zone) => [zone.zone, zone])),
    },
    { events: 'later' },
  );
  if (todo.length > 0) reportMarks(dependencies, outcome, { sinceDecisionMs: at.nowMs - part.decidedAtMs });
  const faults = [...outcome.faults];
  // Marked by an earlier delivery of this part, which may have been killed before it sent the follow-up.
  const before =
    at.receives === 1 ? [] : [...rows.values()].filter(({ markedAtMs }) => markedAtMs === part.decidedAtMs);
  faults.push(...(await sendFollowUp(dependencies, part, { before, marked: outcome.marked, budget: at.budget })));
  if (faults.length > 0 || outcome.left > 0) return { kind: 'failed', faults };
  if (isExpired || isHeld) return { kind: 'dropped', reason: isExpired ? 'expired' : 'gate' };
  return { kind: 'done', marked: outcome.marked.length };
}

function silentNodes(
  { policy }: MarkerDependencies,
  { decidedAtMs: nowMs }: NodesPart,
  rows: ReadonlyMap<string, NodeHealth>,
  at: { readonly state: FleetState; readonly nowMs: number },
): MarkToDo[] {
  const { gate, disruption } = at.state;
  return [...rows.values()].flatMap((seen) => {
    if (gateVerdictOf(gate, seen.profile, { nowMs: at.nowMs, policy }).kind === 'holding') return [];
    const decision = decideMark(seen, { nowMs, policy, gate, disruption });
    return decision === undefined ? [] : [{ decision, seen }];
  });
}

/**
 * Events and pods wait behind the marks of the other parts. If the queue refuses them, this process does them now.
 * Returns the faults.
 */
async function sendFollowUp(
  dependencies: MarkerDependencies,
  part: NodesPart,
  { before, marked, budget }: FollowUpWork,
): Promise<readonly unknown[]> {
  const wasReady = new Set(part.ready);
  const earlier = before.filter(({ nodeName }) => wasReady.has(nodeName));
  const now = marked.filter(({ decision }) => decision.event !== undefined).map(({ decision }) => decision);
  const events = [...now, ...earlier].map(({ nodeName, uid }) => ({ nodeName, uid }));
  const pods = [
    ...marked.filter((each) => each.pods.length > 0).map(({ decision }) => decision.nodeName),
    ...earlier.filter(({ podsToMark }) => podsToMark === true).map(({ nodeName }) => nodeName),
  ];
  if (events.length === 0 && pods.length === 0) return [];
  const next = followUpOf(part, { events, pods });
  const refused = (await dependencies.partQueue?.send([JSON.stringify(next)], dependencies.clock.nowMs())) ?? [0];
  if (refused.length === 0) return [];
  const outcome = await followUp(dependencies, next, budget);
  return outcome.kind === 'failed' ? outcome.faults : [];
}

interface FollowUpWork {
  /** Nodes that an earlier delivery of the part marked. */
  readonly before: readonly NodeHealth[];
  readonly marked: readonly MarkedNode[];
  readonly budget: WorkBudget;
}

/** The shard that the tick would choose for the event of a node (mark-nodes.ts): a part, of one shard, has one. */
const eventShardOf = (nodeName: string): number => shardOf(nodeName, NODES.shards);

/** The gate does not matter: the marks are stored. A tick repeats the pods that are left. */
async function followUp(
  dependencies: MarkerDependencies,
  { events, pods, decidedAtMs }: FollowUpPart,
  budget: WorkBudget,
): Promise<WorkOutcome> {
  if (!budget.hasTime()) return { kind: 'dropped', reason: 'expired' };
  const faults: unknown[] = [];
  const pending = events.map(({ nodeName, uid }) => ({
    ...nodeNotReady(nodeName),
    about: { kind: 'Node', namespace: '', name: nodeName, uid } as const,
    once: decidedAtMs,
  }));
  for (const [wantedShard, some] of groupedBy(pending, ({ about }) => eventShardOf(about.name))) {
    await recordEvents(dependencies, some, decidedAtMs, { wantedShard }).catch((fault: unknown) => faults.push(fault));
  }
  const rows = await readHealth(dependencies.items, pods);
  const waiting = [...rows.values()].filter(({ podsToMark, ready }) => podsToMark === true && ready !== 'True');
  const worked = await workThrough(waiting, { concurrencyMax: PODS_CONCURRENCY_MAX, budget }, (health) =>
    markPodsOfNode(dependencies, health, { nowMs: decidedAtMs, budget }),
  );
  faults.push(...worked.faults);
  return faults.length > 0 || worked.left > 0 ? { kind: 'failed', faults } : { kind: 'done', marked: 0 };
}
