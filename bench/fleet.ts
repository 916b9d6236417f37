/**
 * Load on any Kubernetes API, ours or another, in two parts:
 *
 *   requests  One kind of request at a time (fleet-requests.ts): CPU per request, latencies, memory.
 *   machines  A fleet of simulated machines: a registration storm, steady heartbeats, the silence of some machines, and
 *             their recovery. A watch reports the state of the Nodes.
 *
 * Results are counted at the client, from the start of each request: a wait for a free connection is part of a latency.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type ApiRequest, createApiClient, type SendRequest } from '../demo/fleet/api-client.ts';
import { type Fleet, startFleet } from '../demo/fleet/fleet.ts';
import type { KubeNode } from '../shared/kinds/types.ts';
import type { KubeAccess } from '../test/support/kubeconfig.ts';
import { type Benchmark, percentile, type Report, rounded, secondsUntil } from './benchmark.ts';
import { FLEET_USAGE, type FleetBenchOptions, readFleetOptions } from './fleet-options.ts';
import { measureRounds } from './fleet-rounds.ts';
import { type FleetFigures, fleetTable } from './fleet-table.ts';
import { startLocalHost } from './local-host.ts';
import { watchNodes } from './node-watch.ts';
import { cpuUseOf } from './process-cpu.ts';
import { startServeHost } from './serve-host.ts';

const LEASE_SECONDS_PER_BEAT = 4;
const REGISTRATION_LIMIT_MS = 600_000;
const ANSWER_LIMIT_MS = 10_000;
const UNREACHABLE = 'node.kubernetes.io/unreachable';

export const fleet: Benchmark = {
  name: 'fleet',
  about: 'CPU, memory and latency per kind of request, then a simulated fleet: nodekeeper serve, or any Kubernetes API',
  usage: FLEET_USAGE,
  smallest: [
    ...['--nodes', '3', '--seconds', '1', '--silent', '0', '--beat', '1', '--lists', '1'],
    ...['--rate', '5', '--rated-seconds', '1', '--rounds', '1', '--warm-up', 'off'],
  ],
  startsLocalMode: true,
  onlyByName: true,
  run: (report, words) => measureFleet(report, readFleetOptions(words)),
};

export async function measureFleet(report: Report, options: FleetBenchOptions): Promise<void> {
  const local = options.target === undefined ? await startHome(options) : undefined;
  try {
    if (options.of !== 'machines') await measureEachRequest(report, options, local);
    if (options.of !== 'requests') await measure(report, options, local);
  } finally {
    await local?.stop();
  }
}

/** A cluster that the benchmark started. As simulated machines: what machines write has no line in the audit log. */
interface StartedHome {
  readonly pid: number;
  readonly fleet: KubeAccess;
  stop(): Promise<void>;
}

async function startHome({ home, awsLimits }: FleetBenchOptions): Promise<StartedHome> {
  if (home === 'serve') return startServeHost();
  const local = await startLocalHost({ awsLimits });
  return { ...local, fleet: { url: local.url, ca: local.ca, token: local.fleetToken } };
}

const accessOf = ({ target }: FleetBenchOptions, local: StartedHome | undefined): KubeAccess =>
  local === undefined ? target! : local.fleet;

async function measureEachRequest(
  report: Report,
  options: FleetBenchOptions,
  local: StartedHome | undefined,
): Promise<void> {
  const { label, peer, nodes, lists, connections, rounds, warmUp, beatsPerSecond, ratedSeconds } = options;
  const pids = local === undefined ? options.pids : [local.pid, ...options.pids];
  const servers = [{ label, access: accessOf(options, local), pids }, ...(peer === undefined ? [] : [peer])];
  const rated = { beatsPerSecond, beatSeconds: ratedSeconds };
  const figures = await measureRounds(servers, { nodes, lists, connections, rounds, warmUp, ...rated }, report);
  console.error(`\n${fleetTable(keepFigures(options, figures))}\n`);
}

/** Figures of this run, and those of other servers in the same file. */
function keepFigures({ figuresFile }: FleetBenchOptions, measured: FleetFigures): FleetFigures {
  if (figuresFile === undefined) return measured;
  const before = existsSync(figuresFile) ? (JSON.parse(readFileSync(figuresFile, 'utf8')) as FleetFigures) : {};
  const figures = { ...before, ...measured };
  writeFileSync(figuresFile, `${JSON.stringify(figures, undefined, 2)}\n`);
  return figures;
}

interface Sample {
  readonly what: string;
  readonly ms: number;
  /** HTTP status, or why there was no answer. */
  readonly outcome: string;
}

