import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openCredentials, staticTokensOf, writeKubeconfig } from '../shared/host/credentials.ts';
import { openDataDirectory } from '../shared/host/data-directory.ts';
import { isFullDisk } from '../shared/host/full-disk.ts';
import { StartError } from '../shared/host/start-error.ts';
import { type Assembly, readAssembly } from './assembly/assembly.ts';
import {
  type FunctionPlan,
  functionUrlIds,
  type LocalPlan,
  planLocalMode,
  type StreamSourcePlan,
  type TablePlan,
} from './assembly/plan.ts';
import { emulationContext, synthesise } from './assembly/synthesise.ts';
import { noteFailureQueue, noteFunctionLog, noteQueueSource, noteStreamSource } from './calls/lambda-calls.ts';
import { type CallRecorder, startCallRecorder } from './calls/recorder.ts';
import { type EventBus, openEventBus } from './cloud/event-rules.ts';
import { stateChangeEvent } from './cloud/events.ts';
import { type LocalCloud, startLocalCloud } from './cloud/server.ts';
import { requireSameResources } from './deployment.ts';
import { type DynamoDbFront, type FrontCounters, startDynamoDbFront } from './dynamodb/dynamodb-front.ts';
import type { KeyNames } from './dynamodb/table-request.ts';
import { ENGINE_DATABASE, makeDatabaseFile, NO_DATABASE } from './engine/database-file.ts';
import { connectEngine, type Engine, engineBinary, startEngine } from './engine/engine.ts';
import { tendStreamRecords } from './engine/stream-records.ts';
import { createTables } from './engine/tables.ts';
import { type EventServer, startEventServer } from './event-bus/event-server.ts';
import {
  ACCOUNT_CONCURRENCY_DEFAULT,
  type AccountConcurrency,
  accountConcurrency,
  type ConcurrencyReport,
} from './functions/account-concurrency.ts';
import { type AsyncEvents, asyncEvents } from './functions/async-events.ts';
import { type InvokeServer, startInvokeServer } from './functions/invoke-server.ts';
import { type FunctionCounters, functionVariables, LocalFunction } from './functions/local-function.ts';
import type { AwsJsonServer } from './http/aws-json-server.ts';
import { CHUNK_HOLD_DEFAULT, type ChunkHold } from './http/held-chunks.ts';
import { type HttpCounters, type HttpFront, openHttpFront } from './http/server.ts';
import { type LogServer, startLogServer } from './logs/log-server.ts';
import { createOutput, metricsFile, noMetrics, noticeTo, type Output } from './output.ts';
import { LocalQueue } from './queues/queue.ts';
import { type QueueSource, startQueueSource } from './queues/queue-source.ts';
import { startSqsServer } from './queues/sqs-server.ts';
import { takeRunLock } from './run-lock.ts';
import { type ScheduleTiming, startScheduler } from './schedule/scheduler.ts';
import { serviceNowMs } from './service-clock.ts';
import { openPositions, type Positions } from './streams/positions.ts';
import { type StreamCounters, type StreamSource, startStreamSource } from './streams/stream-source.ts';

/**
 * The whole system on one machine. What runs is read off the CloudFormation that the CDK app writes: its tables in an
 * engine that speaks DynamoDB, its bundled functions in threads, its routes behind a TLS listener, its queues, streams,
 * schedules and event rules in this process, beside an EC2 on loopback. Nothing here knows what the functions do.
 *
 * Order of life: port, credentials, synthesis, engine, tables, EC2, functions, listener open, queues, streams,
 * schedules, events; and back in the opposite order. A start that fails stops what it had started.
 */
export interface LocalOptions {
  /** Folder for everything kept. Undefined: nothing is kept. */
  readonly dataDirectory?: string | undefined;
  /** 0, the default, is any free port. */
  readonly port?: number;
  /** False: no schedules, streams and queues. Objects change only by requests. */
  readonly controllers?: boolean;
  /** When schedules fire within their minute. @default as in AWS */
  readonly schedule?: ScheduleTiming;
  /** YAML file of policy fields. */
  readonly policyFile?: string | undefined;
  readonly synthesis?: 'auto' | 'always' | 'never';
  /** An assembly that exists already; nothing is synthesised. */
  readonly assemblyDirectory?: string;
  /** Values for parameters of the template besides the tokens. */
  readonly parameters?: Readonly<Record<string, string>>;
  /**
   * Behave as AWS does where the machine would allow more: limits of DynamoDB and Lambda, frozen environments. Default:
   * true. Measurements of CPU turn it off (docs/local-mode.md).
   */
  readonly awsLimits?: boolean;
  /** Concurrent executions of all functions. Default: 1,000, as in an account that has raised nothing. */
  readonly accountConcurrency?: number;
  /** What function URLs do with small chunks of a stream. @default CHUNK_HOLD_DEFAULT */
  readonly chunkHold?: ChunkHold;
  /** Execution environments of a function behind a route; others get one. */
  readonly routeEnvironmentsMax?: number;
  /** An engine that runs already, `http://host:port`. Default: the DYNAMODB_ENDPOINT variable, else our own. */
  readonly dynamodbEndpoint?: string | undefined;
  /** File for the calls of each function to AWS, written on stop. Undefined: no recording, at no cost. */
  readonly recordCallsFile?: string | undefined;
  /** Receives the log of the system, line by line. Default: standard error. */
  print?(line: string): void;
}

