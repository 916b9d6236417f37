import { randomUUID } from 'node:crypto';
import type { FunctionPlan } from '../assembly/plan.ts';
import type { AccountConcurrency } from './account-concurrency.ts';
import { Environment, type EnvironmentSetup, type RunOutcome, type StreamReceiver } from './environment.ts';
import { CHAIN_INVOCATIONS_MAX, traceOf } from './lineage.ts';
import { isAtLeast, passesLogLevel } from './log-level.ts';
import type { FunctionError } from './protocol.ts';
import { type Invocation, reportLine, type SystemLine, startLine } from './system-lines.ts';

export type InvocationOutcome =
  /** `payload` is the JSON text the handler returned. */
  | { readonly kind: 'returned'; readonly payload: string }
  /** The handler threw, its process exited, or it could not be loaded. */
  | { readonly kind: 'failed'; readonly error: FunctionError }
  | { readonly kind: 'timedOut' }
  /** The receiver of a streamed response disconnected, and `awsLimits` is off. */
  | { readonly kind: 'abandoned' }
  /** Recursive loop detection stopped the chain of requests. */
  | { readonly kind: 'recursive' }
  /** A concurrency limit is reached, more events wait than can be kept, or the local mode is stopping. */
  | { readonly kind: 'throttled' };

export interface FunctionCounters {
  invocations: number;
  errors: number;
  timeouts: number;
  throttles: number;
  /** Invocations that recursive loop detection refused, as in the metric of this name. */
  recursiveInvocationsDropped: number;
  /** Environments started, replacements included. */
  environmentsStarted: number;
  /**
   * Time of the handlers on this machine, each invocation rounded up as Lambda bills it. Without the loading of
   * environments, which is billed once each: a measurement would project it to every hour. Milliseconds.
   */
  billedMs: number;
  /** What was printed, as CloudWatch Logs would bill it. */
  logBytes: number;
}

export interface LocalFunctionOptions {
  readonly plan: FunctionPlan;
  /** Environments at most; each processes one event at a time. */
  readonly environmentsMax: number;
  /** False: an event is throttled while all environments are busy. Default: it waits for one. */
  readonly waits?: boolean;
  /** Whether environments are frozen between events, and are not ended when the receiver of a stream disconnects. */
  readonly awsLimits: boolean;
  /** Limits of the account. Undefined: none. */
  readonly concurrency?: Pick<AccountConcurrency, 'begin'> | undefined;
  readonly variables: Readonly<Record<string, string>>;
  readonly caPem: string | undefined;
  /** Folder of compiled code that environments share. Undefined: each compiles its own. */
  readonly compileCache?: string | undefined;
  /** A line that a function printed. */
  onLine(line: string): void;
  /** A line that Lambda writes about an invocation. */
  onSystemLine?(line: string): void;
  /** An invocation went wrong. */
  onError(error: FunctionError): void;
}

/** Added to each event by CloudWatch Logs (PutLogEvents). */
const LOG_EVENT_BYTES = 26;
const STATUSES: Readonly<Record<RunOutcome['kind'], Invocation['status']>> = {
  returned: 'success',
  failed: 'error',
  timedOut: 'timeout',
  abandoned: 'failure',
};
const NO_LIMIT = { end: () => {} };
/** An environment that was idle this long is ended. */
const IDLE_MS = 600_000;
/** Events kept waiting for an environment. */
const WAITING_MAX = 1_000;

