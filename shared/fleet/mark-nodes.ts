/**
 * Marks silent nodes: Unknown conditions, the NoSchedule taint of the new state, the event and the digest. All changes
 * of one node are in one commit, and one transaction holds many nodes. A heartbeat that arrived in between refuses the
 * mark of its node (health-store.ts); the other nodes are marked.
 *
 * 5,000 nodes that fail at once take about 300 transactions. Transactions of different shards run concurrently. A
 * node's event is written to a shard of the same lane: two lanes never contend for the head of a shard.
 */

import type { DecisionDraft } from '../decisions/decision-record.ts';
import type { TickMark } from '../decisions/ledger.ts';
import { eventWrite } from '../events/record-event.ts';
import { NODES } from '../kinds/nodes/resource.ts';
import { shardsOf } from '../kinds/resources.ts';
import type { KubeNode, KubeObject } from '../kinds/types.ts';
import type { TransactWrite } from '../store/item-store.ts';
import { shardOf } from '../store/layout.ts';
import type { ObjectWrite } from '../store/object-store.ts';
import { groupedBy, inParts, type WorkBudget, workInHalves, workThrough } from '../ticks/bounded-work.ts';
import type { WorkDependencies } from '../ticks/dependencies.ts';
import { markDraft } from './mark-decisions.ts';
import * as metric from './mark-metrics.ts';
import { isMarkable } from './mark-pods.ts';
import type { MarkDecision } from './marks.rule.ts';
import { nodeRef, withTaints } from './nodes/change-node.ts';
import { markUnknown as withUnknownConditions } from './nodes/conditions.ts';
import type { NodeHealth } from './nodes/health.ts';
import { markUnknown } from './nodes/health-store.ts';
import { createdAtMsOf } from './nodes/node-digest.ts';
import { noExecuteOf, reconcileNoSchedule } from './nodes/node-taints.ts';
import { reportUnwritable } from './nodes/report-unwritable.ts';
import type { ZoneMetrics } from './zone-state.ts';

/**
 * Nodes in one commit: with their events 3 items per node, 3 heads with a log item each, and 2 items with their
 * decisions (98 of 100); without events 2 items per node, a head, an item with decisions, and up to 6 log items. Nodes
 * too large for one transaction are marked in halves.
 */
const NODES_PER_COMMIT_MAX = { withEvents: 30, withoutEvents: 46 } as const;
/** Attempts at a contended commit of several nodes, before its halves are tried. */
const CONTENDED_MAX = 2;
/** Attempts at one commit, each with one node fewer or with one read again. */
const COMMIT_ATTEMPTS_MAX = NODES_PER_COMMIT_MAX.withoutEvents + 4;

export interface MarkToDo {
  readonly decision: MarkDecision;
  /** The digest the decision rests on. */
  readonly seen: NodeHealth;
}

export interface MarkedNode {
  readonly decision: MarkDecision;
  /** Its Ready pods, which are to be marked next. */
  readonly pods: readonly KubeObject[];
}

export interface MarkOutcome {
  readonly marked: readonly MarkedNode[];
  /** Heartbeat, status post, change or deletion between read and mark: correctly not marked. */
  readonly spared: number;
  /** Not started or not written: left to the next tick. */
  readonly left: number;
  readonly faults: readonly unknown[];
}

interface Candidate extends MarkToDo {
  readonly pods: readonly KubeObject[];
  /** The pods could not be listed. */
  readonly podsUnknown: boolean;
  readonly node: KubeNode;
  /** The event exists already, or there is none to write. */
  hasEvent: boolean;
}

export interface Marking {
  readonly nowMs: number;
  readonly budget: WorkBudget;
  /** For decision records: the tick, and the zones after its marks. */
  readonly tick: TickMark;
  readonly zones: ReadonlyMap<string, ZoneMetrics>;
}

/**
 * `events` of the nodes that were Ready: in the commit of their mark, or `later` by the caller. There are fewer shards
 * of events than of Nodes: without events more commits run concurrently, and each has more nodes.
 */
