/** One CloudWatch alarm as plain data. The metrics are those of the function that owns the alarm. */
export interface AlarmManifest {
  /** Its name after the name of the cluster, and the name of its runbook. */
  readonly name: string;
  /** Position in the list of alarms: the alarm to look at first has the lowest rank. */
  readonly rank: number;
  /** What it means. One sentence, the beginning of the description. */
  readonly meaning: string;
  /** Whether it notifies on-call, through the composite alarm. */
  readonly pages: boolean;
  /** One metric, or several by the name that `expression` uses for them. */
  readonly metrics: Readonly<Record<string, AlarmMetric>>;
  /** Metric math over `metrics`; absent: the one metric itself. */
  readonly expression?: string;
  readonly when: '>' | '>=' | '<';
  /** A number, or the policy field with the number. */
  readonly threshold: number | { readonly policyField: 'pendingPodAlarmSeconds' | 'workloadShortageAlarmSeconds' };
  /** Breaching periods, and the periods evaluated. */
  readonly datapoints: readonly [breaching: number, of: number];
  /** @default 60 */
  readonly periodSeconds?: number;
  /** How periods without data are treated. */
  readonly missing: 'breaching' | 'notBreaching';
  readonly missingBecause: string;
}

export type AlarmMetric =
  /** A metric that the function writes itself, without further dimensions. */
  | { readonly kind: 'own'; readonly metricName: string; readonly statistic: 'Average' | 'Maximum' | 'Sum' }
  /** A metric that Lambda keeps of the function. */
  | {
      readonly kind: 'lambda';
      readonly metricName: 'Errors' | 'Invocations' | 'IteratorAge' | 'Throttles';
      readonly statistic: 'Maximum' | 'Sum';
    };

export const largest = (metricName: string): AlarmMetric => ({ kind: 'own', metricName, statistic: 'Maximum' });
export const mean = (metricName: string): AlarmMetric => ({ kind: 'own', metricName, statistic: 'Average' });
export const total = (metricName: string): AlarmMetric => ({ kind: 'own', metricName, statistic: 'Sum' });
export const lambdaTotal = (metricName: Extract<AlarmMetric, { kind: 'lambda' }>['metricName']): AlarmMetric => ({
  kind: 'lambda',
  metricName,
  statistic: 'Sum',
});
