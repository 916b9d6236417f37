/** The alarms as data: those in the manifests of the functions, and those on shared resources. */
import { type IMetric, Metric } from 'aws-cdk-lib/aws-cloudwatch';
import type { ITable } from 'aws-cdk-lib/aws-dynamodb';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { type FunctionName, functionList } from '../../functions/function-list.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { AlarmManifest, AlarmMetric } from '../../shared/functions/alarm-manifest.ts';
import type { Trigger } from '../../shared/functions/function-manifest.ts';
import {
  ALL_FUNCTIONS,
  EVENTS_NOT_SENT,
  FAILED_TICKS,
  OBJECTS_NOT_WRITTEN,
  RECORDS_GIVEN_UP,
} from '../../shared/functions/tick-metrics.ts';

/** The resources that the alarms monitor. */
export interface AlarmSources {
  /** CloudWatch namespace of the functions' own metrics. */
  readonly metricsNamespace: string;
  readonly functions: ReadonlyMap<FunctionName, IFunction>;
  readonly tables: Readonly<Record<'health' | 'objects' | 'control', ITable>>;
  readonly apiId: string;
  /** Receives messages and records that were dropped after all retries. */
  readonly deadLetters: Queue;
  /** Parts of mass failures. */
  readonly parts: Queue;
  readonly policy: Policy;
  /** Heartbeats per second that the HTTP API accepts. */
  readonly requestsPerSecondMax: number;
}

/** An alarm with its metrics in this cluster. */
export interface AlarmRow extends Omit<AlarmManifest, 'metrics' | 'threshold'> {
  readonly threshold: number;
  readonly metrics: Readonly<Record<string, IMetric>>;
}

/** One in twenty. Percent. */
const FAILED_SHARE_PERCENT = 5;
/** Iterator age from which a record counts as blocked. Milliseconds. */
const ITERATOR_AGE_MS = 60_000;
/** Refused requests that page, as a share of the heartbeats that the HTTP API accepts, and at least. */
const REFUSED_LOAD_SHARE = 0.1;
const REFUSED_LOAD_PER_SECOND_MIN = 10;
/** Clients of heartbeats time out after some seconds. Milliseconds. */
const LATENCY_MS = 3_000;
/** A long poll lasts up to 20 s. Milliseconds. */
const LONG_POLL_LATENCY_MS = 25_000;
/** A part is valid for a minute at most. An older one shows that no function receives it. Seconds. */
const PARTS_AGE_SECONDS = 60;
/** In five minutes. A single failure is repaired by the retry. */
const FUNCTION_ERRORS = 3;

/** @throws Error when this cluster does not have the function */
export function functionOf(functions: AlarmSources['functions'], name: FunctionName): IFunction {
  const found = functions.get(name);
  if (found === undefined) throw new Error(`this cluster has no function ${name}`);
  return found;
}

/** All alarms, in the order in which to look at them. */
export const alarmRows = (sources: AlarmSources): readonly AlarmRow[] =>
  [...functionAlarms(sources), ...requestAlarms(sources), ...backgroundAlarms(sources), ...sharedAlarms(sources)].sort(
    (one, other) => one.rank - other.rank,
  );

const functionAlarms = (sources: AlarmSources): readonly AlarmRow[] =>
  functionList.flatMap(({ name, alarms = [] }) =>
    // A cluster without streams has no function for them.
    (sources.functions.has(name) ? alarms : []).map((alarm) => ({
      ...alarm,
      threshold: typeof alarm.threshold === 'number' ? alarm.threshold : sources.policy[alarm.threshold.policyField],
      metrics: Object.fromEntries(
        Object.entries(alarm.metrics).map(([id, metric]) => [id, metricOfFunction(sources, name, metric)]),
      ),
    })),
  );

function metricOfFunction(sources: AlarmSources, name: FunctionName, metric: AlarmMetric): IMetric {
  const { metricName, statistic } = metric;
  return metric.kind === 'lambda'
    ? lambdaMetric(sources, name, metricName, statistic)
    : ownMetric(sources, { service: name }, metricName, statistic);
}

const lambdaMetric = (sources: AlarmSources, name: FunctionName, metricName: string, statistic = 'Sum'): IMetric =>
  new Metric({
    namespace: 'AWS/Lambda',
    metricName,
    statistic,
    dimensionsMap: { FunctionName: functionOf(sources.functions, name).functionName },
  });

const ownMetric = (
  sources: AlarmSources,
  dimensionsMap: { readonly service: string },
  metricName: string,
  statistic: string,
): IMetric => new Metric({ namespace: sources.metricsNamespace, metricName, statistic, dimensionsMap });

const refusedPerMinute = (requestsPerSecondMax: number): number =>
  60 * Math.max(REFUSED_LOAD_PER_SECOND_MIN, Math.ceil(requestsPerSecondMax * REFUSED_LOAD_SHARE));

