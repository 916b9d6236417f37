/** What the agent counts, in the terms of Prometheus; names are upstream's (kubelet_*) where there is one. */
export type MetricLabels = Readonly<Record<string, string>>;

export interface AgentMeter {
  /** Adds to a counter; 1 unless said. */
  count(name: string, labels?: MetricLabels, by?: number): void;
  /** Sets a gauge. */
  gauge(name: string, value: number, labels?: MetricLabels): void;
  /** Adds one observation to a histogram. */
  observe(name: string, value: number, labels?: MetricLabels): void;
}
