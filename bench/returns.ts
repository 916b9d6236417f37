/**
 * Up to 10,000 machines that appear or return in one second, on virtual time: how long until all are Ready, and what limits
 * it. The real API and heartbeat code serves them over tables in memory. Requests to the tables need time, and transactions
 * that overlap conflict as in DynamoDB. The API has a limited number of environments, each with one request at a time.
 *
 *   appear   POST Node, POST Lease, PATCH status with Ready
 *   return   nodes that are marked Unknown: PATCH Lease, PATCH status with Ready
 *
 * Streams are left out: they change nothing that makes a node Ready. `storm` has the agent's own loops.
 */
import { createHash } from 'node:crypto';
import { doublingWaitMs, REGISTRATION_WAITS, retryAfterWaitMs } from '../agent/rules/backoff.ts';
import { gzip } from '../shared/adapters/gzip/gzip.ts';
import { conflictingStore } from '../shared/adapters/memory/conflicting-store.ts';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { readYaml } from '../shared/adapters/yaml/read-yaml.ts';
import { composeApi } from '../shared/api/compose.ts';
import { fleetControllers } from '../shared/controllers/index.ts';
import { admitRequest } from '../shared/domain/access/request-limit.ts';
import { defaultPolicy } from '../shared/domain/policy.ts';
import { slotOf } from '../shared/domain/tick.ts';
import { ZONE_LABEL } from '../shared/domain/zones/zone.ts';
import { serveHeartbeat } from '../shared/heartbeat/renew-lease.ts';
import { formatTime } from '../shared/kube/time.ts';
import type { HttpRequest, HttpResponse } from '../shared/ports/http.ts';
import { scanHealth } from '../shared/store/health-store.ts';
import { headersOf, simulationAuthenticator } from '../simulation/access.ts';
import { seededFraction, seededUuid } from '../simulation/seeded-random.ts';
import { type Benchmark, percentile, type Report, readOptions, rounded, UsageError, wholeNumber } from './benchmark.ts';
import { delayed } from './delayed-store.ts';
import { type StormTime, stormTime } from './storm-time.ts';

const START_MS = Date.UTC(2026, 0, 1);
const SEED = 4_023;
const ZONES = 4;
const TRANSACTION_MS = 10;
/** CPU of one request to the API. */
const REQUEST_CPU_MS = 5;
const SPREAD_MS = 1_000;
/** Until the bench gives up. */
const SECONDS_MAX = 300;
/** Attempts at one request. */
const ATTEMPTS_MAX = 60;
const PERIOD_MS = defaultPolicy.nodeMonitorPeriodSeconds * 1_000;
const BEAT_MS = defaultPolicy.beatIntervalSeconds * 1_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const NODES = '/api/v1/nodes';

export const returns: Benchmark = {
  name: 'returns',
  about:
    'machines that appear or return in one second: time until all are Ready, units, refusals, conflicts (virtual time)',
  usage: '[--nodes 10000] [--environments 100] [--rate 2000] [--of appear|return]',
  onlyByName: true,
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { nodes: text, environments: text, rate: text, of: text });
    const { of } = values;
    if (of !== undefined && of !== 'appear' && of !== 'return') throw new UsageError('--of expects appear or return');
    const nodes = wholeNumber('nodes', values.nodes, { least: 1, most: 100_000, otherwise: 10_000 });
    const environments = wholeNumber('environments', values.environments, { least: 1, most: 10_000, otherwise: 100 });
    const rate = wholeNumber('rate', values.rate, { least: 1, most: 1_000_000, otherwise: 2_000 });
    for (const kind of ['appear', 'return'] as const) {
      if (of === undefined || of === kind) await measure(report, kind, { nodes, environments, rate });
    }
  },
};

interface Options {
  readonly nodes: number;
  readonly environments: number;
  /** Requests per second that the HTTP API accepts besides heartbeats. */
  readonly rate: number;
}

type Serve = (request: HttpRequest) => Promise<HttpResponse>;
type Answers = Record<number, number>;