export interface LocalSystem {
  /** Base URL of the API: `https://127.0.0.1:port`. */
  readonly url: string;
  /** The same through the URL of its function. Undefined without the policy field `apiUrl`. */
  readonly apiUrl: string | undefined;
  readonly caPem: string;
  readonly adminToken: string;
  /** For simulated machines: user `fleet`. */
  readonly fleetToken: string;
  readonly kubeconfigPath: string;
  readonly dataDirectory: string;
  /** The policy the functions run with. */
  readonly policy: Readonly<Record<string, unknown>>;
  /** Time each part of the start took. Milliseconds. */
  readonly timings: Readonly<Record<string, number>>;
  /** The EC2 that the functions ask. */
  readonly cloud: LocalCloud;
  readonly region: string;
  /** The functions, and the variables that their environments see: to run one elsewhere. */
  readonly functions: readonly Pick<LocalFunction, 'plan' | 'variables'>[];
  /** Where the functions send their requests to DynamoDB, and their tables. */
  readonly dynamodb: { readonly endpoint: string; readonly tableNames: readonly string[] };
  /** Settles with a reason when the system can no longer work. */
  readonly broken: Promise<string>;
  counters(): Promise<LocalCounters>;
  /** Terminates every execution environment at once, also during an event. New ones replace them. */
  endEnvironments(): Promise<void>;
  /**
   * Deploys another assembly over the same tables while the system serves, as CloudFormation updates a stack: one
   * function after the other, with a pause.
   *
   * @throws StartError for an assembly with other resources than functions and filters: those are changed by a restart
   */
  deploy(assemblyDirectory: string, pauseMs: number): Promise<void>;
  /** Everything, in order, within a bound. */
  stop(): Promise<void>;
  /** Like a power cut: nothing is finished or written. The kept data can be started again. */
  kill(): Promise<void>;
}

export interface LocalCounters {
  readonly http: HttpCounters;
  readonly functions: Readonly<Record<string, FunctionReport>>;
  /** By name of the function that is fed. */
  readonly streams: Readonly<Record<string, StreamCounters>>;
  readonly queues: Readonly<Record<string, QueueReport>>;
  readonly schedulesFired: number;
  /** Events of EC2 that a rule of the template matched. */
  readonly eventsMatched: number;
  readonly enginePid: number | undefined;
  /** Undefined without `awsLimits`. */
  readonly concurrency: ConcurrencyReport | undefined;
  /** Requests that were refused as DynamoDB refuses them. Undefined without `awsLimits`. */
  readonly dynamodb: FrontCounters | undefined;
}

export interface FunctionReport extends FunctionCounters {
  /** CPU time of the function's living threads. Milliseconds. */
  readonly cpuMs: number;
  readonly environments: number;
  /** Events that run or wait for an environment. */
  readonly inFlight: number;
  /** Heap of those that live, garbage included. */
  readonly heapBytes: number;
}

export interface QueueReport {
  readonly visible: number;
  readonly hidden: number;
  readonly sent: number;
  readonly deleted: number;
  readonly expired: number;
  readonly deadLettered: number;
}

const projectDirectory = fileURLToPath(new URL('..', import.meta.url));
const REGION = 'us-east-1';
const ACCOUNT = '000000000000';
const PLACE = { region: REGION, accountId: ACCOUNT };
/** Compiled code of the bundles, in the folder of their assembly: it is deleted together with them. */
const COMPILE_CACHE = 'compile-cache';
const TOKENS_PARAMETER = 'StaticTokens';
/** The discard port: nothing listens there. A call to a service that does not run here fails at once. */
const NO_SERVICE_ENDPOINT = 'http://127.0.0.1:9';
/** Time that an instance of the local EC2 needs to start, to stop and to shut down: long enough to be visible. */
const INSTANCE_TURN_MS = 3_000;
/** EC2's own for calls that change nothing. */
const EC2_BUCKET = { burst: 100, refillPerSecond: 20 };
/** Offsets of schedules within their minute follow from it. */
const SCHEDULE_SEED = 1;
const DRAIN_MS = 3_000;
const ROUTE_ENVIRONMENTS_MAX = 2;
/**
 * A held watch keeps an environment to itself. These are for requests beyond `concurrentWatchesMax`: the function
 * refuses them itself.
 */
const SPARE_URL_ENVIRONMENTS = 8;

