import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  atomicStruct,
  embedded,
  int32,
  int64,
  kindStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema/schema.ts';

const AUTOSCALING = 'io.k8s.api.autoscaling.v1';

const crossVersionObjectReference = atomicStruct(
  `${AUTOSCALING}.CrossVersionObjectReference`,
  'Names an object with a scale.',
  {
    kind: required(text('Kind of the object.')),
    name: required(text('Name of the object.')),
    apiVersion: text('API group and version of the object.'),
  },
);

const horizontalPodAutoscalerSpec = struct(
  `${AUTOSCALING}.HorizontalPodAutoscalerSpec`,
  'Desired state of an autoscaler.',
  {
    scaleTargetRef: required(embedded(crossVersionObjectReference, 'Object that is scaled.')),
    minReplicas: pointer(int32('Smallest number of pods; 1 if not set.')),
    maxReplicas: required(int32('Largest number of pods.')),
    targetCPUUtilizationPercentage: pointer(int32('Average use of CPU that is aimed at, in percent of the requests.')),
  },
);

const horizontalPodAutoscalerStatus = struct(
  `${AUTOSCALING}.HorizontalPodAutoscalerStatus`,
  'Observed state of an autoscaler.',
  {
    observedGeneration: pointer(int64('Generation that the status was computed from.')),
    lastScaleTime: pointer(time('When it last changed the number of pods.')),
    currentReplicas: required(int32('Current number of pods.')),
    desiredReplicas: required(int32('Desired number of pods.')),
    currentCPUUtilizationPercentage: pointer(int32('Current average use of CPU, in percent of the requests.')),
  },
);

export const horizontalPodAutoscaler: StructSchema = kindStruct(
  `${AUTOSCALING}.HorizontalPodAutoscaler`,
  { group: 'autoscaling', version: 'v1', kind: 'HorizontalPodAutoscaler' },
  'HorizontalPodAutoscaler is a configuration of a horizontal pod autoscaler. It is stored here; nothing scales by it.',
  {
    metadata,
    spec: embedded(horizontalPodAutoscalerSpec, 'Desired state of the autoscaler.'),
    status: embedded(horizontalPodAutoscalerStatus, 'Observed state of the autoscaler.'),
  },
);

const scaleSpec = struct(`${AUTOSCALING}.ScaleSpec`, 'Desired scale.', {
  replicas: int32('Number of pods.'),
});

const scaleStatus = struct(`${AUTOSCALING}.ScaleStatus`, 'Observed scale.', {
  replicas: required(int32('Number of pods.')),
  selector: text('Label selector of the pods, as text.'),
});

export const scale: StructSchema = kindStruct(
  `${AUTOSCALING}.Scale`,
  { group: 'autoscaling', version: 'v1', kind: 'Scale' },
  'Scale represents a scaling request for a resource.',
  {
    metadata,
    spec: embedded(scaleSpec, 'Desired scale.'),
    status: embedded(scaleStatus, 'Observed scale.'),
  },
);
