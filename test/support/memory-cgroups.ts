/** Control groups in memory. A process is a number that entered a group. */
import { PodCgroups, type PodCgroupsOptions } from '../../agent/adapters/cgroup/pod-cgroups.ts';
import { CgroupError, type CgroupTree } from '../../agent/ports/cgroup-tree.ts';
import { silentLog } from './agent-api.ts';

export interface MemoryCgroups extends CgroupTree {
  /** Sets what the kernel would, such as memory.events. */
  set(path: string, file: string, text: string): void;
  /** All files that were written, by path. */
  files(): Readonly<Record<string, Readonly<Record<string, string>>>>;
}

interface Group {
  readonly files: Map<string, string>;
  readonly pids: Set<number>;
}

export interface MemoryCgroupsOptions {
  readonly controllers?: readonly string[];
  readonly exists?: (pid: number) => boolean;
  readonly onKill?: (pid: number) => void;
}

export function memoryCgroups(options: MemoryCgroupsOptions = {}): MemoryCgroups {
  const controllers = new Set(options.controllers ?? ['cpu', 'cpuset', 'memory', 'pids']);
  const groups = new Map<string, Group>();
  const below = (path: string): [string, Group][] =>
    [...groups].filter(([each]) => each === path || each.startsWith(`${path}/`));
  const make = (path: string): Group => {
    const parts = path.split('/');
    for (let count = 1; count <= parts.length; count += 1) {
      const each = parts.slice(0, count).join('/');
      if (!groups.has(each)) groups.set(each, { files: new Map(), pids: new Set() });
    }
    return groups.get(path) as Group;
  };
  const exists = options.exists ?? (() => true);
  const tree: MemoryCgroups = {
    controllers,
    apply(path, files) {
      const group = make(path);
      for (const [file, text] of Object.entries(files)) {
        if (controllers.has(file.split('.', 1)[0] ?? '')) group.files.set(file, text);
      }
    },
    children: (path) =>
      [...groups.keys()]
        .filter((each) => each.startsWith(`${path}/`) && !each.slice(path.length + 1).includes('/'))
        .map((each) => each.slice(path.length + 1)),
    enter(path, pid) {
      const group = groups.get(path);
      if (group === undefined || !exists(pid)) throw new CgroupError(`process ${pid} cannot enter ${path}`);
      for (const each of groups.values()) each.pids.delete(pid);
      group.pids.add(pid);
    },
    processes: (path) => below(path).flatMap(([, { pids }]) => [...pids].filter(exists)),
    read(path, file) {
      const group = groups.get(path);
      if (group === undefined) return undefined;
      return file === 'cgroup.procs' ? [...group.pids].join('\n') : group.files.get(file);
    },
    kill(path) {
      for (const [, { pids }] of below(path)) {
        for (const pid of pids) options.onKill?.(pid);
        pids.clear();
      }
    },
    remove(path) {
      if (tree.processes(path).length > 0) return false;
      for (const [each] of below(path)) groups.delete(each);
      return true;
    },
    set(path, file, text) {
      make(path).files.set(file, text);
    },
    files: () => Object.fromEntries([...groups].map(([path, { files }]) => [path, Object.fromEntries(files)] as const)),
  };
  return tree;
}

/** The groups of pods in a tree, without a limit on all of them together. */
export const podCgroups = (tree: CgroupTree, more: Partial<PodCgroupsOptions> = {}): PodCgroups =>
  new PodCgroups({
    tree,
    node: {
      swap: { cgroupVersion: 2, controllerPresent: true, swapBehavior: '', memoryBytes: 2 ** 33, swapBytes: 0 },
      enforceCpuLimits: true,
      podPidsMax: 20,
    },
    allocatable: { capacity: {}, systemReserved: {}, kubeReserved: {}, enforced: false },
    own: { uids: new Set(), add() {}, remove() {} },
    log: silentLog,
    ...more,
  });
