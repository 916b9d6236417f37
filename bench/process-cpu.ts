/** CPU time of a process and its descendants, by thread name, from /proc (Linux). */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

let ticksPerSecond: number | undefined;

/** Clock ticks a second in which the kernel counts: 100 nearly everywhere, so figures are good to 10 ms. */
function clockTicks(): number {
  ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return ticksPerSecond;
}

let bytesPerPage: number | undefined;

function pageBytes(): number {
  bytesPerPage ??= Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' }));
  return bytesPerPage;
}

interface Stat {
  readonly comm: string;
  readonly parentPid: number;
  readonly cpuMs: number;
  readonly residentBytes: number;
}

/** Absent when the process or thread has exited meanwhile. */
function readStat(path: string): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
  // The name is in parentheses and may hold anything, also parentheses.
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  return {
    comm: text.slice(text.indexOf('(') + 1, end),
    parentPid: Number(fields[1]),
    cpuMs: ((Number(fields[11]) + Number(fields[12])) * 1_000) / clockTicks(),
    residentBytes: Number(fields[21]) * pageBytes(),
  };
}

export interface CpuUse {
  /** Milliseconds by `process/thread` name, threads of one name added up. */
  readonly byThread: ReadonlyMap<string, number>;
}

/** `pid` and everything below it, each process after its parent. */
function pidsBelow(pid: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readStat(`/proc/${entry}/stat`);
    if (stat === undefined) continue;
    children.set(stat.parentPid, [...(children.get(stat.parentPid) ?? []), Number(entry)]);
  }
  const found = [pid];
  for (let at = 0; at < found.length; at += 1) found.push(...(children.get(found[at]!) ?? []));
  return found;
}

export interface ProcessUse {
  readonly pid: number;
  readonly name: string;
  /** CPU time used so far by all threads. Milliseconds. */
  readonly cpuMs: number;
  readonly residentBytes: number;
}

/** The processes of these ids and everything below them. Those that have exited are absent. */
export function processesBelow(pids: readonly number[]): readonly ProcessUse[] {
  const found = new Set(pids.flatMap(pidsBelow));
  return [...found].flatMap((pid) => {
    const stat = readStat(`/proc/${pid}/stat`);
    return stat === undefined ? [] : [{ pid, name: stat.comm, cpuMs: stat.cpuMs, residentBytes: stat.residentBytes }];
  });
}

/** CPU used so far by `pid` and everything below it. */
export function cpuUseOf(pid: number): CpuUse {
  const byThread = new Map<string, number>();
  for (const process of pidsBelow(pid)) {
    const processName = readStat(`/proc/${process}/stat`)?.comm;
    if (processName === undefined) continue;
    for (const thread of threadsOf(process)) {
      const stat = readStat(`/proc/${process}/task/${thread}/stat`);
      if (stat === undefined) continue;
      const own = Number(thread) === process;
      const key = `${processName}/${own ? 'main' : stat.comm}`;
      byThread.set(key, (byThread.get(key) ?? 0) + stat.cpuMs);
    }
  }
  return { byThread };
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** What was used between two readings, by the same names, without those that did nothing. */
export function cpuUsedBetween(before: CpuUse, after: CpuUse): ReadonlyMap<string, number> {
  const used = new Map<string, number>();
  for (const [name, cpuMs] of after.byThread) {
    const spent = cpuMs - (before.byThread.get(name) ?? 0);
    if (spent > 0) used.set(name, spent);
  }
  return used;
}
