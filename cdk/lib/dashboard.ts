import { Aws, Duration } from 'aws-cdk-lib';
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
import { CLOUD_ANSWERS } from '../../shared/controllers/cloud-node/metrics.ts';
import { EVICTIONS, HELD_ZONES } from '../../shared/controllers/evictor/metrics.ts';
import * as monitor from '../../shared/controllers/node-monitor/metrics.ts';
import { POD_DELETIONS } from '../../shared/controllers/pod-evictor/metrics.ts';
import { COST_PERIOD_SECONDS } from '../../shared/domain/cost/running-cost.ts';
import { TICK_AGE } from '../../shared/domain/functions/tick-metrics.ts';
import type { Policy } from '../../shared/domain/policy.ts';
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

/** One page per cluster. It searches for zones, reasons and states, so that a new one appears by itself. */
export class Dashboard extends Construct {
  /** In the console of the stack's Region. */
  readonly url: string;

  constructor(scope: Construct, id: string, props: DashboardProps) {
    super(scope, id);
    const { metricsNamespace: namespace, policy } = props;
    /** Every series of that name with just these dimensions. */
    const search = (metricName: string, statistic: string, ...dimensions: string[]): IMetric =>
      new MathExpression({
        expression: `SEARCH('{${[namespace, 'service', ...dimensions].join(',')}} MetricName="${metricName}"', '${statistic}')`,
        period: PERIOD,
        label: dimensions.length === 0 ? metricName : `\${PROP('Dim.${dimensions[0]}')}`,
      });
    const own = (metricName: string, statistic: string, label: string): IMetric =>
      new Metric({
        namespace,
        metricName,
        statistic,
        period: PERIOD,
        label,
        dimensionsMap: { service: 'node-monitor' },
      });
    const graph = (title: string, left: readonly IMetric[], more: Partial<GraphWidgetProps> = {}): GraphWidget =>
      new GraphWidget({ title, left: [...left], width: WIDTH, height: HEIGHT, leftYAxis: { min: 0 }, ...more });
    const beats = props.heartbeat.metricInvocations({ statistic: 'Sum', period: PERIOD });
    const detectionSeconds = policy.nodeMonitorGracePeriodSeconds + policy.nodeMonitorPeriodSeconds;

    const dashboard = new CloudWatchDashboard(this, 'Dashboard', {
      dashboardName: props.clusterId,
      defaultInterval: Duration.hours(3),
    });
    dashboard.addWidgets(
      new AlarmStatusWidget({
        title: 'Alarms',
        width: 24,
        height: 5,
        alarms: [props.alarms.page, ...props.alarms.byName.values()],
      }),
      graph('Nodes by zone', [search(monitor.ZONE_SIZE, 'Maximum', 'zone')], { stacked: true }),
      graph('Nodes not ready by zone', [search(monitor.UNHEALTHY_NODES, 'Maximum', 'zone')], {
        stacked: true,
      }),
      graph('Zones in disruption; doubt in ourselves', [
        own(monitor.DISRUPTED_ZONES, 'Maximum', 'zones disrupted'),
        own(monitor.TOTAL_DISRUPTION, 'Maximum', 'total disruption'),
        own(monitor.GATE_HOLDING, 'Maximum', 'gate holds'),
        own(monitor.WITHHELD_MARKS, 'Maximum', 'marks withheld'),
      ]),
      graph('Beats a second', [
        new MathExpression({
          expression: 'beats / PERIOD(beats)',
          usingMetrics: { beats },
          period: PERIOD,
          label: 'beats a second, probes included',
        }),
      ]),
      graph(
        'Detection: silence to Unknown',
        [own(monitor.DETECTION_TIME, 'Maximum', 'longest'), own(monitor.LATE_NODES, 'Maximum', 'nodes late')],
        { leftAnnotations: [{ value: detectionSeconds, label: `grace and a period: ${detectionSeconds} s` }] },
      ),
      graph('Age of ticks', [search(TICK_AGE, 'Maximum')]),
      graph('Evictions allowed by zone', [search(EVICTIONS, 'Sum', 'zone')]),
      graph('Zones held, by reason', [search(HELD_ZONES, 'Maximum', 'reason')]),
      graph('Nodes queued by zone', [search(monitor.QUEUED_NODES, 'Maximum', 'zone')], {
        right: [own(monitor.QUEUE_AGE_MAX, 'Maximum', 'longest wait, seconds')],
      }),
      graph('EC2 answers by state', [search(CLOUD_ANSWERS, 'Sum', 'state')]),
      graph('Pods deleted', [search(POD_DELETIONS, 'Sum')]),
      graph(
        'Cost a day, dollars',
        [
          new MathExpression({
            expression: `SEARCH('Namespace="${namespace}" MetricName="${monitor.COST_DOLLARS_PER_DAY}"', 'Maximum', ${COST_PERIOD_SECONDS})`,
            period: COST_PERIOD,
            label: 'list price',
          }),
        ],
        // Written so seldom that the three hours of the other graphs have one point at most.
        { period: COST_PERIOD, start: '-P14D' },
      ),
    );
    this.url = `https://${Aws.REGION}.console.aws.amazon.com/cloudwatch/home?region=${Aws.REGION}#dashboards/dashboard/${props.clusterId}`;
  }
}
