import { Duration } from 'aws-cdk-lib';
import {
  Alarm,
  AlarmRule,
  ComparisonOperator,
  CompositeAlarm,
  type IMetric,
  MathExpression,
  Metric,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITable } from 'aws-cdk-lib/aws-dynamodb';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { Topic } from 'aws-cdk-lib/aws-sns';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { Policy } from '../../shared/domain/policy.ts';
import { SCHEDULER_PRECISION_SECONDS } from '../../shared/domain/tick.ts';
import type { FunctionName } from './function-names.ts';

export type WatchedFunction = Exclude<FunctionName, 'api' | 'watch'>;

/** What is watched. */
export interface AlarmSources {
  /** CloudWatch namespace of the functions' own metrics. */
  readonly metricsNamespace: string;
  readonly functions: Readonly<Record<WatchedFunction, IFunction>>;
  readonly tables: Readonly<Record<'health' | 'objects' | 'control', ITable>>;
  readonly apiId: string;
  /** Where messages end that could not be worked on. */
  readonly deadLetters: Queue;
  readonly policy: Policy;
}

export interface AlarmsProps extends AlarmSources {
  readonly clusterId: string;
  /**
   * SNS topic that hears when somebody is to be woken, and when it is over.
   * @default - nobody is told; the alarm is seen in the console
   */
  readonly alarmTopicArn?: string | undefined;
  /**
   * Put before the path of a runbook in each description, such as `https://github.com/me/nodekeeper/blob/main/`.
   * @default - the path in the repository alone
   */
  readonly runbookBaseUrl?: string | undefined;
}

type Missing = 'breaching' | 'notBreaching';

/** One alarm. Periods are minutes unless said. */
export interface AlarmRow {
  /** Its name after the cluster's, and the name of its runbook. */
  readonly name: string;
  /** What it means. One sentence, the beginning of the description. */
  readonly meaning: string;
  /** Whether it wakes somebody, through the composite alarm. */
  readonly pages: boolean;
  /** One metric, or several by the name that `expression` calls them. */
  readonly metrics: Readonly<Record<string, IMetric>>;
  /** Metric math over `metrics`; absent: the one metric itself. */
  readonly expression?: string;
  readonly when: '>' | '>=' | '<';
  readonly threshold: number;
  /** Breaching periods, of how many looked at. */
  readonly datapoints: readonly [breaching: number, of: number];
  /** @default 60 */
  readonly periodSeconds?: number;
  readonly missing: Missing;
  readonly missingBecause: string;
}

const MINUTE_SECONDS = 60;
/** Composite alarm that collects those that page. */
export const PAGE = 'page';
export const RUNBOOKS = 'docs/operations/alarms';

/** Ticking functions whose crashes nothing else shows: of node-monitor and evictor no tick tells its age then. */
const BACKGROUND = ['cloud-node', 'pod-gc'] as const;
const STREAMING = ['health-stream', 'object-stream'] as const;

/** Early warning: below the share at which a zone counts as disrupted (0.55 by default). Percent. */
const NOT_READY_SHARE_PERCENT = 30;
/** One in twenty: a grace is four beats, so nodes still get through, and something is wrong. Percent. */
const FAILED_SHARE_PERCENT = 5;
/** Half an hour: at the usual rate 180 nodes of a zone have had their turn by then. Seconds. */
const QUEUE_AGE_SECONDS = 1_800;
/** A record that has waited for a minute waits for something. Milliseconds. */
const ITERATOR_AGE_MS = 60_000;
/** Clients of a beat give up after some seconds. Milliseconds. */
const LATENCY_MS = 3_000;
/** Long polls are held for up to 20 s. Milliseconds. */
const LONG_POLL_LATENCY_MS = 25_000;
/** In five minutes: one that failed once was done again. */
const FUNCTION_ERRORS = 3;

