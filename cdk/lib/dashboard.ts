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
import { COST_PERIOD_SECONDS } from '../../shared/domain/cost/running-cost.ts';
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

/** One page a cluster. Zones, reasons and states are searched for, so that a new one is there by itself. */
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
      graph('Nodes by zone', [search('node_collector_zone_size', 'Maximum', 'zone')], { stacked: true }),
      graph('Nodes not ready by zone', [search('node_collector_unhealthy_nodes_in_zone', 'Maximum', 'zone')], {
        stacked: true,
      }),
      graph('Zones in disruption; doubt in ourselves', [
        own('disrupted_zones', 'Maximum', 'zones disrupted'),
        own('total_disruption', 'Maximum', 'total disruption'),
        own('gate_holding', 'Maximum', 'gate holds'),
        own('withheld_marks', 'Maximum', 'marks withheld'),
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
        [own('detection_seconds', 'Maximum', 'longest'), own('late_nodes', 'Maximum', 'nodes late')],
        { leftAnnotations: [{ value: detectionSeconds, label: `grace and a period: ${detectionSeconds} s` }] },
      ),
      graph('Age of ticks', [search('tick_age_seconds', 'Maximum')]),
      graph('Evictions allowed by zone', [search('node_collector_evictions_total', 'Sum', 'zone')]),
      graph('Zones held, by reason', [search('node_collector_held_zones', 'Maximum', 'reason')]),
      graph('Nodes queued by zone', [search('node_collector_queued_nodes_in_zone', 'Maximum', 'zone')], {
        right: [own('queue_age_seconds_max', 'Maximum', 'longest wait, seconds')],
      }),
      graph('EC2 answers by state', [search('cloud_answers_total', 'Sum', 'state')]),
      graph('Pods deleted', [search('taint_eviction_controller_pod_deletions_total', 'Sum')]),
      graph(
        'Cost a day, dollars',
        [
          new MathExpression({
            expression: `SEARCH('Namespace="${namespace}" MetricName="cost_dollars_per_day"', 'Maximum', ${COST_PERIOD_SECONDS})`,
            period: COST_PERIOD,
            label: 'list price',
          }),
        ],
        // Told so seldom that the hours which the others show hold a point at best.
        { period: COST_PERIOD, start: '-P14D' },
      ),
    );
    this.url = `https://${Aws.REGION}.console.aws.amazon.com/cloudwatch/home?region=${Aws.REGION}#dashboards/dashboard/${props.clusterId}`;
  }
}
