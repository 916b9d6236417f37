/**
 * L14: a controller never creates more pods than their owner wants, and its deletions keep what the owner guarantees.
 * Checked at each commit of the function `workloads`, on what is stored with that commit:
 *
 *   ReplicaSet    active pods are at most `replicas` after a creation, at least `replicas` after a deletion
 *   Deployment    sizes of its ReplicaSets add up to at most `replicas` + maxSurge, or do not grow; a rollout gives up
 *                 no available pod below `replicas` - maxUnavailable; Recreate starts when all old pods are removed
 *   Job           active pods are at most `parallelism` and what is left of `completions`; each pod is counted once
 *   DaemonSet     one pod per node, one more with maxSurge; a rollout leaves at most maxUnavailable nodes without one
 *   StatefulSet   wanted ordinals only; no commit frees a name while its pod may run; in order, one pod at a time
 */

import type { KubeDeployment, KubeReplicaSet, KubeStatefulSet } from '../../functions/workloads/workload-types.ts';
import { offlineStopSeconds } from '../../shared/kinds/pods/offline-stop.ts';
import { siteHubOf } from '../../shared/kinds/pods/site-permit.ts';
import type { KubeDaemonSet, KubeJob, KubePod } from '../../shared/kinds/types.ts';
import { HUB, OPERATOR } from '../access.ts';
import type { Mark } from '../coverage.ts';
import { effectMs, type Law, type LawContext } from './law.ts';
import type { Writer } from './truth.ts';
import {
  type Changed,
  controllerOf,
  hasEnded,
  isActive,
  isDeleting,
  isReady,
  uidOf,
  type WorkloadWorld,
  wasCreated,
  wasDeleted,
} from './workload-world.ts';

/** Name of the function. */
const WORKLOADS = 'workloads';
const TRACKING = 'batch.kubernetes.io/job-tracking';
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const DESIRED = 'deployment.kubernetes.io/desired-replicas';

export interface PodCountsLaw extends Law {
  /** What one step changed. `world` has it already. */
  learn(changed: readonly Changed[], by: Writer): void;
}

export const podCountsAreKept = (context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void): PodCountsLaw =>
  new PodCounts(context, world, hit);

const isTracked = (pod: KubePod | undefined): boolean => (pod?.metadata.finalizers ?? []).includes(TRACKING);
const sizeOf = (set: KubeReplicaSet | undefined): number => set?.spec?.replicas ?? 0;
const ordinalOf = (pod: KubePod): number => Number(/-(\d+)$/.exec(pod.metadata.name ?? '')?.[1] ?? Number.NaN);

/** A number, or a percentage of `total`. */
function scaled(value: number | string | undefined, total: number, round: (value: number) => number): number {
  if (typeof value === 'number') return value;
  return round((Number((value ?? '25%').replace('%', '')) * total) / 100);
}

/** The node that a pod is bound to or made for. */
export function targetOf({ spec }: KubePod): string {
  if (spec?.nodeName) return spec.nodeName;
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms[0]?.matchFields?.[0]?.values?.[0] ?? '';
}

class PodCounts implements PodCountsLaw {
  readonly name = 'L14';
  readonly #context: LawContext;
  readonly #world: WorkloadWorld;
  readonly #hit: (mark: Mark) => void;
  /** When a pod or a place for one last changed, by owner and node or ordinal. True time. */
  readonly #changedAtMs = new Map<string, number>();
  /** The most available pods that a ReplicaSet had since it was last settled, by uid. */
  readonly #availableBefore = new Map<string, number>();
  /** When active pods of an owner ended that the controller did not delete, by its uid. True times, oldest first. */
  readonly #endedByOthersAtMs = new Map<string, readonly number[]>();

  constructor(context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#world = world;
    this.#hit = hit;
  }

