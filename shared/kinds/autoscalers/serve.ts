/** HorizontalPodAutoscalers: stored as autoscaling/v2, served as v1 too. Nothing scales by them here. */

import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { typed, withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesStatus, type ServedKind, STATUS_PART, servedKind } from '../served-kind.ts';
import type { CrossVersionObjectReference, KubeHorizontalPodAutoscaler, KubeObject, MetricSpec } from '../types.ts';
import { AUTOSCALERS } from './resource.ts';
import { validateAutoscaler } from './validate.ts';

const DEFAULT_CPU_PERCENT = 80;

const cpuMetric = (averageUtilization: number): MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});

/** The metric that autoscaling/v1 has a field for. */
const cpuPercentOf = ({ type, resource }: MetricSpec): number | undefined =>
  type === 'Resource' && resource?.name === 'cpu' ? resource.target?.averageUtilization : undefined;

function storedSpec(given: KubeHorizontalPodAutoscaler['spec'] = {}): NonNullable<KubeHorizontalPodAutoscaler['spec']> {
  const spec = withoutNulls(given);
  const metrics = (spec.metrics ?? []).length === 0 ? [cpuMetric(DEFAULT_CPU_PERCENT)] : (spec.metrics ?? []);
  return { minReplicas: 1, ...spec, metrics };
}

const referenceCell = ({ kind = '', name = '' }: CrossVersionObjectReference = {}): string => `${kind}/${name}`;

function targetCell(metric: MetricSpec): string {
  const { name = '', target = {} } = metric.resource ?? {};
  if (metric.type !== 'Resource') return `<unknown>/<${metric.type?.toLowerCase() ?? ''}>`;
  const wanted =
    target.averageUtilization === undefined ? (target.averageValue ?? '') : `${target.averageUtilization}%`;
  return `${name}: <unknown>/${wanted}`;
}

const KIND: ServedKind = {
  shortNames: ['hpa'],
  categories: ['all'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Reference', 'Object that is scaled.'),
    textColumn('Targets', 'Metrics and the values that are aimed at.'),
    textColumn('MinPods', 'Smallest number of pods.'),
    integerColumn('MaxPods', 'Largest number of pods.'),
    integerColumn('Replicas', 'Current number of pods.'),
    ageColumn,
  ],
  row: (object: KubeHorizontalPodAutoscaler, nowMs) => [
    nameOf(object),
    referenceCell(object.spec?.scaleTargetRef),
    (object.spec?.metrics ?? []).map(targetCell).join(', ') || NONE,
    String(object.spec?.minReplicas ?? '<unset>'),
    object.spec?.maxReplicas ?? 0,
    object.status?.currentReplicas ?? 0,
    ageOf(object, nowMs),
  ],
  prepare: preparesStatus(AUTOSCALERS, storedSpec, {
    emptyStatus: { currentMetrics: null, desiredReplicas: 0 },
    hasGeneration: false,
  }),
  validate: validateAutoscaler,
};

export const horizontalpodautoscalers: ResourceDescriptor = servedKind(AUTOSCALERS, KIND);

/** Metrics and behavior that autoscaling/v1 has no field for, as JSON in an annotation. A write keeps them. */
const OTHERS_ANNOTATION = 'autoscaling.alpha.kubernetes.io/metrics';
const BEHAVIOR_ANNOTATION = 'autoscaling.alpha.kubernetes.io/behavior';

/** The fields of autoscaling/v1 that differ. */
interface AutoscalerV1 extends KubeObject {
  spec?: {
    scaleTargetRef?: CrossVersionObjectReference;
    minReplicas?: number;
    maxReplicas?: number;
    targetCPUUtilizationPercentage?: number;
  };
}

function toV1(stored: KubeHorizontalPodAutoscaler): KubeObject {
  const { metrics = [], behavior, ...spec } = stored.spec ?? {};
  const percent = metrics.map(cpuPercentOf).find((each) => each !== undefined);
  const others = metrics.filter((metric) => cpuPercentOf(metric) === undefined);
  const { currentReplicas = 0, desiredReplicas = 0, observedGeneration, lastScaleTime } = stored.status ?? {};
  const annotations = {
    ...stored.metadata.annotations,
    ...(others.length === 0 ? {} : { [OTHERS_ANNOTATION]: JSON.stringify(others) }),
    ...(behavior === undefined ? {} : { [BEHAVIOR_ANNOTATION]: JSON.stringify(behavior) }),
  };
  return typed('autoscaling', 'v1', 'HorizontalPodAutoscaler', {
    ...stored,
    metadata: withoutEmpty({ ...stored.metadata, annotations }, 'annotations'),
    spec: { ...spec, ...(percent === undefined ? {} : { targetCPUUtilizationPercentage: percent }) },
    status: withoutNulls({ observedGeneration, lastScaleTime, currentReplicas, desiredReplicas }),
  });
}

/** The value of an annotation as JSON, undefined if it is absent or no JSON. */
function annotated(annotations: Readonly<Record<string, string>>, name: string): unknown {
  try {
    return annotations[name] === undefined ? undefined : JSON.parse(annotations[name]);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function toV2(served: AutoscalerV1): KubeObject {
  const { targetCPUUtilizationPercentage: percent, ...spec } = served.spec ?? {};
  const {
    [OTHERS_ANNOTATION]: _others,
    [BEHAVIOR_ANNOTATION]: _behavior,
    ...annotations
  } = served.metadata.annotations ?? {};
  const others = annotated(served.metadata.annotations ?? {}, OTHERS_ANNOTATION);
  const behavior = annotated(served.metadata.annotations ?? {}, BEHAVIOR_ANNOTATION);
  const metrics = [
    ...(Array.isArray(others) ? (others as MetricSpec[]) : []),
    ...(percent === undefined ? [] : [cpuMetric(percent)]),
  ];
  return typed('autoscaling', 'v2', 'HorizontalPodAutoscaler', {
    ...served,
    metadata: withoutEmpty({ ...served.metadata, annotations }, 'annotations'),
    spec: { ...spec, metrics, ...(behavior === undefined ? {} : { behavior }) },
    status: { currentMetrics: null, ...served.status },
  });
}

export const horizontalpodautoscalersV1: ResourceDescriptor = {
  ...servedKind({ ...AUTOSCALERS, version: 'v1' }, KIND),
  servedFrom: { group: 'autoscaling', resource: AUTOSCALERS.resource, toServed: toV1, toStored: toV2 },
};
