/** What a benchmark is: a function that reports figures. Units stand in the names: beatsPerSecond, p99Ms, sizeBytes. */
export type Figures = Readonly<Record<string, string | number | boolean | undefined>>;

export type Report = (figures: Figures) => void;

export interface Benchmark {
  readonly name: string;
  /** One line for the list. */
  readonly about: string;
  run(report: Report): Promise<void>;
}

/** To so many significant digits: more would pretend a precision that a shared machine does not have. */
export const rounded = (value: number, digits = 4): number => Number(value.toPrecision(digits));

/** The value below which this share of the samples lies; samples need not be in order. */
export function percentile(samples: readonly number[], share: number): number {
  if (samples.length === 0) return Number.NaN;
  const ordered = Float64Array.from(samples).sort();
  return ordered[Math.min(ordered.length - 1, Math.max(0, Math.ceil(share * ordered.length) - 1))]!;
}
