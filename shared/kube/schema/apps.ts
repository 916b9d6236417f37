import { condition, labelSelector, metadata, objectMeta } from './meta.ts';
import { podSpec } from './pod.ts';
import {
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
} from './schema.ts';

const APPS = 'io.k8s.api.apps.v1';

const podTemplate = struct('io.k8s.api.core.v1.PodTemplateSpec', 'Pods as they are to be made.', {
  metadata: embedded(objectMeta, 'Labels and annotations of the pods.'),
  spec: embedded(podSpec, 'What is wanted of the pods.'),
});

const rollingUpdate = struct(`${APPS}.RollingUpdateDaemonSet`, 'How fast pods are replaced.', {
  maxUnavailable: intOrString('Pods that may be missing meanwhile, a number or a share.'),
  maxSurge: intOrString('Nodes that may run two meanwhile, a number or a share.'),
});

const updateStrategy = struct(`${APPS}.DaemonSetUpdateStrategy`, 'How pods are replaced.', {
  type: oneOf('v1.DaemonSetUpdateStrategyType', ['RollingUpdate', 'OnDelete'], 'RollingUpdate or OnDelete.'),
  rollingUpdate: optionalStruct(rollingUpdate, 'How fast pods are replaced.'),
});

const daemonSetSpec = struct(`${APPS}.DaemonSetSpec`, 'Which pods are wanted on every node.', {
  selector: required(optionalStruct(labelSelector, 'The pods of the set; must match the template.')),
  template: required(embedded(podTemplate, 'The pods.')),
  updateStrategy: embedded(updateStrategy, 'How pods are replaced.'),
  minReadySeconds: int32('Seconds a new pod must be ready to count.'),
  revisionHistoryLimit: pointer(int32('Old revisions that are kept.')),
});

const daemonSetStatus = struct(`${APPS}.DaemonSetStatus`, 'What is known of the set.', {
  currentNumberScheduled: required(int32('Nodes that run a pod and should.')),
  numberMisscheduled: required(int32('Nodes that run a pod and should not.')),
  desiredNumberScheduled: required(int32('Nodes that should run a pod.')),
  numberReady: required(int32('Nodes whose pod is ready.')),
  observedGeneration: int64('Generation the status was made from.'),
  updatedNumberScheduled: int32('Nodes that run the pod of the present template.'),
  numberAvailable: int32('Nodes whose pod has been ready long enough.'),
  numberUnavailable: int32('Nodes that lack such a pod.'),
  collisionCount: pointer(int32('Clashes of names.')),
  conditions: keyedList(condition, 'Conditions of the set, one a type.', { mergeKey: 'type' }),
});

export const daemonSet: StructSchema = kindStruct(
  `${APPS}.DaemonSet`,
  { group: 'apps', version: 'v1', kind: 'DaemonSet' },
  'DaemonSet represents the configuration of a daemon set: pods that belong on every node. It is kept here so that a drain leaves them alone; Nodekeeper makes no pods.',
  {
    metadata,
    spec: embedded(daemonSetSpec, 'Which pods are wanted on every node.'),
    status: embedded(daemonSetStatus, 'What is known of the set.'),
  },
);