/** @throws StartError for faults that the user can correct */
export async function startLocal(options: LocalOptions = {}): Promise<LocalSystem> {
  const start: Start = { options, timings: new Timings(), undo: new Undo(), nowMs: () => Date.now() };
  try {
    const access = await openAccess(start);
    const { plan, assemblyDirectory, urlFronts } = await planSystem(start, access);
    const storage = await openStorage(start, access, plan);
    const concurrency = concurrencyOf(plan, options);
    const parts = { plan, assemblyDirectory, concurrency };
    const services = await startServices(start, access, { ...parts, dynamodb: storage.endpoint });
    const { functions, functionOf } = await serveFunctions(start, access, { ...parts, urlFronts, storage, services });
    const positions = openPositions(
      access.data.ephemeral ? undefined : access.data.file('positions.json'),
      services.output.notice,
    );
    const { recorder, output } = services;
    const { engine, front, streamArns } = storage;
    const { nowMs } = start;
    const background = startBackground({
      ...{ plan, engine, streamArns, functionOf, positions, recorder, output, nowMs, options },
      ...{ queues: services.queues, asyncInvocations: services.asyncInvocations },
    });
    services.cloud.subscribe((change) => background.events.put(stateChangeEvent(change, PLACE)));
    const running = {
      plan,
      urlFronts,
      engine,
      dynamodb: front,
      services,
      functions,
      concurrency,
      positions,
      background,
    };
    return systemOf(start, access, running);
  } catch (error) {
    await start.undo.run();
    if (isFullDisk(error)) {
      throw new StartError(`the data directory cannot be written (${error.message}): free space, then start again`, {
        cause: error,
      });
    }
    throw error;
  }
}

/** What every step of a start uses. */
interface Start {
  readonly options: LocalOptions;
  readonly timings: Timings;
  /** Stops what has been started, the last first. */
  readonly undo: Undo;
  nowMs(): number;
}

/** Data directory, lock, credentials and the listener of the API. */
interface Access {
  readonly data: ReturnType<typeof openDataDirectory>;
  readonly lock: Awaited<ReturnType<typeof takeRunLock>>;
  readonly credentials: Awaited<ReturnType<typeof openCredentials>>;
  readonly caPem: string;
  readonly front: HttpFront;
  readonly url: string;
}

async function openAccess({ options, timings, undo, nowMs }: Start): Promise<Access> {
  if (options.policyFile !== undefined && !existsSync(options.policyFile)) {
    throw new StartError(`the policy file ${options.policyFile} does not exist`);
  }
  const hasOwnEngine = engineEndpointOf(options) === undefined;
  const data = openDataDirectory(options.dataDirectory, hasOwnEngine ? ENGINE_DATABASE : NO_DATABASE);
  undo.push(() => data.dispose());
  const lock = await takeRunLock(data.file('run.json'), data.databaseFile);
  undo.push(() => lock.release());
  // Before the credentials: where these exist, a missing file is a lost one.
  if (hasOwnEngine) makeDatabaseFile(data.databaseFile);
  const credentials = await openCredentials(data, nowMs());
  const caPem = credentials.authority.certificatePem;
  const front = await openHttpFront({ port: options.port ?? 0, ...credentials.server });
  undo.push(() => front.kill());
  timings.mark('listen');
  return { data, lock, credentials, caPem, front, url: `https://127.0.0.1:${front.port}` };
}

interface PlannedSystem {
  readonly plan: ServedPlan;
  readonly assemblyDirectory: string;
  /** Listeners of the function URLs, by logical id. */
  readonly urlFronts: ReadonlyMap<string, HttpFront>;
}

/** A plan with an HTTP API. */
type ServedPlan = LocalPlan & { readonly api: NonNullable<LocalPlan['api']> };

async function planSystem(start: Start, { credentials, url }: Access): Promise<PlannedSystem> {
  const { options, timings, undo } = start;
  const assemblyDirectory = options.assemblyDirectory ?? (await synthesiseProject(options, timings));
  const assembly = readAssembly(assemblyDirectory);
  const urlFronts = new Map<string, HttpFront>();
  for (const id of functionUrlIds(assembly.template)) {
    const urlFront = await openHttpFront({ port: 0, ...credentials.server });
    undo.push(() => urlFront.kill());
    urlFronts.set(id, urlFront);
  }
  const plan = servedPlan(assembly, { options, credentials, url, urlFronts });
  timings.mark('plan');
  return { plan, assemblyDirectory, urlFronts };
}

function servedPlan(
  assembly: Assembly,
  {
    options,
    credentials,
    url,
    urlFronts,
  }: Pick<Start, 'options'> & Pick<Access, 'credentials' | 'url'> & Pick<PlannedSystem, 'urlFronts'>,
): ServedPlan {
  const plan = planLocalMode(assembly, {
    ...PLACE,
    apiUrl: url,
    functionUrls: Object.fromEntries([...urlFronts].map(([id, { port }]) => [id, `https://127.0.0.1:${port}/`])),
    parameters: { [TOKENS_PARAMETER]: JSON.stringify(staticTokensOf(credentials)), ...options.parameters },
  });
  const { api } = plan;
  if (api === undefined) throw new StartError('the template has no HTTP API to serve');
  return { ...plan, api };
}

