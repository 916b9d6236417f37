import { Metrics } from '@aws-lambda-powertools/metrics';
import type { Meter } from '../ports/log.ts';

/** Sets of dimension values remembered between two invocations: zones, states and reasons are few. */
const DIMENSION_SETS_MAX = 200;

export interface EmbeddedMeter extends Meter {
  /** Writes what was counted since the last time: one line for each set of dimensions, none when nothing was. */
  publish(): void;
}

/**
 * Embedded metrics: figures leave as log lines, no call and no wait. Each distinct set of dimension values is a billed
 * metric; callers pass zone, state and reason only. Lines are billed too, so figures of one set share theirs. The library
 * adds the dimension `service`, the function's name unless one is given.
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
      // Writing a line forgets its dimensions.
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

/** Of this function: service name and namespace come from the library's own environment names. */
export const meter = embeddedMeter((serviceName) => new Metrics(serviceName === undefined ? {} : { serviceName }));
