/**
 * L15: while the gate is closed, nothing is deleted as a consequence of silence. No pod is evicted because of a taint
 * of ours. A rollout reduces no old ReplicaSet and replaces no pod, no history is deleted, and no DaemonSet deletes a
 * pod because of a taint of ours: the pods of a silent node are not Ready, and that may be our own fault. What people
 * change is followed. A decision reads the gate a moment before its commit, so the law applies from that time after a
 * closing.
 *
 * In total disruption the same applies to rollouts, histories and DaemonSets. Evictions have a law of their own (L4).
 */

import type { KubeDeployment, KubeReplicaSet, KubeStatefulSet } from '../../functions/workloads/workload-types.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { Mark } from '../coverage.ts';
import { effectMs, type Law, type LawContext } from './law.ts';
import { isBeingScaled, targetOf } from './pod-counts.ts';
import { type Happened, isOurs, type Writer } from './truth.ts';
import {
  type Changed,
  controllerOf,
  isActive,
  isDeleting,
  uidOf,
  type WorkloadWorld,
  wasDeleted,
} from './workload-world.ts';

const OUR_TAINTS = 'node.kubernetes.io/';
/** Between the read of the gate and the commit, without faults. Milliseconds. */
const LEAST_SLACK_MS = 5_000;

export interface GateLaw extends Law {
  /** What one step changed. `world` has it already. */
  learn(changed: readonly Changed[], by: Writer): void;
}

export const closedGateHoldsActs = (context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void): GateLaw =>
  new ClosedGate(context, world, hit);

const sizeOf = (set: KubeReplicaSet): number => set.spec?.replicas ?? 0;
/** All templates differ by the image. */
const imageOf = ({ spec }: KubeDeployment | KubeReplicaSet): string | undefined =>
  spec?.template?.spec?.containers?.[0]?.image;

class ClosedGate implements GateLaw {
  readonly name = 'L15';
  readonly #context: LawContext;
  readonly #world: WorkloadWorld;
  readonly #hit: (mark: Mark) => void;
  #closedSinceMs: number | undefined;
  #totalSinceMs: number | undefined;
  /** When a node was last seen without a Node, or with a foreign taint. True time. */
  readonly #otherCauseAtMs = new Map<string, number>();
  /** When the sizes of a Deployment were last requested by a person. True time, by uid. */
  readonly #scaledAtMs = new Map<string, number>();

  constructor(context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#world = world;
    this.#hit = hit;
  }

  onHappened(happened: Happened, by: Writer): void {
    if (happened.kind === 'control') {
      const { key, newImage } = happened.change;
      this.#noteGate(key.sk, newImage?.['gate']);
      if (key.sk === 'state') this.#noteTotal(newImage?.['total'] === 1);
    }
    if (happened.kind === 'podEnds') this.#checkEviction(happened, by);
  }

  learn(changed: readonly Changed[], by: Writer): void {
    this.#noteCauses(changed);
    if (by.name !== 'workloads' || !(this.#isClosed() || this.#isTotal())) return;
    this.#hit('L15:commit-while-closed');
    for (const change of changed) {
      if (change.resource === 'pods' && wasDeleted(change)) this.#checkPod(change as Changed<KubePod>);
      else if (change.resource === 'replicasets') this.#checkSet(change as Changed<KubeReplicaSet>);
    }
  }

  #noteGate(sk: string, gate: unknown): void {
    if (sk !== 'state' || typeof gate !== 'string') return;
    const { reasons = [] } = JSON.parse(gate) as { readonly reasons?: readonly string[] };
    if (reasons.length === 0) this.#closedSinceMs = undefined;
    else if (this.#closedSinceMs === undefined) {
      this.#closedSinceMs = this.#context.nowMs();
      if (this.#isRolloutUnderWay()) this.#hit('L15:rollout-held');
    }
  }

  #noteTotal(isTotal: boolean): void {
    if (!isTotal) this.#totalSinceMs = undefined;
    else this.#totalSinceMs ??= this.#context.nowMs();
  }

  #isRolloutUnderWay(): boolean {
    return [...this.#world.all('deployments')].some((deployment) =>
      this.#world
        .controlledBy(uidOf(deployment), 'replicasets')
        .some((set) => sizeOf(set) > 0 && imageOf(set) !== imageOf(deployment)),
    );
  }

  #slackMs(sinceMs: number): number {
    return Math.max(LEAST_SLACK_MS, 2 * effectMs(this.#context, sinceMs));
  }

  #isClosed(): boolean {
    return this.#isPast(this.#closedSinceMs);
  }

