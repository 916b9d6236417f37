/**
 * Binds pods to nodes: no pod twice, and never more on a node than it offers, however many passes run at once, late or
 * half-way.
 *
 * One transaction binds up to GROUP_MAX pods. Its conditions:
 *
 *   Pod     has the version that was read: a pod is bound once, and not after its deletion
 *   use     `v` of each node is the version that the process knows: no pod was bound to the node since
 *   Node    has the version that was read: same uid, allocatable, taints, labels, and not cordoned
 *   claim   has the version that was read: it is bound
 *   order   `v` is the version that the process knows: no pass has bound any pod since
 *
 * Why the requests on a node never exceed what it offers: whoever adds a pod to a node increments `use` in the same
 * transaction, the API too (node-use.ts). The copy of the cluster has every pod up to the version that it knows
 * (cluster-copy.ts). So when the transaction commits, the pods on the node are those of the decision, or fewer.
 *
 * Why rules across nodes hold (affinity, spread): `order` makes all bindings of the scheduler one sequence. Each is
 * decided on a copy with all earlier ones. `use` alone cannot show a pod that was bound to another node of the zone.
 * Pods on the name of a deleted Node do not count. While a rule relates them to a pod of the group, a fifth condition
 * is that their Node still does not exist: if it is created again, they count in its zone.
 *
 * A refused transaction changes nothing. The process reads what changed, and decides again. After a fault it is not
 * known whether the transaction was applied; the same read shows it.
 *
 * Cost in write units, besides the Pod itself: 2 for use, 2 per 1 KB of the Node, 2 and a share of head and log for the
 * event. Shared by the group: 2 for the order, 2 per 1 KB for the records of pods of one set
 * (decisions/decision-store.ts). 2 per missing Node, which is rare, and per claim.
 */

