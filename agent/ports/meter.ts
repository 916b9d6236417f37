/** The metrics of the agent, in Prometheus terms. Names are upstream's (kubelet_*) if there is one. */
export type MetricLabels = Readonly<Record<string, string>>;

export interface AgentMeter {
  /** Adds to a counter. Default: 1. */
  count(name: string, labels?: MetricLabels, by?: number): void;
  /** Sets a gauge. */
  gauge(name: string, value: number, labels?: MetricLabels): void;
  /** Adds one observation to a histogram. */
  observe(name: string, value: number, labels?: MetricLabels): void;
}
