import { labelSelector, metadata, objectMeta } from '../../kubernetes/schema/meta.ts';
import {
  always,
  embedded,
  int32,
  int64,
  intOrString,
  keyedList,
  kindStruct,
  oneOf,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema/schema.ts';
import { podSpec } from './pod.ts';

const APPS = 'io.k8s.api.apps.v1';

export const podTemplateSpec: StructSchema = struct('io.k8s.api.core.v1.PodTemplateSpec', 'Template of the pods.', {
  metadata: embedded(objectMeta, 'Labels and annotations of the pods.'),
  spec: embedded(podSpec, 'Desired state of the pods.'),
});

const rollingUpdate = struct(`${APPS}.RollingUpdateDaemonSet`, 'How many pods are replaced at a time.', {
  maxUnavailable: intOrString('Pods that may be unavailable during the update: a number or a percentage.'),
  maxSurge: intOrString('Nodes that may run two pods during the update: a number or a percentage.'),
});

const updateStrategy = struct(`${APPS}.DaemonSetUpdateStrategy`, 'How pods are replaced.', {
  type: oneOf('v1.DaemonSetUpdateStrategyType', ['RollingUpdate', 'OnDelete'], 'RollingUpdate or OnDelete.'),
  rollingUpdate: optionalStruct(rollingUpdate, 'How many pods are replaced at a time.'),
});

const daemonSetSpec = struct(`${APPS}.DaemonSetSpec`, 'Desired pods of every node.', {
  selector: required(optionalStruct(labelSelector, 'The pods of the set; must match the template.')),
  template: required(embedded(podTemplateSpec, 'The pods.')),
  updateStrategy: embedded(updateStrategy, 'How pods are replaced.'),
  minReadySeconds: int32('Seconds a new pod must be ready to count as available.'),
  revisionHistoryLimit: pointer(int32('Old revisions that are kept.')),
});

/** Conditions of workloads have no observedGeneration, and their reason and message are optional. */
const conditionOf = (kind: string): StructSchema =>
  struct(`${APPS}.${kind}Condition`, `One aspect of the state of a ${kind}.`, {
    type: required(text('Aspect in question.')),
    status: required(text('True, False or Unknown.')),
    lastTransitionTime: always(time('When the status last changed.')),
    reason: text('One word for the cause, for programs.'),
    message: text('Explanation for people.'),
  });

const daemonSetStatus = struct(`${APPS}.DaemonSetStatus`, 'Observed state of the set.', {
  currentNumberScheduled: required(int32('Nodes that run a pod and should.')),
  numberMisscheduled: required(int32('Nodes that run a pod and should not.')),
  desiredNumberScheduled: required(int32('Nodes that should run a pod.')),
  numberReady: required(int32('Nodes with a pod that is ready.')),
  observedGeneration: int64('Generation that the status was computed from.'),
  updatedNumberScheduled: int32('Nodes that run a pod of the current template.'),
  numberAvailable: int32('Nodes with a pod that has been ready for minReadySeconds.'),
  numberUnavailable: int32('Nodes without such a pod.'),
  collisionCount: pointer(int32('Name collisions.')),
  conditions: keyedList(conditionOf('DaemonSet'), 'Conditions of the set, one per type.', { mergeKey: 'type' }),
});

export const daemonSet: StructSchema = kindStruct(
  `${APPS}.DaemonSet`,
  { group: 'apps', version: 'v1', kind: 'DaemonSet' },
  'DaemonSet represents the configuration of a daemon set: pods that belong on every node. Nodekeeper stores it for kubectl drain, which skips such pods, and creates no pods.',
  {
    metadata,
    spec: embedded(daemonSetSpec, 'Desired pods of every node.'),
    status: embedded(daemonSetStatus, 'Observed state of the set.'),
  },
);