  #isTotal(): boolean {
    return this.#isPast(this.#totalSinceMs);
  }

  /** A decision that began before it is committed by now. */
  #isPast(sinceMs: number | undefined): boolean {
    return sinceMs !== undefined && this.#context.nowMs() - sinceMs > this.#slackMs(sinceMs);
  }

  #isRecent(atMs: number | undefined): boolean {
    return atMs !== undefined && this.#context.nowMs() - atMs <= this.#slackMs(atMs);
  }

  #noteCauses(changed: readonly Changed[]): void {
    const nowMs = this.#context.nowMs();
    for (const { resource, key, before, after } of changed) {
      if (resource === 'deployments') {
        const [was, is] = [before, after].map((each) => (each as KubeDeployment | undefined)?.spec?.replicas);
        if (was !== is) this.#scaledAtMs.set(uidOf((after ?? before)!), nowMs);
      }
      if (resource !== 'nodes') continue;
      const hadOther = [before, after].some((node) => node === undefined || this.#hasForeignTaint(node));
      if (hadOther) this.#otherCauseAtMs.set(key, nowMs);
    }
  }

  #hasForeignTaint({ spec }: { readonly spec?: { readonly [field: string]: unknown } }): boolean {
    const taints = (spec?.['taints'] ?? []) as readonly { readonly key: string; readonly effect: string }[];
    return taints.some(({ key, effect }) => effect === 'NoExecute' && !key.startsWith(OUR_TAINTS));
  }

  /** evictor and object-stream delete pods, and remove those that stop without a link, because of taints alone. */
  #checkEviction({ pod, isGone }: Extract<Happened, { kind: 'podEnds' }>, by: Writer): void {
    const isRemoved = isGone && pod.isTerminating;
    if (
      (isGone && !isRemoved) ||
      by.who !== '' ||
      (by.name !== 'evictor' && by.name !== 'object-stream') ||
      !this.#isClosed()
    )
      return;
    const taints = this.#context.truth.nodes.get(pod.nodeName)?.noExecute ?? new Map<string, unknown>();
    if ([...taints.keys()].every(isOurs) && !this.#isRecent(this.#otherCauseAtMs.get(pod.nodeName)))
      this.#fail([pod.path, pod.nodeName], `${by.name} evicted ${pod.path} while the gate was closed`);
  }

  #checkPod({ key, before }: Changed<KubePod>): void {
    const pod = before!;
    const owner = this.#world.withUid(controllerOf(pod)?.uid ?? '');
    if (owner === undefined || isDeleting(owner.object) || !isActive(pod)) return;
    if (owner.resource === 'statefulsets') {
      const { replicas = 1 } = (owner.object as KubeStatefulSet).spec ?? {};
      const ordinal = Number(pod.metadata.name?.split('-').at(-1));
      if (ordinal < replicas) this.#fail([key], `${key} was replaced while ${this.#holdText()}`);
    } else if (owner.resource === 'daemonsets') {
      const name = targetOf(pod);
      const node = this.#world.nodes().get(name);
      const isOtherThere = this.#world
        .controlledBy(uidOf(owner.object), 'pods')
        .some((each) => targetOf(each) === name && isActive(each));
      const hasOtherCause =
        isOtherThere ||
        node === undefined ||
        this.#hasForeignTaint(node) ||
        this.#isRecent(this.#otherCauseAtMs.get(name));
      if (!hasOtherCause) this.#fail([key, name], `${key} was deleted while ${this.#holdText()}`);
    }
  }

  #checkSet({ key, before, after }: Changed<KubeReplicaSet>): void {
    if (before === undefined || isDeleting(before)) return;
    const owner = this.#world.withUid(controllerOf(before)?.uid ?? '');
    if (owner?.resource !== 'deployments' || isDeleting(owner.object)) return;
    const deployment = owner.object as KubeDeployment;
    const isReduced = after !== undefined && sizeOf(after) < sizeOf(before) && uidOf(after) === uidOf(before);
    const isDeleted = after === undefined || isDeleting(after);
    if (!isReduced && !isDeleted) return;
    const pairs = this.#world.controlledBy(uidOf(deployment), 'replicasets').map((set) => {
      const isSame = uidOf(set) === uidOf(before);
      return { before: isSame ? before : set, after: set };
    });
    const isRequested =
      isReduced &&
      (isBeingScaled(deployment, pairs) ||
        deployment.spec?.paused === true ||
        imageOf(before) === imageOf(deployment) ||
        this.#isRecent(this.#scaledAtMs.get(uidOf(deployment))));
    if (!isRequested) this.#fail([key], `${key} was ${isDeleted ? 'deleted' : 'reduced'} while ${this.#holdText()}`);
  }

  #holdText(): string {
    return this.#isClosed() ? 'the gate was closed' : 'all zones were in FullDisruption';
  }

  #fail(subjects: readonly string[], message: string): void {
    this.#context.fail({ law: 'L15', subjects, message });
  }
}