interface Storage {
  readonly engine: Engine;
  /** Undefined without `awsLimits`. */
  readonly front: DynamoDbFront | undefined;
  /** Where the functions send their requests to DynamoDB. */
  readonly endpoint: string;
  readonly streamArns: ReadonlyMap<string, string>;
}

async function openStorage(start: Start, { data: { databaseFile }, lock }: Access, plan: LocalPlan): Promise<Storage> {
  const { options, timings, undo, nowMs } = start;
  const engine = await openEngine(options, databaseFile);
  undo.push(() => engine.stop());
  lock.engineStarted(engine.pid);
  const streamArns = await createTables(engine.client, plan.tables);
  if (engine.pid !== undefined) tendStreamRecords(databaseFile, nowMs());
  const front = options.awsLimits === false ? undefined : await openDynamoDbFront(engine, plan.tables, nowMs);
  undo.push(() => front?.stop());
  timings.mark('engine');
  return { engine, front, endpoint: front?.endpoint ?? engine.endpoint, streamArns };
}

const openDynamoDbFront = (engine: Engine, tables: readonly TablePlan[], nowMs: () => number) =>
  startDynamoDbFront({
    engineEndpoint: engine.endpoint,
    tables: tables.map(({ tableName, arn, capacity, definition }) => ({
      tableName,
      arn,
      capacity,
      keys: keyNames(definition['KeySchema']),
    })),
    nowMs,
  });

function keyNames(schema: unknown): KeyNames {
  const named = (type: string) =>
    (schema as readonly { AttributeName: string; KeyType: string }[]).find(({ KeyType }) => KeyType === type)
      ?.AttributeName;
  return { partitionKey: named('HASH') ?? '', sortKey: named('RANGE') };
}

/** AWS on loopback, besides the tables, and the destination of output. */
interface Services {
  readonly cloud: LocalCloud;
  readonly logs: LogServer;
  readonly eventServer: EventServer;
  readonly sqs: AwsJsonServer;
  readonly lambda: InvokeServer;
  readonly queues: ReadonlyMap<string, LocalQueue>;
  readonly asyncInvocations: AsyncInvocations;
  readonly metrics: ReturnType<typeof metricsFile>;
  readonly output: Output;
  readonly recorder: CallRecorder | undefined;
}

async function startServices(
  { options, undo, nowMs }: Start,
  { data }: Access,
  {
    plan,
    dynamodb,
    assemblyDirectory,
    concurrency,
  }: {
    readonly plan: LocalPlan;
    readonly dynamodb: string;
    readonly assemblyDirectory: string;
    readonly concurrency: AccountConcurrency | undefined;
  },
): Promise<Services> {
  const print = options.print ?? ((line: string) => process.stderr.write(`${line}\n`));
  const notice = noticeTo(print);
  const cloud = await startLocalCloud({
    clock: { nowMs },
    ...PLACE,
    file: data.ephemeral ? undefined : data.file('cloud.json'),
    onTrouble: notice,
    bucket: EC2_BUCKET,
    startingMs: INSTANCE_TURN_MS,
    stoppingMs: INSTANCE_TURN_MS,
    shuttingDownMs: INSTANCE_TURN_MS,
    detachingMs: INSTANCE_TURN_MS,
  });
  undo.push(() => cloud.stop());
  const logs = await startLogServer(data.path, () => 'audit.log');
  undo.push(() => logs.stop());
  const eventServer = await startEventServer({ file: data.file('events.jsonl'), ...PLACE });
  undo.push(() => eventServer.stop());
  const metrics = data.ephemeral ? noMetrics : metricsFile(data.file('metrics.jsonl'), notice);
  const output = createOutput(print, metrics);
  const queues = createQueues(plan, output);
  const queueByUrl = new Map(plan.queues.map(({ url, logicalId }) => [url, queues.get(logicalId)!]));
  const sqs = await startSqsServer({ queueByUrl: (url) => queueByUrl.get(url), nowMs: serviceNowMs });
  undo.push(() => sqs.stop());
  const asyncInvocations = new AsyncInvocations(nowMs);
  undo.push(() => asyncInvocations.stop());
  const lambda = await startInvokeServer({
    put: (...call) => asyncInvocations.putByName(...call),
    reserve(name, executions) {
      const named = plan.functions.find(({ functionName, arn }) => name === functionName || name === arn);
      if (named === undefined) return 'notFound';
      return concurrency?.reserve(named.logicalId, executions) === false ? 'refused' : 'reserved';
    },
  });
  undo.push(() => lambda.stop());
  const recorder =
    options.recordCallsFile === undefined
      ? undefined
      : await startCallRecorder({
          ...PLACE,
          assembly: assemblyDirectory,
          file: options.recordCallsFile,
          services: {
            dynamodb,
            ec2: cloud.endpoint,
            logs: logs.endpoint,
            events: eventServer.endpoint,
            sqs: sqs.endpoint,
            lambda: lambda.endpoint,
          },
          tagsOf: (id) => (cloud.world.volume(id, nowMs()) ?? cloud.world.instance(id, nowMs()))?.tags ?? {},
        });
  undo.push(() => recorder?.stop());
  return { cloud, logs, eventServer, sqs, lambda, queues, asyncInvocations, metrics, output, recorder };
}

