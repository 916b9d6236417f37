import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { adviceFor } from '../cdk/lib/concurrency.ts';
import { clusterPropsFromContext } from '../cdk/lib/context.ts';
import { unrecordedSettings } from '../cdk/lib/recorded-settings.ts';
import { leaseProbe } from '../functions/node-monitor/probes.ts';
import { fleetStore } from '../shared/fleet/fleet-store.ts';
import { UNTRIED_GATE } from '../shared/fleet/gate.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { NO_DISRUPTION } from '../shared/fleet/zone-state.ts';
import { listenOnLoopback } from '../shared/host/loopback.ts';
import type { StreamForm } from '../shared/watches/stream-form.ts';
import { keepForm } from '../shared/watches/stream-form-store.ts';
import { type AwsAccountServer, startAwsAccount } from '../test/support/aws-account.ts';
import { IDENTITIES, IdentityCluster } from '../test/support/identity-cluster.ts';
import { nodeKeyPair } from '../test/support/node-key-pair.ts';
import { startTlsServer, type TlsServer } from '../test/support/tls-server.ts';
import type { FindCredentials } from './aws-account.ts';
import { CommandError } from './command.ts';
import type { CheckResult } from './doctor/check.ts';
import { advisedReservation } from './doctor/limits.ts';
import { doctorCommand } from './doctor.ts';

const REGION = 'eu-west-1';
const ADMIN = 'the-administrators-token';
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const CERTIFICATE_DAYS = 60;
const found: FindCredentials = async () => ({ accessKeyId: 'AKID', secretAccessKey: 'a-secret-key' });

let cluster: IdentityCluster;
let server: TlsServer;
let aws: AwsAccountServer;
let folder: string;
let lines: string[];

beforeEach(async () => {
  cluster = new IdentityCluster();
  cluster.nowMs = Date.now();
  server = await startTlsServer((incoming, outgoing) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (part: string) => {
      body += part;
    });
    incoming.on('end', async () => {
      const token = incoming.headers.authorization?.replace('Bearer ', '');
      const payload = body === '' ? undefined : JSON.parse(body);
      const answer = await cluster.send(incoming.method ?? '', incoming.url ?? '', token, payload);
      outgoing.writeHead(answer.code, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
    });
  }, CERTIFICATE_DAYS);
  aws = await startAwsAccount(REGION);
  folder = mkdtempSync(join(tmpdir(), 'nk-doctor-'));
  lines = [];
  await measured({ kind: 'stream', paddingBytes: 1 });
  await tick();
  const now = Date.now();
  aws.state.metrics.set('Nodekeeper/edge tick_age_seconds node-monitor', [{ atMs: now - MINUTE_MS, value: 0.4 }]);
  for (const name of ['node-monitor-ticks', 'heartbeats-failing', 'page']) alarm(name, 'OK');
});
afterEach(async () => {
  await Promise.all([server.close(), aws.close()]);
  rmSync(folder, { recursive: true });
});

const measured = (form: StreamForm) =>
  keepForm(cluster.items, { form, measuredMs: cluster.nowMs, deployment: 'this one' });

/** A tick of node-monitor: its probe, then its claim, which also finishes it unless work is left. */
async function tick(more: { readonly finished?: boolean; readonly isFailing?: boolean } = {}): Promise<void> {
  await probe();
  const fleet = fleetStore(cluster.items);
  const { fence } = await fleet.readState();
  const { nowMs } = cluster;
  const claimed = await fleet.claim({
    claimId: `tick-${nowMs}`,
    slot: Math.floor(nowMs / 1_000 / defaultPolicy.nodeMonitorPeriodSeconds),
    periodSeconds: defaultPolicy.nodeMonitorPeriodSeconds,
    seenFence: fence,
    nowMs,
    gate: { ...UNTRIED_GATE, ...(more.isFailing ? { reasons: ['failingPath'], sinceMs: nowMs } : {}) },
    disruption: NO_DISRUPTION,
    nodes: 3,
    finished: more.finished ?? true,
  });
  expect(claimed).toEqual({ kind: 'claimed' });
}

async function probe(): Promise<void> {
  const sender = leaseProbe({
    url: 'https://cluster.example',
    credentials: cluster.probe(),
    clock: { nowMs: () => cluster.nowMs },
    fetch: async (url, init) => {
      const bearer = new Headers(init?.headers).get('authorization')?.replace('Bearer ', '');
      const { pathname } = new URL(String(url));
      const { code, body } = await cluster.send(init?.method ?? '', pathname, bearer, JSON.parse(String(init?.body)));
      return new Response(JSON.stringify(body), { status: code });
    },
  });
  expect(await sender.beat()).toEqual({ kind: 'accepted' });
}

