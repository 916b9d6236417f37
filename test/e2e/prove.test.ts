/**
 * `nodekeeper prove` against the emulation of AWS: every fact is true there, and each is found false once, when an
 * answer is another one. Stacks come from a stand-in of CloudFormation; their resources are those of the emulation.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { emulationContext, synthesise } from '../../aws-local/assembly/synthesise.ts';
import { LocalQueue } from '../../aws-local/queues/queue.ts';
import { startSqsServer } from '../../aws-local/queues/sqs-server.ts';
import { type LocalSystem, startLocal } from '../../aws-local/runtime.ts';
import { firingOffsetsMs } from '../../aws-local/schedule/scheduler.ts';
import { awsCalls } from '../../cli/prove/aws-calls.ts';
import { awsStacks } from '../../cli/prove/aws-stacks.ts';
import type { Calls, HttpAnswer, HttpRequest, Measuring, ProbeFunction } from '../../cli/prove/calls.ts';
import { FACTS } from '../../cli/prove/fact-list.ts';
import { planOf, REQUESTS_PER_SECOND } from '../../cli/prove/plan.ts';
import { proveCommand } from '../../cli/prove/prove.ts';
import type { Report } from '../../cli/prove/report.ts';
import { type StandInCloudFormation, startCloudFormation } from '../support/cloudformation.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const REGION = 'us-east-1';
/** A tick is begun within it. */
const WINDOW_SECONDS = 6;
const MINUTE_MS = 60_000;
/** Where answers are false, what is waited for does not come. In the emulation all else is there at once. */
const PAUSE_MS_MAX = 100;
const QUEUE_URL = 'https://sqs.us-east-1.amazonaws.com/000000000000/probe';
/** Times of this machine, which may be busy: their bounds are tested with other answers. */
const TIMES = [
  ...['lambda-cold-start', 'function-clock', 'url-change-delay', 'stream-delay'],
  ...['sqs-delay', 'tick-lateness', 'tick-chain'],
];

let folder: string;
let system: LocalSystem;
let cloudFormation: StandInCloudFormation;
let environment: Record<string, string>;
let measuring: Measuring;
let report: Report;
let sqs: Awaited<ReturnType<typeof startSqsServer>>;
const queue = new LocalQueue({ name: 'probe', delaySeconds: 0, visibilityTimeoutSeconds: 30, retentionSeconds: 3_600 });

/** The calls of a schedule in the minutes before the window. */
function fireSchedule(): void {
  const thisMinuteMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  for (let minute = -4; minute < 0; minute += 1) {
    const minuteMs = thisMinuteMs + minute * MINUTE_MS;
    for (const offsetMs of firingOffsetsMs({ kind: 'aws', seed: 1 }, 'Probe', minuteMs)) {
      queue.send('{"from":"schedule"}', minuteMs + offsetMs);
    }
  }
}

/** Asset of the code that the template of the probe has in it. */
const PROBE_KEY = 'probe.zip';

interface TestedTemplate {
  readonly Resources: Record<string, { readonly Type: string; readonly Properties: Record<string, unknown> }>;
}

/** The functions of the probe stack run beside those of the cluster. */
function addProbe(directory: string, { Resources }: TestedTemplate): void {
  for (const [id, resource] of Object.entries((planOf('e2e').probe as TestedTemplate).Resources)) {
    if (!/^(Info|Warn)|^FunctionRole/.test(id)) continue;
    Resources[id] = resource;
    const { ZipFile } = (resource.Properties['Code'] ?? {}) as { readonly ZipFile?: string };
    if (ZipFile === undefined) continue;
    mkdirSync(join(directory, 'probe'), { recursive: true });
    writeFileSync(join(directory, 'probe/index.js'), ZipFile);
    resource.Properties['Code'] = { S3Key: PROBE_KEY };
  }
  const file = join(directory, readdirSync(directory).find((name) => name.endsWith('.assets.json')) ?? '');
  const assets = JSON.parse(readFileSync(file, 'utf8')) as { readonly files: Record<string, unknown> };
  assets.files['probe'] = { source: { path: 'probe' }, destinations: { probe: { objectKey: PROBE_KEY } } };
  writeFileSync(file, JSON.stringify(assets));
}

