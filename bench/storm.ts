/**
 * Thousands of agents back at once, on virtual time: the agent's own loops and waits, the real API and heartbeat with
 * their limits for each identity, the real controllers and streams, over tables in memory; before them an HTTP API that
 * accepts as many requests per second as the template allows, and answers 429 to the rest. In the server only
 * transactions need time. They conflict as in DynamoDB. The API has an environment per concurrent request, as in
 * Lambda: commits of two environments on one head of the change log cancel each other. Ticks and streams are one
 * process.
 *
 * Two outages. `path`: nothing gets through, for anybody, our probes included; machines go on trying. `power`: machines
 * are off and start again in the same second, every one of them.
 */
import type { KubeAnswer, KubeApi } from '../agent/ports/kube-api.ts';
import { admitRequest } from '../shared/access/request-throttle.ts';
import { scanHealth } from '../shared/fleet/nodes/health-store.ts';
import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/http.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { slotOf } from '../shared/ticks/tick.ts';
import { headersOf } from '../simulation/access.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { createStreams } from '../simulation/streams.ts';
import { conflictingStore } from '../test/support/conflicting-store.ts';
import { type Benchmark, percentile, type Report, readOptions, rounded, UsageError, wholeNumber } from './benchmark.ts';
import { type StormAgent, startAgent } from './storm-agent.ts';
import { stormTime } from './storm-time.ts';
import { apiOf, controllersOf, heartbeatOf, type SystemOptions } from './system.ts';

const START_MS = Date.UTC(2026, 0, 1);
const SEED = 31_337;
const ZONES = 4;
/** One way, at random in between. */
const WAY_MS = [10, 40] as const;
const LEASE = /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases\/[^/]+$/;
/** Machines are started over so long at first; then everything settles. */
const START_SPREAD_MS = 30_000;
const SETTLED_MS = 90_000;
/** Machines that start again do so within a second. */
const RESTART_SPREAD_MS = 1_000;
/** An interval of beats. */
const STEADY_SECONDS = 10;
const STEADY_OVER = 1.25;
const WATCHED_SECONDS = 300;
const TRANSACTION_MS = 10;

interface StormOptions {
  readonly nodes: number;
  readonly outageSeconds: number;
  readonly rate: number;
  readonly burst: number;
  /** What the HTTP API asks those it refuses to wait; 0: it says nothing, as API Gateway. */
  readonly retryAfterSeconds: number;
  /** How long a transaction is in progress. Milliseconds. */
  readonly transactionMs: number;
}

export const storm: Benchmark = {
  name: 'storm',
  about:
    '10,000 agents back at once after an outage of ours or of theirs: requests, refusals, false marks, time to steady',
  usage:
    '[--nodes 10000] [--outage SECONDS] [--rate 2000] [--burst 4000] [--retry-after SECONDS] ' +
    '[--transaction-ms 10] [--of path|power]',
  onlyByName: true,
  smallest: ['--nodes', '5', '--outage', '10', '--of', 'power'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, {
      nodes: text,
      outage: text,
      rate: text,
      burst: text,
      'retry-after': text,
      'transaction-ms': text,
      of: text,
    });
    const { of } = values;
    if (of !== undefined && of !== 'path' && of !== 'power') throw new UsageError('--of expects path or power');
    const whole = (name: keyof typeof values, least: number, most: number, otherwise: number): number =>
      wholeNumber(name, values[name], { least, most, otherwise });
    const options = {
      nodes: whole('nodes', 1, 100_000, 10_000),
      outageSeconds: whole('outage', 10, 3_600, 120),
      rate: whole('rate', 1, 1_000_000, 2_000),
      burst: whole('burst', 1, 1_000_000, 4_000),
      retryAfterSeconds: whole('retry-after', 0, 60, 0),
      transactionMs: whole('transaction-ms', 1, 1_000, TRANSACTION_MS),
    };
    for (const kind of ['path', 'power'] as const) {
      if (of === undefined || of === kind) await measureStorm(report, kind, options);
    }
  },
};

interface Second {
  requests: number;
  done: number;
  refusedByFront: number;
  refusedByIdentity: number;
  lost: number;
  /** The Node exists, or has another version: the agent reads it. */
  answered409: number;
  otherErrors: number;
}

const newSecond = (): Second => ({
  requests: 0,
  done: 0,
  refusedByFront: 0,
  refusedByIdentity: 0,
  lost: 0,
  answered409: 0,
  otherErrors: 0,
});

