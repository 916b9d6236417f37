/**
 * What runs on machines, by truth and not by the status of a pod (docs/agent.md).
 *
 * S2: with annotation `nodekeeper.dev/offline-stop-after`, one identity runs on one machine at a time: a pod name of a
 * StatefulSet; as many pods as a Recreate Deployment, a ReplicaSet or a Job wants. A person who deletes a Node or
 * declares a machine out of service vouches for it: pods that were there until then are not counted.
 *
 * S1: a machine with power stops no container that the cluster wants: only pods that were deleted or have ended, and
 * those with the annotation after its time. The time may seem over after a step of the wall clock.
 */
import type { KubeDeployment, KubeReplicaSet } from '../../functions/workloads/workload-types.ts';
import { offlineStopSeconds } from '../../shared/kinds/pods/offline-stop.ts';
import { siteHubOf } from '../../shared/kinds/pods/site-permit.ts';
import type { KubeJob, KubeObject, KubePod, OwnerReference } from '../../shared/kinds/types.ts';
import type { Mark } from '../coverage.ts';
import type { PodObserver, Stop } from '../running-pods.ts';
import { type Law, type LawContext, seconds } from './law.ts';
import { type Changed, controllerOf, hasEnded, isDeleting, uidOf, type WorkloadWorld } from './workload-world.ts';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
/** The largest difference between the clock of a machine and true time, as a share. */
const RATE_ERROR_MAX = 0.001;

interface Identity {
  readonly id: string;
  readonly text: string;
  /** Pods of it that may run at a time. */
  readonly podsMax: number;
}

interface Running {
  readonly machine: string;
  readonly pod: KubePod;
  readonly identity: Identity | undefined;
}

export interface OfflineStopLaw extends Law, PodObserver {
  /** What one step changed. `world` has it already. */
  learn(changed: readonly Changed[]): void;
  /** The wall clock of a machine steps. */
  onClockStep(machine: string): void;
}

export const offlineStopHolds = (
  context: LawContext,
  world: WorkloadWorld,
  hit: (mark: Mark) => void,
): OfflineStopLaw => new OfflineStop(context, world, hit);

const nameOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

class OfflineStop implements OfflineStopLaw {
  readonly name = 'S2';
  readonly #context: LawContext;
  readonly #world: WorkloadWorld;
  readonly #hit: (mark: Mark) => void;
  /** By machine and uid. */
  readonly #running = new Map<string, Running>();
  /** The last machine that began to run an identity. */
  readonly #lastMachine = new Map<string, string>();
  /** Controller of a ReplicaSet, by uid: it may be deleted before its pods. */
  readonly #owners = new Map<string, OwnerReference>();
  /** Most pods that an owner has wanted, by uid. */
  readonly #wanted = new Map<string, number>();
  readonly #createdAtMs = new Map<string, number>();
  /** Until when a person vouched for the pods of a machine. */
  readonly #vouchedAtMs = new Map<string, number>();
  readonly #steppedAtMs = new Map<string, number>();

  constructor(context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#world = world;
    this.#hit = hit;
  }

