/** Whether the metrics of node-monitor arrive: in CloudWatch, or in the file of local mode. */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { CloudWatchClient, GetMetricDataCommand } from '@aws-sdk/client-cloudwatch';
import { TICK_AGE } from '../../shared/functions/tick-metrics.ts';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { type AwsAccount, callAws, clientOptions } from './aws.ts';
import { type Finding, fail, notApplicable, ok, warn } from './check.ts';

const MINUTE_MS = 60_000;
/** The metric is written twice per minute. CloudWatch shows it some minutes later. */
const FRESH_MS = 5 * MINUTE_MS;
const WINDOW_MS = 15 * MINUTE_MS;
const SERVICE = 'node-monitor';
const TAIL_BYTES = 512_000;
const NEXT =
  'check that the log level of the functions passes metric lines, and read docs/operations/alarms/node-monitor-ticks.md';

/** Source: CloudWatch API reference, "GetMetricData". */
export async function checkMetrics(account: AwsAccount, clusterId: string, nowMs: number): Promise<Finding> {
  const namespace = `Nodekeeper/${clusterId}`;
  const metric = {
    Namespace: namespace,
    MetricName: TICK_AGE,
    Dimensions: [{ Name: 'service', Value: SERVICE }],
  };
  const command = new GetMetricDataCommand({
    StartTime: new Date(nowMs - WINDOW_MS),
    EndTime: new Date(nowMs),
    ScanBy: 'TimestampDescending',
    MetricDataQueries: [{ Id: 'age', MetricStat: { Metric: metric, Period: 60, Stat: 'Maximum' } }],
  });
  const { MetricDataResults: results } = await callAws(
    new CloudWatchClient(clientOptions(account, 'CLOUDWATCH')),
    'cloudwatch:GetMetricData',
    (client) => client.send(command),
  );
  const { Timestamps: times = [], Values: values = [] } = results?.[0] ?? {};
  const newest = times[0];
  return metricFinding(
    namespace,
    newest === undefined ? undefined : { atMs: newest.getTime(), value: values[0] ?? 0 },
    nowMs,
  );
}

interface MetricPoint {
  readonly atMs: number;
  /** Seconds. */
  readonly value: number;
}

function metricFinding(source: string, newest: MetricPoint | undefined, nowMs: number): Finding {
  const what = `${TICK_AGE} of ${SERVICE} in ${source}`;
  if (newest === undefined) return fail(`no ${what} in the last ${WINDOW_MS / MINUTE_MS} minutes`, NEXT);
  const measured = `${what}: ${newest.value.toFixed(1)} s, written ${formatAge(Math.max(0, nowMs - newest.atMs))} ago`;
  return nowMs - newest.atMs > FRESH_MS ? warn(measured, NEXT) : ok(measured);
}

interface MetricLine {
  readonly _aws?: { readonly Timestamp?: number };
  readonly service?: string;
  readonly [TICK_AGE]?: number | readonly number[];
}

/** Local mode writes the metric lines of the functions to a file beside its kubeconfig. */
export function checkLocalMetrics(dataDirectory: string, nowMs: number): Finding {
  const file = join(dataDirectory, 'metrics.jsonl');
  if (!existsSync(file)) {
    return notApplicable(
      'nodekeeper serve has its metrics at /metrics; the emulation of AWS keeps none with --ephemeral',
    );
  }
  let newest: MetricPoint | undefined;
  for (const text of tailOf(file).split('\n')) {
    const point = pointOf(text);
    if (point !== undefined && nowMs - point.atMs <= WINDOW_MS) newest = point;
  }
  return metricFinding(file, newest, nowMs);
}

function pointOf(text: string): MetricPoint | undefined {
  if (!text.includes(TICK_AGE)) return undefined;
  try {
    const line = JSON.parse(text) as MetricLine;
    const value = [line[TICK_AGE] ?? []].flat()[0] as number | undefined;
    const atMs = line._aws?.Timestamp;
    return line.service === SERVICE && value !== undefined && atMs !== undefined ? { atMs, value } : undefined;
  } catch {
    // The first line of the tail may be cut.
    return undefined;
  }
}

function tailOf(file: string): string {
  const descriptor = openSync(file, 'r');
  try {
    const { size } = fstatSync(descriptor);
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString('utf8');
  } finally {
    closeSync(descriptor);
  }
}