/** The alarms as data, in the order in which to look at them. */
export function alarmRows(sources: AlarmSources): readonly AlarmRow[] {
  const { policy } = sources;
  const own = (service: FunctionName | 'all', metricName: string, statistic = 'Maximum'): IMetric =>
    new Metric({ namespace: sources.metricsNamespace, metricName, statistic, dimensionsMap: { service } });
  const lambda = (name: WatchedFunction, metricName: string, statistic = 'Sum'): IMetric =>
    new Metric({
      namespace: 'AWS/Lambda',
      metricName,
      statistic,
      dimensionsMap: { FunctionName: sources.functions[name].functionName },
    });
  const api = (metricName: string, statistic: string): IMetric =>
    new Metric({ namespace: 'AWS/ApiGateway', metricName, statistic, dimensionsMap: { ApiId: sources.apiId } });
  const monitor = (metricName: string): IMetric => own('node-monitor', metricName);
  const ticks = (controller: 'node-monitor' | 'evictor', consequence: string): AlarmRow => ({
    name: `${controller}-ticks`,
    meaning: `${controller} does not run, or over a minute late: ${consequence}.`,
    pages: true,
    metrics: { age: own(controller, 'tick_age_seconds') },
    when: '>',
    threshold: SCHEDULER_PRECISION_SECONDS,
    datapoints: [2, 2],
    missing: 'breaching',
    missingBecause: 'twice a minute a tick tells its age, and any that is too late, so silence is the fault',
  });

  const failures = named([...BACKGROUND.map((name) => lambda(name, 'Errors')), own('all', 'failed_ticks', 'Sum')]);
  const iteratorAges = named(STREAMING.map((name) => lambda(name, 'IteratorAge', 'Maximum')));
  const throttled = (table: ITable, metricName: string): IMetric =>
    new Metric({
      namespace: 'AWS/DynamoDB',
      metricName,
      statistic: 'Sum',
      dimensionsMap: { TableName: table.tableName },
    });
  const { health, objects, control } = sources.tables;
  // Of reads those of health alone: each tick reads all of it, the others are read by key.
  const throttles = named([
    throttled(health, 'ReadThrottleEvents'),
    ...[health, objects, control].map((table) => throttled(table, 'WriteThrottleEvents')),
  ]);

  return [
    ticks('node-monitor', 'nobody notices silent nodes'),
    ticks('evictor', 'pods stay on dead nodes'),
    {
      name: 'heartbeats-stopped',
      meaning: 'No heartbeat arrives, not even our own probes.',
      pages: true,
      metrics: { beats: lambda('heartbeat', 'Invocations') },
      when: '<',
      threshold: 1,
      datapoints: [3, 3],
      missing: 'breaching',
      missingBecause: 'a function that is not called tells nothing, and node-monitor probes at every tick',
    },
    {
      name: 'heartbeats-failing',
      meaning: `Of the heartbeats ${FAILED_SHARE_PERCENT} % or more fail in the function or are throttled before it.`,
      pages: true,
      metrics: {
        beats: lambda('heartbeat', 'Invocations'),
        errors: lambda('heartbeat', 'Errors'),
        throttles: lambda('heartbeat', 'Throttles'),
      },
      expression: '100 * (FILL(errors, 0) + FILL(throttles, 0)) / (FILL(beats, 0) + FILL(throttles, 0))',
      when: '>=',
      threshold: FAILED_SHARE_PERCENT,
      datapoints: [3, 5],
      missing: 'notBreaching',
      missingBecause: 'without heartbeats there is no share; heartbeats-stopped sees that',
    },
    {
      name: 'evictions-held',
      meaning: 'The gate holds: nodekeeper doubts its own ears, and marks, taints and evicts nobody.',
      pages: true,
      metrics: { holding: monitor('gate_holding') },
      when: '>=',
      threshold: 1,
      // Of four: should node-monitor die meanwhile, this ends after node-monitor-ticks has begun, and the page goes on.
      datapoints: [2, 4],
      missing: 'notBreaching',
      missingBecause:
        'it is told while the gate holds and five minutes more; node-monitor-ticks sees when nobody can tell',
    },
    {
      name: 'total-disruption',
      meaning: 'Every zone is dark: evictions are called off everywhere.',
      pages: true,
      metrics: { total: monitor('total_disruption') },
      when: '>=',
      threshold: 1,
      datapoints: [1, 3],
      missing: 'notBreaching',
      missingBecause: 'it is told while it lasts and five minutes more; node-monitor-ticks sees when nobody can tell',
    },
    {
      name: 'zone-disrupted',
      meaning: 'A zone is in partial or full disruption: most of its nodes are not ready.',
      pages: true,
      metrics: { zones: monitor('disrupted_zones') },
      when: '>=',
      threshold: 1,
      datapoints: [2, 2],
      missing: 'notBreaching',
      missingBecause: 'it is told while there are zones; the last one may have gone with its nodes',
    },
    {
      name: 'api-errors',
      meaning: `Of the requests to the HTTP API ${FAILED_SHARE_PERCENT} % or more are answered 5xx, beats included.`,
      pages: true,
      metrics: { failed: api('5xx', 'Sum'), all: api('Count', 'Sum') },
      expression: '100 * FILL(failed, 0) / all',
      when: '>=',
      threshold: FAILED_SHARE_PERCENT,
      datapoints: [3, 5],
      missing: 'notBreaching',
      missingBecause: 'without requests there is no share; heartbeats-stopped sees that',
    },
    {
      name: 'not-ready-share',
      meaning: `In some zone ${NOT_READY_SHARE_PERCENT} % or more of the nodes are not ready.`,
      pages: false,
      metrics: { share: monitor('not_ready_share_max') },
      when: '>=',
      threshold: NOT_READY_SHARE_PERCENT,
      datapoints: [3, 3],
      missing: 'notBreaching',
      missingBecause: 'it is told while there are zones; the last one may have gone with its nodes',
    },
    {
      name: 'eviction-queue-age',
      meaning: `A node has waited for over ${QUEUE_AGE_SECONDS / 60} minutes for its zone's eviction rate.`,
      pages: false,
      metrics: { age: monitor('queue_age_seconds_max') },
      when: '>',
      threshold: QUEUE_AGE_SECONDS,
      datapoints: [3, 3],
      missing: 'notBreaching',
      missingBecause: 'it is told only while a node waits',
    },
    {
      name: 'background-ticks',
      meaning: 'cloud-node or pod-gc does not run: gone instances keep their Nodes, orphaned pods stay.',
      pages: false,
      metrics: { cloud: lambda('cloud-node', 'Invocations'), pods: lambda('pod-gc', 'Invocations') },
      expression: 'MIN([FILL(cloud, 0), FILL(pods, 0)])',
      when: '<',
      threshold: 1,
      datapoints: [5, 5],
      missing: 'breaching',
      missingBecause: 'a function that is not called tells nothing',
    },
    {
      name: 'cloud-answers-failing',
      meaning: 'EC2 gives no useful answer about nodes that are not ready: none of them is deleted.',
      pages: false,
      metrics: { failed: own('cloud-node', 'cloud_answers_failed_total', 'Sum') },
      when: '>',
      threshold: 0,
      datapoints: [5, 5],
      missing: 'notBreaching',
      missingBecause: 'it is told only while answers fail',
    },
    {
      name: 'dead-letters',
      meaning: 'Messages or stream records were given up and wait in the dead-letter queue.',
      pages: false,
      metrics: { depth: sources.deadLetters.metricApproximateNumberOfMessagesVisible({ statistic: 'Maximum' }) },
      when: '>',
      threshold: 0,
      datapoints: [1, 1],
      missing: 'notBreaching',
      missingBecause: 'SQS tells nothing of a queue that nobody has used for hours',
    },
    {
      name: 'stream-age',
      meaning: `Changes of a table wait for over ${ITERATOR_AGE_MS / 1_000} s: what follows from them follows late.`,
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
      meaning: 'DynamoDB throttles a table: beats are refused or tried again, ticks take longer.',
      pages: false,
      metrics: throttles,
      expression: sumOf(throttles),
      when: '>',
      threshold: 0,
      datapoints: [3, 5],
      missing: 'notBreaching',
      missingBecause:
        'DynamoDB tells of throttling only when there is some; FILL, since its alarms ignore what is missing',
    },
    {
      name: 'api-latency',
      meaning: 'One request in twenty to the HTTP API takes longer than clients like to wait.',
      pages: false,
      metrics: { latency: api('Latency', 'p95') },
      when: '>',
      threshold: policy.watchMode === 'longPoll' ? LONG_POLL_LATENCY_MS : LATENCY_MS,
      datapoints: [5, 5],
      missing: 'notBreaching',
      missingBecause: 'without requests nobody waits; heartbeats-stopped sees that',
    },
    {
      name: 'function-errors',
      meaning: 'Ticks of controllers fail again and again; what they began the next tick does.',
      pages: false,
      metrics: failures,
      expression: sumOf(failures),
      when: '>=',
      threshold: FUNCTION_ERRORS,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'what does not fail tells nothing',
    },
    {
      name: 'events-not-sent',
      meaning: 'The event bus did not take events of the cluster; receivers have missed them.',
      pages: false,
      metrics: { lost: own('all', 'events_not_sent_total', 'Sum') },
      when: '>',
      threshold: 0,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'it is told only when events are lost',
    },
  ];
}