function alarm(name: string, state: 'OK' | 'ALARM' | 'INSUFFICIENT_DATA', clusterId = 'edge'): void {
  aws.state.alarms.push({
    name: `${clusterId}-${name}`,
    state,
    description: `Meaning. Runbook: docs/operations/alarms/${name}.md`,
    actions: name === 'page' ? ['arn:aws:sns:eu-west-1:111122223333:on-call'] : [],
  });
}

interface Run {
  readonly args?: readonly string[];
  readonly token?: string;
  readonly nowMs?: number;
  readonly server?: string;
  readonly ca?: string;
}

const inAws = ['--cluster-id', 'edge', '--region', REGION];

/** The results by name, and the error that ends the command with exit code 1. */
async function run(options: Run = {}) {
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, options.ca ?? server.certificateAuthority);
  const access = ['--server', options.server ?? server.url, '--token', options.token ?? ADMIN];
  const args = [...access, '--certificate-authority', ca, ...(options.args ?? inAws), '-o', 'json'];
  return runWith(args, options.nowMs);
}

async function runWith(args: readonly string[], nowMs = Date.now()) {
  const io = { environment: { AWS_ENDPOINT_URL: aws.url }, nowMs, print: (line: string) => lines.push(line) };
  const error = await doctorCommand(args, io, found).then(
    () => undefined,
    (thrown: unknown) => thrown as CommandError,
  );
  if (error !== undefined && !(error instanceof CommandError)) throw error;
  const { outcome, checks } = JSON.parse(lines.join('\n')) as { outcome: string; checks: CheckResult[] };
  expect(outcome).toBe(error === undefined ? 'ok' : 'fail');
  const results = Object.fromEntries(checks.map((result) => [result.check, result]));
  const outcomes = Object.fromEntries(checks.map((result) => [result.check, result.outcome]));
  return { error, results, outcomes };
}

const CLUSTER_OK = {
  endpoint: 'ok',
  'sign-in': 'ok',
  clock: 'ok',
  heartbeat: 'ok',
  probe: 'ok',
  ticks: 'ok',
  'safety-gate': 'ok',
  watches: 'ok',
  hub: 'notApplicable',
  hubs: 'notApplicable',
};
const LIMITS_OK = {
  'lambda-concurrency': 'ok',
  'reserved-concurrency': 'ok',
  'lambda-code-storage': 'ok',
  'api-gateway-throttle': 'ok',
  'dynamodb-table': 'ok',
};

describe('nodekeeper doctor', () => {
  it('finds nothing wrong with a healthy cluster in an account', async () => {
    const { error, outcomes, results } = await run();
    expect(error).toBeUndefined();
    expect(outcomes).toEqual({ ...CLUSTER_OK, metrics: 'ok', alarms: 'ok', ...LIMITS_OK });
    expect(results['endpoint']?.measured).toMatch(/v1\.\d+\.\d+-nodekeeper\.\S+, \d+ ms .*TLSv1\.3, certificate valid/);
    expect(results['sign-in']?.measured).toBe('admin (system:masters, system:authenticated) may list nodes');
    expect(results['alarms']?.measured).toBe('3 alarms OK');
  });

  it('compares the limits of the account with the nodes of the cluster, or with --nodes', async () => {
    const watches = async (...args: string[]) => {
      lines = [];
      return (await run({ args: [...inAws, ...args] })).results['lambda-concurrency']?.measured;
    };
    expect(await watches()).toContain('watches beside 3 nodes');
    expect(await watches('--nodes', '500')).toContain('watches beside 500 nodes');
  });

  it.each([
    [1_000, 30_000],
    [3_000, 100_000],
  ])('accepts what the template has reserved of %d executions for %d nodes', async (concurrency, nodes) => {
    const reserved = Object.values(adviceFor(concurrency, nodes, defaultPolicy)).reduce((sum, each) => sum + each, 0);
    Object.assign(aws.state, { concurrency, unreserved: concurrency - reserved });
    aws.state.quotas.set('apigateway L-8A5B8E43', 25_000);
    const { outcomes, results } = await run({ args: [...inAws, '--nodes', String(nodes)] });
    expect(outcomes).toMatchObject(LIMITS_OK);
    expect(results['lambda-concurrency']?.measured).toContain('are reserved by functions');
  });

  it('prints one line per check, with what to do next', async () => {
    aws.state.concurrency = 10;
    aws.state.unreserved = 10;
    const io = {
      environment: { AWS_ENDPOINT_URL: aws.url },
      nowMs: Date.now(),
      print: (line: string) => lines.push(line),
    };
    await expect(doctorCommand(['--limits', '--region', REGION], io, found)).rejects.toThrow(
      '1 of 5 checks failed: lambda-concurrency',
    );
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatch(
      /^fail +lambda-concurrency +10 concurrent executions, .*\. Next: request 1,000: aws service/,
    );
  });

  it('renews and creates no Lease', async () => {
    const before = cluster.items.items('health');
    await run();
    expect(cluster.items.items('health')).toEqual(before);
  });
});

