/**
 * Pod garbage collection in one tick. The work list has the candidates. The decisions use objects that are read live.
 *
 *   nodes of listed pods, and names in quarantine ── read live
 *   watchOrphans ── names with a Node leave the quarantine; ripe names are read once more, then their pods
 *   podRemovals over the list ── candidates, read live; podRemovals again with the live objects
 *   remove, a bounded number; the remaining ones are left to the next tick
 *
 * The safety gate (D9) does not apply here. It is about missing heartbeats, and no decision here rests on a missing
 * heartbeat. A Node was deleted by a user or because of EC2's answer. A node is out of service because a user set the
 * taint (or EC2's answer did, if the policy allows it). An unbound pod has no node.
 *
 * The reason of a removal (Node missing, or out of service) is a condition of each of its commits. A Node that is
 * created again at that moment keeps its pods.
 */

import { nodeAbsent, nodeRef, nodeUnchanged } from '../../shared/fleet/nodes/change-node.ts';
import { readyStatusOf } from '../../shared/fleet/nodes/conditions.ts';
import {
  type CollectableNode,
  type CollectablePod,
  collectablePod,
  collectableRow,
  hasPodsToCollect,
  isTerminated,
  type LiveRead,
  type PodRemoval,
  podRemovals,
  settleOrphans,
  watchOrphans,
} from '../../shared/kinds/pods/collection.rule.ts';
import { nodeNameOf } from '../../shared/kinds/pods/maintain-work-list.ts';
import type { PodGcList } from '../../shared/kinds/pods/work-list-store.ts';
import type { KubeNode, KubePod, ObjectRef } from '../../shared/kinds/types.ts';
import type { TransactWrite } from '../../shared/store/item-store.ts';
import { inTurn, type WorkBudget, workThrough } from '../../shared/ticks/bounded-work.ts';
import { podGcDraft } from './decisions.ts';
import type { PodGcDependencies } from './dependencies.ts';
import * as metric from './metrics.ts';
import { removePod } from './remove-pod.ts';

/** Nodes read in one tick; with more, ticks rotate through them. */
const NODES_PER_TICK_MAX = 2_000;
/** Missing nodes per tick. All pods of these nodes are read. */
const MISSING_NODES_PER_TICK_MAX = 100;
const REMOVALS_PER_TICK_MAX = 1_000;
const READS_CONCURRENCY_MAX = 16;
/** Pods have eight shards; more concurrent commits would only conflict on the shard heads. */
const REMOVALS_CONCURRENCY_MAX = 8;

interface CollectedPods {
  readonly removed: number;
  /** Removals left for the next tick, because the bound or the time limit was reached. */
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

export async function collectPods(
  dependencies: PodGcDependencies,
  list: PodGcList,
  pass: Pass,
): Promise<CollectedPods> {
  const { objects, podGc, policy } = dependencies;
  if (!hasPodsToCollect(list, policy)) return { removed: 0, left: 0, faults: [] };
  const faults: unknown[] = [];
  const ofListed = list.pods.flatMap(({ terminating, nodeName }) => (terminating && nodeName ? [nodeName] : []));
  const names = inTurn([...new Set([...list.missing.keys(), ...ofListed])], NODES_PER_TICK_MAX, pass.slot);
  const nodes = await readNodes(dependencies, names);
  const missing = await missingNodes(dependencies, list, { names, nodes, ...pass }, faults);

  const orphans = new Map<string, KubePod>();
  await collect(inTurn([...missing].sort(), MISSING_NODES_PER_TICK_MAX, pass.slot), faults, async (nodeName) => {
    for (const pod of await objects.listByNode(nodeName)) orphans.set(pathOf(pod.metadata), pod);
  });
  const rows = new Map<string, CollectablePod>([
    ...list.pods.map((row) => [pathOf(row), collectableRow(row)] as const),
    ...[...orphans].map(([path, pod]) => [path, collectablePod(pod)] as const),
  ]);
  const decide = (): PodRemoval[] =>
    podRemovals({ pods: [...rows.values()], nodes: [...nodes.values()].map(({ node }) => node), missing }, policy);

  const candidates = decide();
  const considered = candidates.slice(0, REMOVALS_PER_TICK_MAX);
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
  // Live objects only: a pod that is deleted, or replaced under its name, no longer counts as terminated.
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

/** Processes each item, with bounded concurrency. A failure is a fault and does not block the others. */
async function collect<T>(items: readonly T[], faults: unknown[], work: (item: T) => Promise<unknown>): Promise<void> {
  const outcome = await workThrough(
    items,
    { concurrencyMax: READS_CONCURRENCY_MAX, budget: { hasTime: () => true } },
    work,
  );
  faults.push(...outcome.faults);
}

async function readNodes(
  { objects }: PodGcDependencies,
  names: readonly string[],
): Promise<ReadonlyMap<string, LiveNode>> {
  const stored: readonly (KubeNode | undefined)[] = await objects.getMany(names.map(nodeRef));
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

/** Names with an expired quarantine that a live read confirms as missing. Updates the list from these reads. */
async function missingNodes(
  dependencies: PodGcDependencies,
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
    // A read that throws counts as failed: the name waits again.
    reads.set(name, 'failed');
    reads.set(name, (await objects.get(nodeRef(name))) === undefined ? 'missing' : 'exists');
  });
  const settled = settleOrphans(watched.quarantine, reads, nowMs);
  await collect(names, faults, async (name) => {
    const sinceMs = before.get(name);
    const nextMs = settled.quarantine.get(name);
    // The row stays while pods name the node: the next tick then finds the remaining pods ripe.
    const isMissing = settled.missing.has(name);
    if (sinceMs === undefined) {
      if (isMissing || nextMs !== undefined) await podGc.putMissing(name, nextMs ?? nowMs);
    } else if (isMissing) return;
    else if (nextMs === undefined) await podGc.dropMissing(name, sinceMs);
    else if (nextMs !== sinceMs) await podGc.restartMissing(name, { seenSinceMs: sinceMs, sinceMs: nextMs });
  });
  return settled.missing;
}

/** The reason of a removal, as a condition of its commits. */
function guardOf(removal: PodRemoval, pod: KubePod, nodes: ReadonlyMap<string, LiveNode>): TransactWrite[] {
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
  { objects, meter, log, ledger, policy }: PodGcDependencies,
  removals: readonly PodRemoval[],
  live: ReadonlyMap<string, KubePod>,
  {
    nodes,
    ended,
    pass: { slot, nowMs, budget },
  }: { readonly nodes: ReadonlyMap<string, LiveNode>; readonly ended: number; readonly pass: Pass },
): Promise<CollectedPods> {
  let removed = 0;
  const { left, faults } = await workThrough(
    removals,
    { concurrencyMax: REMOVALS_CONCURRENCY_MAX, budget },
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
        log.info('pod deleted by garbage collection', {
          pod: pathOf(removal),
          nodeName: pod.spec?.nodeName,
          reason,
        });
      } catch (fault) {
        meter.add(metric.POD_GC_ERRORS, 1, 'Count', { reason });
        throw fault;
      }
    },
  );
  return { removed, left, faults };
}