  learn(changed: readonly Changed[]): void {
    for (const { resource, after } of changed) {
      if (after === undefined) continue;
      const uid = uidOf(after);
      if (resource === 'pods' && !this.#createdAtMs.has(uid)) this.#createdAtMs.set(uid, this.#context.nowMs());
      if (resource === 'replicasets' || resource === 'deployments') {
        this.#want(uid, (after as KubeReplicaSet | KubeDeployment).spec?.replicas ?? 1);
        const owner = controllerOf(after);
        if (owner !== undefined) this.#owners.set(uid, owner);
      }
      if (resource === 'jobs') this.#want(uid, (after as KubeJob).spec?.parallelism ?? 1);
    }
  }

  onHappened: NonNullable<Law['onHappened']> = (happened, by) => {
    const nowMs = this.#context.nowMs();
    if (happened.kind === 'nodeGone' && by.who !== '') this.#vouchedAtMs.set(happened.node.name, nowMs);
    if (happened.kind === 'tainted' && happened.key === OUT_OF_SERVICE && by.who !== '')
      this.#vouchedAtMs.set(happened.node.name, Number.POSITIVE_INFINITY);
    if (happened.kind === 'untainted' && happened.key === OUT_OF_SERVICE)
      this.#vouchedAtMs.set(happened.node.name, nowMs);
  };

  onClockStep(machine: string): void {
    this.#steppedAtMs.set(machine, this.#context.nowMs());
  }

  onStart(machine: string, pod: KubePod): void {
    const identity = offlineStopSeconds(pod) === undefined ? undefined : this.#identityOf(pod);
    this.#running.set(`${machine} ${uidOf(pod)}`, { machine, pod, identity });
    if (identity === undefined) return;
    this.#hit('S2:start');
    const last = this.#lastMachine.get(identity.id);
    if (last !== undefined && last !== machine && this.#isSilent(last)) this.#hit('S2:start-beside-silent');
    this.#lastMachine.set(identity.id, machine);
    const others = [...this.#running.values()].filter((each) => each.identity?.id === identity.id);
    if (others.length > 1) this.#hit('S2:several');
    const counted = others.filter((each) => !this.#isVouchedFor(each));
    if (counted.length <= identity.podsMax) return;
    const where = counted.map((each) => `${nameOf(each.pod)} (${uidOf(each.pod).slice(0, 8)}) on ${each.machine}`);
    this.#context.fail({
      law: 'S2',
      subjects: counted.flatMap((each) => [each.machine, nameOf(each.pod)]),
      message: `${identity.text} runs ${counted.length} times: ${where.join(', ')}`,
    });
  }

  onStopping(machine: string, pod: KubePod, { why, answeredAtMs }: Stop): void {
    if (why === 'power') return;
    const { nowMs, fail } = this.#context;
    const stored = this.#world.withUid(uidOf(pod))?.object as KubePod | undefined;
    this.#hit('S1:stop');
    if (stored === undefined || isDeleting(stored) || hasEnded(stored)) return;
    const stopSeconds = offlineStopSeconds(pod) ?? Number.POSITIVE_INFINITY;
    const subjects = [machine, nameOf(pod)];
    const silentMs = nowMs() - answeredAtMs;
    const message = `${machine} stops ${nameOf(pod)} (${why}), which is wanted, ${seconds(silentMs)} after an answer`;
    if (why === 'offline') this.#hit('S1:offline-stop');
    const isDue = silentMs >= stopSeconds * 1_000 * (1 - RATE_ERROR_MAX);
    const hasStepped = (this.#steppedAtMs.get(machine) ?? 0) >= answeredAtMs;
    if (why !== 'offline' || !(isDue || hasStepped)) fail({ law: 'S1', subjects, message });
  }

  onStopped(machine: string, pod: KubePod): void {
    this.#running.delete(`${machine} ${uidOf(pod)}`);
  }

  #want(uid: string, pods: number): void {
    this.#wanted.set(uid, Math.max(pods, this.#wanted.get(uid) ?? 0));
  }

  /** Undefined for a pod without an owner that replaces it. */
  #identityOf(pod: KubePod): Identity | undefined {
    const controller = controllerOf(pod);
    if (controller?.kind === 'StatefulSet') return { id: nameOf(pod), text: `pod ${nameOf(pod)}`, podsMax: 1 };
    const owner = (controller?.kind === 'ReplicaSet' && this.#owners.get(controller.uid)) || controller;
    const podsMax = owner === undefined ? undefined : this.#wanted.get(owner.uid);
    if (owner === undefined || podsMax === undefined) return undefined;
    return { id: owner.uid, text: `${owner.kind} ${owner.name} (${podsMax} pods)`, podsMax };
  }

  #isSilent(machine: string): boolean {
    const real = this.#context.machine(machine);
    return real !== undefined && (!real.isOn || real.lastCutMs >= this.#context.nowMs());
  }

  #isVouchedFor({ machine, pod }: Running): boolean {
    // A person cannot know what the hub of a site has moved, and vouches by the deletion of a pod alone.
    if (siteHubOf(pod) !== undefined) return false;
    return (this.#createdAtMs.get(uidOf(pod)) ?? 0) <= (this.#vouchedAtMs.get(machine) ?? 0);
  }
}
