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
import { Topic } from 'aws-cdk-lib/aws-sns';
import { Construct } from 'constructs';
import { type AlarmRow, type AlarmSources, alarmRows } from './cluster-alarms.ts';

export interface AlarmsProps extends AlarmSources {
  readonly clusterId: string;
  /**
   * SNS topic that is notified when on-call is needed, and when the alarm is over.
   * @default - no notification; the alarm is visible in the console
   */
  readonly alarmTopicArn?: string | undefined;
  /**
   * Prefix of the runbook path in each description, such as `https://github.com/me/nodekeeper/blob/main/`.
   * @default - the path in the repository only
   */
  readonly runbookBaseUrl?: string | undefined;
}

const MINUTE_SECONDS = 60;
/** Composite alarm over all alarms that page. */
export const PAGE = 'page';
export const RUNBOOKS = 'docs/operations/alarms';

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
 * One composite alarm that pages on-call; the other alarms are context. Each description names its runbook.
 *
 * List price per month: $0.10 per metric, $0.50 for the composite alarm (docs/operations/alarms/README.md has the sum).
 */
export class Alarms extends Construct {
  /** By name, without the prefix of the cluster. */
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
      alarmDescription: describe('The cluster needs attention now.', PAGE),
      alarmRule: AlarmRule.anyOf(...paging),
    });
    if (props.alarmTopicArn !== undefined) {
      const notify = new SnsAction(Topic.fromTopicArn(this, 'Topic', props.alarmTopicArn));
      this.page.addAlarmAction(notify);
      this.page.addOkAction(notify);
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