async function measure(report: Report, kind: 'appear' | 'return', options: Options): Promise<void> {
  const time = stormTime(START_MS);
  const fraction = seededFraction(SEED);
  const units = { writeUnits: 0 };
  const tables = memoryItemStore({
    onConsumed: ({ writeUnits }) => {
      units.writeUnits += writeUnits;
    },
  });
  const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
  const conflicting = conflictingStore(tables, { transactionMs: TRANSACTION_MS, pause, random: fraction });
  const items = delayed(conflicting, time);
  const random = { fraction, uuid: () => seededUuid(fraction) };
  const policy = { ...defaultPolicy, ingestGate: 'off' } as const;
  const errors: string[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  const shared = { items, clock: time, random, pause, policy, log };
  const authenticator = simulationAuthenticator;
  const hash = (value: string): string => createHash('sha256').update(value).digest('hex');
  const api = environmentsOf(options.environments, time, () =>
    composeApi({ ...shared, authenticator, hash, readYaml, gzip }),
  );
  const heartbeat = serveHeartbeat({ items, authenticator, clock: time, random, log });
  const answers: Answers = {};
  const front = throttled(api.serve, options.rate, time);
  const sendAs = machineRequests({ time, fraction, front, heartbeat, answers });
  const monitor = fleetControllers({ ...shared, meter: { add() {} } });
  let falseMarks = 0;
  const tick = (): void => {
    void monitor
      .tickNodeMonitor(slotOf(time.nowMs(), policy.nodeMonitorPeriodSeconds))
      .then((outcome) => {
        falseMarks += outcome.kind === 'ran' ? outcome.marked : 0;
      })
      .catch((fault: unknown) => errors.push(String(fault)));
  };

  const names = Array.from({ length: options.nodes }, (_, index) => `edge-${index}`);
  if (kind === 'return') {
    await settle(time, { names, sendAs, tick });
    falseMarks = 0;
  }
  Object.assign(units, { writeUnits: 0 });
  for (const status of Object.keys(answers)) delete answers[Number(status)];
  const before = { ...conflicting.counters };
  const beganAtMs = time.nowMs();
  const readyAfterMs: number[] = [];
  for (const name of names) {
    void time.sleep(SPREAD_MS * fraction()).then(async () => {
      const send = sendAs(name);
      if (kind === 'appear') await register(send, name, time);
      else await beat(send, name, time);
      await postReady(send, name, time);
      readyAfterMs.push(time.nowMs() - beganAtMs);
      keepBeating(send, name, time, beganAtMs + SECONDS_MAX * 1_000);
    });
  }
  const cpu = process.cpuUsage();
  for (let second = 1; second <= SECONDS_MAX && readyAfterMs.length < options.nodes; second += 1) {
    await time.passUntil(beganAtMs + second * 1_000);
    if ((time.nowMs() - START_MS) % PERIOD_MS === 0) tick();
  }
  const { user, system } = process.cpuUsage(cpu);
  const seconds = readyAfterMs.map((each) => each / 1_000);
  const all = await scanHealth(tables, { consistent: true });
  report({
    of: kind,
    ...options,
    ready: all.filter(({ ready }) => ready === 'True').length,
    readyP50Seconds: rounded(percentile(seconds, 0.5)),
    readyP99Seconds: rounded(percentile(seconds, 0.99)),
    allReadySeconds: rounded(percentile(seconds, 1)),
    ...Object.fromEntries(Object.entries(answers).map(([status, count]) => [`answered${status}`, count])),
    transactions: conflicting.counters.transactions - before.transactions,
    conflicts: conflicting.counters.conflicts - before.conflicts,
    writeUnitsPerNode: rounded(units.writeUnits / options.nodes),
    environmentsBusyMost: api.mostAtOnce(),
    falseMarks,
    errors: errors.length,
    ...(errors[0] === undefined ? {} : { firstError: errors[0] }),
    cpuMsPerNode: rounded((user + system) / 1_000 / options.nodes),
  });
}

/** Registered, Ready, silent for longer than the grace period, and marked. */
async function settle(
  time: StormTime,
  of: { readonly names: readonly string[]; readonly sendAs: (name: string) => Send; readonly tick: () => void },
): Promise<void> {
  let left = of.names.length;
  for (const [index, name] of of.names.entries()) {
    void time.sleep(index * 5).then(async () => {
      const send = of.sendAs(name);
      await register(send, name, time);
      await postReady(send, name, time);
      left -= 1;
    });
  }
  const untilMs = START_MS + 1_000 * SECONDS_MAX;
  for (let quietMs = 0; quietMs < 120_000 && time.nowMs() < untilMs; quietMs += left === 0 ? PERIOD_MS : 0) {
    await time.passUntil(time.nowMs() + PERIOD_MS);
    of.tick();
  }
  await time.passUntil(time.nowMs() + PERIOD_MS);
}

type Send = (method: string, path: string, body: object, contentType?: string) => Promise<void>;

const nodeOf = (name: string, time: StormTime, ready: 'True' | 'False') => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { [ZONE_LABEL]: `zone-${Number(name.split('-')[1]) % ZONES}` } },
  status: statusOf(time, ready),
});

