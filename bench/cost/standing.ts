import type { Template } from '../../aws-local/assembly/template.ts';
import type { Standing } from './measurement.ts';

type Properties = Readonly<Record<string, unknown>>;

/** Counts the fixed resources of a template. */
export function standingOf(template: Template): Standing {
  const of = (type: string): Properties[] =>
    Object.values(template.Resources)
      .filter((resource) => resource.Type === type)
      .map((resource) => (resource.Properties ?? {}) as Properties);
  // Event source mappings of streams have a starting position, those of queues do not.
  const queueSources = of('AWS::Lambda::EventSourceMapping').filter(
    (source) => source['StartingPosition'] === undefined,
  );
  const memoryMegabytes: Record<string, number> = {};
  for (const properties of of('AWS::Lambda::Function')) {
    const name = serviceOf(properties);
    if (name !== undefined) memoryMegabytes[name] = Number(properties['MemorySize'] ?? 128);
  }
  return {
    memoryMegabytes,
    polledQueues: queueSources.length,
    limitedQueues: queueSources.filter((source) => source['ScalingConfig'] !== undefined).length,
    customerKeys: of('AWS::KMS::Key').length,
    alarmMetrics: of('AWS::CloudWatch::Alarm').reduce((sum, alarm) => sum + metricsOf(alarm), 0),
    compositeAlarms: of('AWS::CloudWatch::CompositeAlarm').length,
    dashboards: of('AWS::CloudWatch::Dashboard').length,
    scalingTargets: of('AWS::ApplicationAutoScaling::ScalableTarget').length,
  };
}

/** Metric math is billed by its input metrics; the expression is free. */
function metricsOf({ Metrics: metrics }: Properties): number {
  if (!Array.isArray(metrics)) return 1;
  return (metrics as Properties[]).filter((metric) => metric['MetricStat'] !== undefined).length;
}

function serviceOf({ Environment: environment }: Properties): string | undefined {
  const variables = (environment as { Variables?: Record<string, unknown> } | undefined)?.Variables;
  const name = variables?.['POWERTOOLS_SERVICE_NAME'];
  return typeof name === 'string' ? name : undefined;
}
