/**
 * Limits for directories by project quotas: lsattr(1) and chattr(1) of e2fsprogs, xfs_quota(8) of xfsprogs. What the
 * file system stores is the only record: the project of a directory, and the limit of a project.
 *
 * A directory gets its project before the limit, and loses the limit before it is removed. So a run that is killed
 * leaves a directory that has the project, and the next run continues with it.
 */
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import {
  assignment,
  foreignProject,
  isOwnProject,
  kibibytesOf,
  listedProjects,
  type Mount,
  NOT_INSTALLED,
  type NoQuota,
  notEnforced,
  projectCandidates,
  type QuotaState,
  quotaCommand,
  quotaMount,
  quotaState,
  reservedProjects,
} from '../../rules/project-quota.ts';
import { ProgramError, runProgram } from '../system/run-program.ts';
import { textOf } from '../system/state-file.ts';

const BOUNDS = { timeoutMs: 60_000, outputBytesMax: 1024 * 1024 };
/** Runs a program without translations, also from a directory that the PATH of the agent may lack. */
const ENV = '/usr/bin/env';
const VARIABLES = ['LC_ALL=C', `PATH=${process.env['PATH']}:/usr/sbin:/usr/bin:/sbin:/bin`];
const EXIT_NOT_FOUND = 127;

export interface ProjectQuotas {
  /** Limits a directory, with all that it contains. Returns why it is not. @throws Error of a program */
  limit(path: string, bytes: number): Promise<NoQuota | undefined>;
  /** Removes the limit of a directory that is to be removed. @throws Error of a program */
  release(path: string): Promise<void>;
  /** Why what is in a directory cannot be limited; undefined: it can. @throws Error of a program */
  fault(directory: string): Promise<NoQuota | undefined>;
}

interface Place {
  readonly kind: 'place';
  readonly mount: Mount;
  readonly project: number;
}

export interface QuotaMachine {
  /** Prefix of /proc and /etc. */
  readonly fileRoot?: string;
  readonly isRoot?: boolean;
  /** The output of a program. */
  readonly run?: (args: readonly string[]) => Promise<string>;
}

export function projectQuotas({
  fileRoot = '/',
  isRoot = process.geteuid?.() === 0,
  run = (args) => runProgram(ENV, [...VARIABLES, ...args], BOUNDS),
}: QuotaMachine = {}): ProjectQuotas {
  const textAt = async (file: string): Promise<string> => (await textOf(join(fileRoot, file))) ?? '';

  /** The mount of a directory, and the project of what is in it: 0, or one of ours. */
  async function placeOf(directory: string, ...paths: readonly string[]): Promise<NoQuota | Place> {
    const mount = quotaMount(await textAt('proc/self/mountinfo'), realpathSync(directory), isRoot);
    if (mount.kind === 'none') return mount;
    const [above = 0, project = 0] = listedProjects(await run(['lsattr', '-pd', directory, ...paths]));
    const foreign = [above, isOwnProject(project) ? 0 : project].find((each) => each > 0);
    return foreign === undefined ? { kind: 'place', mount, project } : foreignProject(foreign);
  }

  async function quota(mount: Mount, project: number, limitKibibytes?: number): Promise<QuotaState> {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-mount-'));
    const table = join(directory, 'table');
    try {
      writeFileSync(table, mount.entry);
      return quotaState(await run(['xfs_quota', ...quotaCommand(mount, table, project, limitKibibytes)]));
    } finally {
      rmSync(directory, { recursive: true });
    }
  }

  /** @throws Error if the limit does not become this */
  async function setLimit(mount: Mount, project: number, kibibytes: number): Promise<void> {
    const { limitKibibytes } = await quota(mount, project, kibibytes);
    const isSet = kibibytes === 0 ? limitKibibytes === 0 : limitKibibytes >= kibibytes;
    if (!isSet) throw new Error(`xfs_quota did not set the limit of project ${project} at ${mount.point}`);
  }

  async function limit(path: string, bytes: number): Promise<NoQuota | undefined> {
    const place = await placeOf(dirname(path), path);
    if (place.kind === 'none') return place;
    const { mount, project: present } = place;
    const reserved = reservedProjects(await textAt('etc/projects'), await textAt('etc/projid'));
    for (const project of present > 0 ? [present] : projectCandidates(basename(path), reserved)) {
      const { isEnforced, isUsed } = await quota(mount, project);
      if (!isEnforced) return notEnforced(mount);
      if (isUsed && project !== present) continue;
      await run(['find', ...assignment(path, project)]);
      await setLimit(mount, project, kibibytesOf(bytes));
      return undefined;
    }
    throw new Error(`no project is free at ${mount.point}`);
  }

  async function release(path: string): Promise<undefined> {
    if (!existsSync(path)) return;
    const place = await placeOf(dirname(path), path);
    if (place.kind === 'place' && place.project > 0) await setLimit(place.mount, place.project, 0);
  }

  async function fault(directory: string): Promise<NoQuota | undefined> {
    const place = await placeOf(directory);
    if (place.kind === 'none') return place;
    const { isEnforced } = await quota(place.mount, 0);
    return isEnforced ? undefined : notEnforced(place.mount);
  }

  return {
    limit: (path, bytes) => installed(() => limit(path, bytes)),
    release: async (path) => void (await installed(() => release(path))),
    fault: (directory) => installed(() => fault(directory)),
  };
}

async function installed(work: () => Promise<NoQuota | undefined>): Promise<NoQuota | undefined> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof ProgramError && cause.code === EXIT_NOT_FOUND) return NOT_INSTALLED;
    throw cause;
  }
}