export async function markNodes(
  dependencies: WorkDependencies,
  todo: readonly MarkToDo[],
  at: Marking,
  { events = 'inCommit' }: { readonly events?: 'inCommit' | 'later' } = {},
): Promise<MarkOutcome> {
  const nodeShards = NODES.shards;
  const isLater = events === 'later';
  const laneCount = isLater ? nodeShards : Math.min(nodeShards, shardsOf('events'));
  const nodesMax = isLater ? NODES_PER_COMMIT_MAX.withoutEvents : NODES_PER_COMMIT_MAX.withEvents;
  const laneOf = ({ decision }: MarkToDo): number => shardOf(decision.nodeName, nodeShards) % laneCount;
  const marked: MarkedNode[] = [];
  let spared = 0;
  let left = todo.length;
  const faults: unknown[] = [];
  await Promise.all(
    [...groupedBy(todo, laneOf)].map(([lane, ofLane]) =>
      workThrough(inParts(ofLane, nodesMax), { concurrencyMax: 1, budget: at.budget }, async (part) => {
        const halves = await workInHalves(part, at.budget, async (some) => {
          const outcome = await markPart(dependencies, some, at, isLater ? undefined : lane);
          faults.push(...outcome.faults);
          if (outcome.kind === 'split') return 'split';
          marked.push(...outcome.marked);
          spared += outcome.spared;
          left -= outcome.marked.length + outcome.spared;
          return 'done';
        });
        faults.push(...halves.faults);
      }),
    ),
  );
  return { marked, spared, left, faults };
}

type PartOutcome =
  | {
      readonly kind: 'done';
      readonly marked: readonly MarkedNode[];
      readonly spared: number;
      /** Pods that could not be listed; their nodes are marked nevertheless. */
      readonly faults: readonly unknown[];
    }
  /** Too large together, or contended: smaller parts may succeed. */
  | { readonly kind: 'split'; readonly faults: readonly unknown[] };

async function markPart(
  dependencies: WorkDependencies,
  part: readonly MarkToDo[],
  at: Marking,
  lane: number | undefined,
): Promise<PartOutcome> {
  const { objects } = dependencies;
  const { candidates, faults } = await readCandidates(dependencies, part);
  let waiting: readonly Candidate[] = candidates;
  let contended = 0;
  let tooLarge = 0;
  for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX; attempt += 1) {
    const commit = commitOf(dependencies, waiting, at, lane);
    waiting = commit.marked;
    const spared = part.length - waiting.length - tooLarge;
    if (waiting.length === 0) return { kind: 'done', marked: [], spared, faults };
    const outcome = await objects.commit(commit);
    switch (outcome.kind) {
      case 'committed':
        return { kind: 'done', marked: waiting, spared, faults };
      case 'extraRefused':
        // A heartbeat or a status post arrived since: the node is alive.
        waiting = waiting.filter((_, index) => index !== outcome.index);
        break;
      case 'tooLarge': {
        const object = waiting[outcome.index]!.node;
        await reportUnwritable(dependencies, { kind: 'Node', object, what: 'mark the node Unknown', nowMs: at.nowMs });
        waiting = waiting.filter((_, index) => index !== outcome.index);
        tooLarge += 1;
        break;
      }
      case 'overfull':
        return { kind: 'split', faults: [] };
      case 'conflict': {
        const duplicate = commit.withEvent[outcome.index - waiting.length];
        if (duplicate !== undefined) duplicate.hasEvent = true;
        else waiting = withCurrent(waiting, outcome.index, outcome.current as KubeNode | undefined);
        break;
      }
      case 'contended':
        contended += 1;
        if (waiting.length > 1 && contended === CONTENDED_MAX) return { kind: 'split', faults: [] };
    }
  }
  return { kind: 'split', faults: [] };
}

/** Reads the Nodes and their Ready pods. A Node that no longer exists is no candidate. */
async function readCandidates(
  { objects }: WorkDependencies,
  part: readonly MarkToDo[],
): Promise<{ readonly candidates: readonly Candidate[]; readonly faults: unknown[] }> {
  const faults: unknown[] = [];
  const [stored, pods] = await Promise.all([
    objects.getMany(part.map(({ decision }) => nodeRef(decision.nodeName))),
    Promise.all(
      part.map(async ({ decision }): Promise<readonly KubeObject[] | undefined> => {
        if (!decision.markPods) return [];
        try {
          return (await objects.listByNode(decision.nodeName)).filter(isMarkable);
        } catch (fault) {
          // The node is marked nevertheless. Its digest records that its pods are not, and the next tick lists them.
          faults.push(fault);
          return undefined;
        }
      }),
    ),
  ]);
  const candidates = part.flatMap((each, index): Candidate[] => {
    const node = stored[index] as KubeNode | undefined;
    if (node === undefined) return [];
    const ready = pods[index];
    const hasEvent = each.decision.event === undefined;
    return [{ ...each, node, pods: ready ?? [], podsUnknown: ready === undefined, hasEvent }];
  });
  return { candidates, faults };
}

