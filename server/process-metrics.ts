/**
 * Metrics of the process, beside those of the cluster at /metrics. CloudWatch keeps each value that a function emits,
 * and an alarm chooses the statistic. Here each metric is two: its last value, and the sum of its values since the
 * start.
 */
import type { MetricFamily, Sample } from '../functions/api/metrics/open-metrics.ts';
import type { Meter } from '../shared/observability/log.ts';

/** Distinct sets of dimension values. They are zones, states and reasons: few. */
const SERIES_MAX = 1_000;

/** A value that is read when somebody asks. undefined: there is none now. */
export interface Reading {
  readonly name: string;
  readonly help: string;
  readonly type: MetricFamily['type'];
  read(): number | undefined;
}

export interface ProcessMetrics extends Meter {
  /** Adds values that are read when somebody asks. */
  readAlso(readings: readonly Reading[]): void;
  families(): readonly MetricFamily[];
}

interface Series {
  /** The name without `_total`, which some have. */
  readonly name: string;
  readonly unit: string;
  readonly labels: Readonly<Record<string, string>>;
  last: number;
  sum: number;
}

export function processMetrics(): ProcessMetrics {
  const series = new Map<string, Series>();
  const readings: Reading[] = [];
  return {
    add(metric, value, unit, labels = {}) {
      const name = `nodekeeper_function_${metric.replace(/_total$/, '')}`;
      const key = `${name}${JSON.stringify(Object.entries(labels))}`;
      const known = series.get(key);
      if (known !== undefined) {
        known.last = value;
        known.sum += value;
      } else if (series.size < SERIES_MAX) {
        series.set(key, { name, unit, labels, last: value, sum: value });
      }
    },
    readAlso(more) {
      readings.push(...more);
    },
    families() {
      const own = readings.flatMap(({ name, help, type, read }): MetricFamily[] => {
        const value = read();
        return value === undefined ? [] : [{ name, help, type, samples: [{ labels: {}, value }] }];
      });
      return [...own, ...[...Map.groupBy(series.values(), ({ name }) => name)].flatMap(familiesOf)];
    },
  };
}

function familiesOf([name, group]: readonly [string, readonly Series[]]): readonly MetricFamily[] {
  const { unit } = group[0]!;
  const samplesOf = (read: (each: Series) => number): readonly Sample[] =>
    group.map((each) => ({ labels: each.labels, value: read(each) }));
  return [
    { name: `${name}_last`, help: `Last value, in ${unit}.`, type: 'gauge', samples: samplesOf(({ last }) => last) },
    {
      name: `${name}_total`,
      help: `Sum of values, in ${unit}.`,
      type: 'counter',
      samples: samplesOf(({ sum }) => sum),
    },
  ];
}
