/**
 * Environment variables of each process: one schema per process. Its input is the type that cdk/ fills, where a missing
 * variable is a compile error; its output is what compose.ts receives. It uses zod/mini, which adds 19 KB to a bundle;
 * the full build adds 88.
 */

import * as z from 'zod/mini';
import { defined } from '../defined.ts';
import { ConfigError } from './config-error.ts';
import { describePolicyFault, parsePolicy } from './policy.ts';
import { STATIC_TOKENS_RULE, staticTokensIn } from './static-tokens.ts';

/** The fault "is missing" for an absent variable, the rule for an invalid one. */
const faultOf = (rule: string) => ({
  error: (issue: { readonly input?: unknown }) => (issue.input === undefined ? 'is missing' : rule),
});

const text = z.string(faultOf('must be text')).check(z.minLength(1, 'must not be empty'));

type Reading<Output> =
  | { readonly kind: 'ok'; readonly value: Output }
  | { readonly kind: 'faults'; readonly rules: readonly string[] };

/** A variable that holds JSON: `read` returns the value of the document, or every rule that it breaks. */
const jsonText = <Output>(read: (document: unknown) => Reading<Output>, malformed = 'must be JSON') =>
  z.pipe(
    text,
    z.transform((json, context) => {
      const document = parseJson(json);
      const reading: Reading<Output> =
        document.kind === 'json' ? read(document.value) : { kind: 'faults', rules: [malformed] };
      if (reading.kind === 'ok') return reading.value;
      for (const message of reading.rules) context.issues.push({ code: 'custom', message, input: json });
      return z.NEVER;
    }),
  );

const policyJson = jsonText((document) => {
  const parsed = parsePolicy(document);
  return parsed.kind === 'ok'
    ? { kind: 'ok', value: parsed.policy }
    : { kind: 'faults', rules: parsed.faults.map(describePolicyFault) };
});

const staticTokensJson = jsonText((document) => {
  const tokens = staticTokensIn(document);
  return tokens === undefined ? { kind: 'faults', rules: [STATIC_TOKENS_RULE] } : { kind: 'ok', value: tokens };
}, STATIC_TOKENS_RULE);

const FUNCTION_NAMES_RULE = 'must be a JSON object of function names by their names in the cluster';
const functionNamesJson = jsonText((document) => {
  const isNames = (value: unknown): value is Readonly<Record<string, string>> =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((name) => typeof name === 'string');
  return isNames(document) ? { kind: 'ok', value: document } : { kind: 'faults', rules: [FUNCTION_NAMES_RULE] };
}, FUNCTION_NAMES_RULE);

const LOG_LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR'] as const;

/**
 * Variables of every function. Powertools reads two of them itself, and logger.ts the level; cdk/ must set all of them.
 */
const everyFunction = {
  CLUSTER_ID: text,
  NODEKEEPER_POLICY: policyJson,
  POWERTOOLS_SERVICE_NAME: text,
  POWERTOOLS_METRICS_NAMESPACE: text,
  POWERTOOLS_LOG_LEVEL: z.enum(LOG_LEVELS, faultOf(`must be one of ${LOG_LEVELS.join(', ')}`)),
};
const allTables = { HEALTH_TABLE: text, OBJECTS_TABLE: text, CONTROL_TABLE: text };
const tokens = { STATIC_TOKENS: staticTokensJson };

type EveryFunction = z.output<z.ZodMiniObject<typeof everyFunction>>;
type AllTables = z.output<z.ZodMiniObject<typeof allTables>>;

const common = (environment: EveryFunction) => ({
  /** Role of this function, such as `heartbeat`: the service name in logs and metrics. */
  functionName: environment.POWERTOOLS_SERVICE_NAME,
  clusterId: environment.CLUSTER_ID,
  policy: environment.NODEKEEPER_POLICY,
  logLevel: environment.POWERTOOLS_LOG_LEVEL,
  metricsNamespace: environment.POWERTOOLS_METRICS_NAMESPACE,
});

const tablesOf = (environment: AllTables) => ({
  tables: Object.freeze({
    health: environment.HEALTH_TABLE,
    objects: environment.OBJECTS_TABLE,
    control: environment.CONTROL_TABLE,
  }),
});

/** Functions that use all tables and serve no requests: streams and ticks. */
export const controllerConfig = z.pipe(
  z.object({ ...everyFunction, ...allTables }),
  z.transform((environment) => ({ ...common(environment), ...tablesOf(environment) })),
);

export const apiConfig = z.pipe(
  z.object({
    ...everyFunction,
    ...allTables,
    ...tokens,
    ACCESS_ENTRIES_FILE: z.exactOptional(text),
    AUDIT_LOG_GROUP: text,
    AUDIT_LOG_STREAM: text,
    ACCOUNT_ID: z.exactOptional(text),
    AWS_REGION: z.exactOptional(text),
    WATCH_URL: z.exactOptional(text),
  }),
  z.transform((environment) => ({
    ...common(environment),
    ...tablesOf(environment),
    staticTokens: environment.STATIC_TOKENS,
    /** File beside the handler with the access entries, of any size; absent: there are none. */
    ...defined({ accessEntriesFile: environment.ACCESS_ENTRIES_FILE }),
    /** Destination of the audit trail. */
    auditLog: Object.freeze({ logGroup: environment.AUDIT_LOG_GROUP, logStream: environment.AUDIT_LOG_STREAM }),
    /**
     * Account and region of EC2 instances that enrol with identity documents; absent: disabled. Their key is beside the
     * handler.
     */
    ...(environment.ACCOUNT_ID === undefined || environment.AWS_REGION === undefined
      ? {}
      : { instances: Object.freeze({ accountId: environment.ACCOUNT_ID, region: environment.AWS_REGION }) }),
    /** Endpoint that streams watches; absent: they are long polls. */
    ...(environment.WATCH_URL === undefined ? {} : { watchUrl: environment.WATCH_URL.replace(/\/$/, '') }),
  })),
);
/** AWS_REGION is Lambda's own variable, which a template may not set. */
export type ApiEnvironment = Omit<z.input<typeof apiConfig>, 'AWS_REGION'>;

