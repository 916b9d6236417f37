/**
 * The law `workloads`, in calm: each ReplicaSet and Job has the pods that it wants, a StatefulSet has its first pod,
 * and a dependent is deleted when none of its owners is stored. A failed sync is repeated after 10 s, and then each
 * minute.
 */
import { offlineStopSeconds } from '../../shared/kinds/pods/offline-stop.ts';
import type { Mark } from '../coverage.ts';
import { type Law, type LawContext, seconds } from './law.ts';
import { wantedByJob } from './pod-counts.ts';
import { type Changed, isActive, isDeleting, uidOf, type WorkloadWorld, wasCreated } from './workload-world.ts';

const LATE_MS = 90_000;
const LOOK_EVERY_MS = 5_000;

export interface ProgressLaw extends Law {
  /** What one step changed. `world` has it already. */
  learn(changed: readonly Changed[]): void;
}

export const workloadsProgress = (context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void): ProgressLaw =>
  new Progress(context, world, hit);

interface Missing {
  /** The same until it is settled. */
  readonly id: string;
  readonly message: string;
}

class Progress implements ProgressLaw {
  readonly name = 'workloads';
  readonly #context: LawContext;
  readonly #world: WorkloadWorld;
  readonly #hit: (mark: Mark) => void;
  /** Created when no owner of it was stored any more: no record leads to it. By uid. */
  readonly #bornAlone = new Set<string>();
  #lookedAtMs = 0;
  #since = new Map<string, number>();

  constructor(context: LawContext, world: WorkloadWorld, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#world = world;
    this.#hit = hit;
  }

  learn(changed: readonly Changed[]): void {
    for (const change of changed) {
      if (!wasCreated(change) || change.resource === 'nodes') continue;
      const { ownerReferences = [] } = change.after!.metadata;
      if (!ownerReferences.some(({ uid }) => this.#world.withUid(uid) !== undefined))
        this.#bornAlone.add(uidOf(change.after!));
    }
  }

  onMoment(): void {
    const { nowMs, calmSinceMs, poisonSlackMs, fail } = this.#context;
    const now = nowMs();
    if (now - this.#lookedAtMs < LOOK_EVERY_MS) return;
    this.#lookedAtMs = now;
    const calmMs = calmSinceMs();
    // Records of bad objects are dropped after some retries, and records behind them wait.
    if (calmMs === undefined || poisonSlackMs() > 0) {
      this.#since = new Map();
      return;
    }
    const next = new Map<string, number>();
    for (const { id, message } of this.#missing()) {
      const sinceMs = this.#since.get(id) ?? now;
      next.set(id, sinceMs);
      const lateMs = now - Math.max(sinceMs, calmMs);
      if (lateMs > LATE_MS)
        fail({ law: 'workloads', subjects: [], message: `${message}, for ${seconds(lateMs)}`, isLate: true });
    }
    this.#since = next;
  }

  *#missing(): Generator<Missing> {
    for (const set of this.#world.all('replicasets')) {
      if (isDeleting(set)) continue;
      this.#hit('workloads:replicaset');
      const pods = this.#world.controlledBy(uidOf(set), 'pods');
      const active = pods.filter(isActive).length;
      // Nothing replaces a pod before it has stopped on its machine.
      if (pods.some((pod) => isDeleting(pod) && offlineStopSeconds(pod) !== undefined)) continue;
      const wanted = set.spec?.replicas ?? 1;
      const id = `${uidOf(set)} ${set.metadata.generation}`;
      if (active !== wanted) yield { id, message: `${set.metadata.name} has ${active} of ${wanted} pods` };
    }
    for (const job of this.#world.all('jobs')) {
      const pods = this.#world.controlledBy(uidOf(job), 'pods');
      // Failures delay the next pod by minutes.
      const hasFailed = (job.status?.failed ?? 0) > 0 || pods.some(({ status }) => status?.phase === 'Failed');
      if (isDeleting(job) || hasFailed || pods.some(isDeleting)) continue;
      this.#hit('workloads:job');
      const active = pods.filter(isActive).length;
      const wanted = wantedByJob(job, pods);
      const id = `${uidOf(job)} ${job.metadata.generation} ${wanted}`;
      if (active !== wanted) yield { id, message: `${job.metadata.name} has ${active} of ${wanted} pods` };
    }
    for (const set of this.#world.all('statefulsets')) {
      if (isDeleting(set) || (set.spec?.replicas ?? 1) === 0) continue;
      this.#hit('workloads:statefulset');
      // The pod may be of this set or a former one.
      const hasFirst = this.#world.has('pods', `${set.metadata.namespace}/${set.metadata.name}-0`);
      const id = `${uidOf(set)} ${set.metadata.generation}`;
      if (!hasFirst) yield { id, message: `${set.metadata.name} has no first pod` };
    }
    for (const resource of ['pods', 'replicasets', 'configmaps'] as const) {
      for (const object of this.#world.all(resource)) {
        const { ownerReferences = [], uid = '', name } = object.metadata;
        const isLeft = ownerReferences.length > 0 && ownerReferences.every((each) => this.#isRemoved(each));
        if (isLeft && !isDeleting(object) && !this.#bornAlone.has(uid))
          yield { id: uid, message: `${resource} ${name} has no owner that is stored` };
      }
    }
  }

  #isRemoved({ apiVersion, uid }: { readonly apiVersion: string; readonly uid: string }): boolean {
    return apiVersion !== 'example.com/v1' && this.#world.withUid(uid) === undefined;
  }
}