/** Alarms on the HTTP API as a whole. */
function requestAlarms({ apiId, policy, requestsPerSecondMax }: AlarmSources): readonly AlarmRow[] {
  const api = (metricName: string, statistic: string): IMetric =>
    new Metric({ namespace: 'AWS/ApiGateway', metricName, statistic, dimensionsMap: { ApiId: apiId } });
  return [
    {
      name: 'api-errors',
      rank: 80,
      meaning: `${FAILED_SHARE_PERCENT} % or more of the requests to the HTTP API fail with 5xx, heartbeats included.`,
      pages: true,
      metrics: { failed: api('5xx', 'Sum'), all: api('Count', 'Sum') },
      expression: '100 * FILL(failed, 0) / all',
      when: '>=',
      threshold: FAILED_SHARE_PERCENT,
      datapoints: [3, 5],
      missing: 'notBreaching',
      missingBecause: 'without requests there is no share; heartbeats-stopped covers that case',
    },
    {
      name: 'requests-refused',
      rank: 85,
      meaning: `${FAILED_SHARE_PERCENT} % or more of the requests to the HTTP API are refused with 4xx, 429 included.`,
      pages: false,
      // API Gateway has no metric for 429 alone. A throttled request reaches no function, so no metric of Lambda has
      // it. Source: API Gateway Developer Guide, "Monitor CloudWatch metrics for HTTP APIs" and "Throttling HTTP APIs".
      metrics: { refused: api('4xx', 'Sum'), all: api('Count', 'Sum') },
      expression: '100 * FILL(refused, 0) / all',
      when: '>=',
      threshold: FAILED_SHARE_PERCENT,
      datapoints: [3, 5],
      missing: 'notBreaching',
      missingBecause: 'without requests there is no share; heartbeats-stopped covers that case',
    },
    {
      name: 'refused-load',
      rank: 83,
      meaning:
        `The HTTP API refuses ${refusedPerMinute(requestsPerSecondMax)} requests per minute or more: somebody without ` +
        'access sends load, which costs, or machines have lost their access.',
      pages: true,
      metrics: { refused: api('4xx', 'Sum') },
      expression: 'FILL(refused, 0)',
      when: '>=',
      threshold: refusedPerMinute(requestsPerSecondMax),
      datapoints: [3, 5],
      missing: 'notBreaching',
      missingBecause: 'without requests nothing is refused; heartbeats-stopped covers that case',
    },
    {
      name: 'api-latency',
      rank: 160,
      meaning: 'One in twenty requests to the HTTP API exceeds the expected latency.',
      pages: false,
      metrics: { latency: api('Latency', 'p95') },
      when: '>',
      threshold: policy.watchMode === 'longPoll' ? LONG_POLL_LATENCY_MS : LATENCY_MS,
      datapoints: [5, 5],
      missing: 'notBreaching',
      missingBecause: 'without requests no client waits; heartbeats-stopped covers that case',
    },
  ];
}

/** Functions without an alarm of their own: one alarm on missing invocations, one on failures. */
function backgroundAlarms(sources: AlarmSources): readonly AlarmRow[] {
  const background = functionList.flatMap(({ name, triggers }) =>
    triggers.flatMap((trigger: Trigger) =>
      trigger.kind === 'tick' && trigger.silence.alarm === 'background' ? [{ name, ...trigger.silence }] : [],
    ),
  );
  const names = background.map(({ name }) => name);
  const calls = Object.fromEntries(background.map(({ name, as }) => [as, lambdaMetric(sources, name, 'Invocations')]));
  const failures = numbered([
    ...names.map((name) => lambdaMetric(sources, name, 'Errors')),
    ownMetric(sources, ALL_FUNCTIONS, FAILED_TICKS, 'Sum'),
  ]);
  return [
    {
      name: 'background-ticks',
      rank: 110,
      meaning: `${names.join(' or ')} does not run: ${background.map(({ consequence }) => consequence).join(', ')}.`,
      pages: false,
      metrics: calls,
      expression: `MIN([${filled(calls)}])`,
      when: '<',
      threshold: 1,
      datapoints: [5, 5],
      missing: 'breaching',
      missingBecause: 'a function without calls has no data',
    },
    {
      name: 'function-errors',
      rank: 170,
      meaning: 'Ticks of controllers fail repeatedly. The next tick continues their work.',
      pages: false,
      metrics: failures,
      expression: sumOf(failures),
      when: '>=',
      threshold: FUNCTION_ERRORS,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'without failures there is no data',
    },
  ];
}