interface ServedFunctions {
  readonly functions: ReadonlyMap<string, LocalFunction>;
  functionOf(id: string): LocalFunction;
}

/** Starts the functions, and opens the API and the function URLs. */
async function serveFunctions(
  { options, timings, undo, nowMs }: Start,
  { data, credentials, caPem, front, url }: Access,
  parts: {
    readonly plan: ServedPlan;
    readonly assemblyDirectory: string;
    readonly concurrency: AccountConcurrency | undefined;
    readonly urlFronts: ReadonlyMap<string, HttpFront>;
    readonly storage: Storage;
    readonly services: Services;
  },
): Promise<ServedFunctions> {
  const { plan, urlFronts, services, concurrency } = parts;
  const functions = createFunctions(plan, {
    endpoints: { ...services, dynamodbEndpoint: parts.storage.endpoint },
    ...services,
    caPem,
    compileCache: join(parts.assemblyDirectory, COMPILE_CACHE),
    options,
    concurrency,
  });
  undo.push(async () => {
    await Promise.all([...functions.values()].map((fn) => fn.stop()));
  });
  const functionOf = (id: string) => functions.get(id)!;
  for (const fn of functions.values()) services.asyncInvocations.serve(fn);
  const routed = new Set(plan.api.routes.map((route) => route.functionId));
  await Promise.all([...routed].map((id) => functionOf(id).warm()));
  front.serve({ api: plan.api, accountId: ACCOUNT, throttles: options.awsLimits ?? true, functionOf, nowMs });
  for (const { logicalId, functionId } of plan.functionUrls) {
    const { chunkHold = CHUNK_HOLD_DEFAULT } = options;
    urlFronts.get(logicalId)?.serveFunction({ accountId: ACCOUNT, fn: functionOf(functionId), chunkHold, nowMs });
  }
  const { adminToken, viewerToken } = credentials;
  writeKubeconfig(data.file('kubeconfig'), { url, caPem, token: adminToken, viewerToken });
  timings.mark('functions');
  return { functions, functionOf };
}

interface RunningSystem {
  readonly plan: LocalPlan;
  readonly urlFronts: ReadonlyMap<string, HttpFront>;
  readonly engine: Engine;
  readonly dynamodb: DynamoDbFront | undefined;
  readonly services: Services;
  readonly functions: ReadonlyMap<string, LocalFunction>;
  readonly concurrency: AccountConcurrency | undefined;
  readonly positions: Positions;
  readonly background: Background;
}

function systemOf(start: Start, access: Access, running: RunningSystem): LocalSystem {
  const { front, credentials, data, url, caPem } = access;
  const { engine, functions, services } = running;
  let ending: Promise<void> | undefined;
  return {
    url,
    apiUrl: apiUrlOf(running),
    caPem,
    adminToken: credentials.adminToken,
    fleetToken: credentials.fleetToken,
    kubeconfigPath: data.file('kubeconfig'),
    dataDirectory: data.path,
    policy: policyOf(running.plan.functions),
    timings: start.timings.all,
    cloud: services.cloud,
    region: REGION,
    functions: [...functions.values()],
    dynamodb: {
      endpoint: running.dynamodb?.endpoint ?? engine.endpoint,
      tableNames: running.plan.tables.map(({ tableName }) => tableName),
    },
    broken: engine.ended,
    counters: () => readCounters(front.counters, running, serviceNowMs()),
    endEnvironments: async () => {
      await Promise.all([...functions.values()].map((fn) => fn.endEnvironments()));
    },
    deploy: (assemblyDirectory, pauseMs) => deploy(start, access, running, { assemblyDirectory, pauseMs }),
    stop: () => (ending ??= stopSystem(start.undo, front, running)),
    kill: () => (ending ??= killSystem(start.undo, front, running)),
  };
}

function apiUrlOf({ plan, urlFronts }: Pick<RunningSystem, 'plan' | 'urlFronts'>): string | undefined {
  const other = plan.api?.routes.find(({ routeKey }) => routeKey === '$default');
  const own = plan.functionUrls.find(({ functionId }) => functionId === other?.functionId);
  const front = own && urlFronts.get(own.logicalId);
  return front && `https://127.0.0.1:${front.port}`;
}

/** Functions first: in the template, what invokes a function depends on it. */
async function deploy(
  { options }: Start,
  { credentials, url }: Access,
  { plan: running, urlFronts, functions, services, dynamodb, engine, background }: RunningSystem,
  { assemblyDirectory, pauseMs }: { readonly assemblyDirectory: string; readonly pauseMs: number },
): Promise<void> {
  const next = servedPlan(readAssembly(assemblyDirectory), { options, credentials, url, urlFronts });
  requireSameResources(running, next);
  const endpoints = { ...services, dynamodbEndpoint: dynamodb?.endpoint ?? engine.endpoint };
  const compileCache = join(assemblyDirectory, COMPILE_CACHE);
  for (const plan of next.functions) {
    await functions.get(plan.logicalId)?.update({ plan, variables: variablesOf(plan, endpoints), compileCache });
    await pause(pauseMs);
  }
  await background.updateStreamSources(next.streamSources);
}

