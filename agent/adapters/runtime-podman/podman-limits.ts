/** Sets the limits of containers with `podman update`, one call after the other. */
import type { KubePod } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { CpuPlacement } from '../../ports/pod-runtime.ts';
import { podmanLimits } from '../../rules/cgroup-podman.ts';
import { ANYWHERE, type CgroupNode } from '../../rules/cgroup-values.ts';
import { containersOf } from '../../rules/pod-containers.ts';
import type { PodmanCli } from './podman-cli.ts';

const UPDATE_TIMEOUT_MS = 30_000;

export class PodmanLimits {
  readonly #podman: PodmanCli;
  readonly #node: CgroupNode;
  readonly #log: Log;
  /** Pods that this process has seen, by uid. */
  readonly #pods = new Map<string, KubePod>();
  #placementOf: (podUid: string, container: string) => CpuPlacement = () => ANYWHERE;
  #warning: string | undefined;
  #updates: Promise<void> = Promise.resolve();

  constructor(podman: PodmanCli, node: CgroupNode, log: Log) {
    this.#podman = podman;
    this.#node = node;
    this.#log = log;
  }

  know(pod: KubePod): void {
    this.#pods.set(pod.metadata.uid ?? '', pod);
  }

  forget(podUid: string): void {
    this.#pods.delete(podUid);
  }

  /** Why the last update failed; undefined if it did not. */
  warning(): string | undefined {
    return this.#warning;
  }

  usePlacement(placementOf: (podUid: string, container: string) => CpuPlacement): void {
    this.#placementOf = placementOf;
    for (const pod of this.#pods.values()) void this.apply(pod);
  }

  /** A failure leaves the pod running: it is logged, and reported in the Ready condition. */
  apply(pod: KubePod): Promise<void> {
    this.#updates = this.#updates.then(() => this.#update(pod));
    return this.#updates;
  }

  async #update(pod: KubePod): Promise<void> {
    const uid = pod.metadata.uid ?? '';
    // An init container may have terminated.
    for (const container of containersOf(pod).filter(({ kind }) => kind !== 'init')) {
      const calls = podmanLimits(this.#node, pod, container, this.#placementOf(uid, container.name));
      try {
        const name = `nodekeeper-${uid}-${container.name}`;
        for (const options of calls) await this.#podman.run(['update', ...options, name], UPDATE_TIMEOUT_MS);
        this.#warning = undefined;
      } catch (cause) {
        const why = (cause as Error).message;
        this.#warning = `podman cannot set limits of pods: ${why}`;
        this.#log.warn('the limits of a container cannot be set', { podUid: uid, container: container.name, why });
      }
    }
  }
}