/** Alarms on tables, streams, queues and the event bus. */
function sharedAlarms(sources: AlarmSources): readonly AlarmRow[] {
  const streaming = functionList.filter(({ triggers }) => triggers.some(({ kind }) => kind === 'stream'));
  const iteratorAges = numbered(streaming.map(({ name }) => lambdaMetric(sources, name, 'IteratorAge', 'Maximum')));
  const throttles = tableThrottles(sources.tables);
  return [
    {
      name: 'marks-late',
      rank: 48,
      meaning: `Hundreds of silent nodes wait for over ${PARTS_AGE_SECONDS} s to be marked: node-marker does not run.`,
      pages: true,
      metrics: { age: sources.parts.metricApproximateAgeOfOldestMessage({ statistic: 'Maximum' }) },
      when: '>',
      threshold: PARTS_AGE_SECONDS,
      datapoints: [2, 3],
      missing: 'notBreaching',
      missingBecause: 'SQS sends no metrics of a queue without use for hours',
    },
    {
      name: 'dead-letters',
      rank: 130,
      meaning: 'Messages or stream records were dropped after all retries and are in the dead-letter queue.',
      pages: false,
      metrics: { depth: sources.deadLetters.metricApproximateNumberOfMessagesVisible({ statistic: 'Maximum' }) },
      when: '>',
      threshold: 0,
      datapoints: [1, 1],
      missing: 'notBreaching',
      missingBecause: 'SQS sends no metrics of a queue without use for hours',
    },
    {
      name: 'stream-records-dropped',
      rank: 135,
      meaning: 'Stream records were dropped because their work fails each time; ticks do most of it later.',
      pages: false,
      metrics: { dropped: ownMetric(sources, ALL_FUNCTIONS, RECORDS_GIVEN_UP, 'Sum') },
      when: '>',
      threshold: 0,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'the metric is emitted only when a record is dropped',
    },
    {
      name: 'objects-not-written',
      rank: 145,
      meaning: 'Controllers cannot write objects that are too large: these are not marked, tainted or evicted.',
      pages: false,
      metrics: { refused: ownMetric(sources, ALL_FUNCTIONS, OBJECTS_NOT_WRITTEN, 'Sum') },
      when: '>',
      threshold: 0,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'the metric is emitted only when an object cannot be written',
    },
    {
      name: 'stream-age',
      rank: 140,
      meaning: `Changes of a table wait for over ${ITERATOR_AGE_MS / 1_000} s. Their effects are delayed.`,
      pages: false,
      metrics: iteratorAges,
      expression: `MAX([${filled(iteratorAges)}])`,
      when: '>',
      threshold: ITERATOR_AGE_MS,
      datapoints: [2, 3],
      missing: 'notBreaching',
      missingBecause: 'a stream without changes has no age',
    },
    {
      name: 'throttled-keys',
      rank: 150,
      meaning: 'DynamoDB throttles a table: heartbeats are refused or retried, ticks run longer or are missing.',
      pages: false,
      metrics: throttles,
      expression: sumOf(throttles),
      when: '>',
      threshold: 0,
      datapoints: [3, 5],
      missing: 'notBreaching',
      missingBecause:
        'DynamoDB sends these metrics only while it throttles. FILL is needed: its alarms ignore missing data',
    },
    {
      name: 'events-not-sent',
      rank: 180,
      meaning: 'The event bus rejected cluster events. Their receivers have missed them.',
      pages: false,
      metrics: { lost: ownMetric(sources, ALL_FUNCTIONS, EVENTS_NOT_SENT, 'Sum') },
      when: '>',
      threshold: 0,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'the metric is written only when events are lost',
    },
  ];
}

/**
 * Not the reads of `objects`: only users and kubelets read much of it, and they see the error. A metric costs $0.10.
 */
function tableThrottles({ health, objects, control }: AlarmSources['tables']): Record<string, IMetric> {
  const throttled = (table: ITable, metricName: string): IMetric =>
    new Metric({
      namespace: 'AWS/DynamoDB',
      metricName,
      statistic: 'Sum',
      dimensionsMap: { TableName: table.tableName },
    });
  return numbered([
    throttled(health, 'ReadThrottleEvents'),
    throttled(control, 'ReadThrottleEvents'),
    ...[health, objects, control].map((table) => throttled(table, 'WriteThrottleEvents')),
  ]);
}

/** By the short names that expressions require: m0, m1 … */
const numbered = (metrics: readonly IMetric[]): Record<string, IMetric> =>
  Object.fromEntries(metrics.map((metric, index) => [`m${index}`, metric]));
const filled = (metrics: Readonly<Record<string, IMetric>>): string =>
  Object.keys(metrics)
    .map((name) => `FILL(${name}, 0)`)
    .join(', ');
const sumOf = (metrics: Readonly<Record<string, IMetric>>): string => `SUM([${filled(metrics)}])`;