/** Schedules first, then what is in progress, within a bound. */
async function stopSystem(undo: Undo, front: HttpFront, running: RunningSystem): Promise<void> {
  const { background, urlFronts, positions, services } = running;
  background.scheduler.stop();
  const drained = Promise.all([
    ...background.queueSources.map((source) => source.stop()),
    ...background.streamSources.map((source) => source.stop()),
    front.stop(),
    ...[...urlFronts.values()].map((urlFront) => urlFront.stop()),
  ]);
  await withinMs(drained, DRAIN_MS);
  positions.end();
  services.metrics.end();
  await undo.run();
}

async function killSystem(undo: Undo, front: HttpFront, running: RunningSystem): Promise<void> {
  const { background, engine, urlFronts } = running;
  background.scheduler.stop();
  engine.kill();
  for (const listener of [front, ...urlFronts.values()]) listener.kill();
  // Nothing can be written after this. The remaining steps free memory.
  await undo.run();
}

async function synthesiseProject(options: LocalOptions, timings: Timings): Promise<string> {
  const policyFile = options.policyFile === undefined ? undefined : resolve(options.policyFile);
  const synthesis = await synthesise({
    projectDirectory,
    mode: options.synthesis ?? 'auto',
    context: {
      ...emulationContext(options.accountConcurrency ?? ACCOUNT_CONCURRENCY_DEFAULT),
      ...(policyFile === undefined ? {} : { policyFile }),
    },
    inputFiles: policyFile === undefined ? [] : [policyFile],
  });
  timings.mark(synthesis.kind === 'reused' ? 'assembly reused' : 'synthesis');
  return synthesis.directory;
}

function openEngine(options: LocalOptions, databaseFile: string | undefined): Promise<Engine> {
  const endpoint = engineEndpointOf(options);
  if (endpoint !== undefined) return connectEngine(endpoint);
  return startEngine(engineBinary(projectDirectory), databaseFile);
}

/** The endpoint of an engine that somebody else runs. */
const engineEndpointOf = (options: LocalOptions): string | undefined =>
  (options.dynamodbEndpoint ?? process.env['DYNAMODB_ENDPOINT']) || undefined;

function concurrencyOf(plan: LocalPlan, options: LocalOptions): AccountConcurrency | undefined {
  if (options.awsLimits === false) return undefined;
  const reserved = plan.functions.flatMap(({ logicalId, reservedConcurrency }): [string, number][] =>
    reservedConcurrency === undefined ? [] : [[logicalId, reservedConcurrency]],
  );
  return accountConcurrency(options.accountConcurrency ?? ACCOUNT_CONCURRENCY_DEFAULT, new Map(reserved));
}

/** Where functions find the services of AWS. */
type Endpoints = Pick<Services, 'cloud' | 'logs' | 'eventServer' | 'sqs' | 'lambda' | 'recorder'> & {
  readonly dynamodbEndpoint: string;
};

const variablesOf = (
  fn: FunctionPlan,
  { dynamodbEndpoint, cloud, logs, eventServer, sqs, lambda, recorder }: Endpoints,
): Readonly<Record<string, string>> =>
  functionVariables(fn, {
    region: REGION,
    dynamodbEndpoint: recorder?.endpoint ?? dynamodbEndpoint,
    ec2Endpoint: recorder?.endpoint ?? cloud.endpoint,
    logsEndpoint: recorder?.endpoint ?? logs.endpoint,
    eventsEndpoint: recorder?.endpoint ?? eventServer.endpoint,
    sqsEndpoint: recorder?.endpoint ?? sqs.endpoint,
    lambdaEndpoint: recorder?.endpoint ?? lambda.endpoint,
    noServiceEndpoint: recorder?.endpoint ?? NO_SERVICE_ENDPOINT,
    ...(recorder === undefined ? {} : { accessKeyId: recorder.accessKeyId(fn.name) }),
  });

