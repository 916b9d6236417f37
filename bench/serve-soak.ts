/**
 * `nodekeeper serve` for hours at a steady load: heartbeats of simulated machines, and pods that are created,
 * scheduled, changed and deleted, while a watch follows the Nodes. Per interval: memory, size of the write-ahead log
 * and of the file, delay of the event loop (p99 of the interval), and how many requests have failed so far. At the
 * end: the slope of memory over the second half, and marks of machines that were never silent (0 is right).
 */
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { SendRequest } from '../demo/fleet/api-client.ts';
import { startFleet } from '../demo/fleet/fleet.ts';
import { apiClientOf } from '../test/support/kubeconfig.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  secondsUntil,
  wholeNumber,
} from './benchmark.ts';
import { watchNodes } from './node-watch.ts';
import { processesBelow } from './process-cpu.ts';
import { startServeHost } from './serve-host.ts';
import { slopeOf } from './slope.ts';

const ANSWER_LIMIT_MS = 10_000;
const REGISTRATION_LIMIT_MS = 600_000;
const PODS_PATH = '/api/v1/namespaces/default/pods';
/** Requests for pods that may be unanswered at once; more are skipped, and counted. */
const OPEN_REQUESTS_MAX = 64;

interface SoakOptions {
  readonly seconds: number;
  readonly nodes: number;
  readonly beatSeconds: number;
  readonly podChangesPerSecond: number;
  readonly pods: number;
  readonly everySeconds: number;
}

export const serveSoak: Benchmark = {
  name: 'serve-soak',
  about:
    'nodekeeper serve for hours under heartbeats and pod changes: memory, write-ahead log, delay of the event loop',
  usage: '[--seconds 7200] [--nodes 500] [--beat 1] [--pod-changes 50 PER SECOND] [--pods 500] [--every 60]',
  smallest: ['--seconds', '2', '--nodes', '2', '--pod-changes', '5', '--pods', '3', '--every', '1'],
  onlyByName: true,
  run(report, words) {
    const text = { type: 'string' } as const;
    const shapes = { seconds: text, nodes: text, beat: text, 'pod-changes': text, pods: text, every: text };
    const values = readOptions(words, shapes);
    const whole = (name: keyof typeof shapes, most: number, otherwise: number): number =>
      wholeNumber(name, values[name], { least: 1, most, otherwise });
    return measure(report, {
      seconds: whole('seconds', 1_000_000, 7_200),
      nodes: whole('nodes', 10_000, 500),
      beatSeconds: whole('beat', 10, 1),
      podChangesPerSecond: whole('pod-changes', 1_000, 50),
      pods: whole('pods', 100_000, 500),
      everySeconds: whole('every', 3_600, 60),
    });
  },
};

