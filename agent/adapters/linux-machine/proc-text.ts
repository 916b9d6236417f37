/** The texts of /proc and /sys. */

/** `Name: 12 kB` of /proc/meminfo and `name 12` of memory.stat, with the numbers unchanged. */
export function memoryFields(text: string): Record<string, number> {
  const fields: Record<string, number> = {};
  for (const line of text.split('\n')) {
    const match = /^([^\s:]+):?\s+(\d+)/.exec(line);
    if (match?.[1] !== undefined) fields[match[1]] = Number(match[2]);
  }
  return fields;
}

export const bytesOfKibibytes = (kibibytes: number): number => kibibytes * 1_024;

/** Number of elements in a list of the kernel such as `0-3,5`. */
export function countCpuList(list: string): number {
  return list
    .split(',')
    .map((part) => /^(\d+)(?:-(\d+))?$/.exec(part))
    .reduce((sum, match) => (match === null ? sum : sum + Number(match[2] ?? match[1]) - Number(match[1]) + 1), 0);
}

/** Number of processors in /proc/cpuinfo. */
export const countProcessors = (text: string): number => text.match(/^processor\s*:/gm)?.length ?? 0;

/** Clock ticks per second in /proc/stat: USER_HZ, which is 100 on every architecture of Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** The line `cpu user nice system idle iowait irq softirq steal …` of /proc/stat. Guest time is part of user time. */
export function cpuBusySeconds(stat: string): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = (/^cpu +(.*)/m.exec(stat)?.[1] ?? '')
    .split(' ')
    .map(Number);
  return (user + nice + system + irq + softIrq) / TICKS_PER_SECOND;
}

/** Number of tasks, from the `running/all` of /proc/loadavg. */
export const taskCount = (loadAverage: string): number => Number(/\s\d+\/(\d+)\s/.exec(loadAverage)?.[1] ?? 0);

/** PRETTY_NAME of os-release. */
export function osName(osRelease: string): string {
  const value = /^PRETTY_NAME=(.*)/m.exec(osRelease)?.[1]?.trim() ?? '';
  return value.replace(/^(["'])(.*)\1$/, '$2') || 'Linux';
}