async function measureStorm(report: Report, kind: 'path' | 'power', options: StormOptions): Promise<void> {
  const { nodes, outageSeconds } = options;
  const cpu = process.cpuUsage();
  const time = stormTime(START_MS);
  const fraction = seededFraction(SEED);
  const seconds: Second[] = [];
  const second = (): Second => {
    const at = Math.floor((time.nowMs() - START_MS) / 1_000);
    while (seconds.length <= at) seconds.push(newSecond());
    return seconds[at]!;
  };
  const front = createFront(options, time);
  const errors: string[] = [];
  const cluster = createCluster(time, fraction, front, { errors, transactionMs: options.transactionMs });

  const agents: StormAgent[] = [];
  const begin = (index: number): void => {
    agents[index] = startAgent({
      nodeName: `edge-${index}`,
      labels: { [ZONE_LABEL]: `zone-${index % ZONES}` },
      api: connectionOf(`edge-${index}`, front, cluster, time, fraction, second),
      time,
      fraction,
    });
  };
  /** Each at its moment, in order. */
  const beginAll = (fromMs: number, spreadMs: number): void => {
    for (let index = 0; index < nodes; index += 1) {
      void time.sleep(fromMs - time.nowMs() + spreadMs * fraction()).then(() => begin(index));
    }
  };

  let marked = 0;
  const pass = async (untilMs: number, eachSecond: () => Promise<boolean> = async () => false): Promise<void> => {
    for (let nowMs = time.nowMs() + 1_000; nowMs <= untilMs; nowMs += 1_000) {
      await time.passUntil(nowMs);
      marked += cluster.work();
      if (await eachSecond()) return;
    }
  };

  beginAll(START_MS, START_SPREAD_MS);
  await pass(START_MS + SETTLED_MS);
  const before = await cluster.standing();
  if (before.ready !== nodes) throw new Error(`${before.ready} of ${nodes} nodes are Ready before the outage`);
  const steady = seconds.slice(-2 * STEADY_SECONDS);
  const steadyPerSecond = steady.reduce((sum, each) => sum + each.requests, 0) / steady.length;

  marked = 0;
  const outageAtMs = time.nowMs();
  if (kind === 'path') front.down = true;
  else for (const agent of agents) agent.stop();
  await pass(outageAtMs + outageSeconds * 1_000);
  const markedInOutage = marked;
  marked = 0;
  const backAtMs = time.nowMs();
  const contentionBefore = cluster.contention();
  const backSecond = Math.floor((backAtMs - START_MS) / 1_000);
  front.down = false;
  if (kind === 'power') beginAll(backAtMs, RESTART_SPREAD_MS);
  let allReadySeconds: number | undefined;
  await pass(backAtMs + WATCHED_SECONDS * 1_000, async () => {
    const now = (time.nowMs() - backAtMs) / 1_000;
    if (allReadySeconds === undefined) {
      const { ready, free } = await cluster.standing();
      if (ready === nodes && free === nodes) allReadySeconds = now;
    }
    second();
    return (
      allReadySeconds !== undefined &&
      now > 2 * STEADY_SECONDS &&
      isSteady(seconds.slice(-2 * STEADY_SECONDS), steadyPerSecond)
    );
  });
  const storming = seconds.slice(backSecond);
  const firstBeats = agents.map((agent) => (agent.firstBeatSince(backAtMs) - backAtMs) / 1_000);
  for (const agent of agents) agent.stop();
  const sum = (of: keyof Second): number => storming.reduce((total, each) => total + each[of], 0);
  const peak = (of: keyof Second): number => Math.max(...storming.map((each) => each[of]));
  const peakFrom = (from: number): number => Math.max(...storming.slice(from).map(({ requests }) => requests));
  const steadyFrom = steadySince(storming, steadyPerSecond);
  const { user, system } = process.cpuUsage(cpu);
  const contention = cluster.contention();
  report({
    outage: kind,
    nodes,
    outageSeconds,
    requestsPerSecondMax: options.rate,
    burstRequestsMax: options.burst,
    retryAfterSeconds: options.retryAfterSeconds,
    steadyRequestsPerSecond: rounded(steadyPerSecond),
    requests: sum('requests'),
    peakRequestsPerSecond: peak('requests'),
    peakServedPerSecond: peak('done'),
    refusedByHttpApi: sum('refusedByFront'),
    refusedByIdentityLimit: sum('refusedByIdentity'),
    transactions: contention.transactions - contentionBefore.transactions,
    transactionConflicts: contention.conflicts - contentionBefore.conflicts,
    answered409: sum('answered409'),
    apiEnvironments: contention.environments,
    otherErrors: sum('otherErrors'),
    firstBeatP50Seconds: rounded(percentile(firstBeats, 0.5)),
    firstBeatP99Seconds: rounded(percentile(firstBeats, 0.99)),
    firstBeatMaxSeconds: rounded(percentile(firstBeats, 1)),
    allReadyAfterSeconds: allReadySeconds,
    steadyAfterSeconds: steadyFrom,
    // More than usual: a fleet that recovered together sends heartbeats in step for a while.
    peakRequestsPerSecondWhenSteady: steadyFrom === undefined ? undefined : peakFrom(steadyFrom),
    markedInOutage,
    // By path, all machines run all the time; by power, all machines run again.
    falseMarks: kind === 'path' ? markedInOutage + marked : marked,
    serverErrors: errors.length,
    ...(errors[0] === undefined ? {} : { firstError: errors[0] }),
    cpuSeconds: rounded((user + system) / 1e6),
  });
}