async function measure(report: Report, options: SoakOptions): Promise<void> {
  const { seconds, nodes, beatSeconds, everySeconds } = options;
  const host = await startServeHost();
  const failures = new Map<string, number>();
  const failureCount = (): number => [...failures.values()].reduce((sum, count) => sum + count, 0);
  const client = apiClientOf(host.access, { connectionsMax: 16, timeoutMs: ANSWER_LIMIT_MS });
  const machines = apiClientOf(host.fleet, { connectionsMax: 32, timeoutMs: ANSWER_LIMIT_MS });
  const beatMs: number[] = [];
  const counted =
    (send: SendRequest): SendRequest =>
    async (request) => {
      const startedMs = performance.now();
      const answer = await send(request);
      if (request.method === 'PUT') beatMs.push(performance.now() - startedMs);
      if (answer.kind !== 'answered' || (answer.status >= 300 && answer.status !== 404)) {
        const came = answer.kind === 'answered' ? String(answer.status) : (answer.cause as Error).message;
        const what = `${request.method} ${/\/(nodes|leases|pods)/.exec(request.path)?.[1] ?? request.path}: ${came}`;
        failures.set(what, (failures.get(what) ?? 0) + 1);
      }
      return answer;
    };
  let falseMarks = 0;
  const ready = new Map<string, string | undefined>();
  const watch = await watchNodes(host.access, (node) => {
    const name = node.metadata.name ?? '';
    const now = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    if (now === 'Unknown' && ready.get(name) === 'True') falseMarks += 1;
    ready.set(name, now);
  });
  const { url, token } = host.fleet;
  const fleet = startFleet({
    ...{ url, token, nodes },
    beatIntervalSeconds: beatSeconds,
    leaseDurationSeconds: 40,
    followsProfile: false,
    send: counted(machines.send),
  });
  const pods = new PodChanges(counted(client.send), options.pods);
  try {
    const isReady = (): boolean => fleet.list().every(({ name }) => ready.get(name) === 'True');
    report({ part: 'registered', nodes, seconds: await secondsUntil(isReady, REGISTRATION_LIMIT_MS) });
    const residents: (readonly [hours: number, megabytes: number])[] = [];
    const startedMs = performance.now();
    let cpuBeforeMs = cpuMsOf(host.pid);
    let beatsBefore = fleet.status().beats;
    await readMetrics(client.send);
    for (let nextMs = startedMs; nextMs < startedMs + seconds * 1_000; ) {
      nextMs += everySeconds * 1_000;
      beatMs.length = 0;
      const changesBefore = pods.changes;
      await pods.changeUntil(nextMs, options.podChangesPerSecond);
      const read = await readMetrics(client.send);
      const cpuMs = cpuMsOf(host.pid);
      const { beats } = fleet.status();
      const residentMegabytes = (read.get('process_resident_memory_bytes') ?? Number.NaN) / 1_048_576;
      residents.push([(performance.now() - startedMs) / 3_600_000, residentMegabytes]);
      report({
        part: 'interval',
        minute: rounded((performance.now() - startedMs) / 60_000),
        beatsPerSecond: rounded((beats - beatsBefore) / everySeconds),
        podChangesPerSecond: rounded((pods.changes - changesBefore) / everySeconds),
        beatP50Ms: rounded(percentile(beatMs, 0.5)),
        beatP99Ms: rounded(percentile(beatMs, 0.99)),
        eventLoopDelayP99Ms: rounded((read.get('nodekeeper_event_loop_delay_seconds') ?? Number.NaN) * 1_000),
        eventLoopDelayMaxMs: rounded((read.get('nodekeeper_event_loop_delay_max_seconds') ?? Number.NaN) * 1_000),
        residentMegabytes: rounded(residentMegabytes),
        anonymousMegabytes: rounded(anonymousMegabytesOf(host.pid)),
        logMegabytes: rounded((read.get('nodekeeper_store_log_bytes') ?? Number.NaN) / 1_048_576),
        fileMegabytes: rounded((read.get('nodekeeper_store_file_bytes') ?? Number.NaN) / 1_048_576),
        failures: failureCount(),
        pendingChanges: read.get('nodekeeper_pending_changes'),
        serverCores: rounded((cpuMs - cpuBeforeMs) / 1_000 / everySeconds),
      });
      cpuBeforeMs = cpuMs;
      beatsBefore = beats;
    }
    const warm = residents.slice(Math.floor(residents.length / 2));
    report({
      part: 'sum',
      minutes: rounded((performance.now() - startedMs) / 60_000),
      beats: fleet.status().beats,
      podChanges: pods.changes,
      skippedPodChanges: pods.skipped,
      failures: failureCount(),
      falseMarks,
      mostMegabytes: rounded(Math.max(...residents.map(([, megabytes]) => megabytes))),
      // The slope of the second half: the first half fills caches.
      slopeMegabytesPerHour: warm.length < 3 ? undefined : rounded(slopeOf(warm)),
    });
    for (const [what, count] of failures) report({ part: 'failed', what, count });
    for (const [why, times] of watch.ends) report({ part: 'watch ended', why, times });
  } finally {
    watch.stop();
    await fleet.stop();
    machines.close();
    client.close();
    await host.stop();
  }
}

/** Creates, changes and deletes pods in turn; the scheduler binds them. Holds their number at `podsMax`. */
class PodChanges {
  readonly #send: SendRequest;
  readonly #podsMax: number;
  readonly #names: string[] = [];
  #made = 0;
  #open = 0;
  changes = 0;
  skipped = 0;

  constructor(send: SendRequest, podsMax: number) {
    this.#send = send;
    this.#podsMax = podsMax;
  }

  async changeUntil(endMs: number, perSecond: number): Promise<void> {
    let nextMs = performance.now();
    while (nextMs < endMs) {
      const waitMs = nextMs - performance.now();
      if (waitMs > 0) await pause(waitMs);
      nextMs += 1_000 / perSecond;
      if (this.#open < OPEN_REQUESTS_MAX) void this.#changeOne();
      else this.skipped += 1;
    }
  }

  async #changeOne(): Promise<void> {
    this.#open += 1;
    this.changes += 1;
    try {
      if (this.changes % 3 === 1 && this.#names.length > 0) {
        const path = `${PODS_PATH}/${this.#names[this.changes % this.#names.length]}`;
        const body = { metadata: { annotations: { change: String(this.changes) } } };
        await this.#send({ method: 'PATCH', path, body, contentType: 'application/merge-patch+json' });
      } else if (this.#names.length < this.#podsMax) {
        this.#made += 1;
        const name = `soak-${this.#made}`;
        const containers = [{ name: 'main', image: 'registry.invalid/main:1' }];
        const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers } };
        await this.#send({ method: 'POST', path: PODS_PATH, body });
        this.#names.push(name);
      } else {
        const path = `${PODS_PATH}/${this.#names.shift()}`;
        await this.#send({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } });
      }
    } finally {
      this.#open -= 1;
    }
  }
}

/** The process's own metrics, those without labels. */
async function readMetrics(send: SendRequest): Promise<ReadonlyMap<string, number>> {
  const answer = await send({ method: 'GET', path: '/metrics' });
  if (answer.kind !== 'answered' || answer.status !== 200) throw new Error('the metrics were not answered');
  return new Map(
    [...String(answer.body).matchAll(/^(\w+) ([\d.e+-]+)$/gm)].map(([, name = '', value]) => [name, Number(value)]),
  );
}

const cpuMsOf = (pid: number): number => processesBelow([pid]).reduce((sum, { cpuMs }) => sum + cpuMs, 0);

const anonymousMegabytesOf = (pid: number): number =>
  Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN) / 1_024;