async function measure(report: Report, options: FleetBenchOptions, local: StartedHome | undefined): Promise<void> {
  const { url, ca, token } = accessOf(options, local);
  const pids = local === undefined ? options.pids : [local.pid, ...options.pids];
  const client = createApiClient({
    url,
    token,
    ...(ca === undefined ? {} : { ca }),
    connectionsMax: options.connections,
    timeoutMs: ANSWER_LIMIT_MS,
  });
  let samples: Sample[] = [];
  const send: SendRequest = async (request) => {
    const startedMs = performance.now();
    const answer = await client.send(request);
    const outcome =
      answer.kind === 'answered'
        ? String(answer.status)
        : ((answer.cause as NodeJS.ErrnoException | undefined)?.code ?? (answer.cause as Error).message);
    samples.push({ what: nameOf(request), ms: performance.now() - startedMs, outcome });
    return answer;
  };
  const tellPhase = phaseTeller(report, pids, () => {
    const taken = samples;
    samples = [];
    return taken;
  });

  const seen = new Map<string, Seen>();
  let silenced: ReadonlySet<string> = new Set();
  let falseMarks = 0;
  const watch = await watchNodes({ url, ca, token }, (node, kind) => {
    const name = node.metadata.name ?? '';
    if (kind === 'deleted') seen.delete(name);
    else if (note(seen, node, Date.now()) === 'unknown' && !silenced.has(name)) falseMarks += 1;
  });
  let machines: Fleet | undefined;
  try {
    tellPhase.begin();
    machines = startFleet({
      url,
      token,
      nodes: options.nodes,
      zones: Array.from({ length: options.zones }, (_, index) => `zone-${index + 1}`),
      beatIntervalSeconds: options.beatSeconds,
      leaseDurationSeconds: LEASE_SECONDS_PER_BEAT * options.beatSeconds,
      followsProfile: false,
      send,
    });
    const running = machines;
    const names = running.list().map(({ name }) => name);
    const isReady = (name: string): boolean => seen.get(name)?.ready === 'True';
    // The request that makes a Node Ready reports it: the storm lasts until every machine sent a heartbeat and a
    // status.
    const hasBegun = (): boolean =>
      running.status().statusPosts >= names.length &&
      running.list().every(({ lastBeatAtMs }) => lastBeatAtMs !== undefined);
    const untilReady = await secondsUntil(() => names.every(isReady) && hasBegun(), REGISTRATION_LIMIT_MS);
    tellPhase.end('registration storm', { nodes: options.nodes, allReadySeconds: untilReady });

    tellPhase.begin();
    await pause(options.seconds * 1_000);
    tellPhase.end('steady', { beating: running.status().beating, failedTurns: running.status().failedTurns });

    if (options.silent > 0) {
      await measureSilence(report, options, { running, names, seen, tellPhase }, (now) => {
        silenced = now;
      });
    }
    const { registrations, beats, statusPosts, conflicts, failedTurns } = running.status();
    report({ part: 'sum', registrations, beats, statusPosts, conflicts, failedTurns, falseMarks });
    for (const [why, times] of watch.ends) report({ part: 'watch ended', why, times });
  } finally {
    watch.stop();
    await machines?.stop();
    client.close();
  }
}

interface Seen {
  ready: string;
  /** Since when it has been so, by our clock. */
  readyAtMs: number;
  /** When the NoExecute taint was first seen; undefined while there is none. */
  taintedAtMs: number | undefined;
  anyTaint: boolean;
}

/** Answers `unknown` when the Node has just become so. */
function note(seen: Map<string, Seen>, node: KubeNode, nowMs: number): 'unknown' | 'other' {
  const name = node.metadata.name ?? '';
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'absent';
  const taints = node.spec?.taints ?? [];
  const tainted = taints.some(({ key, effect }) => key === UNREACHABLE && effect === 'NoExecute');
  const before = seen.get(name);
  const changed = before?.ready !== ready;
  seen.set(name, {
    ready,
    readyAtMs: changed ? nowMs : before.readyAtMs,
    taintedAtMs: tainted ? (before?.taintedAtMs ?? nowMs) : undefined,
    anyTaint: taints.some(({ key }) => key.startsWith('node.kubernetes.io/')),
  });
  return changed && ready === 'Unknown' && before !== undefined ? 'unknown' : 'other';
}

