/** Finds where the groups of pods can be created on this machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CgroupError, type CgroupTree } from '../../ports/cgroup-tree.ts';
import { moveProcesses, UnifiedTree, writeFault } from './unified-tree.ts';

/** The controllers that limit pods. */
export const WANTED_CONTROLLERS = ['cpu', 'cpuset', 'memory', 'pids'] as const;

/** The unit that holds the groups of pods (packaging/nodekeeper-pods.service), below the root of the hierarchy. */
const PODS_UNIT = 'system.slice/nodekeeper-pods.service';

/** Group for the process of this unit, beside that of pods. */
const UNIT_GROUP = 'unit';

export interface CgroupPlace {
  /** Prefix of /proc and /sys. */
  readonly fileRoot: string;
  /** cgroupRoot of the configuration; '' chooses the unit of pods, or the root of the hierarchy without it. */
  readonly cgroupRoot: string;
  /** Text of a file; undefined if it cannot be read. */
  readonly textAt?: (path: string) => string | undefined;
}

export type FoundDirectory =
  | {
      readonly kind: 'found';
      readonly directory: string;
      readonly controllers: readonly string[];
      /** Whether it is the group of the unit of pods. */
      readonly isUnit: boolean;
    }
  /** Why pods get no groups. */
  | { readonly kind: 'missing'; readonly why: string };

/** The directory, and the controllers that the kernel offers there. Changes nothing. */
export function findCgroupDirectory({ fileRoot, cgroupRoot, textAt = fileText }: CgroupPlace): FoundDirectory {
  const mount = unifiedMount(textAt(join(fileRoot, 'proc/self/mountinfo')) ?? '');
  if (mount === undefined) return { kind: 'missing', why: 'cgroup v2 is not mounted' };
  const hierarchy = join(fileRoot, mount);
  const controllersIn = (directory: string): string | undefined => textAt(join(directory, 'cgroup.controllers'));
  const unit = join(hierarchy, PODS_UNIT);
  const preferred = controllersIn(unit) === undefined ? hierarchy : unit;
  const directory = cgroupRoot === '' ? preferred : join(hierarchy, cgroupRoot);
  const controllers = controllersIn(directory);
  if (controllers === undefined) return { kind: 'missing', why: `${directory} is not a group of cgroup v2` };
  return { kind: 'found', directory, controllers: controllers.trim().split(/\s+/), isUnit: directory === unit };
}

/** Mount point of cgroup v2 in the text of /proc/self/mountinfo (proc(5)): beside cgroup v1 it has few controllers. */
function unifiedMount(mountinfo: string): string | undefined {
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ', 2);
    if (after.startsWith('cgroup2 ')) return before.split(' ')[4]?.replace(/\\040/g, ' ');
  }
  return undefined;
}

export type OpenedTree =
  | { readonly kind: 'open'; readonly tree: CgroupTree }
  | { readonly kind: 'missing'; readonly why: string };

/** Opens the tree with the controllers that can be enabled. Does not throw. */
export function openCgroupTree(place: CgroupPlace): OpenedTree {
  const found = findCgroupDirectory(place);
  if (found.kind === 'missing') return found;
  const fault = writeFault(found.directory);
  if (fault !== undefined) return { kind: 'missing', why: `groups cannot be created: ${fault}` };
  try {
    if (found.isUnit) moveProcesses(found.directory, UNIT_GROUP);
    return { kind: 'open', tree: new UnifiedTree(found.directory, WANTED_CONTROLLERS) };
  } catch (cause) {
    if (!(cause instanceof CgroupError)) throw cause;
    return { kind: 'missing', why: cause.message };
  }
}

/** A warning for the Ready condition; undefined if every limit of a pod is enforced. */
export function limitWarning(tree: Pick<CgroupTree, 'controllers'> | undefined, why = ''): string | undefined {
  if (tree === undefined) {
    return `limits of pods are not enforced by control groups (${why}); memory limits apply to each process (RLIMIT_DATA)`;
  }
  const missing = WANTED_CONTROLLERS.filter((controller) => !tree.controllers.has(controller));
  if (missing.length === 0) return undefined;
  const memory = missing.includes('memory') ? '; memory limits apply to each process (RLIMIT_DATA)' : '';
  return `cgroup v2 has no controller ${missing.join(', ')} for pods, so these limits are not enforced${memory}`;
}

function fileText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