const errorsIn = ({ refusedByFront, refusedByIdentity, otherErrors, lost }: Second): number =>
  refusedByFront + refusedByIdentity + otherErrors + lost;

/** No refusal, and over one interval of beats no more requests than usual; how they lie within it may differ. */
const isSteady = (seconds: readonly Second[], usual: number): boolean =>
  seconds.every((each) => errorsIn(each) === 0) &&
  seconds.reduce((sum, { requests }) => sum + requests, 0) <= seconds.length * STEADY_OVER * usual;

/** The first second from which each following interval is steady; undefined when there is none. */
function steadySince(storming: readonly Second[], usual: number): number | undefined {
  for (let from = storming.length - STEADY_SECONDS; from >= 0; from -= 1) {
    if (isSteady(storming.slice(from, from + STEADY_SECONDS), usual)) continue;
    return from + STEADY_SECONDS < storming.length ? from + 1 : undefined;
  }
  return storming.length < STEADY_SECONDS ? undefined : 0;
}

interface Front {
  down: boolean;
  /** Whether the HTTP API lets a request through now. */
  admits(): boolean;
  readonly retryAfterSeconds: number;
}

function createFront(options: StormOptions, time: { nowMs(): number }): Front {
  let fullAtMs: number | undefined;
  return {
    down: false,
    retryAfterSeconds: options.retryAfterSeconds,
    admits() {
      const admission = admitRequest(fullAtMs, time.nowMs(), { ratePerSecond: options.rate, burst: options.burst });
      if (admission.kind === 'refused') return false;
      fullAtMs = admission.fullAtMs;
      return true;
    },
  };
}

interface Cluster {
  answer(request: HttpRequest): Promise<HttpResponse>;
  /**
   * Begins streams, and in each slot a tick of every controller. Returns how many nodes were marked since the last
   * call.
   */
  work(): number;
  standing(): Promise<{ readonly ready: number /** without a NoExecute taint of ours */; readonly free: number }>;
  /** Since the start. `environments` of the API: the most at one time. */
  contention(): { readonly transactions: number; readonly conflicts: number; readonly environments: number };
}

function createCluster(
  time: { nowMs(): number; sleep(milliseconds: number): Promise<void> },
  fraction: () => number,
  front: Front,
  { errors, transactionMs }: { readonly errors: string[]; readonly transactionMs: number },
): Cluster {
  const tables = memoryItemStore({ changesOf: ['objects', 'health'] });
  const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
  const items = conflictingStore(tables, { transactionMs, pause, random: fraction });
  const system: SystemOptions = {
    ...{ items, fraction, pause },
    clock: { nowMs: () => time.nowMs() },
    onError: (message, fields) => errors.push(`${message} ${String(fields?.['error'] ?? '')}`),
    probe: {
      beat: async () =>
        front.down || !front.admits() ? { kind: 'failed', reason: 'it did not get through' } : { kind: 'accepted' },
    },
  };
  const api = environments(() => apiOf(system));
  const heartbeat = heartbeatOf(system);
  const controllers = controllersOf(system);
  const streams = createStreams(tables, controllers);
  let marked = 0;
  const tick = oneAtATime(errors, async (slot: number) => {
    const monitor = await controllers.tickNodeMonitor(slot);
    marked += monitor.kind === 'ran' ? monitor.marked : 0;
    await controllers.tickEvictor(slot);
  });
  const drain = oneAtATime(errors, async () => {
    await streams.drain();
    tables.forgetChanges('objects', streams.delivered.objects);
    tables.forgetChanges('health', streams.delivered.health);
  });
  let lastSlot = -1;
  return {
    answer: (request) =>
      (request.method === 'PUT' || request.method === 'PATCH') && LEASE.test(request.path)
        ? heartbeat(request)
        : api.serve(request),
    work() {
      drain(0);
      const slot = slotOf(time.nowMs(), defaultPolicy.nodeMonitorPeriodSeconds);
      if (slot !== lastSlot) tick(slot);
      lastSlot = slot;
      const found = marked;
      marked = 0;
      return found;
    },
    async standing() {
      const all = await scanHealth(tables, { consistent: true });
      return {
        ready: all.filter(({ ready }) => ready === 'True').length,
        free: all.filter(({ noExecute }) => !noExecute.notReady && !noExecute.unreachable).length,
      };
    },
    contention: () => ({ ...items.counters, environments: api.mostAtOnce() }),
  };
}

