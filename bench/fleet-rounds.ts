/**
 * Rounds of requests against one or two servers. The first round of each shows the first requests after its start, in
 * cold caches and before the compilers of its runtime have optimised anything. The measured rounds follow, the servers
 * alternately and in opposite order each time. Other load of the machine then falls on both.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { KubeAccess } from '../test/support/kubeconfig.ts';
import { type Report, rounded } from './benchmark.ts';
import { measureRequests, type PhaseFigures, type RequestPhasesOptions } from './fleet-requests.ts';
import type { FleetFigures } from './fleet-table.ts';
import { processesBelow } from './process-cpu.ts';

export interface MeasuredServer {
  readonly label: string;
  readonly access: KubeAccess;
  /** Its processes. Their descendants are counted as well. */
  readonly pids: readonly number[];
}

export interface RoundsOptions extends Pick<RequestPhasesOptions, 'beatsPerSecond' | 'beatSeconds' | 'lists'> {
  readonly nodes: number;
  readonly connections: number;
  /** Measured rounds per server. */
  readonly rounds: number;
  /** Whether a round that is not measured comes first. */
  readonly warmUp: boolean;
}

export const firstRequestsOf = (label: string): string => `${label}, first requests`;

/** @returns the figures by label; those of the first round under a label of their own */
export async function measureRounds(
  servers: readonly MeasuredServer[],
  options: RoundsOptions,
  report: Report,
): Promise<FleetFigures> {
  const roundOf = async ({ label, access, pids }: MeasuredServer, round: number) => {
    await untilQuiet(pids);
    const phases = { ...options, ...access, pids };
    return measureRequests(phases, (figures) => report({ server: label, round, ...figures }));
  };
  const figures: Record<string, readonly PhaseFigures[]> = {};
  if (options.warmUp) {
    for (const server of servers) figures[firstRequestsOf(server.label)] = await roundOf(server, 0);
  }
  const measured = new Map(servers.map(({ label }) => [label, [] as (readonly PhaseFigures[])[]]));
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const server of round % 2 === 1 ? servers : servers.toReversed()) {
      measured.get(server.label)!.push(await roundOf(server, round));
    }
  }
  for (const [label, rounds] of measured) figures[label] = combined(rounds);
  return figures;
}

const QUIET_MS_PER_SECOND = 100;
const LOOK_SECONDS = 2;
const LOOKS_MAX = 15;

/** Until the servers rest: no start, and no reaction to the previous round, is counted with the next one. */
async function untilQuiet(pids: readonly number[]): Promise<void> {
  const cpuMs = (): number => processesBelow(pids).reduce((sum, process) => sum + process.cpuMs, 0);
  for (let look = 0; look < LOOKS_MAX && pids.length > 0; look += 1) {
    const beforeMs = cpuMs();
    await pause(LOOK_SECONDS * 1_000);
    if ((cpuMs() - beforeMs) / LOOK_SECONDS < QUIET_MS_PER_SECOND) return;
  }
}

/** Several rounds as one: sums of requests and seconds, means per request, and the worst p99 and memory. */
export function combined(rounds: readonly (readonly PhaseFigures[])[]): readonly PhaseFigures[] {
  const phases = rounds[0] ?? [];
  return phases.map(({ phase }) => {
    const each = rounds.flatMap((round) => round.filter((figures) => figures.phase === phase));
    const sum = (of: (figures: PhaseFigures) => number): number => each.reduce((all, figures) => all + of(figures), 0);
    const most = (of: (figures: PhaseFigures) => number): number => Math.max(...each.map(of));
    const mean = (of: (figures: PhaseFigures) => number): number => rounded(sum(of) / each.length);
    const names = new Set(each.flatMap(({ cpuByProcess }) => Object.keys(cpuByProcess)));
    const byProcess = [...names].map((name) => [name, mean(({ cpuByProcess }) => cpuByProcess[name] ?? 0)]);
    return {
      phase,
      seconds: rounded(sum(({ seconds }) => seconds)),
      requests: sum(({ requests }) => requests),
      failed: sum(({ failed }) => failed),
      perSecond: rounded(sum(({ requests }) => requests) / sum(({ seconds }) => seconds)),
      p50Ms: mean(({ p50Ms }) => p50Ms),
      p99Ms: most(({ p99Ms }) => p99Ms),
      cpuMsPerRequest: mean(({ cpuMsPerRequest }) => cpuMsPerRequest),
      cpuMsPerRequestNet: mean(({ cpuMsPerRequestNet }) => cpuMsPerRequestNet),
      cpuByProcess: Object.fromEntries(byProcess),
      residentMegabytes: most(({ residentMegabytes }) => residentMegabytes),
    };
  });
}
