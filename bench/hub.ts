/**
 * A hub in a process of its own with many held watches: memory, the delay from an addition at the cluster to the event
 * at the hub, and CPU time at rest and per event. Each connection is a client with an account and a token of its own.
 * The cluster and the clients run on this machine, too.
 */
import { readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from '../demo/fleet/api-client.ts';
import { apiClientOf, type KubeAccess } from '../test/support/kubeconfig.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  secondsUntil,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { holdWatch } from './held-watch.ts';
import { processesBelow } from './process-cpu.ts';
import { type HubHost, startHubHost, startServeHost } from './serve-host.ts';

const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';
const BINDINGS = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
/** Longer than two rounds of all resources. Milliseconds. */
const ARRIVAL_MS_MAX = 60_000;

/** What clients watch. Objects are added to those with a body. */
const WATCHED: readonly { readonly path: string; readonly body?: object }[] = [
  { path: '/api/v1/pods', body: { spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }] } } },
  { path: '/api/v1/nodes', body: {} },
  { path: '/api/v1/configmaps', body: { data: { text: 'x'.repeat(1_000) } } },
  { path: '/api/v1/services', body: { spec: { ports: [{ port: 80 }] } } },
  { path: '/api/v1/namespaces' },
  { path: '/api/v1/serviceaccounts' },
  { path: '/apis/apps/v1/deployments' },
  { path: '/apis/apps/v1/replicasets' },
  { path: '/apis/discovery.k8s.io/v1/endpointslices' },
  { path: '/apis/networking.k8s.io/v1/ingresses' },
];
const ADDED = WATCHED.filter(({ body }) => body !== undefined);

export const hub: Benchmark = {
  name: 'hub',
  about: 'watches of a hub: memory, delay from an addition at the cluster to its event, CPU at rest and per event',
  usage: '[--watches 5,500] [--connections 50] [--additions 60] [--gap-ms 700] [--quiet-seconds 20]',
  smallest: ['--watches', '10', '--connections', '2', '--additions', '4', '--gap-ms', '1', '--quiet-seconds', '1'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, {
      ...{ watches: text, connections: text, additions: text, 'gap-ms': text, 'quiet-seconds': text },
    });
    const whole = (name: 'connections' | 'additions' | 'gap-ms' | 'quiet-seconds', most: number, otherwise: number) =>
      wholeNumber(name, values[name], { least: 1, most, otherwise });
    const options = {
      connections: whole('connections', 500, 50),
      additions: whole('additions', 10_000, 60),
      gapMs: whole('gap-ms', 60_000, 700),
      quietSeconds: whole('quiet-seconds', 600, 20),
    };
    const sizes = wholeNumbers('watches', values.watches, { least: 1, most: 5_000, otherwise: [5, 500] });
    for (const watches of sizes) await measureHub(report, { ...options, watches });
  },
};

interface HubBenchOptions {
  readonly watches: number;
  readonly connections: number;
  readonly additions: number;
  readonly gapMs: number;
  readonly quietSeconds: number;
}

async function measureHub(report: Report, options: HubBenchOptions): Promise<void> {
  const host = await startServeHost();
  const client = apiClientOf(host.access, { connectionsMax: 4, timeoutMs: 30_000 });
  const sessions: ClientHttp2Session[] = [];
  let served: HubHost | undefined;
  try {
    const tokens = await accounts(client, Math.min(options.connections, options.watches));
    served = await startHubHost(host.access, await accountToken(client, 'hub', 'system:nodekeeper:hub'));
    const { url, ca, pid } = served;
    await readyHub({ url, ca, token: tokens[0]! });
    for (const _ of tokens) sessions.push(connect(url, { ca }));
    await measure(report, options, { client, pid, sessions, tokens });
  } finally {
    for (const session of sessions) session.destroy();
    client.close();
    await served?.stop();
    await host.stop();
  }
}

async function readyHub(access: KubeAccess): Promise<void> {
  const client = apiClientOf(access, { connectionsMax: 1, timeoutMs: 30_000 });
  let isReady = false;
  const look = async (): Promise<void> => {
    const answer = await client.send({ method: 'GET', path: '/readyz' });
    isReady = answer.kind === 'answered' && answer.status === 200;
  };
  const seconds = await secondsUntil(() => {
    void look();
    return isReady;
  }, ARRIVAL_MS_MAX);
  client.close();
  if (seconds === undefined) throw new Error('the hub is not ready');
}

