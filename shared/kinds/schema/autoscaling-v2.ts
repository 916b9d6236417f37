import { labelSelector, metadata } from '../../kubernetes/schema/meta.ts';
import {
  always,
  embedded,
  int32,
  int64,
  keyedList,
  kindStruct,
  list,
  optionalStruct,
  pointer,
  quantity,
  required,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema/schema.ts';

const AUTOSCALINGV2 = 'io.k8s.api.autoscaling.v2';

const crossVersionObjectReference = struct(
  `${AUTOSCALINGV2}.CrossVersionObjectReference`,
  'Names an object with a scale.',
  {
    kind: required(text('Kind of the object.')),
    name: required(text('Name of the object.')),
    apiVersion: text('API group and version of the object.'),
  },
);

const metricTarget = struct(`${AUTOSCALINGV2}.MetricTarget`, 'Value that is aimed at.', {
  type: required(text('Utilization, Value or AverageValue.')),
  value: quantity('Value of the metric.'),
  averageValue: quantity('Value of the metric per pod.'),
  averageUtilization: pointer(int32('Average use per pod, in percent of the requests.')),
});

const metricIdentifier = struct(`${AUTOSCALINGV2}.MetricIdentifier`, 'Names a metric.', {
  name: required(text('Name of the metric.')),
  selector: optionalStruct(labelSelector, 'Selects series of the metric.'),
});

const objectMetricSource = struct(`${AUTOSCALINGV2}.ObjectMetricSource`, 'A metric of one object.', {
  describedObject: required(embedded(crossVersionObjectReference, 'The object.')),
  target: required(embedded(metricTarget, 'Value that is aimed at.')),
  metric: required(embedded(metricIdentifier, 'The metric.')),
});

const podsMetricSource = struct(`${AUTOSCALINGV2}.PodsMetricSource`, 'A metric of each pod.', {
  metric: required(embedded(metricIdentifier, 'The metric.')),
  target: required(embedded(metricTarget, 'Value that is aimed at.')),
});

const resourceMetricSource = struct(`${AUTOSCALINGV2}.ResourceMetricSource`, 'Use of a resource by the pods.', {
  name: required(text('Name of the resource.')),
  target: required(embedded(metricTarget, 'Value that is aimed at.')),
});

const containerResourceMetricSource = struct(
  `${AUTOSCALINGV2}.ContainerResourceMetricSource`,
  'Use of a resource by one container of the pods.',
  {
    name: required(text('Name of the resource.')),
    target: required(embedded(metricTarget, 'Value that is aimed at.')),
    container: required(text('Name of the container.')),
  },
);

const externalMetricSource = struct(`${AUTOSCALINGV2}.ExternalMetricSource`, 'A metric from outside the cluster.', {
  metric: required(embedded(metricIdentifier, 'The metric.')),
  target: required(embedded(metricTarget, 'Value that is aimed at.')),
});

const metricSpec = struct(`${AUTOSCALINGV2}.MetricSpec`, 'A metric to scale by.', {
  type: required(text('Object, Pods, Resource, ContainerResource or External.')),
  object: optionalStruct(objectMetricSource, 'A metric of one object.'),
  pods: optionalStruct(podsMetricSource, 'A metric of each pod.'),
  resource: optionalStruct(resourceMetricSource, 'Use of a resource.'),
  containerResource: optionalStruct(containerResourceMetricSource, 'Use of a resource by one container.'),
  external: optionalStruct(externalMetricSource, 'A metric from outside the cluster.'),
});

const hpaScalingPolicy = struct(`${AUTOSCALINGV2}.HPAScalingPolicy`, 'How far one change may go.', {
  type: required(text('Pods or Percent.')),
  value: required(int32('Number of pods, or percentage.')),
  periodSeconds: required(int32('Period that the policy counts over, in seconds.')),
});

const hpaScalingRules = struct(`${AUTOSCALINGV2}.HPAScalingRules`, 'Rules for one direction of scaling.', {
  stabilizationWindowSeconds: pointer(int32('Seconds of past recommendations that are considered.')),
  selectPolicy: pointer(text('Max, Min or Disabled.')),
  policies: list(hpaScalingPolicy, 'How far one change may go.'),
  tolerance: quantity('Ratio of change below which nothing is scaled.'),
});

const horizontalPodAutoscalerBehavior = struct(
  `${AUTOSCALINGV2}.HorizontalPodAutoscalerBehavior`,
  'Rules for scaling up and down.',
  {
    scaleUp: optionalStruct(hpaScalingRules, 'Rules for scaling up.'),
    scaleDown: optionalStruct(hpaScalingRules, 'Rules for scaling down.'),
  },
);

const horizontalPodAutoscalerSpec = struct(
  `${AUTOSCALINGV2}.HorizontalPodAutoscalerSpec`,
  'Desired state of an autoscaler.',
  {
    scaleTargetRef: required(embedded(crossVersionObjectReference, 'Object that is scaled.')),
    minReplicas: pointer(int32('Smallest number of pods; 1 if not set.')),
    maxReplicas: required(int32('Largest number of pods.')),
    metrics: list(metricSpec, 'Metrics to scale by.'),
    behavior: optionalStruct(horizontalPodAutoscalerBehavior, 'Rules for scaling up and down.'),
  },
);

const metricValueStatus = struct(`${AUTOSCALINGV2}.MetricValueStatus`, 'Current value of a metric.', {
  value: quantity('Value of the metric.'),
  averageValue: quantity('Value of the metric per pod.'),
  averageUtilization: pointer(int32('Average use per pod, in percent of the requests.')),
});

const objectMetricStatus = struct(`${AUTOSCALINGV2}.ObjectMetricStatus`, 'Current metric of one object.', {
  metric: required(embedded(metricIdentifier, 'The metric.')),
  current: required(embedded(metricValueStatus, 'Current value.')),
  describedObject: required(embedded(crossVersionObjectReference, 'The object.')),
});

const podsMetricStatus = struct(`${AUTOSCALINGV2}.PodsMetricStatus`, 'Current metric of each pod.', {
  metric: required(embedded(metricIdentifier, 'The metric.')),
  current: required(embedded(metricValueStatus, 'Current value.')),
});

const resourceMetricStatus = struct(`${AUTOSCALINGV2}.ResourceMetricStatus`, 'Current use of a resource.', {
  name: required(text('Name of the resource.')),
  current: required(embedded(metricValueStatus, 'Current value.')),
});

const containerResourceMetricStatus = struct(
  `${AUTOSCALINGV2}.ContainerResourceMetricStatus`,
  'Current use of a resource by one container.',
  {
    name: required(text('Name of the resource.')),
    current: required(embedded(metricValueStatus, 'Current value.')),
    container: required(text('Name of the container.')),
  },
);

const externalMetricStatus = struct(
  `${AUTOSCALINGV2}.ExternalMetricStatus`,
  'Current metric from outside the cluster.',
  {
    metric: required(embedded(metricIdentifier, 'The metric.')),
    current: required(embedded(metricValueStatus, 'Current value.')),
  },
);

const metricStatus = struct(`${AUTOSCALINGV2}.MetricStatus`, 'Current value of one metric.', {
  type: required(text('Object, Pods, Resource, ContainerResource or External.')),
  object: optionalStruct(objectMetricStatus, 'A metric of one object.'),
  pods: optionalStruct(podsMetricStatus, 'A metric of each pod.'),
  resource: optionalStruct(resourceMetricStatus, 'Use of a resource.'),
  containerResource: optionalStruct(containerResourceMetricStatus, 'Use of a resource by one container.'),
  external: optionalStruct(externalMetricStatus, 'A metric from outside the cluster.'),
});

const horizontalPodAutoscalerCondition = struct(
  `${AUTOSCALINGV2}.HorizontalPodAutoscalerCondition`,
  'One aspect of the state of an autoscaler.',
  {
    type: required(text('Aspect in question.')),
    status: required(text('True, False or Unknown.')),
    lastTransitionTime: always(time('When the status last changed.')),
    reason: text('One word for the cause, for programs.'),
    message: text('Explanation for people.'),
  },
);

const horizontalPodAutoscalerStatus = struct(
  `${AUTOSCALINGV2}.HorizontalPodAutoscalerStatus`,
  'Observed state of an autoscaler.',
  {
    observedGeneration: pointer(int64('Generation that the status was computed from.')),
    lastScaleTime: pointer(time('When it last changed the number of pods.')),
    currentReplicas: int32('Current number of pods.'),
    desiredReplicas: required(int32('Desired number of pods.')),
    currentMetrics: list(metricStatus, 'Current values of the metrics.'),
    conditions: keyedList(horizontalPodAutoscalerCondition, 'Conditions of the object, one per type.', {
      mergeKey: 'type',
    }),
  },
);

export const horizontalPodAutoscaler: StructSchema = kindStruct(
  `${AUTOSCALINGV2}.HorizontalPodAutoscaler`,
  { group: 'autoscaling', version: 'v2', kind: 'HorizontalPodAutoscaler' },
  'HorizontalPodAutoscaler is the configuration for a horizontal pod autoscaler. It is stored here; nothing scales by it.',
  {
    metadata,
    spec: embedded(horizontalPodAutoscalerSpec, 'Desired state of the autoscaler.'),
    status: embedded(horizontalPodAutoscalerStatus, 'Observed state of the autoscaler.'),
  },
);