const statusOf = (time: StormTime, ready: 'True' | 'False') => ({
  conditions: [
    {
      type: 'Ready',
      status: ready,
      lastHeartbeatTime: formatTime(time.nowMs()),
      lastTransitionTime: formatTime(time.nowMs()),
      reason: 'Kubelet',
      message: '',
    },
  ],
});

const leaseOf = (name: string, time: StormTime) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace: 'kube-node-lease' },
  spec: {
    holderIdentity: name,
    leaseDurationSeconds: 40,
    renewTime: `${formatTime(time.nowMs()).slice(0, -1)}.000000Z`,
  },
});

async function register(send: Send, name: string, time: StormTime): Promise<void> {
  await send('POST', NODES, nodeOf(name, time, 'False'));
  await send('POST', LEASES, leaseOf(name, time));
}

const beat = (send: Send, name: string, time: StormTime): Promise<void> =>
  send('PATCH', `${LEASES}/${name}`, { spec: leaseOf(name, time).spec }, 'application/merge-patch+json');

const postReady = (send: Send, name: string, time: StormTime): Promise<void> =>
  send(
    'PATCH',
    `${NODES}/${name}/status`,
    { status: statusOf(time, 'True') },
    'application/strategic-merge-patch+json',
  );

function keepBeating(send: Send, name: string, time: StormTime, untilMs: number): void {
  void time.sleep(BEAT_MS).then(async () => {
    if (time.nowMs() >= untilMs) return;
    await beat(send, name, time);
    keepBeating(send, name, time, untilMs);
  });
}

/** Requests of a machine, repeated with the agent's waits until they succeed. */
function machineRequests(of: {
  readonly time: StormTime;
  readonly fraction: () => number;
  readonly front: Serve;
  readonly heartbeat: Serve;
  readonly answers: Answers;
}): (name: string) => Send {
  const { time, fraction, answers } = of;
  return (name) => async (method, path, body, contentType) => {
    const isBeat = method === 'PATCH' && path.startsWith(LEASES);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const response = await (isBeat ? of.heartbeat : of.front)({
        method,
        path,
        query: new URLSearchParams(),
        headers: { ...headersOf(name), 'content-type': contentType ?? 'application/json' },
        body: Buffer.from(JSON.stringify(body)),
        sourceIp: '192.0.2.1',
      });
      const { status } = response;
      answers[status] = (answers[status] ?? 0) + 1;
      // A repeated POST finds what the first one created.
      if (status < 300 || (status === 409 && method === 'POST')) return;
      const seconds = Number(response.headers['retry-after'] ?? response.headers['Retry-After']);
      const asked = Number.isFinite(seconds) ? { status, retryAfterMs: seconds * 1_000 } : { status };
      await time.sleep(retryAfterWaitMs(asked, fraction()) || doublingWaitMs(REGISTRATION_WAITS, attempt));
    }
    throw new Error(`${method} ${path} never succeeded`);
  };
}

/** The throttle of the HTTP API for all requests but heartbeats. */
function throttled(serve: Serve, ratePerSecond: number, time: StormTime): Serve {
  let fullAtMs: number | undefined;
  return async (request) => {
    const admission = admitRequest(fullAtMs, time.nowMs(), { ratePerSecond, burst: ratePerSecond });
    if (admission.kind === 'refused') return { status: 429, headers: {}, body: '' };
    fullAtMs = admission.fullAtMs;
    return serve(request);
  };
}

/** Execution environments. When all are busy Lambda refuses, and the HTTP API answers 503. */
function environmentsOf(most: number, time: StormTime, compose: () => Serve) {
  const idle: Serve[] = [];
  let started = 0;
  return {
    mostAtOnce: () => started,
    async serve(request: HttpRequest): Promise<HttpResponse> {
      let environment = idle.pop();
      if (environment === undefined) {
        if (started === most) return { status: 503, headers: {}, body: '' };
        started += 1;
        environment = compose();
      }
      try {
        await time.sleep(REQUEST_CPU_MS);
        return await environment(request);
      } finally {
        idle.push(environment);
      }
    },
  };
}