  learn(changed: readonly Changed[], by: Writer): void {
    const pods = changed.filter(({ resource }) => resource === 'pods') as readonly Changed<KubePod>[];
    if (by.name === WORKLOADS) {
      const deleted = pods.flatMap((change) =>
        wasDeleted(change) && isActive(change.before!) ? [change.before!] : [],
      );
      for (const change of pods) if (wasCreated(change)) this.#checkCreation(change);
      for (const pod of deleted) this.#checkDeletion(pod, deleted);
      this.#checkSizes(
        changed.filter(({ resource }) => resource === 'replicasets') as readonly Changed<KubeReplicaSet>[],
      );
      for (const change of changed) {
        if (change.resource === 'jobs') this.#checkCounts(change as Changed<KubeJob>, pods);
      }
    }
    for (const change of pods) {
      this.#checkName(change, by);
      if (by.name !== WORKLOADS) this.#noteEnd(change);
    }
    this.#noteChanges(changed);
  }

  #checkCreation({ before, after, key }: Changed<KubePod>): void {
    const pod = after!;
    const owner = this.#ownerOf(pod);
    if (before !== undefined) this.#fail([key], `${key} replaced another pod of this name`);
    if (owner === undefined || isDeleting(owner.object)) {
      this.#fail([key], `${key} was created for an owner that is not stored, or is being deleted`);
      return;
    }
    const uid = uidOf(owner.object);
    const pods = this.#world.controlledBy(uid, 'pods');
    switch (owner.resource) {
      case 'replicasets': {
        this.#hit('L14:replicaset-create');
        const [active, wanted] = [pods.filter(isActive).length, sizeOf(owner.object)];
        if (active > wanted) this.#fail([key], `${active} pods are active with ${key}, its ReplicaSet wants ${wanted}`);
        return;
      }
      case 'jobs':
        this.#checkJobCreation(key, owner.object, pods);
        return;
      case 'daemonsets':
        this.#checkDaemonCreation(pod, key, owner.object);
        return;
      case 'statefulsets': {
        this.#hit('L14:statefulset-create');
        const { replicas = 1, ordinals } = (owner.object as KubeStatefulSet).spec ?? {};
        const place = ordinalOf(pod) - (ordinals?.start ?? 0);
        if (!(place >= 0 && place < replicas)) this.#fail([key], `${key} was created, ${replicas} replicas are wanted`);
        return;
      }
      default:
        this.#fail([key], `${key} was created for an owner of ${owner.resource}`);
    }
  }

  #checkJobCreation(key: string, job: KubeJob, pods: readonly KubePod[]): void {
    this.#hit('L14:job-create');
    const active = pods.filter(isActive).length;
    const wanted = wantedByJob(job, pods);
    if (active > wanted) this.#fail([key], `${active} pods are active with ${key}, its Job wants ${wanted}`);
  }

  #checkDaemonCreation(pod: KubePod, key: string, set: KubeDaemonSet): void {
    this.#hit('L14:daemonset-create');
    const node = targetOf(pod);
    const there = this.#daemonPods(set, node);
    const active = there.filter(isActive).length;
    const blocking = there.filter((each) => isDeleting(each) && !hasEnded(each)).length;
    const isTooMany = surgeOf(set) > 0 ? active > 2 : active + blocking > 1;
    if (isTooMany) this.#fail([key, node], `${key} is one of ${active} pods on ${node}, ${blocking} are terminating`);
  }

  #daemonPods(set: KubeDaemonSet, node: string): readonly KubePod[] {
    return this.#world.controlledBy(uidOf(set), 'pods').filter((each) => targetOf(each) === node);
  }

  /** `pod` was active. A deletion for an owner that does not stay is garbage collection: L16. */
  #checkDeletion(pod: KubePod, deleted: readonly KubePod[]): void {
    const owner = this.#ownerOf(pod);
    if (owner === undefined || isDeleting(owner.object)) return;
    const key = `${pod.metadata.namespace}/${pod.metadata.name}`;
    const pods = this.#world.controlledBy(uidOf(owner.object), 'pods');
    // A commit fails when another controller changed the set of pods since it was read, but not when a person deleted
    // one.
    const active = pods.filter(isActive).length + this.#recentEnds(uidOf(owner.object)).length;
    if (owner.resource === 'replicasets') {
      this.#hit('L14:replicaset-delete');
      const wanted = sizeOf(owner.object);
      if (active < wanted)
        this.#fail([key], `${active} pods are active without ${key}, its ReplicaSet wants ${wanted}`);
    } else if (owner.resource === 'jobs') {
      this.#hit('L14:job-delete');
      const wanted = wantedByJob(owner.object, pods);
      if (active < wanted) this.#fail([key], `${active} pods are active without ${key}, its Job wants ${wanted}`);
    } else if (owner.resource === 'daemonsets') this.#checkDaemonDeletion(pod, key, owner.object, deleted);
    else if (owner.resource === 'statefulsets') this.#checkStatefulDeletion(pod, key, owner.object);
  }

  /**
   * A Ready pod, alone on a node without a foreign taint, is deleted by a rollout only. An old pod that is not Ready is
   * replaced in any case and does not count, as upstream.
   */
  #checkDaemonDeletion(pod: KubePod, key: string, set: KubeDaemonSet, deleted: readonly KubePod[]): void {
    const node = targetOf(pod);
    const isAlone = !this.#daemonPods(set, node).some(isActive);
    if (!isReady(pod) || !isAlone || !this.#isWanted(set, node)) return;
    this.#hit('L14:daemonset-replace');
    const limit = Number(set.spec?.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1);
    const image = set.spec?.template?.spec?.containers?.[0]?.image;
    const isUnavailable = (name: string): boolean => {
      if (name === node) return true;
      if (!this.#isSettled(uidOf(set), name)) return false;
      if (deleted.some((each) => targetOf(each) === name)) {
        return deleted.some((each) => targetOf(each) === name && isReady(each));
      }
      const there = this.#daemonPods(set, name).filter(isActive);
      if (there.length === 0 && !this.#isWanted(set, name)) return false;
      return !there.some((each) => isReady(each) || each.spec?.containers?.[0]?.image !== image);
    };
    const without = [...this.#world.nodes().keys()].filter(isUnavailable);
    if (surgeOf(set) > 0 || without.length > limit) {
      this.#fail([key, node], `${key} was replaced: ${without.join(', ')} have no Ready pod, the limit is ${limit}`);
    }
  }

  /** Whether the set has pods on this node, and had for a moment. */
  #isWanted(set: KubeDaemonSet, name: string): boolean {
    const node = this.#world.nodes().get(name);
    const { nodeSelector = {} } = set.spec?.template?.spec ?? {};
    return (
      node !== undefined &&
      this.#isSettled('', name) &&
      Object.entries(nodeSelector).every(([label, value]) => node.metadata.labels?.[label] === value) &&
      (node.spec?.taints ?? []).every(({ key, effect }) => TOLERATED.has(`${key}:${effect}`))
    );
  }

  #checkStatefulDeletion(pod: KubePod, key: string, set: KubeStatefulSet): void {
    const { replicas = 1, ordinals, podManagementPolicy } = set.spec ?? {};
    const start = ordinals?.start ?? 0;
    const ordinal = ordinalOf(pod);
    const others = this.#world
      .controlledBy(uidOf(set), 'pods')
      .filter((each) => each.metadata.name !== pod.metadata.name);
    const isInOrder = podManagementPolicy !== 'Parallel';
    if (ordinal < start || ordinal >= start + replicas) {
      this.#hit('L14:statefulset-shrink');
      const higher = others.find((each) => ordinalOf(each) > ordinal);
      if (isInOrder && higher !== undefined) this.#fail([key], `${key} was deleted before ${higher.metadata.name}`);
      return;
    }
    this.#hit('L14:statefulset-replace');
    if (!isInOrder || !isReady(pod)) return;
    for (let place = start; place < start + replicas; place += 1) {
      if (place === ordinal || !this.#isSettled(uidOf(set), String(place))) continue;
      const other = others.find((each) => ordinalOf(each) === place);
      if (other === undefined || !isActive(other) || !isReady(other))
        this.#fail([key], `${key} was replaced while ordinal ${place} has no Ready pod`);
    }
  }

  /** A decision reads a moment before its commit. What changed since may have been different then. */
  #isSettled(owner: string, place: string): boolean {
    const sinceMs = this.#changedAtMs.get(`${owner} ${place}`) ?? Number.NEGATIVE_INFINITY;
    return this.#context.nowMs() - sinceMs > 2 * effectMs(this.#context, sinceMs);
  }

  /** A commit requires the versions of the ReplicaSets that it changes, not of the others. */
  #availableOf(set: KubeReplicaSet): number {
    const available = set.status?.availableReplicas ?? 0;
    const uid = uidOf(set);
    return this.#isSettled(uid, '') ? available : Math.max(available, this.#availableBefore.get(uid) ?? 0);
  }

  #noteAvailability(set: KubeReplicaSet, nowMs: number): void {
    const uid = uidOf(set);
    const most = this.#availableOf(set);
    this.#availableBefore.set(uid, most);
    this.#changedAtMs.set(`${uid} `, nowMs);
  }

  #noteEnd({ before, after }: Changed<KubePod>): void {
    if (before === undefined || !isActive(before)) return;
    const uid = controllerOf(before)?.uid;
    if (uid === undefined || (after !== undefined && isActive(after))) return;
    this.#endedByOthersAtMs.set(uid, [...this.#recentEnds(uid), this.#context.nowMs()]);
  }

  /** When pods became inactive that a running invocation may have counted as active. */
  #recentEnds(uid: string): readonly number[] {
    const sinceMs = this.#context.nowMs() - effectMs(this.#context);
    return (this.#endedByOthersAtMs.get(uid) ?? []).filter((atMs) => atMs >= sinceMs);
  }

  #noteChanges(changed: readonly Changed[]): void {
    const nowMs = this.#context.nowMs();
    for (const { resource, key, before, after } of changed) {
      if (resource === 'replicasets' && before !== undefined) this.#noteAvailability(before, nowMs);
      if (resource === 'nodes') {
        const [was, is] = [before, after].map((node) => JSON.stringify(node?.spec?.['taints'] ?? []));
        if (was !== is || before === undefined || after === undefined) this.#changedAtMs.set(` ${key}`, nowMs);
      }
      if (resource !== 'pods') continue;
      for (const pod of [before, after] as readonly (KubePod | undefined)[]) {
        if (pod === undefined) continue;
        const controller = controllerOf(pod);
        if (controller?.kind === 'DaemonSet') this.#changedAtMs.set(`${controller.uid} ${targetOf(pod)}`, nowMs);
        if (controller?.kind === 'StatefulSet') this.#changedAtMs.set(`${controller.uid} ${ordinalOf(pod)}`, nowMs);
      }
    }
  }

  /**
   * Whoever removes the object of a bound pod frees its name: its machine, a person, or pod-gc for a lost Node. When
   * others may remove one that stops without a link is S2.
   */
  #checkName({ before, after, key }: Changed<KubePod>, by: Writer): void {
    if (before === undefined || (after !== undefined && uidOf(after) === uidOf(before))) return;
    const nodeName = before.spec?.nodeName ?? '';
    if (controllerOf(before)?.kind !== 'StatefulSet' || nodeName === '') return;
    this.#hit('L14:statefulset-name-freed');
    if (by.who === nodeName || by.who === OPERATOR || hasEnded(before)) return;
    // What runs is what S2 sees: a hub says so after its permits are over.
    if (by.who === HUB && siteHubOf(before) === HUB) return;
    if (isDeleting(before) && offlineStopSeconds(before) !== undefined) return;
    const node = this.#world.nodes().get(nodeName);
    const isLost = node === undefined || (node.spec?.taints ?? []).some(({ key: taint }) => taint === OUT_OF_SERVICE);
    if (by.name === 'pod-gc' && (isLost || !this.#isSettled('', nodeName))) return;
    this.#fail([key, nodeName], `${by.name} freed the name of ${key}, which may still run on ${nodeName}`);
  }

  /** Sizes that one commit changed, by Deployment. */
  #checkSizes(sets: readonly Changed<KubeReplicaSet>[]): void {
    const uids = new Set(sets.flatMap(({ before, after }) => controllerOf((after ?? before)!)?.uid ?? []));
    for (const uid of uids) {
      const deployment = this.#world.withUid(uid)?.object as KubeDeployment | undefined;
      if (deployment === undefined || isDeleting(deployment)) continue;
      const changed = new Map(sets.flatMap(({ key, before, after }) => (after === undefined ? [] : [[key, before]])));
      const after = this.#world.controlledBy(uid, 'replicasets');
      const pairs = after.map((set): SizePair => {
        const key = `${set.metadata.namespace}/${set.metadata.name}`;
        return { before: changed.has(key) ? changed.get(key) : set, after: set };
      });
      if (pairs.some(({ before, after: set }) => sizeOf(set) > sizeOf(before))) this.#checkGrowth(deployment, pairs);
      if (pairs.some(({ before, after: set }) => sizeOf(set) < sizeOf(before))) this.#checkShrinking(deployment, pairs);
    }
  }

  #checkGrowth(deployment: KubeDeployment, pairs: readonly SizePair[]): void {
    this.#hit('L14:deployment-grow');
    const { replicas = 1, strategy } = deployment.spec ?? {};
    const isRecreate = strategy?.type === 'Recreate';
    const surge = isRecreate ? 0 : scaled(strategy?.rollingUpdate?.maxSurge, replicas, Math.ceil);
    const sumOf = (when: keyof SizePair): number => pairs.reduce((sum, pair) => sum + sizeOf(pair[when]), 0);
    const [before, after] = [sumOf('before'), sumOf('after')];
    const name = `${deployment.metadata.namespace}/${deployment.metadata.name}`;
    if (after > Math.max(replicas + surge, before))
      this.#fail([name], `the sizes of ${name} grew from ${before} to ${after}: ${replicas} replicas, surge ${surge}`);
    if (!isRecreate) return;
    const grown = pairs.filter(({ before: was, after: is }) => sizeOf(was) === 0 && sizeOf(is) > 0);
    if (grown.length === 0) return;
    this.#hit('L14:recreate');
    const others = pairs.filter((pair) => !grown.includes(pair));
    const old = others.flatMap(({ after: set }) => this.#world.controlledBy(uidOf(set), 'pods'));
    const running = old.filter((pod) => !hasEnded(pod));
    if (running.length > 0)
      this.#fail([name], `${name} starts its new pods while ${running[0]!.metadata.name} of the old ones is stored`);
  }

  /** A change of `replicas` by a person guarantees nothing. */
  #checkShrinking(deployment: KubeDeployment, pairs: readonly SizePair[]): void {
    const { replicas = 1, strategy, paused } = deployment.spec ?? {};
    if (strategy?.type === 'Recreate' || paused === true || isBeingScaled(deployment, pairs)) return;
    this.#hit('L14:deployment-shrink');
    const maxUnavailable = scaled(strategy?.rollingUpdate?.maxUnavailable, replicas, Math.floor);
    const maxSurge = scaled(strategy?.rollingUpdate?.maxSurge, replicas, Math.ceil);
    const least = replicas - Math.min(replicas, maxUnavailable === 0 && maxSurge === 0 ? 1 : maxUnavailable);
    // The controller may have read the present statuses, or earlier ones with more available pods.
    const present = givenUpBy(pairs, ({ status }) => status?.availableReplicas ?? 0);
    const earlier = givenUpBy(pairs, (set) => this.#availableOf(set));
    const isTooMany = ({ available, givenUp }: Reduction): boolean => givenUp > 0 && available - givenUp < least;
    if (!isTooMany(present) || !isTooMany(earlier)) return;
    const { available, givenUp } = earlier;
    const name = `${deployment.metadata.namespace}/${deployment.metadata.name}`;
    this.#fail([name], `${name} keeps ${available - givenUp} of ${available} available pods, at least ${least} stay`);
  }

  /** A Job that stays: as many pods lose the finalizer as are counted, and each that ended is. */
  #checkCounts({ before: job, after, key }: Changed<KubeJob>, pods: readonly Changed<KubePod>[]): void {
    if (job === undefined || after === undefined || uidOf(job) !== uidOf(after)) return;
    const counted = (of: KubeJob): number => (of.status?.succeeded ?? 0) + (of.status?.failed ?? 0);
    const added = counted(after) - counted(job);
    const lost = pods.filter(
      ({ before, after: pod }) =>
        isTracked(before) && !isTracked(pod) && controllerOf(before!)?.uid === uidOf(job) && !isOrphaned(pod),
    );
    const ended = lost.filter(({ before }) => hasEnded(before!));
    if (added === 0 && lost.length === 0) return;
    this.#hit('L14:job-count');
    if (added > lost.length || added < ended.length)
      this.#fail([key], `${key} counts ${added} more pods: ${lost.length} lost their finalizer, ${ended.length} ended`);
  }

  #ownerOf(pod: KubePod) {
    return this.#world.withUid(controllerOf(pod)?.uid ?? '');
  }

  #fail(subjects: readonly string[], message: string): void {
    this.#context.fail({ law: 'L14', subjects, message });
  }
}