function createFunctions(
  plan: LocalPlan,
  {
    endpoints,
    recorder,
    caPem,
    compileCache,
    output,
    options,
    concurrency,
  }: {
    endpoints: Endpoints;
    recorder: CallRecorder | undefined;
    caPem: string;
    compileCache: string;
    output: Output;
    options: LocalOptions;
    concurrency: AccountConcurrency | undefined;
  },
): ReadonlyMap<string, LocalFunction> {
  const routed = new Set(plan.api?.routes.map((route) => route.functionId));
  const streaming = new Set(plan.functionUrls.filter(({ streams }) => streams).map(({ functionId }) => functionId));
  const watchesMax = Number(policyOf(plan.functions)['concurrentWatchesMax'] ?? 0);
  const functions = new Map<string, LocalFunction>();
  for (const fn of plan.functions) {
    const environmentsMax = streaming.has(fn.logicalId)
      ? watchesMax + SPARE_URL_ENVIRONMENTS
      : routed.has(fn.logicalId)
        ? (options.routeEnvironmentsMax ?? ROUTE_ENVIRONMENTS_MAX)
        : 1;
    endpoints.logs.groups.create(fn.logGroupName);
    const keepLine = (message: string) =>
      endpoints.logs.groups.add(fn.logGroupName, { timestamp: Date.now(), message });
    const noteLog = recorder === undefined ? () => {} : noteFunctionLog(recorder, fn, PLACE);
    functions.set(
      fn.logicalId,
      new LocalFunction({
        plan: fn,
        environmentsMax,
        // A watch holds its environment for minutes. A client that waited for one would time out.
        waits: !streaming.has(fn.logicalId),
        awsLimits: options.awsLimits ?? true,
        concurrency,
        variables: variablesOf(fn, endpoints),
        caPem,
        compileCache,
        onLine: (line) => {
          noteLog();
          keepLine(line);
          output.functionLine(fn.name, line);
        },
        onSystemLine: keepLine,
        onError: (error) => output.functionError(fn.name, error),
      }),
    );
  }
  return functions;
}

interface Background {
  readonly queues: ReadonlyMap<string, LocalQueue>;
  readonly queueSources: readonly QueueSource[];
  /** Those that run now. */
  readonly streamSources: readonly StreamSource[];
  readonly scheduler: { readonly counters: { readonly fired: number }; stop(): void };
  readonly events: EventBus;
  nameOf(functionId: string): string;
  /** UpdateEventSourceMapping: each continues at its position. */
  updateStreamSources(next: readonly StreamSourcePlan[]): Promise<void>;
}

interface BackgroundInput {
  readonly plan: LocalPlan;
  readonly engine: Engine;
  readonly streamArns: ReadonlyMap<string, string>;
  readonly positions: Positions;
  readonly recorder: CallRecorder | undefined;
  readonly output: Output;
  readonly options: LocalOptions;
  readonly queues: ReadonlyMap<string, LocalQueue>;
  /** Asynchronous invocations, by the id of the function. */
  readonly asyncInvocations: AsyncInvocations;
  functionOf(id: string): LocalFunction;
  nowMs(): number;
}

function startBackground(input: BackgroundInput): Background {
  const { plan, functionOf, nowMs, output, recorder, asyncInvocations } = input;
  const controllers = input.options.controllers ?? true;
  const { queues } = input;
  const queueOf = (id: string) => queues.get(id)!;

  const startSource = (source: StreamSourcePlan): StreamSource => {
    const engineStreamArn = input.streamArns.get(source.tableName);
    if (engineStreamArn === undefined) throw new StartError(`template: ${source.logicalId}: its table has no stream`);
    const { name } = functionOf(source.functionId).plan;
    const failureQueue = source.failureQueueId === undefined ? undefined : queueOf(source.failureQueueId);
    const failureArn = plan.queues.find((queue) => queue.logicalId === source.failureQueueId)?.arn ?? '';
    return startStreamSource({
      plan: source,
      client: recorder ? noteStreamSource(recorder, name, input.engine.client, source.streamArn) : input.engine.client,
      engineStreamArn,
      fn: functionOf(source.functionId),
      region: plan.region,
      failureQueue:
        recorder && failureQueue ? noteFailureQueue(recorder, name, failureQueue, failureArn) : failureQueue,
      positions: input.positions,
      nowMs,
      onTrouble: output.notice,
    });
  };
  const streamSources = (controllers ? plan.streamSources : []).map(startSource);
  const queueSources = (controllers ? plan.queueSources : []).map((source) => {
    const queue = queueOf(source.queueId);
    const queueArn = plan.queues.find((queue) => queue.logicalId === source.queueId)?.arn ?? '';
    const fn = functionOf(source.functionId);
    return startQueueSource({
      plan: source,
      queue: recorder ? noteQueueSource(recorder, fn.plan.name, queue, queueArn) : queue,
      queueArn,
      fn,
      region: plan.region,
      nowMs: serviceNowMs,
    });
  });
  const scheduler = startScheduler({
    schedules: controllers ? plan.schedules : [],
    nowMs,
    timing: input.options.schedule ?? { kind: 'aws', seed: SCHEDULE_SEED },
    targets: {
      sendToQueue: (queueId, body) => void queueOf(queueId).send(body, serviceNowMs()),
      invoke: (functionId, event) => asyncInvocations.put(functionId, event),
    },
  });
  const events = openEventBus(controllers ? plan.eventRules : [], (id, event) => asyncInvocations.put(id, event));
  return {
    queues,
    queueSources,
    streamSources,
    scheduler,
    events,
    nameOf: (id) => functionOf(id).plan.name,
    async updateStreamSources(next) {
      for (const [index, source] of streamSources.entries()) {
        const changed = next.find(({ logicalId }) => logicalId === source.plan.logicalId) ?? source.plan;
        if (JSON.stringify(changed) === JSON.stringify(source.plan)) continue;
        await source.stop();
        streamSources[index] = startSource(changed);
      }
    },
  };
}