interface MarkCommit {
  /** The candidates that still need a mark. `writes` begins with one update for each, in this order. */
  readonly marked: readonly Candidate[];
  /** The candidates with an event in `writes`, in this order. */
  readonly withEvent: readonly Candidate[];
  readonly writes: ObjectWrite[];
  readonly extra: TransactWrite[];
}

function commitOf(
  { random, ledger, policy }: WorkDependencies,
  candidates: readonly Candidate[],
  { nowMs, tick, zones }: Marking,
  /** Shard of the events; undefined: the caller records them later. */
  lane: number | undefined,
): MarkCommit {
  const marked: Candidate[] = [];
  const withEvent: Candidate[] = [];
  const nodes: ObjectWrite[] = [];
  const events: ObjectWrite[] = [];
  const digests: TransactWrite[] = [];
  const drafts: DecisionDraft[] = [];
  for (const each of candidates) {
    const next = markedNode(each, nowMs);
    if (next === undefined) continue;
    const { decision, node, seen } = each;
    marked.push(each);
    nodes.push({ kind: 'update', ref: nodeRef(decision.nodeName), object: next, previous: node });
    digests.push(
      markUnknown(seen, {
        nowMs,
        noExecute: noExecuteOf(next.spec?.taints ?? []),
        podsToMark: each.podsUnknown || each.pods.length > 0,
        flaps: decision.flaps,
      }),
    );
    drafts.push(markDraft(decision, seen, { nowMs, policy, zone: zones.get(decision.zone) }));
    if (each.hasEvent || decision.event === undefined || lane === undefined) continue;
    const about = { kind: 'Node', namespace: '', name: decision.nodeName, uid: decision.uid } as const;
    withEvent.push(each);
    events.push(
      eventWrite({ ...decision.event, about, once: nowMs }, { nowMs, eventUid: random.uuid(), wantedShard: lane }),
    );
  }
  return { marked, withEvent, writes: [...nodes, ...events], extra: [...digests, ...ledger.writeAll(drafts, tick)] };
}

/** The candidates with one Node as it is stored now; without it when it no longer exists. */
const withCurrent = (candidates: readonly Candidate[], at: number, current: KubeNode | undefined): Candidate[] =>
  candidates.flatMap((each, index) => {
    if (index !== at) return [each];
    return current === undefined ? [] : [{ ...each, node: current }];
  });

/** The Node as marked; undefined when it was replaced or needs no mark. */
function markedNode({ decision, node }: Candidate, nowMs: number): KubeNode | undefined {
  if (node.metadata.uid !== decision.uid) return undefined;
  const conditions = withUnknownConditions(node.status?.conditions, { nowMs, createdAtMs: createdAtMsOf(node) });
  if (conditions === undefined) return undefined;
  const unschedulable = node.spec?.unschedulable === true;
  const taints = reconcileNoSchedule({ taints: node.spec?.taints ?? [], conditions, unschedulable });
  const marked: KubeNode = { ...node, status: { ...node.status, conditions } };
  return taints === undefined ? marked : withTaints(marked, taints);
}

/** Node names in one log line. */
const LOGGED_NAMES_MAX = 10;

/** `sinceDecisionMs`: time from the decision to the mark. Milliseconds. */
export function reportMarks(
  { log, meter }: Pick<WorkDependencies, 'log' | 'meter'>,
  { marked, spared, left }: MarkOutcome,
  { sinceDecisionMs = 0 }: { readonly sinceDecisionMs?: number } = {},
): void {
  meter.add(metric.MARKED_NODES, marked.length, 'Count');
  const shortened = marked.filter(({ decision }) => decision.accusation?.shortens === true).length;
  if (shortened > 0) meter.add(metric.SHORTENED_MARKS, shortened, 'Count');
  if (marked.length > 0) {
    const silentSeconds = marked.map(({ decision }) => decision.silentSeconds);
    meter.add(metric.DETECTION_TIME, Math.max(...silentSeconds) + sinceDecisionMs / 1_000, 'Seconds');
  }
  log.info('silent nodes marked Unknown', {
    marked: marked.length,
    spared,
    left,
    nodes: marked.slice(0, LOGGED_NAMES_MAX).map(({ decision }) => ({
      nodeName: decision.nodeName,
      zone: decision.zone,
      silentSeconds: decision.silentSeconds,
      graceSeconds: decision.graceSeconds,
    })),
  });
}
