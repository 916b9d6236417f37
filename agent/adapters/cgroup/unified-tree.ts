/**
 * The files of cgroup v2 (Documentation/admin-guide/cgroup-v2.rst of the kernel). All calls are synchronous: the kernel
 * answers from memory.
 */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { CgroupError, type CgroupTree } from '../../ports/cgroup-tree.ts';

/** Passes over a frozen group until it has no new process. The group is frozen, so the second one finds none. */
const KILL_PASSES_MAX = 10;
/** Levels below the root of pods: class, pod, container. A container may add its own. */
const DEPTH_MAX = 8;

const codeOf = (cause: unknown): string | undefined => (cause as NodeJS.ErrnoException).code;
/** ENODEV: the group was removed while the file was open. */
const isMissing = (cause: unknown): boolean => ['ENOENT', 'ENODEV'].includes(codeOf(cause) ?? '');

const controllerOf = (file: string): string => file.split('.', 1)[0] ?? '';

export class UnifiedTree implements CgroupTree {
  readonly controllers: ReadonlySet<string>;
  readonly #root: string;
  readonly #killFile: string;

  /**
   * @param root directory of the group that may hold pods: we create groups in it, and it has no processes
   * @param killFile since Linux 5.14; where it is missing, groups are frozen and their processes killed one by one
   */
  constructor(root: string, wanted: readonly string[], killFile = 'cgroup.kill') {
    this.#root = root;
    this.#killFile = killFile;
    this.controllers = new Set(enableControllers(root, wanted));
  }

  apply(path: string, files: Readonly<Record<string, string>>): void {
    this.#make(path);
    for (const [file, text] of Object.entries(files)) {
      const target = join(this.#root, path, file);
      // Also without a file of its own: memory.swap.max exists only with swap accounting.
      if (!this.controllers.has(controllerOf(file)) || !existsSync(target)) continue;
      attempt(`${path}/${file} cannot be set to ${JSON.stringify(text)}`, () => writeFileSync(target, `${text}\n`));
    }
  }

  children(path: string): readonly string[] {
    try {
      return readdirSync(join(this.#root, path), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name);
    } catch (cause) {
      if (isMissing(cause)) return [];
      throw new CgroupError(`the groups in ${path} cannot be listed: ${(cause as Error).message}`, { cause });
    }
  }

  enter(path: string, pid: number): void {
    attempt(`process ${pid} cannot enter ${path}`, () =>
      writeFileSync(join(this.#root, path, 'cgroup.procs'), `${pid}\n`),
    );
  }

  processes(path: string, depth = 0): readonly number[] {
    const own = this.read(path, 'cgroup.procs') ?? '';
    const pids = own.split('\n').filter((line) => line !== '');
    const below = depth < DEPTH_MAX ? this.children(path) : [];
    return [...pids.map(Number), ...below.flatMap((name) => this.processes(`${path}/${name}`, depth + 1))];
  }

  read(path: string, file: string): string | undefined {
    try {
      return readFileSync(join(this.#root, path, file), 'utf8');
    } catch (cause) {
      if (isMissing(cause)) return undefined;
      throw new CgroupError(`${path}/${file} cannot be read: ${(cause as Error).message}`, { cause });
    }
  }

  kill(path: string): void {
    const directory = join(this.#root, path);
    if (!existsSync(directory)) return;
    // The kernel also kills a process that is created meanwhile.
    if (existsSync(join(directory, this.#killFile))) {
      attempt(`${path} cannot be killed`, () => writeFileSync(join(directory, this.#killFile), '1\n'));
    } else this.#killFrozen(path);
  }

  remove(path: string, depth = 0): boolean {
    for (const name of depth < DEPTH_MAX ? this.children(path) : []) {
      if (!this.remove(`${path}/${name}`, depth + 1)) return false;
    }
    try {
      rmdirSync(join(this.#root, path));
      return true;
    } catch (cause) {
      if (isMissing(cause)) return true;
      if (codeOf(cause) === 'EBUSY') return false;
      throw new CgroupError(`${path} cannot be removed: ${(cause as Error).message}`, { cause });
    }
  }

  /** A frozen process cannot create others, and a fatal signal still kills it. */
  #killFrozen(path: string): void {
    const freeze = (state: '0' | '1'): void =>
      attempt(`${path} cannot be frozen`, () => writeFileSync(join(this.#root, path, 'cgroup.freeze'), `${state}\n`));
    freeze('1');
    try {
      const signalled = new Set<number>();
      for (let pass = 0; pass < KILL_PASSES_MAX; pass += 1) {
        const fresh = this.processes(path).filter((pid) => !signalled.has(pid));
        if (fresh.length === 0) return;
        for (const pid of fresh) {
          signalled.add(pid);
          sigkill(pid);
        }
      }
    } finally {
      freeze('0');
    }
  }

  #make(path: string): void {
    const directory = join(this.#root, path);
    if (existsSync(directory)) return;
    const above = dirname(path);
    if (above !== '.') this.#make(above);
    enableControllers(join(this.#root, above), [...this.controllers]);
    try {
      mkdirSync(directory);
    } catch (cause) {
      if (codeOf(cause) === 'EEXIST') return;
      throw new CgroupError(`${path} cannot be created: ${(cause as Error).message}`, { cause });
    }
  }
}

/** Passes the controllers to the groups below. Returns those that are there, one by one: others may be missing. */
function enableControllers(directory: string, wanted: readonly string[]): readonly string[] {
  const wordsIn = (file: string): readonly string[] => {
    try {
      return readFileSync(join(directory, file), 'utf8').trim().split(/\s+/);
    } catch (cause) {
      throw new CgroupError(`${join(directory, file)} cannot be read: ${(cause as Error).message}`, { cause });
    }
  };
  const available = wordsIn('cgroup.controllers');
  const before = wordsIn('cgroup.subtree_control');
  for (const controller of wanted) {
    if (!available.includes(controller) || before.includes(controller)) continue;
    try {
      writeFileSync(join(directory, 'cgroup.subtree_control'), `+${controller}\n`);
    } catch {
      // EBUSY with processes in the group, EACCES without delegation. The caller sees which controllers are missing.
    }
  }
  const enabled = wordsIn('cgroup.subtree_control');
  return wanted.filter((controller) => enabled.includes(controller));
}

/**
 * Moves the processes of a group into one below it: a group that passes controllers down may hold no process.
 *
 * @throws CgroupError
 */
export function moveProcesses(directory: string, below: string): void {
  attempt(`the processes in ${directory} cannot be moved`, () => {
    const pids = readFileSync(join(directory, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean);
    if (pids.length === 0) return;
    mkdirSync(join(directory, below), { recursive: true });
    // One per write (cgroups(7)).
    for (const pid of pids) writeFileSync(join(directory, below, 'cgroup.procs'), `${pid}\n`);
  });
}

/** Why no groups can be created in this directory; undefined if they can. */
export function writeFault(directory: string): string | undefined {
  try {
    accessSync(directory, constants.W_OK);
    accessSync(join(directory, 'cgroup.procs'), constants.W_OK);
    return undefined;
  } catch (cause) {
    return (cause as Error).message;
  }
}

function sigkill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (cause) {
    if (codeOf(cause) !== 'ESRCH') throw new CgroupError(`process ${pid} cannot be killed`, { cause });
  }
}

/** @throws CgroupError with the message and that of the cause */
function attempt(message: string, act: () => void): void {
  try {
    act();
  } catch (cause) {
    throw new CgroupError(`${message}: ${(cause as Error).message}`, { cause });
  }
}
