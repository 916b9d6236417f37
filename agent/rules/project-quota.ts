/**
 * Limits for directories by project quotas of ext4 and XFS: what a machine supports, the project of a directory, and
 * the commands of xfs_quota(8), which are the same for both file systems.
 */
import { textHash } from '../../shared/text.ts';

export interface Mount {
  readonly kind: 'mount';
  readonly source: string;
  readonly point: string;
  readonly type: string;
  /** The line of a mount table, with its escapes. */
  readonly entry: string;
  /** Options of the file system. */
  readonly options: readonly string[];
}

/** Why directories cannot be limited. */
export interface NoQuota {
  readonly kind: 'none';
  readonly why: string;
  /** What a person does about it. */
  readonly todo: string;
}

/** @param mountinfo text of /proc/self/mountinfo (proc_pid_mountinfo(5)) @param path absolute, without links */
function mountOf(mountinfo: string, path: string): Mount | undefined {
  let found: Mount | undefined;
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ', 2);
    const escaped = before.split(' ')[4] ?? '';
    const [type = '', source = '', options = ''] = after.split(' ');
    const point = unescaped(escaped);
    const isAbove = point === '/' || path === point || path.startsWith(`${point}/`);
    // A later mount at the same place hides the earlier one.
    if (point === '' || !isAbove || (found !== undefined && found.point.length > point.length)) continue;
    const entry = `${source} ${escaped} ${type} ${options} 0 0\n`;
    found = { kind: 'mount', source: unescaped(source), point, type, entry, options: options.split(',') };
  }
  return found;
}

const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The mount of a path, if it may have project quotas. Whether it has, xfs_quota knows. */
export function quotaMount(mountinfo: string, path: string, isRoot: boolean): Mount | NoQuota {
  const mount = mountOf(mountinfo, path);
  if (!isRoot) return { kind: 'none', why: 'the agent is not root', todo: 'Run it as root.' };
  if (mount === undefined || (mount.type !== 'ext4' && mount.type !== 'xfs')) {
    const why = mount === undefined ? 'its file system is unknown' : `${mount.type} has no project quotas`;
    return { kind: 'none', why, todo: 'Put `rootDirectory` on ext4 or XFS, mounted with prjquota.' };
  }
  return mount.options.includes('prjquota') ? mount : notEnforced(mount);
}

/** The option alone is not enough: ext4 ignores it without the features quota and project. */
export function notEnforced({ point, source, type }: Mount): NoQuota {
  const feature = type === 'ext4' ? `Unmount it, tune2fs -O quota,project -Q prjquota ${source}, and mount` : 'Mount';
  const atBoot = point === '/' ? ' (rootflags=prjquota of the kernel)' : '';
  return {
    kind: 'none',
    why: `${type} at ${point} enforces no project quotas`,
    todo: `${feature} it with prjquota${atBoot}.`,
  };
}

export const NOT_INSTALLED: NoQuota = {
  kind: 'none',
  why: 'the program xfs_quota is not installed',
  todo: 'Install xfsprogs.',
};

/** A directory above has a project: that of who limits the agent itself. */
export const foreignProject = (project: number): NoQuota => ({
  kind: 'none',
  why: `its directory has the project ${project}, which is not of this agent`,
  todo: 'Remove that project (chattr -p 0).',
});

/**
 * Projects of volumes. Users begin with small numbers, container engines with 1, kubelet with 1,048,577. Tools read
 * them as signed numbers of 32 bits.
 */
const PROJECT_FIRST = 2 ** 30;
const PROJECT_COUNT = 2 ** 30;
/** As upstream's `maxUnusedQuotasToSearch`. */
const CANDIDATES_MAX = 128;

export const isOwnProject = (project: number): boolean =>
  project >= PROJECT_FIRST && project < PROJECT_FIRST + PROJECT_COUNT;

/** Projects to try for a volume: the first that the file system does not use is its own. */
export function projectCandidates(volumeName: string, reserved: ReadonlySet<number>): readonly number[] {
  const start = textHash(volumeName) % PROJECT_COUNT;
  return Array.from({ length: CANDIDATES_MAX }, (_, step) => PROJECT_FIRST + ((start + step) % PROJECT_COUNT)).filter(
    (project) => !reserved.has(project),
  );
}

/** Projects that people named: /etc/projects has `number:path`, /etc/projid has `name:number`. */
export function reservedProjects(projects: string, projid: string): ReadonlySet<number> {
  const numbers = [...projects.matchAll(/^(\d+):/gm), ...projid.matchAll(/^[^#:\n][^:\n]*:(\d+)$/gm)];
  return new Set(numbers.map(([, number]) => Number(number)));
}

/** Projects of directories, in the output of `lsattr -pd`. */
export const listedProjects = (output: string): readonly number[] =>
  [...output.matchAll(/^ *(\d+) \S+ \//gm)].map(([, project]) => Number(project));

/** Arguments of find(1): assigns a directory and all that it contains to a project. New files inherit it. */
export const assignment = (path: string, project: number): readonly string[] => {
  const chattr = ['chattr', '-p', String(project)];
  const directories = ['(', '-type', 'd', '-exec', ...chattr, '+P', '{}', '+', ')'];
  return [path, '-xdev', ...directories, '-o', '(', '-type', 'f', '-exec', ...chattr, '{}', '+', ')'];
};

/** Of a file system, and of one project there. Kibibytes. */
export interface QuotaState {
  readonly isEnforced: boolean;
  readonly limitKibibytes: number;
  /** Whether something has the project, or a limit is set for it. */
  readonly isUsed: boolean;
}

/**
 * Arguments of xfs_quota: sets the limit of a project, if there is one, and prints its state. It exits with 0 when it
 * fails, so the state says whether it did.
 *
 * @param table a file with the one mount: of others, one that does not answer would stop it
 */
export function quotaCommand(mount: Mount, table: string, project: number, limitKibibytes?: number): readonly string[] {
  const limit = limitKibibytes === undefined ? [] : ['-c', `limit -p bhard=${limitKibibytes}k ${project}`];
  const state = ['-c', 'state -p', '-c', `quota -p -N -n -v -b -i ${project}`];
  return ['-x', '-f', '-t', table, '-D', '/dev/null', '-P', '/dev/null', ...limit, ...state, mount.point];
}

/** Device, blocks used, soft and hard limit, warnings, grace; the same for inodes. */
const QUOTA = /^\S+ +(\d+) +(\d+) +(\d+) +\d+ +\[[^\]]*\] +(\d+) +(\d+) +(\d+) +\d+ +\[/m;

/** XFS prints nothing for a project that it does not know. */
export function quotaState(output: string): QuotaState {
  const numbers = (QUOTA.exec(output) ?? []).slice(1).map(Number);
  const isEnforced = /^ *Enforcement: ON$/m.test(output);
  return { isEnforced, limitKibibytes: numbers[2] ?? 0, isUsed: numbers.some((each) => each > 0) };
}

/** The limit for these bytes. The kernel counts kibibytes, and 0 is no limit. */
export const kibibytesOf = (bytes: number): number => Math.max(1, Math.ceil(bytes / 1_024));
