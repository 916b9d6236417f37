/**
 * The pods of one pass of garbage collection: those that the work list hints at, judged as they are now.
 *
 *   nodes of listed pods, and names in quarantine ── live
 *   watchOrphans ── names that came back leave; ripe ones are read once more, then their pods
 *   podRemovals over the list ── candidates, read live; podRemovals again, with what was found
 *   remove, a bounded number; the rest is the next pass's
 *
 * The gate (D9) does not hold this back. It stands for doubt about silence; here nobody is judged by silence: a Node is
 * gone because a person deleted it or EC2 said so, a node is out of service because a person said so (or EC2, if the
 * policy lets it), and a pod without a node has nobody to be heard from.
 *
 * What makes a pod an orphan, or its node out of service, is a condition of each of its commits: a Node that comes
 * back in that very moment keeps its pods.
 */

import { readyStatusOf } from '../../domain/nodes/conditions.ts';
import type { Policy } from '../../domain/policy.ts';
import type { KubeNode, KubeObject, ObjectRef } from '../../kube/types.ts';
import type { TransactWrite } from '../../ports/item-store.ts';
import { type WorkBudget, workThrough } from '../framework/bounded-work.ts';
import { nodeAbsent, nodeRef, nodeUnchanged } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { collectablePod, collectableRow } from './collectable-pods.ts';
import { podGcDraft } from './decisions.ts';
import { nodeNameOf } from './maintain-work-list.ts';
import * as metric from './metrics.ts';
import { removePod } from './remove-pod.ts';
import {
  type CollectableNode,
  type CollectablePod,
  isTerminated,
  type LiveRead,
  type PodRemoval,
  podRemovals,
  settleOrphans,
  watchOrphans,
} from './rule.ts';
import type { PodGcList } from './work-list-store.ts';

/** Nodes looked at in one pass; with more, passes take turns. */
const NODES_A_PASS_MAX = 2_000;
/** Missing nodes whose pods are read in one pass. */
const ORPHANERS_A_PASS_MAX = 100;
const REMOVALS_A_PASS_MAX = 1_000;
const READS_AT_ONCE_MAX = 16;
/** Pods have eight shards; more commits at once would only meet on their heads. */
const REMOVALS_AT_ONCE_MAX = 8;

interface CollectedPods {
  readonly removed: number;
  /** Removals begun next pass: the bound or the time was reached. */
  readonly left: number;
  readonly faults: readonly unknown[];
}

interface Pass {
  readonly slot: number;
  readonly nowMs: number;
  readonly budget: WorkBudget;
}

interface LiveNode {
  readonly node: CollectableNode;
  readonly resourceVersion: number;
}

/**
 * Whether anything could follow from the list: pods that have ended are only counted, until there are more of them than
 * the policy keeps.
 */
export function hasPodsToJudge(list: PodGcList, policy: Pick<Policy, 'terminatedPodGcThreshold'>): boolean {
  if (list.missing.size > 0 || list.pods.some(({ terminating }) => terminating)) return true;
  return podRemovals({ pods: list.pods.map(collectableRow), nodes: [], missing: new Set() }, policy).length > 0;
}

export async function collectPods(
  dependencies: ControllerDependencies,
  list: PodGcList,
  pass: Pass,
): Promise<CollectedPods> {
  const { objects, podGc, policy } = dependencies;
  if (!hasPodsToJudge(list, policy)) return { removed: 0, left: 0, faults: [] };
  const faults: unknown[] = [];
  const ofListed = list.pods.flatMap(({ terminating, nodeName }) => (terminating && nodeName ? [nodeName] : []));
  const names = inTurn([...new Set([...list.missing.keys(), ...ofListed])], NODES_A_PASS_MAX, pass.slot);
  const nodes = await readNodes(dependencies, names);
  const missing = await missingNodes(dependencies, list, { names, nodes, ...pass }, faults);

  const orphans = new Map<string, KubeObject>();
  await collect(inTurn([...missing].sort(), ORPHANERS_A_PASS_MAX, pass.slot), faults, async (nodeName) => {
    for (const pod of await objects.listByNode(nodeName)) orphans.set(pathOf(pod.metadata), pod);
  });
  const rows = new Map<string, CollectablePod>([
    ...list.pods.map((row) => [pathOf(row), collectableRow(row)] as const),
    ...[...orphans].map(([path, pod]) => [path, collectablePod(pod)] as const),
  ]);
  const decide = (): PodRemoval[] =>
    podRemovals({ pods: [...rows.values()], nodes: [...nodes.values()].map(({ node }) => node), missing }, policy);

  const candidates = decide();
  const considered = candidates.slice(0, REMOVALS_A_PASS_MAX);
  const unread = considered.filter((candidate) => !orphans.has(pathOf(candidate)));
  const read = await objects.getMany(unread.map(podRef));
  const live = new Map(orphans);
  for (const [index, candidate] of unread.entries()) {
    const pod = read[index];
    const path = pathOf(candidate);
    if (pod === undefined) {
      rows.delete(path);
      await podGc.dropPod(candidate);
    } else {
      live.set(path, pod);
      rows.set(path, collectablePod(pod));
    }
  }
  // As they are now: one that is gone, or another of its name, counts no more among those that ended.
  const removals = decide().filter((removal) => live.get(pathOf(removal))?.metadata.uid === removal.podUid);
  const ended = [...rows.values()].filter(isTerminated).length;
  const outcome = await removeAll(dependencies, removals, live, { nodes, ended, pass });
  return {
    removed: outcome.removed,
    left: outcome.left + candidates.length - considered.length,
    faults: [...faults, ...outcome.faults],
  };
}

