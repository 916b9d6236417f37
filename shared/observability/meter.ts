import { Metrics } from '@aws-lambda-powertools/metrics';
import type { Meter } from './log.ts';

/** Sets of dimension values remembered between two invocations: zones, states and reasons are few. */
const DIMENSION_SETS_MAX = 200;

export interface EmbeddedMeter extends Meter {
  /** Writes the metrics added since the last call: one line for each set of dimensions that has any. */
  publish(): void;
}

/**
 * Metrics in CloudWatch's embedded format: they are log lines, so they need no call. Each distinct set of dimension
 * values is a billed metric; callers pass zone, state and reason only. Lines are billed too, so metrics of one set
 * share a line. The library adds the dimension `service`, by default the function's name.
 */
export function embeddedMeter(make: (serviceName?: string) => Metrics): EmbeddedMeter {
  const plain = make();
  const byDimensions = new Map<string, Metrics>();
  return {
    add: (name, value, unit, dimensions) => {
      if (dimensions === undefined) {
        plain.addMetric(name, unit, value);
        return;
      }
      const key = JSON.stringify(Object.entries(dimensions));
      const { service, ...others } = dimensions;
      const metrics = byDimensions.get(key) ?? make(service);
      byDimensions.set(key, metrics);
      // The library drops the dimensions when it writes a line.
      if (!metrics.hasStoredMetrics()) {
        for (const [dimension, text] of Object.entries(others)) metrics.addDimension(dimension, text);
      }
      metrics.addMetric(name, unit, value);
    },
    publish: () => {
      for (const metrics of [plain, ...byDimensions.values()]) {
        if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
      }
      if (byDimensions.size > DIMENSION_SETS_MAX) byDimensions.clear();
    },
  };
}

/** The meter of this function. Service name and namespace come from the library's environment variables. */
export const meter = embeddedMeter((serviceName) => new Metrics(serviceName === undefined ? {} : { serviceName }));

/**
 * Writes the metrics of an invocation when it completes or fails. The library's own middleware warns on each invocation
 * without metrics, and in steady state most have none.
 */
export const publishMetrics = (): { readonly after: () => void; readonly onError: () => void } => ({
  after: meter.publish,
  onError: meter.publish,
});
