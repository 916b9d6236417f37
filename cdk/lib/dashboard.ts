import { Aws, CfnCondition, Duration, Fn, Stack } from 'aws-cdk-lib';
import {
  AlarmStatusWidget,
  Dashboard as CloudWatchDashboard,
  GraphWidget,
  type GraphWidgetProps,
  type IMetric,
  MathExpression,
  Metric,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { CLOUD_ANSWERS } from '../../functions/cloud-node/metrics.ts';
import { EVICTIONS, HELD_ZONES } from '../../functions/evictor/metrics.ts';
import { COST_PERIOD_SECONDS } from '../../shared/cost/running-cost.ts';
import { POD_DELETIONS } from '../../shared/fleet/eviction-metrics.ts';
import * as monitor from '../../shared/fleet/mark-metrics.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { TICK_AGE } from '../../shared/functions/tick-metrics.ts';
import type { Alarms } from './alarms.ts';

export interface DashboardProps {
  readonly clusterId: string;
  /** CloudWatch namespace of the functions' own metrics. */
  readonly metricsNamespace: string;
  readonly heartbeat: IFunction;
  readonly policy: Policy;
  readonly alarms: Alarms;
}

const WIDTH = 8;
const HEIGHT = 6;
const PERIOD = Duration.minutes(1);
const COST_PERIOD = Duration.seconds(COST_PERIOD_SECONDS);

/** One dashboard per cluster. It searches for zones, reasons and states, so new ones appear without a deployment. */
export class Dashboard extends Construct {
  /** URL in the console of the stack's Region. */
  readonly url: string;

  constructor(scope: Construct, id: string, props: DashboardProps) {
    super(scope, id);
    const dashboard = new CloudWatchDashboard(this, 'Dashboard', {
      dashboardName: props.clusterId,
      defaultInterval: Duration.hours(3),
    });
    const metrics = new ClusterMetrics(props.metricsNamespace);
    dashboard.addWidgets(
      alarmStatus(props.alarms),
      ...zoneGraphs(metrics),
      ...heartbeatGraphs(metrics, props),
      ...evictionGraphs(metrics),
      graph('EC2 answers by state', [metrics.search(CLOUD_ANSWERS, 'Sum', 'state')]),
      graph('Pods deleted', [metrics.search(POD_DELETIONS, 'Sum')]),
      costGraph(metrics),
    );
    this.url = `https://${consoleHost(this)}/cloudwatch/home?region=${Aws.REGION}#dashboards/dashboard/${props.clusterId}`;
  }
}

/** Hosts of the console, by partition. */
const CONSOLES: Readonly<Record<string, string>> = {
  aws: 'console.aws.amazon.com',
  'aws-cn': 'console.amazonaws.cn',
  'aws-us-gov': 'console.amazonaws-us-gov.com',
};

/** One condition per stack, which the clusters in it share. */
function inPartition(stack: Stack, partition: string): CfnCondition {
  const id = `InPartition-${partition}`;
  const existing = stack.node.tryFindChild(id) as CfnCondition | undefined;
  return existing ?? new CfnCondition(stack, id, { expression: Fn.conditionEquals(Aws.PARTITION, partition) });
}

/** Other partitions have isolated consoles: their name is that of the domain of AWS there, as far as known. */
function consoleHost(scope: Construct): string {
  return Object.entries(CONSOLES).reduce((otherwise, [partition, host]) => {
    return Fn.conditionIf(
      inPartition(Stack.of(scope), partition).logicalId,
      `${Aws.REGION}.${host}`,
      otherwise,
    ).toString();
  }, `console.${Aws.URL_SUFFIX}`);
}

/** The functions' own metrics, as the dashboard reads them. */
class ClusterMetrics {
  readonly #namespace: string;

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** Every series of this metric with exactly these dimensions. */
  search(metricName: string, statistic: string, ...dimensions: string[]): IMetric {
    // Quotes: a cluster id may have dashes. Source: CloudWatch User Guide, "CloudWatch search expression syntax".
    const schema = [`"${this.#namespace}"`, 'service', ...dimensions].join(',');
    return new MathExpression({
      expression: `SEARCH('{${schema}} MetricName="${metricName}"', '${statistic}')`,
      period: PERIOD,
      label: dimensions.length === 0 ? metricName : `\${PROP('Dim.${dimensions[0]}')}`,
    });
  }

  ofNodeMonitor(metricName: string, statistic: string, label: string): IMetric {
    return new Metric({
      namespace: this.#namespace,
      metricName,
      statistic,
      period: PERIOD,
      label,
      dimensionsMap: { service: 'node-monitor' },
    });
  }

  costPerDay(): IMetric {
    const metric = `Namespace="${this.#namespace}" MetricName="${monitor.COST_DOLLARS_PER_DAY}"`;
    return new MathExpression({
      expression: `SEARCH('${metric}', 'Maximum', ${COST_PERIOD_SECONDS})`,
      period: COST_PERIOD,
      label: 'list price',
    });
  }
}

const graph = (title: string, left: readonly IMetric[], more: Partial<GraphWidgetProps> = {}): GraphWidget =>
  new GraphWidget({ title, left: [...left], width: WIDTH, height: HEIGHT, leftYAxis: { min: 0 }, ...more });

const alarmStatus = ({ page, byName }: Alarms): AlarmStatusWidget =>
  new AlarmStatusWidget({ title: 'Alarms', width: 24, height: 5, alarms: [page, ...byName.values()] });

const zoneGraphs = (metrics: ClusterMetrics): readonly GraphWidget[] => [
  graph('Nodes by zone', [metrics.search(monitor.ZONE_SIZE, 'Maximum', 'zone')], { stacked: true }),
  graph('Nodes not ready by zone', [metrics.search(monitor.UNHEALTHY_NODES, 'Maximum', 'zone')], { stacked: true }),
  graph('Zones in disruption; safety gate', [
    metrics.ofNodeMonitor(monitor.DISRUPTED_ZONES, 'Maximum', 'zones disrupted'),
    metrics.ofNodeMonitor(monitor.TOTAL_DISRUPTION, 'Maximum', 'total disruption'),
    metrics.ofNodeMonitor(monitor.GATE_HOLDING, 'Maximum', 'gate closed'),
    metrics.ofNodeMonitor(monitor.WITHHELD_MARKS, 'Maximum', 'marks withheld'),
  ]),
];

function heartbeatGraphs(metrics: ClusterMetrics, { heartbeat, policy }: DashboardProps): readonly GraphWidget[] {
  const beats = heartbeat.metricInvocations({ statistic: 'Sum', period: PERIOD });
  const detectionSeconds = policy.nodeMonitorGracePeriodSeconds + policy.nodeMonitorPeriodSeconds;
  return [
    graph('Heartbeats per second', [
      new MathExpression({
        expression: 'beats / PERIOD(beats)',
        usingMetrics: { beats },
        period: PERIOD,
        label: 'heartbeats per second, with probes; a batch of a relay counts as one',
      }),
    ]),
    graph(
      'Detection: last heartbeat to Unknown',
      [
        // Of node-monitor, and in a mass failure of node-marker.
        metrics.search(monitor.DETECTION_TIME, 'Maximum'),
        metrics.ofNodeMonitor(monitor.LATE_NODES, 'Maximum', 'nodes late'),
      ],
      { leftAnnotations: [{ value: detectionSeconds, label: `grace period and one tick: ${detectionSeconds} s` }] },
    ),
    graph('Age of ticks', [metrics.search(TICK_AGE, 'Maximum')]),
  ];
}

const evictionGraphs = (metrics: ClusterMetrics): readonly GraphWidget[] => [
  graph('Evictions allowed by zone', [metrics.search(EVICTIONS, 'Sum', 'zone')]),
  graph('Zones held, by reason', [metrics.search(HELD_ZONES, 'Maximum', 'reason')]),
  graph('Nodes queued by zone', [metrics.search(monitor.QUEUED_NODES, 'Maximum', 'zone')], {
    right: [metrics.ofNodeMonitor(monitor.QUEUE_AGE_MAX, 'Maximum', 'longest wait, seconds')],
  }),
];

/** The cost metric is written too rarely for the three hours of the other graphs. */
const costGraph = (metrics: ClusterMetrics): GraphWidget =>
  graph('Cost per day, dollars', [metrics.costPerDay()], { period: COST_PERIOD, start: '-P14D' });