/** Execution environments: each serves one request at a time, and a new one starts when all are busy. */
function environments(compose: () => (request: HttpRequest) => Promise<HttpResponse>) {
  const idle: ((request: HttpRequest) => Promise<HttpResponse>)[] = [];
  let started = 0;
  return {
    mostAtOnce: () => started,
    async serve(request: HttpRequest): Promise<HttpResponse> {
      const serve = idle.pop();
      if (serve === undefined) started += 1;
      const environment = serve ?? compose();
      try {
        return await environment(request);
      } finally {
        idle.push(environment);
      }
    },
  };
}

/** Begins the work, unless it is still under way. A failure is an error of the server. */
function oneAtATime<Argument>(errors: string[], work: (argument: Argument) => Promise<void>) {
  let isUnderWay = false;
  return (argument: Argument): void => {
    if (isUnderWay) return;
    isUnderWay = true;
    work(argument)
      .catch((fault: unknown) => errors.push(String(fault)))
      .finally(() => {
        isUnderWay = false;
      });
  };
}

const EMPTY = new Uint8Array();
const decoder = new TextDecoder();

/** One connection, as the agent has for beats and status: a request waits for the one before. */
function connectionOf(
  name: string,
  front: Front,
  cluster: Cluster,
  time: { sleep(milliseconds: number): Promise<void> },
  fraction: () => number,
  second: () => Second,
): KubeApi {
  let turn: Promise<unknown> = Promise.resolve();
  const way = (): Promise<void> => time.sleep(WAY_MS[0] + (WAY_MS[1] - WAY_MS[0]) * fraction());

  async function once({
    method,
    path,
    body,
    contentType,
    signal,
  }: Parameters<KubeApi['send']>[0]): Promise<KubeAnswer> {
    const isStopped = (): boolean => signal?.aborted === true;
    if (isStopped()) return { kind: 'failed', cause: 'stopped' };
    await way();
    const at = second();
    at.requests += 1;
    if (front.down) {
      at.lost += 1;
      return { kind: 'failed', cause: 'the path is down' };
    }
    if (isStopped()) return { kind: 'failed', cause: 'stopped' };
    if (!front.admits()) {
      at.refusedByFront += 1;
      await way();
      const { retryAfterSeconds } = front;
      return {
        kind: 'answered',
        status: 429,
        body: { message: 'Too Many Requests' },
        ...(retryAfterSeconds === 0 ? {} : { retryAfterMs: retryAfterSeconds * 1_000 }),
      };
    }
    const url = new URL(path, 'https://endpoint.invalid');
    const answer = await cluster.answer({
      method,
      path: url.pathname,
      query: url.searchParams,
      headers: { ...headersOf(name), 'content-type': contentType ?? 'application/json' },
      body: body === undefined ? EMPTY : Buffer.from(JSON.stringify(body)),
      sourceIp: '192.0.2.1',
    });
    if (answer.status === 429) at.refusedByIdentity += 1;
    else if (answer.status === 409) at.answered409 += 1;
    else if (answer.status >= 500) at.otherErrors += 1;
    else at.done += 1;
    await way();
    const text = typeof answer.body === 'string' ? answer.body : decoder.decode(answer.body);
    const wait = Object.entries(answer.headers).find(([header]) => header.toLowerCase() === 'retry-after')?.[1];
    return {
      kind: 'answered',
      status: answer.status,
      body: text === '' ? undefined : JSON.parse(text),
      ...(wait === undefined ? {} : { retryAfterMs: Number(wait) * 1_000 }),
    };
  }

  return {
    send(request) {
      const answer = turn.then(() => once(request));
      turn = answer;
      return answer;
    },
    reconnect: () => {},
  };
}