async function measureSilence(
  report: Report,
  options: FleetBenchOptions,
  at: {
    readonly running: Fleet;
    readonly names: readonly string[];
    readonly seen: ReadonlyMap<string, Seen>;
    readonly tellPhase: PhaseTeller;
  },
  setSilenced: (names: ReadonlySet<string>) => void,
): Promise<void> {
  const { running, names, seen, tellPhase } = at;
  const silent = names.slice(0, options.silent);
  const limitMs = options.waitSeconds * 1_000;
  tellPhase.begin();
  setSilenced(new Set(silent));
  running.silence(silent);
  const lastBeats = new Map(running.list().map(({ name, lastBeatAtMs }) => [name, lastBeatAtMs]));
  const isMarked = (name: string): boolean => seen.get(name)?.ready === 'Unknown';
  const isTainted = (name: string): boolean => seen.get(name)?.taintedAtMs !== undefined;
  await secondsUntil(() => silent.every((name) => isMarked(name) && isTainted(name)), limitMs);
  const sinceBeat = (name: string, atMs: number): number => (atMs - (lastBeats.get(name) ?? Number.NaN)) / 1_000;
  const marked = silent.filter(isMarked).map((name) => sinceBeat(name, seen.get(name)!.readyAtMs));
  const tainted = silent.filter(isTainted).map((name) => sinceBeat(name, seen.get(name)!.taintedAtMs!));
  tellPhase.end('silence', {
    silent: silent.length,
    marked: marked.length,
    markedP50Seconds: rounded(percentile(marked, 0.5)),
    markedMaxSeconds: rounded(percentile(marked, 1)),
    tainted: tainted.length,
    taintedP50Seconds: rounded(percentile(tainted, 0.5)),
    taintedMaxSeconds: rounded(percentile(tainted, 1)),
  });

  tellPhase.begin();
  const backAtMs = Date.now();
  running.beat(silent);
  const isBack = (name: string): boolean => seen.get(name)?.ready === 'True' && seen.get(name)?.anyTaint === false;
  const allBackSeconds = await secondsUntil(() => silent.every(isBack), limitMs);
  const ready = silent
    .filter((name) => seen.get(name)?.ready === 'True')
    .map((name) => Math.max(0, seen.get(name)!.readyAtMs - backAtMs) / 1_000);
  tellPhase.end('return', {
    silent: silent.length,
    back: silent.filter(isBack).length,
    readyP50Seconds: rounded(percentile(ready, 0.5)),
    readyMaxSeconds: rounded(percentile(ready, 1)),
    allBackSeconds,
  });
  setSilenced(new Set());
  if (allBackSeconds === undefined) report({ part: 'return', unfinished: true });
}

interface PhaseTeller {
  begin(): void;
  end(phase: string, figures: Readonly<Record<string, number | undefined>>): void;
}

function phaseTeller(report: Report, pids: readonly number[], take: () => readonly Sample[]): PhaseTeller {
  const cpuMs = (): number =>
    pids.reduce((sum, pid) => sum + [...cpuUseOf(pid).byThread.values()].reduce((all, ms) => all + ms, 0), 0);
  let startedMs = 0;
  let cpuBeforeMs = 0;
  return {
    begin() {
      take();
      startedMs = performance.now();
      cpuBeforeMs = cpuMs();
    },
    end(phase, figures) {
      const seconds = (performance.now() - startedMs) / 1_000;
      const serverMs = cpuMs() - cpuBeforeMs;
      const samples = take();
      report({
        phase,
        seconds: rounded(seconds),
        ...figures,
        requests: samples.length,
        requestsPerSecond: rounded(samples.length / seconds),
        ...(pids.length === 0
          ? {}
          : {
              serverCpuSeconds: rounded(serverMs / 1_000),
              serverCores: rounded(serverMs / 1_000 / seconds),
              serverCpuMsPerRequest: rounded(serverMs / samples.length),
            }),
      });
      const kinds = new Map<string, Sample[]>();
      for (const sample of samples) kinds.set(sample.what, [...(kinds.get(sample.what) ?? []), sample]);
      for (const [what, of] of kinds) {
        const times = of.map(({ ms }) => ms);
        const outcomes: Record<string, number> = {};
        for (const { outcome } of of) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        report({
          phase,
          request: what,
          count: of.length,
          perSecond: rounded(of.length / seconds),
          p50Ms: rounded(percentile(times, 0.5)),
          p99Ms: rounded(percentile(times, 0.99)),
          ...Object.fromEntries(Object.entries(outcomes).map(([outcome, count]) => [`answers:${outcome}`, count])),
        });
      }
    },
  };
}

/** `PUT leases`, `POST nodes`, `PATCH nodes/status`: without names. */
function nameOf({ method, path }: ApiRequest): string {
  const [, resource, subresource] = /\/(nodes|leases|pods)(?:\/[^/?]+)?(?:\/([a-z]+))?(?:\?|$)/.exec(path) ?? [];
  return `${method} ${resource ?? path}${subresource === undefined ? '' : `/${subresource}`}`;
}