/** The assembly of the emulation, with the limits of requests and the probe that a run deploys. */
async function assemblyOfRun(directory: string): Promise<string> {
  const context = emulationContext(1_000);
  const { directory: source } = await synthesise({ projectDirectory: ROOT, mode: 'auto', inputFiles: [], context });
  for (const name of readdirSync(source)) {
    if (name.endsWith('.json')) cpSync(join(source, name), join(directory, name));
    else symlinkSync(join(source, name), join(directory, name));
  }
  const file = readdirSync(directory).find((name) => name.endsWith('.template.json')) ?? '';
  const template = JSON.parse(readFileSync(join(directory, file), 'utf8')) as TestedTemplate;
  addProbe(directory, template);
  for (const { Type, Properties } of Object.values(template.Resources)) {
    if (Type !== 'AWS::ApiGatewayV2::Stage') continue;
    Properties['DefaultRouteSettings'] = {
      ThrottlingRateLimit: REQUESTS_PER_SECOND,
      ThrottlingBurstLimit: 2 * REQUESTS_PER_SECOND,
    };
  }
  writeFileSync(join(directory, file), JSON.stringify(template));
  return directory;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nk-prove-e2e-'));
  mkdirSync(join(folder, 'assembly'));
  mkdirSync(join(folder, 'node_modules/aws-cdk/bin'), { recursive: true });
  writeFileSync(join(folder, 'node_modules/aws-cdk/bin/cdk'), '');
  writeFileSync(join(folder, 'cdk.json'), '{}');
  const assemblyDirectory = await assemblyOfRun(join(folder, 'assembly'));
  [system, cloudFormation, sqs] = await Promise.all([
    startLocal({ assemblyDirectory, print: () => {} }),
    startCloudFormation('local', REGION),
    startSqsServer({ queueByUrl: (url) => (url === QUEUE_URL ? queue : undefined), nowMs: Date.now }),
  ]);
  const { variables } = system.functions[0]!;
  const logsEndpoint = variables['AWS_ENDPOINT_URL_CLOUDWATCH_LOGS'] ?? '';
  environment = {
    ...Object.fromEntries(Object.entries(variables).filter(([name]) => name.startsWith('AWS_ENDPOINT_URL'))),
    AWS_ENDPOINT_URL_SQS: sqs.endpoint,
    AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation.url,
    AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: cloudFormation.url,
  };
  const [health = '', objects = '', control = ''] = ['Health', 'Objects', 'Control'].map((name) =>
    system.dynamodb.tableNames.find((table) => table.includes(name)),
  );
  const functions = Object.fromEntries(
    system.functions.map(({ plan }) => [`${plan.logicalId} AWS::Lambda::Function`, plan.functionName]),
  );
  cloudFormation.newStack = (name) => ({
    status: 'CREATE_COMPLETE',
    outputs: name.includes('Probe')
      ? {
          QueueUrl: QUEUE_URL,
          ...{ InfoFunction: probes.info.functionName, InfoLogs: probes.info.logGroup },
          ...{ WarnFunction: probes.warn.functionName, WarnLogs: probes.warn.logGroup },
        }
      : { Endpoint: system.url, HealthTable: health, ObjectsTable: objects, ControlTable: control },
    resources: name.includes('Probe') ? {} : functions,
  });
  const probeOf = (logicalId: string): ProbeFunction => {
    const { functionName, logGroupName } = system.functions.find(({ plan }) => plan.logicalId === logicalId)!.plan;
    return { functionName, logGroup: logGroupName };
  };
  const probes = { info: probeOf('InfoFunction'), warn: probeOf('WarnFunction') };
  fireSchedule();
  const output = join(folder, 'report.json');
  const io = { environment, nowMs: Date.now(), print: () => {} };
  const args = ['--region', REGION, '--yes', '--window', String(WINDOW_SECONDS), '--output', output];
  await proveCommand(args, io, {
    find: async () => ({ accessKeyId: 'local', secretAccessKey: 'local' }),
    stacksOf: (account, deployment) => ({
      ...awsStacks(account, deployment),
      deployCluster: async ({ name }) => void (await fetch(`${cloudFormation.url}/deploy?${name}`)),
    }),
    callsOf(account, cluster) {
      // The emulation was started with tokens of its own.
      // Of CloudWatch Logs, the stand-in has the groups of stacks, and the emulation has what functions write.
      const environmentOfCalls = { ...environment, AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: logsEndpoint };
      const calls = awsCalls(
        { ...account, environment: environmentOfCalls, ca: system.caPem },
        { ...cluster, token: system.adminToken },
      );
      const tables = { health, objects, control };
      const named = (id: string): string =>
        functions[Object.keys(functions).find((key) => key.startsWith(id)) ?? ''] ?? '';
      const pause = async (milliseconds: number) => void (await sleep(Math.min(milliseconds, PAUSE_MS_MAX)));
      measuring = {
        calls: { ...calls, pause },
        cluster: {
          tables,
          functions: { api: named('ClusterApiFunction'), watch: named('ClusterWatchStreamWatchFunction') },
          queueUrl: QUEUE_URL,
          probes,
        },
        suffix: 'again',
        windowSeconds: WINDOW_SECONDS,
      };
      return { ...calls, pause };
    },
    directory: folder,
    sleep: async () => {},
    interrupted: () => new Promise(() => {}),
  }).catch((error: unknown) => console.log(String(error)));
  report = (JSON.parse(readFileSync(output, 'utf8')) as { report: Report }).report;
}, 240_000);

