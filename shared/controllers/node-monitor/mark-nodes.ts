/**
 * Marking silent nodes: conditions Unknown, the NoSchedule taint of the new state, the event and the digest, all of one
 * node in one commit and of many nodes in one transaction. A beat that came in between refuses it (health-store.ts): then
 * that node is left alone and the others go on.
 *
 * Five thousand nodes that die at once are some three hundred transactions. Those of different shards run side by side;
 * the event of a node is put into a shard of the same lane, so that lanes never meet on the head of a shard.
 */

import { nodes as nodesResource } from '../../api/kinds/registry.ts';
import { shardsOf } from '../../api/storage/cluster-objects.ts';
import { markUnknown as withUnknownConditions } from '../../domain/nodes/conditions.ts';
import type { NodeHealth } from '../../domain/nodes/node-health.ts';
import { noExecuteOf, reconcileNoSchedule } from '../../domain/nodes/node-taints.ts';
import type { ZoneMetrics } from '../../domain/zones/zone-state.ts';
import type { KubeNode, KubeObject } from '../../kube/types.ts';
import type { TransactWrite } from '../../ports/item-store.ts';
import { markUnknown } from '../../store/health-store.ts';
import { shardOf } from '../../store/layout.ts';
import { createdAtMsOf } from '../../store/node-digest.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { markNote } from '../decisions/decision-notes.ts';
import { groupedBy, inParts, type WorkBudget, workInHalves, workThrough } from '../framework/bounded-work.ts';
import { nodeRef, withTaints } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import type { TickMark } from '../framework/ledger.ts';
import { eventWrite } from '../framework/record-event.ts';
import { reportUnwritable } from '../framework/report-unwritable.ts';
import { isMarkable } from './mark-pods.ts';
import type { MonitorDecision } from './rule.ts';

/** 6 actions for each node and 3 heads: 93 of 100. Nodes too large for one transaction are marked in halves. */
const NODES_A_COMMIT_MAX = 15;
/** Tries at a commit of several nodes that others stayed in the way of, before its halves are tried. */
const CONTENDED_MAX = 2;
/** Tries at one commit, each with one node fewer or read again. */
const COMMIT_ATTEMPTS_MAX = NODES_A_COMMIT_MAX + 4;

export type MarkDecision = Extract<MonitorDecision, { kind: 'markUnknown' }>;

export interface MarkToDo {
  readonly decision: MarkDecision;
  /** The digest the decision rests on. */
  readonly seen: NodeHealth;
}

export interface MarkedNode {
  readonly decision: MarkDecision;
  /** Its pods that are Ready and now have to be marked. */
  readonly pods: readonly KubeObject[];
}

export interface MarkOutcome {
  readonly marked: readonly MarkedNode[];
  /** It beat, posted, changed or went between reading and marking: rightly left alone. */
  readonly spared: number;
  /** Not begun or not written: the next tick's. */
  readonly left: number;
  readonly faults: readonly unknown[];
}

interface Candidate extends MarkToDo {
  readonly pods: readonly KubeObject[];
  /** They could not be listed. */
  readonly podsUnknown: boolean;
  node: KubeNode;
  /** The event is there already. */
  told: boolean;
}

export interface Marking {
  readonly nowMs: number;
  readonly budget: WorkBudget;
  /** For the ledger: the tick, and the zones as they are after its marks. */
  readonly tick: TickMark;
  readonly zones: ReadonlyMap<string, ZoneMetrics>;
}

