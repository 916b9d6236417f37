/**
 * Mounts and privileges of a container's process, by programs of util-linux: unshare(1), mount(8), nsenter(1) and
 * setpriv(1). A process has a mount namespace of its own if it has mounts. Otherwise it shares that of the agent.
 *
 * A mount point that the machine does not have is created as an empty directory or file, and stays.
 */
import { spawnSync } from 'node:child_process';
import { readlinkSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { ContainerMount } from '../../ports/container-inputs.ts';
import type { CommandLine, ContainerCommand } from './command-line.ts';
import { MARK } from './process-table.ts';
import { ENV, executableFault, quoted, SHELL, SHELL_NAME, SHELL_VARIABLES } from './shell.ts';

/** How a process sees its volumes: by mounts, or by links at the paths of the mounts. */
export type MountMode = 'mounts' | 'links';

export interface Isolated {
  readonly line: CommandLine;
  /** Whether the process has a mount namespace of its own. */
  readonly hasMounts: boolean;
}

/** Exit code of a process that could not be set up. It has written the reason to this descriptor. */
export const EXIT_NOT_SET_UP = 125;
const MESSAGE_DESCRIPTOR = 4;
const DIRECTORIES = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const PATH = DIRECTORIES.join(':');
const MODE_TEST_MS = 5_000;
/** Variables with a meaning to shells, which may refuse to assign them. */
const SHELL_OWN =
  /^(?:_|IFS|OPTIND|OPTARG|LINENO|PPID|PS[124]|PWD|OLDPWD|SHLVL|E?UID|GROUPS|RANDOM|SECONDS|DIRSTACK|FUNCNAME|SHELLOPTS|POSIXLY_CORRECT|BASH\w*)$/;
/** Variables of the container have these names until its program starts. */
const CARRIED = 'NODEKEEPER_ENV_';
/** Where programs of the machine may look for their code, as patterns of a shell. */
const MACHINE_CODE = [
  '/',
  '/usr',
  '/etc',
  '/etc/ld.so.*',
  ...['', '/usr'].flatMap((parent) => [
    `${parent}/bin`,
    `${parent}/bin/*`,
    `${parent}/sbin`,
    `${parent}/sbin/*`,
    `${parent}/lib`,
    `${parent}/lib/ld-*`,
    `${parent}/lib/lib*`,
    `${parent}/lib/*-linux-*`,
    `${parent}/lib[0-9x]*`,
  ]),
].join('|');

let setprivPath: string | undefined;

/** Path of setpriv(1); undefined if this machine has none. */
function setpriv(): string | undefined {
  setprivPath ??= DIRECTORIES.map((each) => join(each, 'setpriv')).find((path) => executableFault(path) === undefined);
  return setprivPath;
}

/**
 * Whether this process may create mount namespaces. One short child process.
 *
 * @param directories where the programs of the machine are
 */
export function mountMode(directories = PATH, limitMs = MODE_TEST_MS): MountMode {
  const args = ['--mount', '--', SHELL, '-c', 'command -v mount'];
  const options = { env: { PATH: directories }, stdio: 'ignore', timeout: limitMs } as const;
  return spawnSync('unshare', args, options).status === 0 ? 'mounts' : 'links';
}

/** Whether a process needs a mount namespace of its own. */
export const needsMounts = ({ mounts, security, hasOwnTerminationLog }: ContainerCommand): boolean =>
  mounts.length > 0 || security.readOnlyRoot || hasOwnTerminationLog;

/**
 * The command line that sets up the process and then becomes the container's program.
 *
 * @throws Error if the machine cannot do what the container needs
 */
export function isolated(command: ContainerCommand, mode: MountMode): Isolated {
  const { mounts, security } = command;
  const hasMounts = mode === 'mounts' && needsMounts(command);
  if (mode === 'links') {
    if (security.readOnlyRoot) throw new Error('readOnlyRootFilesystem needs mount namespaces, which this agent lacks');
    for (const mount of mounts) if (mount.replacesMachine !== true) linkTo(mount);
  }
  const privileges = privilegeArguments(command, hasMounts);
  if (!hasMounts) return { line: privileges === undefined ? command : wrapped(command, privileges), hasMounts };
  const script = [
    `fail() { printf "%s" "$1" >&${MESSAGE_DESCRIPTOR}; exit "$2"; }`,
    `run() { m=$("$@" 2>&1) || fail "$m" ${EXIT_NOT_SET_UP}; }`,
    ...MOUNT_POINTS,
    ...mounts.map(mountPointLine),
    ...(security.readOnlyRoot ? [READ_ONLY_MACHINE] : []),
    ...mounts.flatMap((mount) => mountLines(mount, security.readOnlyRoot, privileges !== undefined)),
    ...(command.directory === undefined
      ? []
      : [`run cd ${quoted(command.directory)}`, `cd ${quoted(command.directory)}`]),
    `(${searchPathOf(command)}command -v ${quoted(command.file)}) >/dev/null 2>&1 ||`,
    `fail ${quoted(`spawn ${command.file} ENOENT`)} 127`,
    // An empty message: everything is set up.
    `echo >&${MESSAGE_DESCRIPTOR}`,
    `exec 3>&- ${MESSAGE_DESCRIPTOR}>&-`,
    becomeProgram(command, privileges),
  ];
  const args = ['--mount', '--propagation', 'slave', '--', SHELL, '-c', script.join('\n')];
  return { line: asAgent(command, 'unshare', args), hasMounts };
}

/** Whether a process has a mount namespace of its own. False if it has exited. */
export function hasOwnMounts(pid: number): boolean {
  const namespace = readLink(`/proc/${pid}/ns/mnt`);
  return namespace !== undefined && namespace !== readLink('/proc/self/ns/mnt');
}

/** The command line of a further process of a running container. @param pid its first process */
export function attached(command: ContainerCommand, pid: number | undefined): CommandLine {
  const privileges = privilegeArguments(command, pid !== undefined);
  if (pid === undefined) return privileges === undefined ? command : wrapped(command, privileges);
  const directory = quoted(command.directory ?? '/');
  const script = [`cd ${directory} || exit ${EXIT_NOT_SET_UP}`, becomeProgram(command, privileges)].join('\n');
  return asAgent(command, 'nsenter', [`--mount=/proc/${pid}/ns/mnt`, '--', SHELL, '-c', script]);
}

/**
 * The last step: the privileges first, then the variables of the container, then its program. A shell cannot assign
 * some variables, so env(1) passes them.
 */
function becomeProgram({ env, file, args }: CommandLine, privileges: readonly string[] = []): string {
  const carried = carriedBy(env).map(([name], index) => ({ name, from: `${CARRIED}${index}` }));
  const isPlain = (name: string): boolean => SHELL_NAME.test(name) && !SHELL_OWN.test(name);
  const odd = carried.filter(({ name }) => !isPlain(name));
  const own = SHELL_VARIABLES.filter((name) => !Object.hasOwn(env, name));
  const prefix = [
    ENV,
    ...odd.flatMap(({ from }) => ['-u', from]),
    ...odd.map(({ name, from }) => `${quoted(`${name}=`)}"$${from}"`),
  ];
  const script = [
    ...carried.flatMap(({ name, from }) => (isPlain(name) ? [`export ${name}="$${from}"`, `unset ${from}`] : [])),
    ...(Object.hasOwn(env, 'PATH') ? [] : ['unset PATH']),
    `unset ${own.join(' ')}`,
    `exec ${[...(odd.length === 0 ? [] : prefix), ...[file, ...args].map(quoted)].join(' ')}`,
  ].join('\n');
  return privileges.length === 0 ? script : `exec ${[...privileges, SHELL, '-c', script].map(quoted).join(' ')}`;
}

/** All but the mark of the process, which the agent sets. */
const carriedBy = (env: CommandLine['env']) => Object.entries(env).filter(([name]) => name !== MARK);

/** Sets the PATH of the container for one command of the shell. */
function searchPathOf({ env }: CommandLine): string {
  const index = carriedBy(env).findIndex(([name]) => name === 'PATH');
  return index < 0 ? '' : `PATH="$${CARRIED}${index}"; `;
}

/**
 * Runs as the agent: the privileges are changed last, because mounts need those of the agent. Variables of the
 * container have other names until then. A PATH or LD_PRELOAD of the container would otherwise select code that runs as
 * the agent.
 */
const asAgent = (command: CommandLine, file: string, args: readonly string[]): CommandLine => ({
  kind: 'command',
  file,
  args,
  env: {
    PATH,
    ...Object.fromEntries(carriedBy(command.env).map(([, value], index) => [`${CARRIED}${index}`, value])),
  },
  directory: undefined,
  userId: undefined,
  groupId: undefined,
});

const wrapped = (command: CommandLine, privileges: readonly string[]): CommandLine => ({
  ...asAgent(command, SHELL, ['-c', becomeProgram(command, privileges)]),
  directory: command.directory,
});

/**
 * The call of setpriv(1); undefined if the process needs none.
 *
 * @param isWrapped whether another program starts first: the caller then cannot set the user
 * @throws Error if the machine has no setpriv
 */
function privilegeArguments({ userId, groupId, security }: ContainerCommand, isWrapped: boolean) {
  const { supplementalGroups, noNewPrivileges, capabilities } = security;
  const hasUser = userId !== undefined || groupId !== undefined;
  const isNeeded = noNewPrivileges || capabilities !== undefined || supplementalGroups.length > 0;
  if (!isNeeded && !(isWrapped && hasUser)) return undefined;
  const program = setpriv();
  if (program === undefined)
    throw new Error('the securityContext needs setpriv (util-linux), which this machine lacks');
  const { dropped = [], added = [] } = capabilities ?? {};
  const bounds = [...dropped.map((name) => `-${name}`), ...added.map((name) => `+${name}`)].join(',');
  return [
    program,
    ...(userId === undefined ? [] : ['--reuid', String(userId)]),
    ...(groupId === undefined ? [] : ['--regid', String(groupId)]),
    ...(supplementalGroups.length > 0 ? ['--groups', supplementalGroups.join(',')] : []),
    ...(supplementalGroups.length === 0 && hasUser ? ['--clear-groups'] : []),
    ...(bounds === '' ? [] : ['--inh-caps', bounds, '--bounding-set', bounds]),
    ...(noNewPrivileges ? ['--no-new-privs'] : []),
    '--',
  ];
}

function mountPointLine({ target, isFile }: ContainerMount): string {
  const point = quoted(target);
  if (!isFile) return `[ -d ${point} ] || run mkdir -p ${point}`;
  return `[ -e ${point} ] || { run mkdir -p ${quoted(dirname(target))}; run touch ${point}; }`;
}

/** @param isGuarded whether programs run as the agent afterwards: then no mount may replace them */
function mountLines(mount: ContainerMount, isMachineReadOnly: boolean, isGuarded: boolean): readonly string[] {
  const { source, target, readOnly, identity } = mount;
  const refusal = quoted(`volumeMount ${target} would replace programs of the machine`);
  const changed = quoted(`volumeMount ${target}: the volume changed while it was mounted`);
  return [
    // An earlier mount may hide the mount point that the machine has.
    mountPointLine(mount),
    // Links in another volume may lead anywhere.
    `p=$(readlink -f ${quoted(target)}) || fail ${quoted(`volumeMount ${target} has no path`)} ${EXIT_NOT_SET_UP}`,
    ...(isGuarded && source !== target
      ? [`case $p in ${MACHINE_CODE}) fail ${refusal} ${EXIT_NOT_SET_UP} ;; esac`]
      : []),
    ...(isGuarded ? ['mounts_at "$p"; before=$n'] : []),
    `run mount --bind ${quoted(source)} "$p"`,
    // A link that replaced a part of the path meanwhile would lead the mount elsewhere: over programs of the machine.
    ...(isGuarded ? [`mounts_at "$p"; [ "$n" -gt "$before" ] || fail ${changed} ${EXIT_NOT_SET_UP}`] : []),
    // A process of the pod may have replaced a part of the path by a link since it was checked.
    ...(identity === undefined
      ? []
      : [`[ "$(stat -L -c %d:%i "$p")" = ${identity} ] || fail ${changed} ${EXIT_NOT_SET_UP}`]),
    ...(readOnly ? ['run mount -o remount,bind,ro "$p"'] : []),
    // A bind mount inherits read-only from the file system of its source.
    ...(!readOnly && isMachineReadOnly ? ['run mount -o remount,bind,rw "$p"'] : []),
  ];
}

/**
 * Functions of the shell that read the mount points of this namespace (proc_pid_mountinfo(5)) without another program.
 * `unescaped` sets `point`: the kernel writes a space, a tab, a line feed and a backslash as octal numbers.
 */
const MOUNT_POINTS = [
  String.raw`unescaped() { case $point in *\\*) point=$(printf '%bx' "$point"); point=${'$'}{point%x} ;; esac; }`,
  // How many mounts are at a path.
  'mounts_at() { n=0; while read -r a b c d point e; do unescaped; [ "$point" = "$1" ] && n=$((n + 1)); done </proc/self/mountinfo; }',
];

/**
 * /proc, /sys and /dev keep their own rules, as in a container. A mount that the machine removes meanwhile is removed
 * here too: it needs no change, and is no fault.
 */
const READ_ONLY_MACHINE = [
  'read_only() { m=$(mount -o remount,bind,ro "$1" 2>&1) && return; mounts_at "$1";',
  `[ "$n" -eq 0 ] || fail "$m" ${EXIT_NOT_SET_UP}; }`,
  'while read -r a b c d point e; do',
  'case $point in /proc|/proc/*|/sys|/sys/*|/dev|/dev/*) ;; *) unescaped; read_only "$point" ;; esac',
  'done </proc/self/mountinfo',
].join('\n');

/** @throws Error if the path exists, or the volume would have to be read-only */
function linkTo({ source, target }: ContainerMount): void {
  try {
    makeDirectory(dirname(target), 0o755);
    if (readLink(target) === source) return;
    symlinkSync(source, target);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Error(`volumeMount ${target}: this agent lacks mount namespaces, and cannot create a link there: ${why}`);
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