/** Asynchronous invocations of all functions, which exist later than the server that accepts them. */
class AsyncInvocations {
  readonly #nowMs: () => number;
  readonly #byId = new Map<string, AsyncEvents>();
  readonly #byName = new Map<string, AsyncEvents>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  serve(fn: LocalFunction): void {
    const { logicalId, functionName, arn, async: policy } = fn.plan;
    const events = asyncEvents({ fn, policy, nowMs: this.#nowMs });
    this.#byId.set(logicalId, events);
    for (const name of [functionName, arn]) this.#byName.set(name, events);
  }

  put(functionId: string, event: unknown): void {
    this.#byId.get(functionId)?.put(event);
  }

  /** By name or ARN of the function. False: there is none. */
  putByName(name: string, event: unknown, traceHeader?: string): boolean {
    const events = this.#byName.get(name);
    events?.put(event, traceHeader);
    return events !== undefined;
  }

  stop(): void {
    for (const events of this.#byId.values()) events.stop();
  }
}

function createQueues(plan: LocalPlan, output: Output): ReadonlyMap<string, LocalQueue> {
  const queues = new Map<string, LocalQueue>();
  const failureQueues = new Set(plan.streamSources.map((source) => source.failureQueueId));
  const make = (id: string): LocalQueue => {
    const known = queues.get(id);
    if (known !== undefined) return known;
    const { redrive, ...queue } = plan.queues.find((candidate) => candidate.logicalId === id)!;
    const made = new LocalQueue({
      name: queue.queueName,
      delaySeconds: queue.delaySeconds,
      visibilityTimeoutSeconds: queue.visibilityTimeoutSeconds,
      retentionSeconds: queue.retentionSeconds,
      ...(redrive === undefined
        ? {}
        : { redrive: { maxReceiveCount: redrive.maxReceiveCount, deadLetters: make(redrive.deadLetterQueueId) } }),
    });
    queues.set(id, made);
    return made;
  };
  for (const queue of plan.queues) make(queue.logicalId);
  for (const queue of plan.queues) {
    const isDeadEnd =
      failureQueues.has(queue.logicalId) ||
      plan.queues.some((other) => other.redrive?.deadLetterQueueId === queue.logicalId);
    // In AWS an alarm watches these queues. Here a person may look at the terminal.
    if (isDeadEnd)
      make(queue.logicalId).onChange(() =>
        output.notice(`a message could not be processed and is in ${queue.queueName}`),
      );
  }
  return queues;
}

async function readCounters(
  http: HttpCounters,
  { functions, background, engine, dynamodb, concurrency }: RunningSystem,
  nowMs: number,
): Promise<LocalCounters> {
  const reports = await Promise.all(
    [...functions.values()].map(
      async (fn): Promise<[string, FunctionReport]> => [
        fn.plan.name,
        {
          ...fn.counters,
          cpuMs: await fn.cpuMs(),
          environments: fn.environments,
          inFlight: fn.inFlight,
          heapBytes: await fn.heapBytes(),
        },
      ],
    ),
  );
  const queues = [...background.queues.values()].map((queue): [string, QueueReport] => {
    const { sent, deleted, expired, deadLettered } = queue.counters;
    return [queue.settings.name, { ...queue.depth(nowMs), sent, deleted, expired, deadLettered }];
  });
  return {
    http: { ...http },
    functions: Object.fromEntries(reports),
    streams: Object.fromEntries(
      background.streamSources.map((source) => [background.nameOf(source.plan.functionId), { ...source.counters }]),
    ),
    queues: Object.fromEntries(queues),
    schedulesFired: background.scheduler.counters.fired,
    eventsMatched: background.events.counters.matched,
    enginePid: engine.pid,
    concurrency: concurrency?.report,
    dynamodb: dynamodb && { ...dynamodb.counters },
  };
}

function policyOf(functions: readonly FunctionPlan[]): Record<string, unknown> {
  const text = functions.map((fn) => fn.environment['NODEKEEPER_POLICY']).find((policy) => policy !== undefined);
  return text === undefined ? {} : (JSON.parse(text) as Record<string, unknown>);
}

async function withinMs(work: Promise<unknown>, boundMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<void>((done) => {
    timer = setTimeout(done, boundMs);
  });
  await Promise.race([work, bound]);
  clearTimeout(timer);
}

/** Steps that stop what has been started. They run once each, the last first. */
class Undo {
  #steps: (() => unknown)[] = [];

  push(step: () => unknown): void {
    this.#steps.push(step);
  }

  async run(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) await step();
  }
}

class Timings {
  readonly all: Record<string, number> = {};
  #lastMs = performance.now();

  mark(name: string): void {
    const nowMs = performance.now();
    this.all[name] = Math.round(nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }
}
