/**
 * Processes as /proc tells them (proc(5)). A process is told apart from a later one with the same id by its start time,
 * and from one of an earlier boot by the boot id.
 */
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of stat: clock ticks after boot. */
  readonly startTicks: string;
  readonly bootId: string;
}

interface Stat {
  readonly state: string;
  readonly sessionId: number;
  readonly startTicks: string;
}

function statOf(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // No such process, or none any more.
    return undefined;
  }
  // The name stands in brackets and may hold anything; state is the first field after it, field 3.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0] ?? '', sessionId: Number(fields[3]), startTicks: fields[19] ?? '' };
}

export function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** Of a process that lives. */
export function identify(pid: number, bootId: string): ProcessIdentity | undefined {
  const stat = statOf(pid);
  return stat === undefined ? undefined : { pid, startTicks: stat.startTicks, bootId };
}

/** Whether this very process lives. One that ended and was not collected by its parent is dead. */
export function isAlive(identity: ProcessIdentity, bootId: string): boolean {
  if (identity.bootId !== bootId) return false;
  const stat = statOf(identity.pid);
  if (stat === undefined || stat.startTicks !== identity.startTicks) return false;
  return stat.state !== 'Z' && stat.state !== 'X';
}

/**
 * Living processes of the session that carry `entry` in the environment they were started with. A session id can be taken
 * again once its last process has gone; the entry says that these are ours.
 */
export function sessionMembers(sessionId: number, entry: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const stat = statOf(pid);
      return stat !== undefined && stat.sessionId === sessionId && stat.state !== 'Z' && startedWith(pid, entry);
    });
}

function startedWith(pid: number, entry: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(entry);
  } catch {
    // Gone, or of another user.
    return false;
  }
}

/** Sends a signal to a process (or, negative, to its group) that may be gone by now. */
export function signal(target: number, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(target, name);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ESRCH') throw cause;
  }
}