/** By short names, as expressions want them: m0, m1 … */
const named = (metrics: readonly IMetric[]): Record<string, IMetric> =>
  Object.fromEntries(metrics.map((metric, index) => [`m${index}`, metric]));
const filled = (metrics: Readonly<Record<string, IMetric>>): string =>
  Object.keys(metrics)
    .map((name) => `FILL(${name}, 0)`)
    .join(', ');
const sumOf = (metrics: Readonly<Record<string, IMetric>>): string => `SUM([${filled(metrics)}])`;

const COMPARISONS = {
  '>': ComparisonOperator.GREATER_THAN_THRESHOLD,
  '>=': ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
  '<': ComparisonOperator.LESS_THAN_THRESHOLD,
} as const;
const MISSING = {
  breaching: TreatMissingData.BREACHING,
  notBreaching: TreatMissingData.NOT_BREACHING,
} as const;

/**
 * What on-call hears: one composite alarm that pages, and the others beside it as context. Each names its runbook.
 *
 * List price a month: $0.10 a metric looked at, $0.50 the composite one (docs/operations/alarms/README.md has the sum).
 */
export class Alarms extends Construct {
  /** By name, without the cluster's. */
  readonly byName: ReadonlyMap<string, Alarm>;
  readonly page: CompositeAlarm;

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    const base = props.runbookBaseUrl === undefined ? '' : `${props.runbookBaseUrl.replace(/\/+$/, '')}/`;
    const describe = (meaning: string, name: string): string => `${meaning} Runbook: ${base}${RUNBOOKS}/${name}.md`;
    const rows = alarmRows(props);
    this.byName = new Map(
      rows.map((row) => [
        row.name,
        new Alarm(this, row.name, {
          alarmName: `${props.clusterId}-${row.name}`,
          alarmDescription: describe(row.meaning, row.name),
          metric: metricOf(row),
          comparisonOperator: COMPARISONS[row.when],
          threshold: row.threshold,
          datapointsToAlarm: row.datapoints[0],
          evaluationPeriods: row.datapoints[1],
          treatMissingData: MISSING[row.missing],
        }),
      ]),
    );
    const paging = rows.filter(({ pages }) => pages).map(({ name }) => this.byName.get(name)!);
    this.page = new CompositeAlarm(this, PAGE, {
      compositeAlarmName: `${props.clusterId}-${PAGE}`,
      alarmDescription: describe('Somebody is to look at the cluster now.', PAGE),
      alarmRule: AlarmRule.anyOf(...paging),
    });
    if (props.alarmTopicArn !== undefined) {
      const tell = new SnsAction(Topic.fromTopicArn(this, 'Topic', props.alarmTopicArn));
      this.page.addAlarmAction(tell);
      this.page.addOkAction(tell);
    }
  }
}

function metricOf({ metrics, expression, periodSeconds, name }: AlarmRow): IMetric {
  const period = Duration.seconds(periodSeconds ?? MINUTE_SECONDS);
  const [only, ...others] = Object.values(metrics);
  if (expression !== undefined) {
    return new MathExpression({ expression, usingMetrics: { ...metrics }, period, label: name });
  }
  if (!(only instanceof Metric) || others.length > 0) throw new Error(`${name}: several metrics need an expression`);
  return only.with({ period });
}