// biome-ignore lint/suspicious/noExplicitAny: answers of several kinds
async function post(client: ApiClient, path: string, body: object): Promise<any> {
  const answer = await client.send({ method: 'POST', path, body });
  if (answer.kind === 'answered' && answer.status === 201) return answer.body;
  throw new Error(`POST ${path}: ${JSON.stringify(answer)}`);
}

async function accountToken(client: ApiClient, name: string, role: string): Promise<string> {
  await post(client, ACCOUNTS, { metadata: { name } });
  await post(client, BINDINGS, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
  });
  return (await post(client, `${ACCOUNTS}/${name}/token`, { spec: {} })).status.token as string;
}

const accounts = (client: ApiClient, count: number): Promise<readonly string[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => accountToken(client, `client-${index}`, 'cluster-admin')));

interface Parts {
  readonly client: ApiClient;
  /** Of the hub. */
  readonly pid: number;
  /** As many as tokens. */
  readonly sessions: readonly ClientHttp2Session[];
  readonly tokens: readonly string[];
}

async function measure(
  report: Report,
  { watches, additions, gapMs, quietSeconds }: HubBenchOptions,
  { client, pid, sessions, tokens }: Parts,
): Promise<void> {
  const usage = () => {
    const processes = processesBelow([pid]);
    const sum = (of: (each: (typeof processes)[number]) => number): number =>
      processes.reduce((all, each) => all + of(each), 0);
    return { cpuMs: sum(({ cpuMs }) => cpuMs), megabytes: sum(({ residentBytes }) => residentBytes) / 1_048_576 };
  };
  const empty = usage();
  const sentAtMs: number[] = [];
  const delays: number[] = [];
  const heldByPath = new Map<string, number>();
  let answered = 0;
  for (let index = 0; index < watches; index += 1) {
    const client = index % sessions.length;
    // A client watches several kinds, and each kind has watches of many clients.
    const { path } = WATCHED[(index + Math.floor(index / sessions.length)) % WATCHED.length]!;
    let last = -1;
    holdWatch(
      sessions[client]!,
      { path, token: tokens[client]! },
      {
        answered(isAccepted) {
          answered += 1;
          if (isAccepted) heldByPath.set(path, (heldByPath.get(path) ?? 0) + 1);
        },
        received(number, atMs) {
          // Controllers change objects later.
          if (number <= last) return;
          last = number;
          delays.push(atMs - sentAtMs[number]!);
        },
      },
    );
  }
  await secondsUntil(() => answered === watches, ARRIVAL_MS_MAX);
  const held = [...heldByPath.values()].reduce((sum, each) => sum + each, 0);
  const rest = usage();
  await pause(quietSeconds * 1_000);
  const quiet = usage();

  let expected = 0;
  for (let number = 0; number < additions; number += 1) {
    const { path, body } = ADDED[number % ADDED.length]!;
    const isNode = path === '/api/v1/nodes';
    sentAtMs.push(performance.now());
    const metadata = { name: `bench-${number}`, labels: { number: String(number) } };
    await post(client, isNode ? path : path.replace('/v1/', '/v1/namespaces/default/'), { ...body, metadata });
    expected += heldByPath.get(path) ?? 0;
    await pause(gapMs);
  }
  await secondsUntil(() => delays.length >= expected, ARRIVAL_MS_MAX);
  const busy = usage();
  const busySeconds = (additions * gapMs) / 1_000;
  const cpuMsPerSecond = (quiet.cpuMs - rest.cpuMs) / quietSeconds;
  report({
    watches: held,
    refused: watches - held,
    connections: sessions.length,
    emptyMegabytes: rounded(empty.megabytes),
    quietMegabytes: rounded(quiet.megabytes),
    megabytes: rounded(busy.megabytes),
    // The others are pages of the program file.
    anonymousMegabytes: rounded(anonymousMegabytes(pid)),
    cpuMsPerSecond: rounded(cpuMsPerSecond, 3),
    additions,
    expected,
    received: delays.length,
    p50Ms: rounded(percentile(delays, 0.5)),
    p99Ms: rounded(percentile(delays, 0.99)),
    maxMs: rounded(percentile(delays, 1)),
    cpuMicrosecondsPerEvent: rounded(
      (Math.max(0, busy.cpuMs - quiet.cpuMs - busySeconds * cpuMsPerSecond) * 1_000) / delays.length,
      3,
    ),
  });
}

const anonymousMegabytes = (pid: number): number =>
  Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