import { eventWrite } from '../../shared/events/record-event.ts';
import { nodeAbsent, nodeUnchanged } from '../../shared/fleet/nodes/change-node.ts';
import { podEvictionTimeoutOn } from '../../shared/fleet/nodes/node-profile.ts';
import { useNode } from '../../shared/fleet/nodes/node-use.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import { bindPod } from '../../shared/kinds/pods/bind-pod.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import { SITE_POLICIES } from '../../shared/kinds/site-policies/resource.ts';
import { mayHaveSiteHub, SITE_POLICIES_MAX, withSiteHub } from '../../shared/kinds/site-policies/site-hub.ts';
import type { KubePersistentVolumeClaim, KubePod, KubeSitePolicy, ObjectRef } from '../../shared/kinds/types.ts';
import { advanceOrder } from '../../shared/scheduling/queue-store.ts';
import type { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { SCHEDULER_NAME, type SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { type CheckWrite, StoreFault, type TransactWrite } from '../../shared/store/item-store.ts';
import { is } from '../../shared/store/layout.ts';
import { resourceVersionOf } from '../../shared/store/object-record.ts';
import { type CommitOutcome, type ObjectWrite, objectKey } from '../../shared/store/object-store.ts';
import { textHash } from '../../shared/text.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import type { ClusterCopy } from './cluster-copy.ts';
import { placementDraft, type QueueHistory, type SchedulerDraft } from './decisions.ts';
import { requiredCounts } from './pod-affinity.rule.ts';
import type { Fit } from './rule.ts';
import { hardSpreadCounts } from './topology-spread.rule.ts';

/**
 * Bindings in one transaction. They have at most 80 of its 100 actions, and 91 if each has a record of its own. With
 * missing Nodes they may be too many: then half of them are bound.
 */
export const GROUP_MAX = 12;
/** Missing Nodes of a group, and of a pod that is bound alone. One pod has at most 11 actions. */
const MISSING_MAX = { ofGroup: 15, ofPod: 80 } as const;

export interface Placement {
  readonly pod: SchedulablePod;
  readonly fit: Fit;
  readonly queue: QueueHistory;
  /** Its claims, all bound, as they were read. */
  readonly claims: readonly KubePersistentVolumeClaim[];
}

export type RefusalCause = 'pod' | 'node' | 'order' | 'contention';

export interface GroupOutcome {
  readonly bound: readonly Placement[];
  /** To be decided again. */
  readonly refused: readonly Placement[];
  readonly cause?: RefusalCause;
  /** Versions must be read again before the next decision. */
  readonly isStale: boolean;
  /** Pods that cannot be written. */
  readonly unwritable: readonly Placement[];
}

type Dependencies = Pick<
  WorkDependencies,
  'objects' | 'random' | 'clock' | 'policy' | 'ledger' | 'log' | 'meter' | 'unwritableReports'
>;

const refOf = ({ namespace, name }: SchedulablePod): ObjectRef => ({ resource: 'pods', namespace, name });

/** The whole group, or its first pods: those after a refused one were decided beside it. */
export async function bindGroup(
  dependencies: Dependencies,
  copy: ClusterCopy,
  group: readonly Placement[],
): Promise<GroupOutcome> {
  let placements = group;
  // Where no machine obeys a hub, no policy is read.
  const isOfSites = group.some(
    ({ pod, fit }) =>
      copy.snapshot.nodes.get(fit.nodeName)?.node.siteHub !== undefined && mayHaveSiteHub(copy.pending.get(pod.key)),
  );
  const { resource } = SITE_POLICIES;
  const policies: readonly KubeSitePolicy[] = isOfSites
    ? (await dependencies.objects.list({ resource, limit: SITE_POLICIES_MAX })).objects
    : [];
  const outcomeOf = (parts: Partial<GroupOutcome>): GroupOutcome => ({
    bound: [],
    refused: group.slice(parts.bound?.length ?? 0),
    isStale: true,
    unwritable: [],
    ...parts,
  });
  // Each attempt has fewer placements than the one before.
  while (placements.length > 0) {
    const plan = planOf(dependencies, copy, placements, policies);
    if (plan.kind === 'refused') {
      placements = placements.slice(0, plan.index);
      continue;
    }
    let outcome: CommitOutcome;
    try {
      outcome = await dependencies.objects.commit({ writes: plan.writes, extra: plan.extra });
    } catch (fault) {
      if (!(fault instanceof StoreFault) || !fault.retryable) throw fault;
      return outcomeOf({ cause: 'contention' });
    }
    switch (outcome.kind) {
      case 'committed':
        for (let index = 0; index < placements.length; index += 1) copy.bound(outcome.objects[2 * index] as KubePod);
        copy.advanced(plan.nodeNames);
        return outcomeOf({ bound: placements, isStale: placements.length < group.length });
      case 'contended':
        return outcomeOf({ cause: 'contention' });
      case 'extraRefused':
        return outcomeOf({ cause: outcome.index === 0 ? 'order' : 'node' });
      case 'conflict':
        // An event of this name exists only if the pod was bound before.
        if (outcome.index < 2) return outcomeOf({ cause: 'pod' });
        placements = placements.slice(0, Math.floor(outcome.index / 2));
        break;
      case 'overfull':
      case 'tooLarge': {
        const index = Math.floor(outcome.kind === 'overfull' ? placements.length / 2 : outcome.index / 2);
        if (placements.length > 1) {
          placements = placements.slice(0, Math.max(1, index));
          break;
        }
        await reportTooLarge(dependencies, copy, placements[0]!);
        return outcomeOf({ refused: group.slice(1), unwritable: placements });
      }
    }
  }
  return outcomeOf({ cause: 'pod' });
}

async function reportTooLarge(dependencies: Dependencies, copy: ClusterCopy, { pod }: Placement): Promise<void> {
  const object = copy.pending.get(pod.key);
  if (object === undefined) return;
  const nowMs = dependencies.clock.nowMs();
  await reportUnwritable(dependencies, { kind: 'Pod', object, what: 'bind the pod', nowMs });
}

type Plan =
  | {
      readonly kind: 'plan';
      /** Pod and event of each placement. */
      readonly writes: readonly ObjectWrite[];
      /** The order first. */
      readonly extra: readonly TransactWrite[];
      readonly nodeNames: readonly string[];
    }
  /** The pod at this position can no longer be bound. */
  | { readonly kind: 'refused'; readonly index: number };

function planOf(
  { random, clock, ledger, policy }: Dependencies,
  copy: ClusterCopy,
  placements: readonly Placement[],
  policies: readonly KubeSitePolicy[],
): Plan {
  const nowMs = clock.nowMs();
  const { nodes } = copy.snapshot;
  const timeoutOn = podEvictionTimeoutOn(policy);
  const fromSeconds = policy.podEvictionTimeoutSeconds;
  const writes: ObjectWrite[] = [];
  const drafts: SchedulerDraft[] = [];
  // Events of one group share the head of their shard.
  const wantedShard = textHash(placements[0]!.pod.uid) % shardsOf('events');
  for (const [index, { pod, fit, queue }] of placements.entries()) {
    const previous = copy.pending.get(pod.key);
    const node = nodes.get(fit.nodeName);
    if (previous === undefined || previous.metadata.uid !== pod.uid || node === undefined)
      return { kind: 'refused', index };
    const timeout = timeoutOn && { fromSeconds, toSeconds: timeoutOn(node.node.labels) };
    const outcome = bindPod(previous, fit.nodeName, nowMs, timeout);
    if (outcome.kind === 'refused') return { kind: 'refused', index };
    const object = policies.length === 0 ? outcome.pod : withSiteHub(outcome.pod, node.node, policies);
    writes.push({ kind: 'update', ref: refOf(pod), object, previous });
    writes.push(eventWrite(scheduledEvent(pod, fit.nodeName), { nowMs, eventUid: random.uuid(), wantedShard }));
    drafts.push(placementDraft(pod, fit, { nowMs, nodes: nodes.size, queue }));
  }
  const missing = [...new Set(placements.flatMap(({ pod }) => relatedMissingNodes(pod, copy.snapshot)))];
  if (placements.length > 1 && missing.length > MISSING_MAX.ofGroup) return { kind: 'refused', index: 1 };
  const absent = missing.slice(0, MISSING_MAX.ofPod).map(nodeAbsent);
  const nodeNames = [...new Set(placements.map(({ fit }) => fit.nodeName))];
  const guards = nodeNames.flatMap((nodeName) => [
    useNode(nodeName, copy.useOf(nodeName)),
    nodeUnchanged(nodeName, nodes.get(nodeName)!.node.resourceVersion),
  ]);
  const claims = new Map(
    placements.flatMap((each) => each.claims.map((claim) => [claim.metadata.uid, claim] as const)),
  );
  const bound = [...claims.values()].map(claimUnchanged);
  const extra = [advanceOrder(copy.order), ...guards, ...absent, ...bound, ...ledger.writeAll(drafts)];
  return { kind: 'plan', writes, extra, nodeNames };
}

/** Its claim is still bound: it was not deleted and created again. */
const claimUnchanged = (claim: KubePersistentVolumeClaim): CheckWrite => {
  const { namespace = '', name = '' } = claim.metadata;
  const resource = 'persistentvolumeclaims';
  return {
    kind: 'check',
    key: objectKey({ resource, namespace, name }, shardsOf(resource)),
    when: is('rv', resourceVersionOf(claim)),
  };
};

const scheduledEvent = ({ key, namespace, name, uid }: SchedulablePod, nodeName: string) =>
  ({
    type: 'Normal',
    reason: 'Scheduled',
    message: `Successfully assigned ${key} to ${nodeName}`,
    source: SCHEDULER_NAME,
    action: 'Binding',
    about: { kind: 'Pod', namespace, name, uid },
    once: 'bound',
  }) as const;

/** Names of missing Nodes with pods that a hard rule of either side relates to this pod. Almost always none. */
function relatedMissingNodes(pod: SchedulablePod, snapshot: Snapshot): readonly string[] {
  const { missingNodes } = snapshot;
  if (missingNodes.size === 0) return [];
  const counts = [...requiredCounts(pod, snapshot), ...hardSpreadCounts(pod, snapshot)];
  return [...missingNodes].filter((name) => counts.some((byNode) => byNode.has(name)));
}
