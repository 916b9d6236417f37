import { Metrics } from '@aws-lambda-powertools/metrics';
import type { Meter } from '../ports/log.ts';

/** Embedded metrics: figures leave as log lines, no call and no wait. */
export const metrics = new Metrics();

/** Each distinct set of dimension values is a billed metric; callers pass zone and state only. */
export const meter: Meter = {
  add: (name, value, unit, dimensions) => {
    if (dimensions === undefined) {
      metrics.addMetric(name, unit, value);
      return;
    }
    const single = metrics.singleMetric();
    for (const [dimension, dimensionValue] of Object.entries(dimensions))
      single.addDimension(dimension, dimensionValue);
    single.addMetric(name, unit, value);
  },
};
