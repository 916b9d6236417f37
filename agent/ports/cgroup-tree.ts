/**
 * The control groups of this machine below the root of pods: cgroup v2. Adapters: `adapters/cgroup`, and a tree in
 * memory for tests; both pass test/contract/cgroup-tree.ts. Paths have no slash at the beginning.
 */

/** A group or one of its files cannot be changed or read. */
export class CgroupError extends Error {
  override readonly name = 'CgroupError';
}

export interface CgroupTree {
  /** Controllers that the groups below the root have, such as memory, cpu, cpuset and pids. */
  readonly controllers: ReadonlySet<string>;
  /**
   * Creates the group and those above it, with all controllers, and writes these files. Files of missing controllers
   * are left out. A group that exists is updated. @throws CgroupError
   */
  apply(path: string, files: Readonly<Record<string, string>>): void;
  /** Names of the groups in this one; empty if it does not exist. */
  children(path: string): readonly string[];
  /** Moves a process into a group without children. @throws CgroupError */
  enter(path: string, pid: number): void;
  /** Ids of the processes in the group and below it; empty if it does not exist. @throws CgroupError */
  processes(path: string): readonly number[];
  /** Text of a file; undefined if the group or the file does not exist. @throws CgroupError */
  read(path: string, file: string): string | undefined;
  /**
   * Sends SIGKILL to all processes in the group and below it. Does nothing if it does not exist. @throws CgroupError
   */
  kill(path: string): void;
  /** Removes the group with the groups below it. False: processes are left. @throws CgroupError */
  remove(path: string): boolean;
}
