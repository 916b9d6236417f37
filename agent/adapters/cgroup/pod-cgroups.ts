/**
 * The groups of pods: `kubepods/[burstable/|besteffort/]pod<uid>/<container>.<run>`. Each run of a container has a
 * group of its own, so its counters begin at 0 and the rest of the previous run cannot be in it. `oom_kill` belongs to
 * this run alone.
 *
 * They are below a unit of their own with one sleeping process, because systemd removes the group of a unit without a
 * process. In the group of the agent's unit, systemd could not start the agent again while pods run. Cgroup v1 is not
 * used: it cannot kill a group. A missing memory controller becomes RLIMIT_DATA, because RLIMIT_AS counts reserved
 * address space, gigabytes in Node.js, Java and Go.
 */
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { CgroupTree } from '../../ports/cgroup-tree.ts';
import type { CpuPlacement } from '../../ports/pod-runtime.ts';
import {
  ALL_PODS,
  ANYWHERE,
  allPodsFiles,
  type CgroupNode,
  containerFiles,
  type NodeAllocatable,
  placementFiles,
  podCgroup,
  podFiles,
  qosFiles,
} from '../../rules/cgroup-values.ts';
import { containersOf } from '../../rules/pod-containers.ts';
import type { OwnPods } from './own-pods.ts';

/** Where a container may run. */
export type PlacementOf = (podUid: string, container: string) => CpuPlacement;

export interface PodCgroupsOptions {
  readonly tree: CgroupTree;
  readonly node: CgroupNode;
  readonly allocatable: NodeAllocatable;
  readonly own: OwnPods;
  readonly log: Log;
}

export interface GroupUsage {
  /** Working set: usage without inactive page cache. Undefined without the controller memory. Bytes. */
  readonly memoryBytes: number | undefined;
  readonly processes: number;
}