const pathOf = ({ namespace = '', name = '' }: { readonly namespace?: string; readonly name?: string }): string =>
  `${namespace}/${name}`;
const podRef = ({ namespace, name }: PodRemoval): ObjectRef => ({ resource: 'pods', namespace, name });

/** All of them, or as many as may be, beginning elsewhere in each slot. */
function inTurn<T>(all: readonly T[], most: number, slot: number): readonly T[] {
  if (all.length <= most) return all;
  const first = (slot * most) % all.length;
  return [...all.slice(first), ...all.slice(0, first)].slice(0, most);
}

/** Each of them, bounded side by side; what fails is a fault and does not hold up the others. */
async function collect<T>(items: readonly T[], faults: unknown[], work: (item: T) => Promise<unknown>): Promise<void> {
  const outcome = await workThrough(
    items,
    { concurrencyMax: READS_AT_ONCE_MAX, budget: { hasTime: () => true } },
    work,
  );
  faults.push(...outcome.faults);
}

async function readNodes(
  { objects }: ControllerDependencies,
  names: readonly string[],
): Promise<ReadonlyMap<string, LiveNode>> {
  const stored = (await objects.getMany(names.map(nodeRef))) as readonly (KubeNode | undefined)[];
  const nodes = new Map<string, LiveNode>();
  for (const [index, node] of stored.entries()) {
    if (node === undefined) continue;
    const name = names[index]!;
    nodes.set(name, {
      node: { name, ready: readyStatusOf(node.status?.conditions), taints: node.spec?.taints ?? [] },
      resourceVersion: Number(node.metadata.resourceVersion),
    });
  }
  return nodes;
}

/** Node names whose quarantine is over and that a live read says are not there; the list follows what was seen. */
async function missingNodes(
  dependencies: ControllerDependencies,
  list: PodGcList,
  at: { readonly names: readonly string[]; readonly nodes: ReadonlyMap<string, LiveNode>; readonly nowMs: number },
  faults: unknown[],
): Promise<ReadonlySet<string>> {
  const { objects, podGc, policy } = dependencies;
  const { names, nodes, nowMs } = at;
  const before = new Map(names.flatMap((name) => (list.missing.has(name) ? [[name, list.missing.get(name)!]] : [])));
  const named: { nodeName: string }[] = [];
  await collect(
    names.filter((name) => !nodes.has(name)),
    faults,
    async (nodeName) => {
      if (await podGc.hasPods(nodeName)) named.push({ nodeName });
    },
  );
  const watched = watchOrphans({ pods: named, nodeNames: new Set(nodes.keys()), quarantine: before }, nowMs, policy);
  const reads = new Map<string, LiveRead>();
  await collect(watched.ripe, faults, async (name) => {
    // Until it is known, it waits again.
    reads.set(name, 'failed');
    reads.set(name, (await objects.get(nodeRef(name))) === undefined ? 'missing' : 'exists');
  });
  const settled = settleOrphans(watched.quarantine, reads, nowMs);
  await collect(names, faults, async (name) => {
    const sinceMs = before.get(name);
    const nextMs = settled.quarantine.get(name);
    // Its row stays until no pod names it: what this pass leaves, the next one finds ripe.
    const isMissing = settled.missing.has(name);
    if (sinceMs === undefined) {
      if (isMissing || nextMs !== undefined) await podGc.putMissing(name, nextMs ?? nowMs);
    } else if (isMissing) return;
    else if (nextMs === undefined) await podGc.dropMissing(name, sinceMs);
    else if (nextMs !== sinceMs) await podGc.restartMissing(name, { seenSinceMs: sinceMs, sinceMs: nextMs });
  });
  return settled.missing;
}

/** What a removal rests on, as a condition of its commits. */
function guardOf(removal: PodRemoval, pod: KubeObject, nodes: ReadonlyMap<string, LiveNode>): TransactWrite[] {
  const nodeName = nodeNameOf(pod);
  switch (removal.reason) {
    case 'orphaned':
      return [nodeAbsent(nodeName)];
    case 'out-of-service':
      return [nodeUnchanged(nodeName, nodes.get(nodeName)?.resourceVersion ?? 0)];
    case 'terminated':
    case 'unscheduled':
      return [];
  }
}

async function removeAll(
  { objects, meter, log, ledger, policy }: ControllerDependencies,
  removals: readonly PodRemoval[],
  live: ReadonlyMap<string, KubeObject>,
  {
    nodes,
    ended,
    pass: { slot, nowMs, budget },
  }: { readonly nodes: ReadonlyMap<string, LiveNode>; readonly ended: number; readonly pass: Pass },
): Promise<CollectedPods> {
  let removed = 0;
  const { left, faults } = await workThrough(
    removals,
    { concurrencyMax: REMOVALS_AT_ONCE_MAX, budget },
    async (removal) => {
      const { reason } = removal;
      const pod = live.get(pathOf(removal))!;
      try {
        const found = { pod: collectablePod(pod), node: nodes.get(nodeNameOf(pod))?.node, othersEnded: ended - 1 };
        const record = ledger.write(podGcDraft(removal, found, nowMs, policy), { slot });
        const outcome = await removePod(objects, pod, removal, { guard: guardOf(removal, pod, nodes), record, nowMs });
        if (outcome.kind !== 'removed') return;
        removed += 1;
        meter.add(metric.POD_GC_REMOVALS, 1, 'Count', { reason });
        log.info('a pod was collected', { pod: pathOf(removal), nodeName: pod.spec?.['nodeName'], reason });
      } catch (fault) {
        meter.add(metric.POD_GC_ERRORS, 1, 'Count', { reason });
        throw fault;
      }
    },
  );
  return { removed, left, faults };
}
