/**
 * The text format of metrics, as Prometheus reads it. Sources: OpenMetrics 1.0, "Text format"; Prometheus, "Exposition
 * formats" (text 0.0.4, for clients that do not ask for OpenMetrics).
 */

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface MetricFamily {
  /** The name, of a counter with its suffix `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly samples: readonly Sample[];
}

export type MetricFormat = 'openmetrics' | 'text';

export const METRIC_CONTENT_TYPES: Readonly<Record<MetricFormat, string>> = {
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  text: 'text/plain; version=0.0.4; charset=utf-8',
};

/** Prometheus names OpenMetrics in its Accept header; kubectl does not. */
export const metricFormatFor = (accept: string | undefined): MetricFormat =>
  accept?.includes('application/openmetrics-text') === true ? 'openmetrics' : 'text';

/** Families without samples are left out. */
export function metricsText(families: readonly MetricFamily[], format: MetricFormat): string {
  const lines: string[] = [];
  for (const { name, help, type, samples } of families) {
    if (samples.length === 0) continue;
    // OpenMetrics names the family of a counter without the suffix of its sample.
    const family = format === 'openmetrics' && type === 'counter' ? name.replace(/_total$/, '') : name;
    lines.push(`# HELP ${family} ${escapedHelp(help)}`, `# TYPE ${family} ${type}`);
    for (const { labels, value } of samples) lines.push(`${name}${labelText(labels)} ${numberText(value)}`);
  }
  if (format === 'openmetrics') lines.push('# EOF');
  return `${lines.join('\n')}\n`;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapedLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const numberText = (value: number): string =>
  Number.isNaN(value) ? 'NaN' : Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';

const escapedLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');

const escapedHelp = (help: string): string => help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