afterAll(async () => {
  await system?.stop();
  await cloudFormation?.close();
  await sqs?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it.each(FACTS)('$id is measured, and true unless it is a time', ({ id }) => {
  const { verdict, reason, measured } = report.facts.find((fact) => fact.id === id)!;
  const expected = TIMES.includes(id) ? {} : { verdict: 'true' };
  expect({ verdict, reason, measured }).toMatchObject({ measured: expect.anything(), ...expected });
});

it('leaves nothing', () => {
  expect(report.left).toEqual([]);
  expect([...cloudFormation.stacks.keys(), ...cloudFormation.logGroups]).toEqual([]);
});

type World = (calls: Calls) => Partial<Calls>;

/** Answers of one action of DynamoDB become others. */
const dynamodb =
  (action: string, changed: (body: Record<string, unknown>, status: number) => object, status = 200): World =>
  (calls) => ({
    async json(service, called, input) {
      const answer = await calls.json(service, called, input);
      if (called !== action) return answer;
      return { status, body: { ...answer.body, ...changed({ ...answer.body }, answer.status) } };
    },
  });
const units = (changed: (CapacityUnits: number) => number, action: string): World =>
  dynamodb(action, ({ ConsumedCapacity: consumed }) => ({
    ConsumedCapacity: [consumed]
      .flat()
      .map((one) => ({ CapacityUnits: changed(Number((one as { CapacityUnits: number }).CapacityUnits)) })),
  }));
const accepting = (action: string): World =>
  dynamodb(action, () => ({ __type: undefined, CancellationReasons: undefined }));
const ec2 =
  (status: number, text: string): World =>
  () => ({ ec2: async () => ({ status, text }) });

const http =
  (changed: (answer: HttpAnswer, request: HttpRequest) => Partial<HttpAnswer>): World =>
  (calls) => ({
    async http(request) {
      const answer = await calls.http(request);
      return { ...answer, ...changed(answer, request) };
    },
  });
const accepted: World = http(() => ({ status: 200, text: '{"gitVersion":"v1"}' }));
const streaming =
  (status: number, arrivedAfterMs = 0): World =>
  () => ({
    stream: async () => ({
      status,
      headers: {},
      arrival: async () => Date.now() + arrivedAfterMs,
      abandon: () => {},
    }),
  });

/** Lines of CloudWatch Logs become others. */
const logLines =
  (changed: (lines: readonly string[], group: string) => readonly string[]): World =>
  (calls) => ({
    async json(service, action, input) {
      const { status, body } = await calls.json(service, action, input);
      if (service !== 'logs') return { status, body };
      const lines = (body['events'] as readonly { readonly message: string }[]).map(({ message }) => message);
      const events = changed(lines, String(input['logGroupName'])).map((message) => ({ message }));
      return { status, body: { ...body, events } };
    },
  });
const alsoAtWarn = (line: string): World =>
  logLines((lines, group) => (group === measuring.cluster.probes.warn.logGroup ? [...lines, line] : lines));
/** Reports with another billed duration. */
const billed = (changed: (metrics: { readonly durationMs: number }) => number): World =>
  logLines((lines) =>
    lines.map((line) => {
      const event = JSON.parse(line);
      if (event.type !== 'platform.report') return line;
      const { metrics } = event.record;
      return JSON.stringify({ ...event, record: { metrics: { ...metrics, billedDurationMs: changed(metrics) } } });
    }),
  );

/** Each look at this clock is half a second later. */
function fastClock(): Pick<Calls, 'nowMs'> {
  let nowMs = Date.now();
  return {
    nowMs: () => {
      nowMs += 500;
      return nowMs;
    },
  };
}
/** Messages, each received twice a look. */
const messages =
  (answered: readonly { readonly body: object; readonly sentAtMs: number; readonly receivedAtMs: number }[]): World =>
  (calls) => ({
    ...fastClock(),
    async json(service, action, input) {
      if (service !== 'sqs') return calls.json(service, action, input);
      const Messages = answered.map(({ body, sentAtMs, receivedAtMs }) => ({
        Body: JSON.stringify(body),
        ReceiptHandle: 'handle',
        Attributes: { SentTimestamp: String(sentAtMs), ApproximateFirstReceiveTimestamp: String(receivedAtMs) },
      }));
      return { status: 200, body: action === 'ReceiveMessage' ? { Messages } : {} };
    },
  });
/** Claims of node-monitor, each look another one. */
const ticks =
  ({ slotsApart, lateMs }: { readonly slotsApart: number; readonly lateMs: number }): World =>
  () => {
    let claims = 100;
    return {
      ...fastClock(),
      async json() {
        claims += 1;
        const slot = claims * slotsApart;
        const row = { slot, at: slot * 5_000 + lateMs, fence: claims };
        const Item = Object.fromEntries(Object.entries(row).map(([name, value]) => [name, { N: String(value) }]));
        return { status: 200, body: { Item } };
      },
    };
  };

/** Each fact's answer in a world in which it is false. */
const FALSE: Readonly<Record<string, World>> = {
  'lambda-cold-start': http(() => ({ durationMs: 9_000 })),
  'function-clock': http(({ headers }) => ({
    headers: { ...headers, date: new Date(Date.parse(String(headers['date'])) + 5_000).toUTCString() },
  })),
  'http-api-header-size': accepted,
  'http-api-body-size': accepted,
  'watch-redirect': http(({ headers }) => ({ headers: { ...headers, location: `${system.url}/elsewhere` } })),
  'url-change-delay': streaming(200, 20_000),
  'url-held-chunk': http(({ text }) => ({ text: text.replace(/"paddingBytes":\d+/, '"paddingBytes":16384') })),
  'stream-delay': (calls) => ({
    ...http(({ text }) => ({ text: text.replaceAll('unschedulable', '') }))(calls),
    ...fastClock(),
  }),
  'http-api-stopped-function': (calls) => ({ ...accepted(calls), ...fastClock() }),
  'url-stopped-function': (calls) => ({ ...streaming(200)(calls), ...fastClock() }),
  'url-abandoned-stream': streaming(200),
  'http-api-throttle': accepted,
  'lambda-log-level': alsoAtWarn('{"message":"prove-line-info"}'),
  'lambda-log-without-level': alsoAtWarn('{"message":"prove-line-none"}'),
  'lambda-system-log-level': alsoAtWarn('{"type":"platform.report","record":{"status":"success"}}'),
  'lambda-billed-duration': billed(() => 100),
  'lambda-billed-init': billed(({ durationMs }) => Math.ceil(durationMs)),
  'sqs-delay': messages([{ body: { delaySeconds: 5 }, sentAtMs: 0, receivedAtMs: 15_000 }]),
  'schedule-minute': messages(
    [1, 2, 4].map((minute) => ({ body: { from: 'schedule' }, sentAtMs: minute * MINUTE_MS, receivedAtMs: 0 })),
  ),
  'tick-lateness': ticks({ slotsApart: 1, lateMs: 4_000 }),
  'tick-chain': ticks({ slotsApart: 12, lateMs: 0 }),
  'dynamodb-write-unit': units((one) => one + 1, 'UpdateItem'),
  'dynamodb-transaction-units': units((one) => one / 2, 'TransactWriteItems'),
  'dynamodb-one-winner': accepting('UpdateItem'),
  'dynamodb-condition-item': dynamodb('UpdateItem', () => ({ Item: undefined }), 400),
  'dynamodb-transaction-conflict': accepting('TransactWriteItems'),
  'dynamodb-write-conflict': accepting('UpdateItem'),
  'dynamodb-cancellation-reasons': dynamodb('TransactWriteItems', () => ({ CancellationReasons: [] }), 400),
  'dynamodb-item-size': accepting('PutItem'),
  'dynamodb-transaction-size': accepting('TransactWriteItems'),
  'dynamodb-query-page': dynamodb('Query', () => ({ Count: 4, LastEvaluatedKey: undefined })),
  'dynamodb-expired-item': dynamodb('GetItem', () => ({ Item: undefined })),
  'ec2-unknown-id': ec2(200, '<reservationSet/>'),
  'ec2-malformed-id': ec2(200, '<reservationSet/>'),
  'ec2-unknown-in-filter': ec2(400, '<Code>InvalidInstanceID.NotFound</Code>'),
  'ec2-filter-values': ec2(200, '<reservationSet/>'),
  'ec2-ids-and-pages': ec2(200, '<reservationSet/>'),
};

/** The times of a fast machine. */
const TRUE: Readonly<Record<string, World>> = {
  'lambda-cold-start': http(() => ({ durationMs: 900 })),
  'function-clock': http(({ text, headers }) => {
    const created = /"creationTimestamp":"([^"]+)"/.exec(text)?.[1] ?? '';
    return { headers: { ...headers, date: new Date(created).toUTCString() } };
  }),
  'url-change-delay': streaming(200),
  'stream-delay': http(({ text }) => ({ text: `${text} node.kubernetes.io/unschedulable` })),
  'sqs-delay': messages([{ body: { delaySeconds: 5 }, sentAtMs: 0, receivedAtMs: 5_100 }]),
  'tick-lateness': ticks({ slotsApart: 1, lateMs: 100 }),
  'tick-chain': ticks({ slotsApart: 1, lateMs: 100 }),
};

describe('where a fact is false', () => {
  it('has a false world for each fact', () => {
    expect(Object.keys(FALSE)).toEqual(FACTS.map(({ id }) => id));
  });

  it.each(FACTS)('$id is found false', async (fact) => {
    const { calls } = measuring;
    const found = await fact.prove({ ...measuring, calls: { ...calls, ...FALSE[fact.id]?.(calls) }, suffix: fact.id });
    expect(found).toMatchObject({ verdict: 'false' });
  });

  it.each(TIMES)('%s is found true', async (id) => {
    const { calls } = measuring;
    const answers = { ...calls, ...TRUE[id]?.(calls) };
    const found = await FACTS.find((fact) => fact.id === id)?.prove({
      ...measuring,
      calls: answers,
      suffix: `${id}-true`,
    });
    expect(found).toMatchObject({ verdict: 'true' });
  });
});