export async function markNodes(
  dependencies: ControllerDependencies,
  todo: readonly MarkToDo[],
  at: Marking,
): Promise<MarkOutcome> {
  const nodeShards = shardsOf(nodesResource.resource);
  const laneCount = Math.min(nodeShards, shardsOf('events'));
  const laneOf = ({ decision }: MarkToDo): number => shardOf(decision.nodeName, nodeShards) % laneCount;
  const marked: MarkedNode[] = [];
  let spared = 0;
  let left = todo.length;
  const faults: unknown[] = [];
  await Promise.all(
    [...groupedBy(todo, laneOf)].map(([lane, ofLane]) =>
      workThrough(inParts(ofLane, NODES_A_COMMIT_MAX), { concurrencyMax: 1, budget: at.budget }, async (part) => {
        const halves = await workInHalves(part, at.budget, async (some) => {
          const outcome = await markPart(dependencies, some, lane, at);
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
      /** Of single nodes, which are marked all the same. */
      readonly faults: readonly unknown[];
    }
  /** Too large together, or others stayed in the way of one of them: smaller parts may do. */
  | { readonly kind: 'split'; readonly faults: readonly unknown[] };

async function markPart(
  dependencies: ControllerDependencies,
  part: readonly MarkToDo[],
  lane: number,
  { nowMs, tick, zones }: Marking,
): Promise<PartOutcome> {
  const { objects, random, ledger, policy } = dependencies;
  const faults: unknown[] = [];
  const [stored, pods] = await Promise.all([
    objects.getMany(part.map(({ decision }) => nodeRef(decision.nodeName))),
    Promise.all(
      part.map(async ({ decision }): Promise<readonly KubeObject[] | undefined> => {
        if (!decision.markPods) return [];
        try {
          return (await objects.listByNode(decision.nodeName)).filter(isMarkable);
        } catch (fault) {
          // The node is marked all the same. Its digest keeps that its pods are not, and the next tick lists them.
          faults.push(fault);
          return undefined;
        }
      }),
    ),
  ]);
  let contended = 0;
  let tooLarge = 0;
  let waiting = part.flatMap((each, index): Candidate[] => {
    const node = stored[index] as KubeNode | undefined;
    return node === undefined
      ? []
      : [
          {
            ...each,
            node,
            pods: pods[index] ?? [],
            podsUnknown: pods[index] === undefined,
            told: each.decision.event === undefined,
          },
        ];
  });
  for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX; attempt += 1) {
    const nodes: ObjectWrite[] = [];
    const events: ObjectWrite[] = [];
    const told: Candidate[] = [];
    const extra: TransactWrite[] = [];
    const records: TransactWrite[] = [];
    waiting = waiting.filter((each) => {
      const next = markedNode(each, nowMs);
      if (next === undefined) return false;
      const { decision, node, seen } = each;
      nodes.push({ kind: 'update', ref: nodeRef(decision.nodeName), object: next, previous: node });
      extra.push(
        markUnknown(seen, {
          nowMs,
          noExecute: noExecuteOf(next.spec?.taints ?? []),
          podsToMark: each.podsUnknown || each.pods.length > 0,
        }),
      );
      records.push(ledger.write(markNote(decision, seen, { nowMs, policy, zone: zones.get(decision.zone) }), tick));
      if (!each.told && decision.event !== undefined) {
        const about = { kind: 'Node', namespace: '', name: decision.nodeName, uid: decision.uid } as const;
        told.push(each);
        events.push(
          eventWrite({ ...decision.event, about, once: nowMs }, { nowMs, eventUid: random.uuid(), wantedShard: lane }),
        );
      }
      return true;
    });
    const spared = part.length - waiting.length - tooLarge;
    if (waiting.length === 0) return { kind: 'done', marked: [], spared, faults };
    const outcome = await objects.commit({ writes: [...nodes, ...events], extra: [...extra, ...records] });
    switch (outcome.kind) {
      case 'committed':
        return { kind: 'done', marked: waiting, spared, faults };
      case 'extraRefused':
        // It has beaten or posted since: a living node.
        waiting = waiting.filter((_, index) => index !== outcome.index);
        break;
      case 'tooLarge': {
        const object = waiting[outcome.index]!.node;
        await reportUnwritable(dependencies, { kind: 'Node', object, what: 'mark the node Unknown', nowMs });
        waiting = waiting.filter((_, index) => index !== outcome.index);
        tooLarge += 1;
        break;
      }
      case 'overfull':
        return { kind: 'split', faults: [] };
      case 'conflict': {
        const event = told[outcome.index - nodes.length];
        if (event !== undefined) event.told = true;
        else {
          const current = outcome.current as KubeNode | undefined;
          waiting = waiting.flatMap((each, index) =>
            index !== outcome.index ? [each] : current === undefined ? [] : [{ ...each, node: current }],
          );
        }
        break;
      }
      case 'contended':
        contended += 1;
        if (waiting.length > 1 && contended === CONTENDED_MAX) return { kind: 'split', faults: [] };
    }
  }
  return { kind: 'split', faults: [] };
}

/** The Node as marked; undefined when there is nothing to mark any more. */
function markedNode({ decision, node }: Candidate, nowMs: number): KubeNode | undefined {
  if (node.metadata.uid !== decision.uid) return undefined;
  const conditions = withUnknownConditions(node.status?.conditions, { nowMs, createdAtMs: createdAtMsOf(node) });
  if (conditions === undefined) return undefined;
  const unschedulable = node.spec?.unschedulable === true;
  const taints = reconcileNoSchedule({ taints: node.spec?.taints ?? [], conditions, unschedulable });
  const marked: KubeNode = { ...node, status: { ...node.status, conditions } };
  return taints === undefined ? marked : withTaints(marked, taints);
}
