/**
 * Structured log. Messages are constant, facts are fields.
 * A successful heartbeat logs nothing.
 */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Metric units as CloudWatch spells them. */
export type MetricUnit = 'Count' | 'Seconds' | 'Milliseconds' | 'Percent' | 'Bytes' | 'None';

/**
 * Metrics. Dimensions are zone and state, never a node: each distinct set of dimension values is billed as a metric.
 * The dimension `service` defaults to the function's name.
 */
export interface Meter {
  add(name: string, value: number, unit: MetricUnit, dimensions?: Record<string, string>): void;
}
