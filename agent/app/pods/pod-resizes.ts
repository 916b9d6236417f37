/**
 * Decides which requested resources this node allocates to its running pods: one pod after the other, the most urgent
 * first. A refused resize is decided again with each list of pods, until it fits. One that can never fit is decided
 * again when the pod changes.
 *
 * An allocated resize is in `entry.pod`. The next step of the pod lets the runtime apply it.
 */
import { defined } from '../../../shared/defined.ts';
import type { KubeNode, KubePod } from '../../../shared/kinds/types.ts';
import { byUrgency, resizeEvent, resizeRefusal } from '../../rules/pod-resize.ts';
import type { PodLoopDependencies } from './dependencies.ts';
import { ownNode } from './own-node.ts';
import { countsOnNode, isDeleted, type PodEntry } from './pod-entry.ts';

interface Request {
  readonly entry: PodEntry;
  readonly desired: KubePod;
  readonly allocated: KubePod;
  readonly pendingSinceMs: number | undefined;
}

export class PodResizes {
  readonly #dependencies: PodLoopDependencies;
  readonly #entries: ReadonlyMap<string, PodEntry>;

  constructor(dependencies: PodLoopDependencies, entries: ReadonlyMap<string, PodEntry>) {
    this.#dependencies = dependencies;
    this.#entries = entries;
  }

  /** @returns false when the Node could not be read: nothing was decided */
  async decide(stop?: AbortSignal): Promise<boolean> {
    const requests = [...this.#entries.values()].flatMap((entry) => this.#requestOf(entry) ?? []);
    if (requests.length === 0) return true;
    const node = await ownNode(this.#dependencies, 'no resize of a pod is allocated', stop);
    if (node === undefined) return false;
    for (const request of requests.toSorted(byUrgency)) this.#decideOne(request, node);
    return true;
  }

  #requestOf(entry: PodEntry): Request | undefined {
    const { desired, pod: allocated, pendingResize: pending } = entry;
    if (desired === undefined) {
      // What was refused is no longer wanted.
      delete entry.pendingResize;
      return undefined;
    }
    if (!countsOnNode(entry) || isDeleted(entry)) {
      delete entry.pendingResize;
      return undefined;
    }
    if (pending?.reason === 'Infeasible' && pending.generation === desired.metadata.generation) return undefined;
    return { entry, desired, allocated, pendingSinceMs: pending?.sinceMs };
  }

  #decideOne({ entry, desired, allocated }: Request, node: KubeNode): void {
    const { recordEvent, time, topology, operatingSystem, maySwap = false } = this.#dependencies;
    const others = [...this.#entries.values()].filter((each) => each !== entry && countsOnNode(each));
    const refusal = resizeRefusal({
      desired,
      allocated,
      node,
      others: others.map(({ pod }) => pod),
      machine: { operatingSystem, maySwap, assignsProcessors: topology.assignsProcessors === true },
    });
    const { generation } = desired.metadata;
    const before = entry.pendingResize;
    if (refusal === undefined) {
      delete entry.pendingResize;
      delete entry.desired;
      entry.pod = desired;
      entry.resizing = defined({ generation });
      recordEvent(desired, resizeEvent('started', desired, generation));
      return;
    }
    const { reason, message } = refusal;
    entry.pendingResize = { reason, message, sinceMs: before?.sinceMs ?? time.nowMs(), ...defined({ generation }) };
    if (before?.reason === reason && before.message === message && before.generation === generation) return;
    recordEvent(desired, resizeEvent(reason, desired, generation, message));
  }
}