/** A Lambda function on this machine: a pool of environments that grows on demand and replaces what broke. */
export class LocalFunction {
  readonly counters: FunctionCounters = {
    invocations: 0,
    errors: 0,
    timeouts: 0,
    throttles: 0,
    recursiveInvocationsDropped: 0,
    environmentsStarted: 0,
    billedMs: 0,
    logBytes: 0,
  };
  #options: LocalFunctionOptions;
  #idle: Environment[] = [];
  #busy = new Set<Environment>();
  /** Of earlier code: they process no further event. */
  #outdated = new WeakSet<Environment>();
  #waiting: ((environment: Environment | undefined) => void)[] = [];
  #idleSinceMs = new WeakMap<Environment, number>();
  #sweeper: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: LocalFunctionOptions) {
    this.#options = options;
  }

  get plan(): FunctionPlan {
    return this.#options.plan;
  }

  /** What its environments see. */
  get variables(): Readonly<Record<string, string>> {
    return this.#options.variables;
  }

  /** Loads the first environment ahead of the first event. */
  async warm(): Promise<void> {
    const environment = this.#start();
    this.#idle.push(environment);
    try {
      await environment.ready;
    } catch {
      // Reported for the first event, as in AWS.
    }
  }

  /**
   * One event through one environment. Never throws: what went wrong is the outcome, reported through onError too.
   * A handler that streams writes to the receiver; without one its response is lost. The trace header is that of the
   * request that causes the invocation.
   */
  async invoke(event: unknown, receiver?: StreamReceiver, traceHeader?: string): Promise<InvocationOutcome> {
    const { concurrency, awsLimits } = this.#options;
    const trace = traceOf(this.plan.arn, traceHeader);
    if (awsLimits && !this.plan.mayRecur && trace.invocations > CHAIN_INVOCATIONS_MAX) return this.#stopChain();
    // An event that waits here for an environment would run in an environment of its own on AWS: it counts.
    const slot = concurrency === undefined ? NO_LIMIT : concurrency.begin(this.plan.logicalId);
    try {
      const environment = slot === undefined ? undefined : await this.#acquire();
      if (environment === undefined) {
        this.counters.throttles += 1;
        return { kind: 'throttled' };
      }
      return await this.#run(environment, event, trace.header, receiver);
    } finally {
      slot?.end();
    }
  }

  #stopChain(): InvocationOutcome {
    this.counters.recursiveInvocationsDropped += 1;
    this.#options.onError({
      errorType: 'RecursiveInvocationException',
      errorMessage: `the function ran ${CHAIN_INVOCATIONS_MAX} times in one chain of requests`,
      stack: '',
    });
    return { kind: 'recursive' };
  }

  async #run(
    environment: Environment,
    event: unknown,
    traceHeader: string,
    receiver?: StreamReceiver,
  ): Promise<InvocationOutcome> {
    this.counters.invocations += 1;
    const { timeoutSeconds } = this.plan;
    await environment.ready.catch(() => {});
    const message = {
      requestId: randomUUID(),
      deadlineMs: Date.now() + timeoutSeconds * 1_000,
      traceHeader,
      event: JSON.stringify(event),
    };
    const initMs = environment.takeInitMs();
    this.#writeSystemLine(startLine(message.requestId, Date.now()));
    const startedMs = performance.now();
    const outcome = await environment.run(message, receiver);
    const durationMs = performance.now() - startedMs;
    this.counters.billedMs += Math.ceil(durationMs);
    const status = STATUSES[outcome.kind];
    const { requestId } = message;
    const { memoryMegabytes } = this.plan;
    this.#writeSystemLine(reportLine({ requestId, status, durationMs, initMs, memoryMegabytes }, Date.now()));
    this.#release(environment);
    // A stop cuts off every running event, such as an open watch. That is no error of the function.
    const cutOff = this.#stopping && environment.dead;
    if (outcome.kind === 'failed' && !cutOff) {
      this.counters.errors += 1;
      this.#options.onError(outcome.error);
    }
    if (outcome.kind === 'timedOut') {
      this.counters.timeouts += 1;
      this.#options.onError({
        errorType: 'Sandbox.Timedout',
        errorMessage: `timed out after ${timeoutSeconds} s`,
        stack: '',
      });
    }
    return outcome;
  }

  #writeSystemLine({ level, line }: SystemLine): void {
    const { logFormat, systemLogLevel } = this.plan;
    if (logFormat !== 'JSON' || !isAtLeast(level, systemLogLevel ?? 'INFO')) return;
    this.#countLog(line);
    this.#options.onSystemLine?.(line);
  }

  #countLog(line: string): void {
    this.counters.logBytes += Buffer.byteLength(line) + LOG_EVENT_BYTES;
  }

  /** CPU time of the environments that live. Milliseconds. */
  async cpuMs(): Promise<number> {
    const living = [...this.#idle, ...this.#busy];
    const each = await Promise.all(living.map((environment) => environment.cpuMs()));
    return each.reduce((sum, ms) => sum + ms, 0);
  }

  /** Heap of the environments that live, garbage included. */
  async heapBytes(): Promise<number> {
    const each = await Promise.all([...this.#idle, ...this.#busy].map((environment) => environment.heapBytes()));
    return each.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Ends every environment, in the middle of an event too, as AWS may at any time; the next event gets a new one. */
  async endEnvironments(): Promise<void> {
    await Promise.all([...this.#idle, ...this.#busy].map((environment) => environment.terminate()));
  }

  /**
   * UpdateFunctionCode and UpdateFunctionConfiguration. Events that run end with the earlier code; later ones run in
   * new environments.
   */
  async update(next: Pick<LocalFunctionOptions, 'plan' | 'variables' | 'compileCache'>): Promise<void> {
    this.#options = { ...this.#options, ...next };
    for (const environment of this.#busy) this.#outdated.add(environment);
    await Promise.all(this.#idle.splice(0).map((environment) => environment.terminate()));
  }

  get environments(): number {
    return this.#idle.length + this.#busy.size;
  }

  get inFlight(): number {
    return this.#busy.size + this.#waiting.length;
  }

  /** No more events; those running are cut off. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#sweeper);
    for (const wake of this.#waiting.splice(0)) wake(undefined);
    await Promise.all([...this.#idle, ...this.#busy].map((environment) => environment.terminate()));
  }

  #acquire(): Promise<Environment | undefined> {
    if (this.#stopping || this.#waiting.length >= WAITING_MAX) return Promise.resolve(undefined);
    let environment = this.#idle.pop();
    while (environment?.dead) environment = this.#idle.pop();
    if (environment === undefined && this.#busy.size < this.#options.environmentsMax) environment = this.#start();
    if (environment === undefined) {
      if (this.#options.waits === false) return Promise.resolve(undefined);
      return new Promise((resolve) => this.#waiting.push(resolve));
    }
    this.#busy.add(environment);
    return Promise.resolve(environment);
  }

  #release(environment: Environment): void {
    this.#busy.delete(environment);
    const isUsable = !environment.dead && !this.#outdated.has(environment);
    if (!isUsable) void environment.terminate();
    const wake = this.#waiting.shift();
    if (wake === undefined) {
      if (isUsable) this.#keepIdle(environment);
      return;
    }
    const next = isUsable ? environment : this.#start();
    this.#busy.add(next);
    wake(next);
  }

  /** The environments used last are used first, so the others become old. */
  #keepIdle(environment: Environment): void {
    this.#idle.push(environment);
    if (!this.#options.awsLimits) return;
    this.#idleSinceMs.set(environment, performance.now());
    this.#sweeper ??= setTimeout(() => this.#endIdle(), IDLE_MS).unref();
  }

  /** Lambda terminates environments that were idle for some minutes. It publishes no time. */
  #endIdle(): void {
    this.#sweeper = undefined;
    const nowMs = performance.now();
    const isOld = (each: Environment) => nowMs - (this.#idleSinceMs.get(each) ?? nowMs) >= IDLE_MS;
    const old = this.#idle.filter(isOld);
    this.#idle = this.#idle.filter((each) => !isOld(each));
    for (const each of old) void each.terminate();
    if (this.#idle.length > 0) this.#sweeper = setTimeout(() => this.#endIdle(), IDLE_MS).unref();
  }

  #start(): Environment {
    this.counters.environmentsStarted += 1;
    const { plan, variables, caPem, compileCache, awsLimits, onLine } = this.#options;
    const setup: EnvironmentSetup = {
      codePath: plan.codePath,
      handler: plan.handler,
      functionName: plan.functionName,
      functionArn: plan.arn,
      memoryMegabytes: plan.memoryMegabytes,
      caPem,
      variables,
      compileCache,
      awsLimits,
      onLine: (line) => {
        if (!passesLogLevel(line, plan.logLevel)) return;
        this.#countLog(line);
        onLine(line);
      },
    };
    return new Environment(setup);
  }
}

/** Environments share one: it is not read here. */
export const LOG_STREAM = 'local';

/** The variables a function sees: those of the template, and what the Lambda runtime adds. */
export function functionVariables(
  plan: FunctionPlan,
  options: {
    readonly region: string;
    readonly dynamodbEndpoint: string;
    readonly ec2Endpoint: string;
    readonly logsEndpoint: string;
    readonly eventsEndpoint: string;
    readonly sqsEndpoint: string;
    readonly lambdaEndpoint: string;
    readonly noServiceEndpoint: string;
    /** Identifies the function to the services. */
    readonly accessKeyId?: string;
  },
): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    LANG: 'en_US.UTF-8',
    TZ: ':UTC',
    AWS_REGION: options.region,
    AWS_DEFAULT_REGION: options.region,
    AWS_ACCESS_KEY_ID: options.accessKeyId ?? 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_EC2_METADATA_DISABLED: 'true',
    // Services that do not run here must not be reached in AWS by accident.
    AWS_ENDPOINT_URL: options.noServiceEndpoint,
    AWS_ENDPOINT_URL_DYNAMODB: options.dynamodbEndpoint,
    AWS_ENDPOINT_URL_EC2: options.ec2Endpoint,
    AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: options.logsEndpoint,
    AWS_ENDPOINT_URL_EVENTBRIDGE: options.eventsEndpoint,
    AWS_ENDPOINT_URL_SQS: options.sqsEndpoint,
    AWS_ENDPOINT_URL_LAMBDA: options.lambdaEndpoint,
    AWS_EXECUTION_ENV: `AWS_Lambda_${plan.runtime}`,
    AWS_LAMBDA_FUNCTION_NAME: plan.functionName,
    AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(plan.memoryMegabytes),
    AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
    AWS_LAMBDA_LOG_GROUP_NAME: plan.logGroupName,
    AWS_LAMBDA_LOG_STREAM_NAME: LOG_STREAM,
    AWS_LAMBDA_LOG_FORMAT: plan.logFormat,
    ...(plan.logLevel === undefined ? {} : { AWS_LAMBDA_LOG_LEVEL: plan.logLevel }),
    LAMBDA_TASK_ROOT: plan.codePath,
    _HANDLER: plan.handler,
    ...plan.environment,
  };
}