/** watch: reads changes and leases, and from the control table only the keys of tickets. */
export const watchConfig = z.pipe(
  z.object({
    ...everyFunction,
    ...allTables,
    ...tokens,
  }),
  z.transform((environment) => ({
    ...common(environment),
    ...tablesOf(environment),
    staticTokens: environment.STATIC_TOKENS,
  })),
);
export type WatchEnvironment = z.input<typeof watchConfig>;

/** health-stream. */
export const streamConfig = controllerConfig;
export type StreamEnvironment = z.input<typeof streamConfig>;

/** Event bus of the cluster; absent: events are not published. */
const eventBus = { EVENT_BUS: z.exactOptional(text) };
const eventBusOf = (environment: { readonly EVENT_BUS?: string }) =>
  environment.EVENT_BUS === undefined ? {} : { eventBusName: environment.EVENT_BUS };

/** object-stream. */
export const objectStreamConfig = z.pipe(
  z.object({ ...everyFunction, ...allTables, ...eventBus, WAKE_FUNCTIONS: functionNamesJson }),
  z.transform((environment) => ({
    ...common(environment),
    ...tablesOf(environment),
    ...eventBusOf(environment),
    /** Names of the deployed functions that it wakes, by their names in the cluster. */
    wakeFunctions: environment.WAKE_FUNCTIONS,
  })),
);
export type ObjectStreamEnvironment = z.input<typeof objectStreamConfig>;

/**
 * node-monitor. With PROBE_URL it sends probe beats through that endpoint, with HEARTBEAT_URL through that one as well.
 * Without PROBE_URL, it cannot distinguish a silent fleet from a failing heartbeat path.
 */
export const monitorConfig = z.pipe(
  z.object({
    ...everyFunction,
    ...allTables,
    ...eventBus,
    PROBE_URL: z.exactOptional(text),
    HEARTBEAT_URL: z.exactOptional(text),
    TICK_QUEUE_URL: text,
    PART_QUEUE_URL: text,
    WAKE_FUNCTIONS: functionNamesJson,
  }),
  z.transform((environment) => ({
    ...common(environment),
    ...tablesOf(environment),
    ...eventBusOf(environment),
    /** Names of the deployed functions that it wakes, by their names in the cluster. */
    wakeFunctions: environment.WAKE_FUNCTIONS,
    /** Queue of its own ticks. */
    tickQueueUrl: environment.TICK_QUEUE_URL,
    /** Queue of node-marker. */
    partQueueUrl: environment.PART_QUEUE_URL,
    /** Where probes are sent: the HTTP API, and the URL of function heartbeat where it has one. */
    probeUrls: [environment.PROBE_URL, environment.HEARTBEAT_URL].flatMap((url) => url?.replace(/\/$/, '') ?? []),
  })),
);
export type MonitorEnvironment = z.input<typeof monitorConfig>;

/** node-marker. */
export const markerConfig = z.pipe(
  z.object({ ...everyFunction, ...allTables, PART_QUEUE_URL: text }),
  z.transform((environment) => ({
    ...common(environment),
    ...tablesOf(environment),
    partQueueUrl: environment.PART_QUEUE_URL,
  })),
);
export type MarkerEnvironment = z.input<typeof markerConfig>;

export const evictorConfig = controllerConfig;
export type EvictorEnvironment = z.input<typeof evictorConfig>;
export type EvictorConfig = Readonly<z.output<typeof evictorConfig>>;

/** Functions that call EC2, with the account and region in which a missing instance is significant. */
const cloudConfig = z.pipe(
  z.object({ ...everyFunction, ...allTables, ACCOUNT_ID: text, AWS_REGION: text }),
  z.transform((environment) => ({
    ...common(environment),
    ...tablesOf(environment),
    accountId: environment.ACCOUNT_ID,
    region: environment.AWS_REGION,
  })),
);
export type CloudConfig = Readonly<z.output<typeof cloudConfig>>;

export const cloudNodeConfig = cloudConfig;
/** AWS_REGION is Lambda's own variable, which a template may not set. */
export type CloudNodeEnvironment = Omit<z.input<typeof cloudNodeConfig>, 'AWS_REGION'>;

export const podGcConfig = cloudConfig;
export type PodGcEnvironment = CloudNodeEnvironment;

/**
 * The typed, frozen configuration of a process.
 *
 * @param environment `process.env`, or a record like it
 * @throws ConfigError with every fault
 */
export function loadConfig<Schema extends z.ZodMiniType>(
  schema: Schema,
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<z.output<Schema>> {
  const parsed = schema.safeParse(environment);
  if (parsed.success) return Object.freeze(parsed.data) as Readonly<z.output<Schema>>;
  throw new ConfigError(
    parsed.error.issues.map((issue) => ({ variable: String(issue.path[0] ?? ''), rule: issue.message })),
  );
}

type Json = { readonly kind: 'json'; readonly value: unknown } | { readonly kind: 'malformed' };

function parseJson(json: string): Json {
  try {
    return { kind: 'json', value: JSON.parse(json) as unknown };
  } catch {
    return { kind: 'malformed' };
  }
}
