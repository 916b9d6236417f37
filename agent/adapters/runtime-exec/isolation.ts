/**
 * Mounts and privileges of a container's process, by programs of util-linux: unshare(1), mount(8), nsenter(1) and
 * setpriv(1). A process has a mount namespace of its own if it has mounts. Otherwise it shares that of the agent.
 *
 * A mount point that the machine does not have is created as an empty directory or file, and stays.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, readlinkSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ContainerMount } from '../../ports/container-inputs.ts';
import { makeDirectory } from '../system/directory.ts';
import type { CommandLine, ContainerCommand } from './command-line.ts';

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
const SHELL = '/bin/sh';
const MODE_TEST_MS = 5_000;
/** Variables that a shell sets by itself. */
const SHELL_VARIABLES = ['PWD', 'OLDPWD', 'SHLVL', '_'];
const SHELL_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

const found = new Map<string, string | undefined>();

/** Path of a program of the machine. */
function programPath(name: string): string | undefined {
  if (!found.has(name)) found.set(name, DIRECTORIES.map((each) => join(each, name)).find(isExecutable));
  return found.get(name);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether this process may create mount namespaces. One short child process. */
export function mountMode(): MountMode {
  const unshare = programPath('unshare');
  if (unshare === undefined || programPath('mount') === undefined) return 'links';
  const test = spawnSync(unshare, ['--mount', '--', SHELL, '-c', ':'], { stdio: 'ignore', timeout: MODE_TEST_MS });
  return test.status === 0 ? 'mounts' : 'links';
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

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
    for (const mount of mounts) linkTo(mount);
  }
  const privileges = privilegeArguments(command, hasMounts);
  if (!hasMounts) return { line: privileges === undefined ? command : wrapped(command, privileges), hasMounts };
  const script = [
    `fail() { printf "%s" "$1" >&${MESSAGE_DESCRIPTOR}; exit "$2"; }`,
    `run() { m=$("$@" 2>&1) || fail "$m" ${EXIT_NOT_SET_UP}; }`,
    ...mounts.map(mountPointLine),
    ...(security.readOnlyRoot ? [READ_ONLY_MACHINE] : []),
    ...mounts.flatMap((mount) => mountLines(mount, security.readOnlyRoot)),
    ...(command.directory === undefined
      ? []
      : [`run cd ${quoted(command.directory)}`, `cd ${quoted(command.directory)}`]),
    `command -v ${quoted(command.file)} >/dev/null 2>&1 || fail ${quoted(`spawn ${command.file} ENOENT`)} 127`,
    `exec 3>&- ${MESSAGE_DESCRIPTOR}>&-`,
    ...becomeProgram(command, privileges),
  ];
  const unshare = programPath('unshare') ?? 'unshare';
  const args = ['--mount', '--propagation', 'slave', '--', SHELL, '-c', script.join('\n')];
  return { line: asAgent(command, unshare, args), hasMounts };
}

/** The command line of a further process of a running container. @param pid its first process */
export function attached(command: ContainerCommand, pid: number | undefined): CommandLine {
  const privileges = privilegeArguments(command, pid !== undefined);
  if (pid === undefined) return privileges === undefined ? command : wrapped(command, privileges);
  const directory = quoted(command.directory ?? '/');
  const script = [`cd ${directory} || exit ${EXIT_NOT_SET_UP}`, ...becomeProgram(command, privileges)].join('\n');
  const nsenter = programPath('nsenter') ?? 'nsenter';
  return asAgent(command, nsenter, [`--mount=/proc/${pid}/ns/mnt`, '--', SHELL, '-c', script]);
}

/** A shell drops variables with names that it does not accept, so env(1) passes them. */
function becomeProgram({ env, file, args }: CommandLine, privileges: readonly string[] = []): readonly string[] {
  const own = SHELL_VARIABLES.filter((name) => !Object.hasOwn(env, name));
  const odd = Object.entries(env).filter(([name]) => !SHELL_NAME.test(name));
  const prefix = odd.length === 0 ? [] : ['/usr/bin/env', ...odd.map(([name, value]) => `${name}=${value}`)];
  return [`unset ${own.join(' ')}`, `exec ${[...privileges, ...prefix, file, ...args].map(quoted).join(' ')}`];
}

/** Runs as the agent: the privileges are changed last, because mounts need those of the agent. */
const asAgent = (command: CommandLine, file: string, args: readonly string[]): CommandLine => ({
  kind: 'command',
  file,
  args,
  env: command.env,
  directory: undefined,
  userId: undefined,
  groupId: undefined,
});

const wrapped = (command: CommandLine, privileges: readonly string[]): CommandLine => {
  const [file = '', ...args] = privileges;
  return { ...asAgent(command, file, [...args, command.file, ...command.args]), directory: command.directory };
};

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
  const setpriv = programPath('setpriv');
  if (setpriv === undefined)
    throw new Error('the securityContext needs setpriv (util-linux), which this machine lacks');
  const { dropped = [], added = [] } = capabilities ?? {};
  const bounds = [...dropped.map((name) => `-${name}`), ...added.map((name) => `+${name}`)].join(',');
  return [
    setpriv,
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

function mountLines({ source, target, readOnly }: ContainerMount, isMachineReadOnly: boolean): readonly string[] {
  const point = quoted(target);
  const bind = `run mount --bind ${quoted(source)} ${point}`;
  if (readOnly) return [bind, `run mount -o remount,bind,ro ${point}`];
  // A bind mount inherits read-only from the file system of its source.
  return isMachineReadOnly ? [bind, `run mount -o remount,bind,rw ${point}`] : [bind];
}

/** As in a container: /proc, /sys and /dev keep their own rules. */
const READ_ONLY_MACHINE = `while read -r a b c d point e; do
case $point in /proc|/proc/*|/sys|/sys/*|/dev|/dev/*) ;; *) run mount -o remount,bind,ro "$point" ;; esac
done </proc/self/mountinfo`;

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
