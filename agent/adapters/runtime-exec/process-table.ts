/**
 * Processes as /proc reports them (proc(5)). The start time distinguishes a process from a later one with the same id.
 * The boot id distinguishes it from one of an earlier boot.
 *
 * A variable in the initial environment of a process, its mark, names its container. Processes inherit it over fork,
 * double fork and setsid(2), so a process cannot leave its pod by becoming a daemon. It can leave by starting another
 * program with an empty environment, or by overwriting its own.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Name of the variable. */
export const MARK = 'NODEKEEPER_CONTAINER';

export type SignalName = 'SIGTERM' | 'SIGKILL';

export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of stat: clock ticks after boot. */
  readonly startTicks: string;
  readonly bootId: string;
}

export interface MarkedProcess {
  readonly pid: number;
  /**
   * Value of the variable. For MARK `<pod uid>/<container>/<start>`, without the last part if an earlier agent set it.
   */
  readonly mark: string;
}

const PROC = '/proc';

interface Stat {
  readonly state: string;
  readonly startTicks: string;
}

const codeOf = (cause: unknown): string | undefined => (cause as NodeJS.ErrnoException).code;

/**
 * Whether a call failed because this process, or the machine, has no more descriptors or memory. It may succeed later.
 */
export const isShortage = (cause: unknown): boolean =>
  ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'].includes(codeOf(cause) ?? '');

/** Undefined when the process does not exist. @throws Error when /proc cannot be read */
function statOf(pid: number, root: string): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`${root}/${pid}/stat`, 'utf8');
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT' || codeOf(cause) === 'ESRCH') return undefined;
    throw cause;
  }
  // The name is in parentheses and may contain any character. State is the first field after it, field 3.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0]!, startTicks: fields[19]! };
}

/** Empty when the kernel provides none. @throws Error when it cannot be read */
export function readBootId(root = PROC): string {
  try {
    return readFileSync(`${root}/sys/kernel/random/boot_id`, 'utf8').trim();
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return '';
    throw cause;
  }
}

/** Identity of a living process. @throws Error when /proc cannot be read */
export function identify(pid: number, bootId: string, root = PROC): ProcessIdentity | undefined {
  const stat = statOf(pid, root);
  return stat === undefined ? undefined : { pid, startTicks: stat.startTicks, bootId };
}

/**
 * Whether exactly this process is alive. A zombie is not.
 *
 * @throws Error when /proc cannot be read
 */
export function isAlive(identity: ProcessIdentity, bootId: string): boolean {
  if (identity.bootId !== bootId) return false;
  const stat = statOf(identity.pid, PROC);
  if (stat === undefined || stat.startTicks !== identity.startTicks) return false;
  return stat.state !== 'Z' && stat.state !== 'X';
}

/**
 * Living processes with a mark, of all pods of all agents on this machine. One pass over /proc.
 *
 * @throws Error when /proc cannot be read
 */
export const markedProcesses = (): MarkedProcess[] => processesWith(MARK);

/** Living processes with a variable in their initial environment. @throws Error when /proc cannot be read */
export function processesWith(variable: string): MarkedProcess[] {
  const found: MarkedProcess[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = /^\d+$/.test(name) ? Number(name) : process.pid;
    const mark = pid === process.pid ? undefined : environmentValue(pid, variable);
    if (mark !== undefined) found.push({ pid, mark });
  }
  return found;
}

function environmentValue(pid: number, variable: string): string | undefined {
  let environment: string;
  try {
    // Empty for a zombie.
    environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch (cause) {
    if (isShortage(cause)) throw cause;
    // The process no longer exists, or belongs to another user.
    return undefined;
  }
  const entry = `\0${environment}`.lastIndexOf(`\0${variable}=`);
  if (entry < 0) return undefined;
  return environment.slice(entry + variable.length + 1).split('\0', 1)[0];
}

/**
 * Sends a signal to a process or, when negative, to its group. A process that no longer exists is no failure.
 *
 * @returns why it was not sent
 */
export function signal(target: number, name: NodeJS.Signals): string | undefined {
  try {
    process.kill(target, name);
    return undefined;
  } catch (cause) {
    return codeOf(cause) === 'ESRCH' ? undefined : (cause as Error).message;
  }
}

const BYTES_PER_KIBIBYTE = 1_024;

/** 0 for a process that no longer exists. */
function residentBytes(pid: number): number {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    // A zombie has none.
    return Number(kibibytes ?? 0) * BYTES_PER_KIBIBYTE;
  } catch {
    return 0;
  }
}

/** The processes of a machine: those of Linux here, those of Windows in `windows-processes.ts`. */
export interface ProcessTable {
  /** Empty when the system has none. @throws Error when it cannot be read */
  bootId(): string;
  /** Undefined for a process that no longer exists, or that cannot outlive the agent. @throws Error */
  identify(pid: number, bootId: string): ProcessIdentity | undefined;
  /** @throws Error when it cannot be read */
  isAlive(identity: ProcessIdentity, bootId: string): boolean;
  /** Living processes with a mark. @throws Error when they cannot be listed */
  marked(): MarkedProcess[];
  /** To a process or, when negative, to its group. Returns why it was not sent. */
  signal(target: number, name: NodeJS.Signals): string | undefined;
  residentBytes(pid: number): number;
}

export const linuxProcesses: ProcessTable = {
  bootId: () => readBootId(),
  identify,
  isAlive,
  marked: markedProcesses,
  signal,
  residentBytes,
};