describe('the endpoint check fails', () => {
  it('with the phase TLS for another certificate, and the checks behind it do not apply', async () => {
    const other = await startTlsServer((_, outgoing) => outgoing.end());
    try {
      const { results, outcomes } = await run({ ca: other.certificateAuthority });
      expect(results['endpoint']).toMatchObject({ outcome: 'fail', measured: expect.stringMatching(/^TLS: the cert/) });
      expect(outcomes).toMatchObject({ 'sign-in': 'notApplicable', ticks: 'notApplicable', alarms: 'ok' });
      expect(results['ticks']?.measured).toBe('the endpoint check failed');
    } finally {
      await other.close();
    }
  });

  it('with the phase DNS for a name without address', async () => {
    const { results } = await run({ server: 'https://doctor.invalid' });
    expect(results['endpoint']?.measured).toMatch(/^DNS: no address for doctor\.invalid/);
  });

  it('where no server runs', async () => {
    const port = server.port;
    await server.close();
    const { results } = await run({ server: `https://127.0.0.1:${port}` });
    expect(results['endpoint']?.measured).toMatch(/^no response from 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  });

  it('where another server answers', async () => {
    const other = createServer((_, outgoing) => outgoing.end('{"gitVersion":"v1.30.0"}'));
    const port = await listenOnLoopback(other);
    const { results } = await run({ server: `http://127.0.0.1:${port}` });
    other.close();
    expect(results['endpoint']?.measured).toContain('is not that of Nodekeeper: version v1.30.0');
    expect(results['sign-in']?.outcome).toBe('notApplicable');
  });

  it('for a certificate that expires in a day', async () => {
    const { results } = await run({ nowMs: Date.now() + (CERTIFICATE_DAYS - 1) * DAY_MS });
    expect(results['endpoint']).toMatchObject({ outcome: 'fail', next: expect.stringContaining('ACM') });
  });
});

describe('the sign-in check fails', () => {
  it('for a revoked token, and so does the heartbeat', async () => {
    const pair = nodeKeyPair();
    const enrolled = await cluster.enrol(await cluster.bootstrapToken(), 'n1', pair);
    expect(enrolled.code).toBe(201);
    const token = cluster.signed(pair, 'n1');
    await cluster.asAdmin('DELETE', `${IDENTITIES}/n1`);
    const { results } = await run({ token });
    expect(results['sign-in']).toMatchObject({
      outcome: 'fail',
      measured: 'the server rejects the credential: 401 Unauthorized',
      next: expect.stringContaining('revoked'),
    });
    expect(results['heartbeat']).toMatchObject({ outcome: 'fail', measured: expect.stringContaining('401') });
    expect(results['ticks']).toMatchObject({ outcome: 'notApplicable' });
  });

  it('for a user who may not list nodes', async () => {
    const pair = nodeKeyPair();
    await cluster.enrol(await cluster.bootstrapToken(), 'n1', pair);
    const { results } = await run({ token: cluster.signed(pair, 'n1') });
    expect(results['sign-in']?.measured).toMatch(/^system:node:n1 \(.*\) may not list nodes$/);
  });
});

describe('the heartbeat check', () => {
  it('passes for an AWS identity, which the function heartbeat rejects', async () => {
    const { results } = await run({ token: 'k8s-aws-v1.abc' });
    expect(results['heartbeat']).toMatchObject({
      outcome: 'ok',
      measured: expect.stringContaining('keys of machines'),
    });
  });

  it.each([
    [429, 'API Gateway throttles'],
    [500, 'expected 404: 500'],
    [404, 'expected 404'],
  ])('fails when the front answers %d without a Status', async (status, measured) => {
    const send = cluster.send.bind(cluster);
    cluster.send = async (method, ...rest) =>
      method === 'PATCH' ? { code: status, body: { message: 'Not Found' } } : send(method, ...rest);
    const { results } = await run();
    expect(results['heartbeat']).toMatchObject({ outcome: 'fail', measured: expect.stringContaining(measured) });
  });
});

describe('the clock check', () => {
  it.each([
    ['fails', 90_000, 'fail', /^this machine is (8|9)\d\.\d s ahead of the server/],
    ['fails', -90_000, 'fail', /^this machine is (8|9)\d\.\d s behind the server/],
    ['warns', 10_000, 'warn', /ahead of the server, the server is \d\.\d s (ahead of|behind) AWS$/],
  ])('%s for a clock that is %d ms wrong', async (_, offsetMs, outcome, measured) => {
    const { results } = await run({ nowMs: Date.now() + offsetMs });
    expect(results['clock']).toMatchObject({ outcome, measured: expect.stringMatching(measured) });
  });

  it('fails for a server with another time than AWS', async () => {
    aws.state.clockSkewMs = 5 * MINUTE_MS;
    const { results } = await run();
    expect(results['clock']).toMatchObject({ outcome: 'fail', measured: expect.stringMatching(/behind AWS$/) });
  });
});

/** A cluster with this as its only tick. */
async function tickedAt(atMs: number, more: Parameters<typeof tick>[0] = {}): Promise<void> {
  cluster = new IdentityCluster();
  cluster.nowMs = atMs;
  await tick(more);
  cluster.nowMs = Date.now();
}

describe('the checks of ticks and probes', () => {
  it.each([
    ['warn', 30_000, 'warn', /ago$/],
    ['fail', 90_000, 'fail', /ago: no node failure is detected$/],
  ])('%s when ticks stopped %d ms ago', async (_, agoMs, outcome, measured) => {
    await tickedAt(Date.now() - agoMs);
    const { results } = await run();
    expect(results['ticks']).toMatchObject({ outcome, measured: expect.stringMatching(measured) });
    expect(results['probe']).toMatchObject({ outcome });
  });

  it('fail when ticks begin and never finish, although their probes are stored', async () => {
    await tickedAt(Date.now(), { finished: false });
    const { results } = await run();
    expect(results['probe']).toMatchObject({ outcome: 'ok' });
    expect(results['ticks']).toMatchObject({
      outcome: 'fail',
      measured: 'no tick of node-monitor has ever finished',
    });
  });

  it('fail in a cluster that never ticked', async () => {
    cluster = new IdentityCluster();
    cluster.nowMs = Date.now();
    const { results } = await run();
    expect(results['ticks']?.outcome).toBe('fail');
    expect(results['probe']?.measured).toBe('no probe heartbeat was ever stored');
  });
});

describe('the check of watches', () => {
  it('fails while watches are answered as long polls', async () => {
    await measured({ kind: 'longPoll' });
    expect((await run()).results['watches']).toMatchObject({
      outcome: 'fail',
      measured: expect.stringMatching(/^watches are answered as long polls, .*; measured at \S+Z$/),
      next: expect.stringContaining('watches-not-streamed.md'),
    });
  });

  it('does not apply before the first watch', async () => {
    cluster = new IdentityCluster();
    cluster.nowMs = Date.now();
    await tick();
    expect((await run()).results['watches']?.outcome).toBe('notApplicable');
  });
});

describe('the check of the safety gate', () => {
  it('fails while the gate is closed', async () => {
    await tickedAt(Date.now(), { isFailing: true });
    const { results } = await run();
    expect(results['safety-gate']).toMatchObject({
      outcome: 'fail',
      measured: expect.stringMatching(/^closed since \S+Z: failingPath; no node is newly marked/),
      next: expect.stringContaining('evictions-held.md'),
    });
  });

  it('fails for missing ticks, although no tick stored that', async () => {
    await tickedAt(Date.now() - 120_000);
    expect((await run()).results['safety-gate']?.measured).toContain('missedTicks');
  });
});

describe('the metrics check', () => {
  it('fails without a point in CloudWatch, and warns for an old one', async () => {
    aws.state.metrics.clear();
    expect((await run()).results['metrics']).toMatchObject({
      outcome: 'fail',
      measured: 'no tick_age_seconds of node-monitor in Nodekeeper/edge in the last 15 minutes',
      next: expect.stringContaining('log level'),
    });
    const key = 'Nodekeeper/edge tick_age_seconds node-monitor';
    aws.state.metrics.set(key, [{ atMs: Date.now() - 8 * MINUTE_MS, value: 2 }]);
    lines = [];
    expect((await run()).results['metrics']).toMatchObject({ outcome: 'warn' });
  });

  it('fails with the permission that is missing', async () => {
    aws.state.refused.set('GetMetricData', 'AccessDeniedException');
    expect((await run()).results['metrics']).toMatchObject({
      outcome: 'fail',
      next: 'allow cloudwatch:GetMetricData for your role',
    });
  });
});

describe('the alarms check', () => {
  it('fails with the runbooks of alarms in ALARM, over several pages, and of this cluster only', async () => {
    alarm('throttled-keys', 'ALARM');
    alarm('page', 'ALARM', 'edge-2');
    const { results } = await run();
    expect(results['alarms']).toMatchObject({
      outcome: 'fail',
      measured: 'ALARM: throttled-keys',
      next: 'read docs/operations/alarms/throttled-keys.md',
    });
    expect(aws.calls.filter((action) => action === 'DescribeAlarms')).toHaveLength(3);
  });

  it('warns of alarms without data', async () => {
    alarm('stream-age', 'INSUFFICIENT_DATA');
    const { results } = await run();
    expect(results['alarms']).toMatchObject({
      outcome: 'warn',
      measured: 'INSUFFICIENT_DATA: stream-age; 3 alarms OK',
    });
  });

  it('warns when the alarm page notifies no one', async () => {
    aws.state.alarms.splice(2, 1, { ...aws.state.alarms[2]!, actions: [] });
    expect((await run()).results['alarms']).toMatchObject({
      outcome: 'warn',
      next: expect.stringContaining('alarmEmail'),
    });
  });

  it('fails where the cluster has none', async () => {
    aws.state.alarms.length = 0;
    expect((await run()).results['alarms']?.measured).toBe('no alarm of cluster edge in eu-west-1');
  });
});

describe('nodekeeper doctor --limits', () => {
  const limits = (...args: string[]) => runWith(['--limits', '--region', REGION, ...args, '-o', 'json']);

  it('computes what fits, and what to reserve', async () => {
    const { results, outcomes } = await limits('--nodes', '1000', '--watches', '10');
    expect(outcomes).toEqual(LIMITS_OK);
    // 1,000 - 20 - 10 = 970 executions of 0.1 s: 9,700 requests per second, half of them, / (1/10 + 1/300) per node.
    expect(results['lambda-concurrency']?.measured).toContain('fits 46,935 nodes beside 10 watches');
    // 1,000 nodes reconnect with 207 requests per second: 21 executions.
    expect(results['lambda-concurrency']?.measured).toContain('or 959 watches beside 1,000 nodes');
    expect(results['reserved-concurrency']?.measured).toContain(
      'in "context" of cdk.json: "reservedConcurrency": "heartbeat=100,watch=50,api=100,node-monitor=10,evictor=5"',
    );
    expect(results['api-gateway-throttle']?.measured).toContain('fits 48,387 nodes');
    expect(results['dynamodb-table']?.measured).toContain('fits 193,548 nodes');
  });

  it('prints a reservation as synth accepts it', async () => {
    const { results } = await limits('--nodes', '1000', '--watches', '10');
    const [line = ''] = /"reservedConcurrency": .*$/.exec(results['reserved-concurrency']?.measured ?? '') ?? [];
    const recorded = JSON.parse(`{${line}}`) as Record<string, unknown>;
    const read = (name: string) => recorded[name];
    expect(unrecordedSettings(Object.keys(recorded), read, recorded)).toEqual([]);
    expect(clusterPropsFromContext(read)).toEqual({
      reservedConcurrency: advisedReservation({ nodes: 1_000, beatSeconds: 10, watches: 10 }),
    });
  });

  it.each([1_000, 100_000])('advises for %d nodes what the template reserves', (nodes) => {
    const advised = advisedReservation({ nodes, beatSeconds: 10, watches: 10 });
    expect(advised).toEqual(adviceFor(10_000, nodes, defaultPolicy));
  });

  it('advises no reservation in a new account with a limit of 10', async () => {
    aws.state.concurrency = 10;
    aws.state.unreserved = 10;
    const { results, error } = await limits();
    expect(error?.message).toBe('1 of 5 checks failed: lambda-concurrency');
    expect(results['reserved-concurrency']).toMatchObject({
      outcome: 'warn',
      measured: expect.stringContaining('AWS keeps 100 unreserved, so 0 can be reserved'),
      next: expect.stringContaining('deploy without reservedConcurrency'),
    });
  });

  it('counts what other functions have reserved', async () => {
    aws.state.unreserved = 120;
    const { results } = await limits();
    expect(results['lambda-concurrency']).toMatchObject({
      outcome: 'ok',
      measured: expect.stringContaining('880 reserved by functions'),
    });
    expect(results['reserved-concurrency']).toMatchObject({ outcome: 'warn' });
  });

  it('fails for a throttle, a table and a code storage that are too small', async () => {
    aws.state.quotas.set('apigateway L-8A5B8E43', 2_500);
    aws.state.quotas.set('dynamodb L-AB614373', 1_000);
    aws.state.codeBytes = 80_500_000_000;
    const { results } = await limits('--nodes', '20000');
    expect(results['api-gateway-throttle']).toMatchObject({
      outcome: 'fail',
      measured: expect.stringContaining('20,000 nodes with a heartbeat every 10 s need 4,134'),
      next: expect.stringContaining('--quota-code L-8A5B8E43 --desired-value 5000'),
    });
    expect(results['dynamodb-table']).toMatchObject({ outcome: 'fail' });
    expect(results['lambda-code-storage']).toMatchObject({ outcome: 'fail' });
  });

  it('needs a region, and no cluster', async () => {
    const io = { environment: { HOME: folder }, nowMs: Date.now(), print: () => {} };
    await expect(doctorCommand(['--limits'], io, found)).rejects.toThrow('no region is set');
    await expect(doctorCommand(['--nodes', '0'], io, found)).rejects.toThrow('--nodes must be a whole number');
  });
});

describe('nodekeeper doctor in local mode', () => {
  const kubeconfig = (): string => {
    const file = join(folder, 'kubeconfig');
    const ca = Buffer.from(server.certificateAuthority).toString('base64');
    const config = {
      'current-context': 'local',
      contexts: [{ name: 'local', context: { cluster: 'local', user: 'admin' } }],
      clusters: [{ name: 'local', cluster: { server: server.url, 'certificate-authority-data': ca } }],
      users: [{ name: 'admin', user: { token: ADMIN } }],
    };
    writeFileSync(file, JSON.stringify(config));
    return file;
  };
  const local = () => runWith(['--kubeconfig', kubeconfig(), '-o', 'json']);
  const line = (atMs: number) =>
    JSON.stringify({ _aws: { Timestamp: atMs }, service: 'node-monitor', tick_age_seconds: [0.2] });

  it('reads its metrics, and says why the other parts of AWS do not apply', async () => {
    writeFileSync(join(folder, 'metrics.jsonl'), `{"cut\n${line(Date.now() - 30_000)}\n`);
    const { error, outcomes, results } = await local();
    expect(error).toBeUndefined();
    expect(outcomes).toEqual({ ...CLUSTER_OK, metrics: 'ok', alarms: 'notApplicable', limits: 'notApplicable' });
    expect(results['alarms']?.measured).toBe('local mode has no CloudWatch alarms');
    expect(aws.calls).toEqual([]);
  });

  it('expects no file of metrics from nodekeeper serve', async () => {
    const { error, results } = await local();
    expect(error).toBeUndefined();
    expect(results['metrics']).toMatchObject({
      outcome: 'notApplicable',
      measured: expect.stringContaining('nodekeeper serve has its metrics at /metrics'),
    });
  });

  it('fails without metrics in the last minutes', async () => {
    writeFileSync(join(folder, 'metrics.jsonl'), `${line(Date.now() - 20 * MINUTE_MS)}\n`);
    expect((await local()).results['metrics']).toMatchObject({ outcome: 'fail' });
  });

  it('fails where the cluster is not local and the account is unknown', async () => {
    const { results } = await run({ args: [], server: 'https://doctor.invalid' });
    for (const name of ['metrics', 'alarms', 'limits']) {
      expect(results[name]).toMatchObject({
        outcome: 'fail',
        next: expect.stringContaining('--cluster-id and --region'),
      });
    }
  });
});