interface SizePair {
  /** Absent: created. */
  readonly before: KubeReplicaSet | undefined;
  readonly after: KubeReplicaSet;
}

interface Reduction {
  readonly available: number;
  /** Available pods that the new sizes give up. */
  readonly givenUp: number;
}

/** A ReplicaSet gives up its pods that are not available first. */
function givenUpBy(pairs: readonly SizePair[], availableOf: (set: KubeReplicaSet) => number): Reduction {
  let available = 0;
  let givenUp = 0;
  for (const { before, after } of pairs) {
    const ofSet = before === undefined ? 0 : availableOf(before);
    const reduction = Math.max(0, sizeOf(before) - sizeOf(after));
    available += ofSet;
    givenUp += Math.min(ofSet, Math.max(0, reduction - Math.max(0, sizeOf(before) - ofSet)));
  }
  return { available, givenUp };
}

/** It stays without an owner. */
const isOrphaned = (pod: KubePod | undefined): boolean => pod !== undefined && controllerOf(pod) === undefined;

const surgeOf = ({ spec }: KubeDaemonSet): number => Number(spec?.updateStrategy?.rollingUpdate?.maxSurge ?? 0);

/** Taints that the pods of every DaemonSet tolerate. */
const TOLERATED = new Set([
  'node.kubernetes.io/not-ready:NoExecute',
  'node.kubernetes.io/unreachable:NoExecute',
  'node.kubernetes.io/disk-pressure:NoSchedule',
  'node.kubernetes.io/memory-pressure:NoSchedule',
  'node.kubernetes.io/pid-pressure:NoSchedule',
  'node.kubernetes.io/unschedulable:NoSchedule',
  'nodekeeper.dev/planned-silence:NoSchedule',
  'nodekeeper.dev/flapping:NoSchedule',
]);

/** 0 when it is suspended or its end is decided. Succeeded pods that are not counted yet need no other one. */
export function wantedByJob({ spec = {}, status = {} }: KubeJob, pods: readonly KubePod[]): number {
  const isOver = (status.conditions ?? []).some(({ type, status: is }) => is === 'True' && type !== 'Suspended');
  if (isOver || spec.suspend === true) return 0;
  const { parallelism = 1, completions } = spec;
  if (completions === undefined) return parallelism;
  const uncounted = pods.filter((pod) => pod.status?.phase === 'Succeeded' && isTracked(pod)).length;
  return Math.min(parallelism, Math.max(0, completions - (status.succeeded ?? 0) - uncounted));
}

/** The sizes of its ReplicaSets follow another `replicas` than it has. */
export const isBeingScaled = ({ spec }: KubeDeployment, pairs: readonly SizePair[]): boolean =>
  pairs.some(({ before }) => {
    const desired = before?.metadata.annotations?.[DESIRED];
    return before !== undefined && sizeOf(before) > 0 && desired !== undefined && Number(desired) !== spec?.replicas;
  });