export class PodCgroups {
  readonly #options: PodCgroupsOptions;
  #placementOf: PlacementOf = () => ANYWHERE;

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
  }

  get tree(): CgroupTree {
    return this.#options.tree;
  }

  /** Whether a controller limits pods. */
  has(controller: string): boolean {
    return this.tree.controllers.has(controller);
  }

  usePlacement(placementOf: PlacementOf): void {
    this.#placementOf = placementOf;
  }

  /**
   * Writes the limits of all pods together and the shares of the QoS classes. A limit below the current use is refused
   * by the kernel until pods are evicted, so a refusal is logged and the next call tries again.
   */
  applyNode(pods: readonly KubePod[]): void {
    const { tree, allocatable, log } = this.#options;
    const groups = { '': allPodsFiles(allocatable), ...prefixed(qosFiles(pods)) };
    for (const [name, files] of Object.entries(groups)) {
      try {
        tree.apply(`${ALL_PODS}${name}`, files);
      } catch (cause) {
        log.warn('the limits of all pods cannot be set', { group: `${ALL_PODS}${name}`, cause: String(cause) });
      }
    }
  }

  /** Creates the group of a run with its limits, and returns its path. @throws CgroupError */
  prepare(pod: KubePod, name: string, run: number): string {
    const { tree, node } = this.#options;
    const container = containersOf(pod).find((each) => each.name === name);
    const path = groupOf(pod, name, run);
    this.#options.own.add(pod.metadata.uid ?? '');
    tree.apply(podCgroup(pod), podFiles(node, pod, this.#hasExclusiveCpus(pod)));
    tree.apply(path, container === undefined ? {} : containerFiles(node, pod, container, this.#placement(pod, name)));
    return path;
  }

  /** Writes the processors of a run again. They change when other pods get processors of their own. */
  place(pod: KubePod, name: string, run: number): void {
    if (!this.has('cpuset')) return;
    const path = groupOf(pod, name, run);
    // A group is created only for a start.
    if (this.tree.read(path, 'cgroup.procs') === undefined) return;
    this.tree.apply(path, placementFiles(this.#placement(pod, name)));
  }

  /**
   * Changes the limits of a pod and of these runs of its containers. Those of the pod are raised before and lowered
   * after: they always leave room for those of the containers. @throws CgroupError
   */
  resize(pod: KubePod, runs: readonly { readonly name: string; readonly run: number }[]): void {
    const path = podCgroup(pod);
    // A group is created only for a start.
    if (this.tree.read(path, 'cgroup.procs') === undefined) return;
    const { node } = this.#options;
    const files = Object.entries(podFiles(node, pod, this.#hasExclusiveCpus(pod)));
    const isLowered = ([file, text]: readonly [string, string]): boolean =>
      limitIn(text) < limitIn(this.tree.read(path, file) ?? '');
    const lowered = files.filter(isLowered);
    this.tree.apply(path, Object.fromEntries(files.filter((each) => !lowered.includes(each))));
    for (const { name, run } of runs) {
      const container = containersOf(pod).find((each) => each.name === name);
      const group = groupOf(pod, name, run);
      if (container === undefined || this.tree.read(group, 'cgroup.procs') === undefined) continue;
      this.tree.apply(group, containerFiles(node, pod, container, this.#placement(pod, name)));
    }
    this.tree.apply(path, Object.fromEntries(lowered));
  }

  /** Processes that the kernel killed in this run for lack of memory. */
  oomKills(pod: KubePod, name: string, run: number): number {
    const events = this.tree.read(groupOf(pod, name, run), 'memory.events') ?? '';
    return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
  }

  /** Undefined when the pod has no group. */
  usage(pod: KubePod): GroupUsage | undefined {
    return this.#usageOf(podCgroup(pod));
  }

  containerMemory(pod: KubePod, name: string, run: number): number | undefined {
    return this.#usageOf(groupOf(pod, name, run))?.memoryBytes;
  }

  /** @throws CgroupError */
  processesOf(pod: KubePod, name: string, run: number): readonly number[] {
    return this.tree.processes(groupOf(pod, name, run));
  }

  /** Undefined without a limit on all pods together. */
  podsMemory(): { readonly limitBytes: number; readonly workingSetBytes: number } | undefined {
    const limitBytes = Number(this.tree.read(ALL_PODS, 'memory.max') ?? Number.NaN);
    const workingSetBytes = this.#usageOf(ALL_PODS)?.memoryBytes;
    return Number.isNaN(limitBytes) || workingSetBytes === undefined ? undefined : { limitBytes, workingSetBytes };
  }

  /** Kills and removes groups of own pods that are not known. Those of others in the same tree stay. Never throws. */
  sweep(knownUids: ReadonlySet<string>): void {
    const { own, log } = this.#options;
    const present = new Set<string>();
    try {
      for (const above of [ALL_PODS, `${ALL_PODS}/burstable`, `${ALL_PODS}/besteffort`]) {
        for (const name of this.tree.children(above)) {
          const uid = /^pod(.+)$/.exec(name)?.[1];
          if (uid === undefined || knownUids.has(uid) || !own.uids.has(uid)) continue;
          present.add(uid);
          this.discard(`${above}/${name}`);
        }
      }
    } catch (cause) {
      // The next sweep lists them again.
      log.warn('control groups of removed pods cannot be listed', { cause: String(cause) });
      return;
    }
    // Without a group: it was removed by an earlier sweep.
    for (const uid of own.uids) if (!knownUids.has(uid) && !present.has(uid)) own.remove(uid);
  }

  /** Kills what is in the group and removes it. A process that still terminates leaves it to the next sweep. */
  discard(path: string): void {
    try {
      this.tree.kill(path);
      this.tree.remove(path);
    } catch (cause) {
      this.#options.log.warn('a control group cannot be removed', { path, cause: String(cause) });
    }
  }

  #placement(pod: KubePod, name: string): CpuPlacement {
    return this.#placementOf(pod.metadata.uid ?? '', name);
  }

  #hasExclusiveCpus(pod: KubePod): boolean {
    return containersOf(pod).some(({ name }) => this.#placement(pod, name).exclusive);
  }

  #usageOf(path: string): GroupUsage | undefined {
    if (this.tree.read(path, 'cgroup.procs') === undefined) return undefined;
    const current = this.tree.read(path, 'memory.current');
    const inactive = /^inactive_file (\d+)$/m.exec(this.tree.read(path, 'memory.stat') ?? '')?.[1];
    return {
      memoryBytes: current === undefined ? undefined : Math.max(0, Number(current) - Number(inactive ?? 0)),
      processes: Number(this.tree.read(path, 'pids.current') ?? this.tree.processes(path).length),
    };
  }
}

export const groupOf = (pod: KubePod, name: string, run: number): string => `${podCgroup(pod)}/${name}.${run}`;

/** The amount that a file begins with. `max` is none, as is a file without a number. */
const limitIn = (text: string): number => {
  const amount = Number.parseInt(text, 10);
  return Number.isNaN(amount) ? Number.POSITIVE_INFINITY : amount;
};

const prefixed = (groups: Readonly<Record<string, Readonly<Record<string, string>>>>) =>
  Object.fromEntries(Object.entries(groups).map(([name, files]) => [`/${name}`, files]));
