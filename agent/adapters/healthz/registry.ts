/**
 * Counters, gauges and histograms in the text format of Prometheus
 * (Prometheus documentation, "Exposition formats", version 0.0.4).
 */
import type { AgentMeter, MetricLabels } from '../../ports/meter.ts';

export type MetricKind = 'counter' | 'gauge' | 'histogram';

export interface MetricDefinition {
  readonly name: string;
  readonly kind: MetricKind;
  readonly help: string;
  /** Upper bounds of a histogram, ascending, without infinity. */
  readonly buckets?: readonly number[];
}

/** An agent reports about one node. More label sets than this are a programming error that would fill the memory. */
const SERIES_MAX = 1_000;
/** Counts the samples that were dropped because of this limit. */
const DROPPED = 'nodekeeper_agent_metric_values_dropped_total';

interface Histogram {
  readonly counts: number[];
  count: number;
  sum: number;
}

interface Metric {
  readonly definition: MetricDefinition;
  readonly values: Map<string, number>;
  readonly histograms: Map<string, Histogram>;
}

const escaped = (value: string): string => value.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"');

function labelText(labels: MetricLabels | undefined): string {
  if (labels === undefined) return '';
  return Object.keys(labels)
    .sort()
    .map((name) => `${name}="${escaped(String(labels[name]))}"`)
    .join(',');
}

const series = (name: string, labels: string, extra = ''): string => {
  const all = [labels, extra].filter((part) => part !== '').join(',');
  return all === '' ? name : `${name}{${all}}`;
};

function valueText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

/**
 * A name without a definition has no help text, so a missing definition does not stop any work. A name used for two
 * kinds of metric is a programming error, and throws.
 */
export class MetricRegistry implements AgentMeter {
  readonly #metrics = new Map<string, Metric>();

  constructor(definitions: readonly MetricDefinition[]) {
    for (const definition of definitions) {
      this.#metrics.set(definition.name, { definition, values: new Map(), histograms: new Map() });
    }
  }

  count(name: string, labels?: MetricLabels, by = 1): void {
    const { values } = this.#metric(name, 'counter');
    const key = labelText(labels);
    if (this.#hasRoom(values, key)) values.set(key, (values.get(key) ?? 0) + by);
  }

  gauge(name: string, value: number, labels?: MetricLabels): void {
    const { values } = this.#metric(name, 'gauge');
    const key = labelText(labels);
    if (this.#hasRoom(values, key)) values.set(key, value);
  }

  observe(name: string, value: number, labels?: MetricLabels): void {
    const { histograms, definition } = this.#metric(name, 'histogram');
    const bounds = definition.buckets ?? [];
    const key = labelText(labels);
    if (!this.#hasRoom(histograms, key)) return;
    const histogram = histograms.get(key) ?? { counts: bounds.map(() => 0), count: 0, sum: 0 };
    for (const [index, bound] of bounds.entries()) {
      if (value <= bound) histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
    }
    histogram.count += 1;
    histogram.sum += value;
    histograms.set(key, histogram);
  }

  /** All metrics that have a value. */
  text(): string {
    return [...this.#metrics.values()].map(exposition).join('');
  }

  #metric(name: string, kind: MetricKind): Metric {
    const known = this.#metrics.get(name);
    if (known !== undefined && known.definition.kind !== kind) throw new Error(`${name} is no ${kind}`);
    const metric = known ?? { definition: { name, kind, help: '' }, values: new Map(), histograms: new Map() };
    this.#metrics.set(name, metric);
    return metric;
  }

  #hasRoom(kept: ReadonlyMap<string, unknown>, key: string): boolean {
    if (kept.has(key) || kept.size < SERIES_MAX) return true;
    this.count(DROPPED);
    return false;
  }
}

function exposition({ definition, values, histograms }: Metric): string {
  const { name, kind, help, buckets = [] } = definition;
  if (values.size === 0 && histograms.size === 0) return '';
  const lines = [`# TYPE ${name} ${kind}`];
  if (help !== '') lines.unshift(`# HELP ${name} ${help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}`);
  for (const [labels, value] of values) lines.push(`${series(name, labels)} ${valueText(value)}`);
  for (const [labels, { counts, count, sum }] of histograms) {
    for (const [index, bound] of buckets.entries()) {
      lines.push(`${series(`${name}_bucket`, labels, `le="${valueText(bound)}"`)} ${counts[index] ?? 0}`);
    }
    lines.push(`${series(`${name}_bucket`, labels, 'le="+Inf"')} ${count}`);
    lines.push(`${series(`${name}_sum`, labels)} ${valueText(sum)}`, `${series(`${name}_count`, labels)} ${count}`);
  }
  return `${lines.join('\n')}\n`;
}
