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

/** Samples of one part. */
const PART_SAMPLES = 1_000;

/** Families without samples are left out. */
export const metricsText = (families: readonly MetricFamily[], format: MetricFormat): string =>
  [...metricParts(families, format)].join('');

/** The same in parts of bounded length: a process serves others between them. */
export function* metricParts(families: readonly MetricFamily[], format: MetricFormat): Generator<string> {
  for (const { name, help, type, samples } of families) {
    if (samples.length === 0) continue;
    // OpenMetrics names the family of a counter without the suffix of its sample.
    const family = format === 'openmetrics' && type === 'counter' ? name.replace(/_total$/, '') : name;
    yield `# HELP ${family} ${escapedHelp(help)}\n# TYPE ${family} ${type}\n`;
    for (let first = 0; first < samples.length; first += PART_SAMPLES) {
      const part = samples.slice(first, first + PART_SAMPLES);
      yield part.map(({ labels, value }) => `${name}${labelText(labels)} ${numberText(value)}\n`).join('');
    }
  }
  if (format === 'openmetrics') yield '# EOF\n';
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapedLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const numberText = (value: number): string =>
  Number.isNaN(value) ? 'NaN' : Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';

const ESCAPED = /[\\\n"]/;
/** Nearly no value has such a character. To replace each of them in each value needs most of the time of a response. */
const escapedLabel = (value: string): string =>
  ESCAPED.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"') : value;

const escapedHelp = (help: string): string => help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
