import { labelSelector, metadata } from '../../kubernetes/schema/meta.ts';
import {
  always,
  any,
  atomicTextMap,
  bool,
  embedded,
  int32,
  int64,
  intOrString,
  keyedList,
  kindStruct,
  list,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema/schema.ts';
import { podTemplateSpec } from './apps.ts';
import { persistentVolumeClaim } from './persistent-volume.ts';

const APPS = 'io.k8s.api.apps.v1';
const CORE = 'io.k8s.api.core.v1';

const rollingUpdateDeployment = struct(`${APPS}.RollingUpdateDeployment`, 'How many pods are replaced at a time.', {
  maxUnavailable: intOrString('Pods that may be unavailable during the update: a number or a percentage.'),
  maxSurge: intOrString('Pods that may exist beyond the desired number: a number or a percentage.'),
});

const deploymentStrategy = struct(`${APPS}.DeploymentStrategy`, 'How pods are replaced.', {
  type: text('Recreate or RollingUpdate.'),
  rollingUpdate: optionalStruct(rollingUpdateDeployment, 'Settings of a rolling update.'),
});

const deploymentSpec = struct(`${APPS}.DeploymentSpec`, 'Desired state of a Deployment.', {
  replicas: pointer(int32('Number of pods; 1 if not set.')),
  selector: required(optionalStruct(labelSelector, 'The pods of the Deployment; must match the template.')),
  template: required(embedded(podTemplateSpec, 'Template of the pods.')),
  strategy: embedded(deploymentStrategy, 'How pods are replaced.'),
  minReadySeconds: int32('Seconds a new pod must be ready to count as available.'),
  revisionHistoryLimit: pointer(int32('Old ReplicaSets that are kept; 10 if not set.')),
  paused: bool('Whether the Deployment is paused.'),
  progressDeadlineSeconds: pointer(int32('Seconds without progress after which the Deployment is reported as failed.')),
});

const deploymentCondition = struct(`${APPS}.DeploymentCondition`, 'One aspect of the state of a Deployment.', {
  type: required(text('Aspect in question.')),
  status: required(text('True, False or Unknown.')),
  lastUpdateTime: always(time('When the condition was last updated.')),
  lastTransitionTime: always(time('When the status last changed.')),
  reason: text('One word for the cause, for programs.'),
  message: text('Explanation for people.'),
});

const deploymentStatus = struct(`${APPS}.DeploymentStatus`, 'Observed state of a Deployment.', {
  observedGeneration: int64('Generation that the status was computed from.'),
  replicas: int32('Number of pods.'),
  updatedReplicas: int32('Pods of the current template.'),
  readyReplicas: int32('Pods that are ready.'),
  availableReplicas: int32('Pods that have been ready for minReadySeconds.'),
  unavailableReplicas: int32('Pods that are missing or not available.'),
  terminatingReplicas: pointer(int32('Pods that are terminating.')),
  conditions: keyedList(deploymentCondition, 'Conditions of the object, one per type.', { mergeKey: 'type' }),
  collisionCount: pointer(int32('Number of name collisions of new objects.')),
});

export const deployment: StructSchema = kindStruct(
  `${APPS}.Deployment`,
  { group: 'apps', version: 'v1', kind: 'Deployment' },
  'Deployment enables declarative updates for Pods and ReplicaSets.',
  {
    metadata,
    spec: embedded(deploymentSpec, 'Desired state of the Deployment.'),
    status: embedded(deploymentStatus, 'Observed state of the Deployment.'),
  },
);

const replicaSetSpec = struct(`${APPS}.ReplicaSetSpec`, 'Desired state of a ReplicaSet.', {
  replicas: pointer(int32('Number of pods; 1 if not set.')),
  minReadySeconds: int32('Seconds a new pod must be ready to count as available.'),
  selector: required(optionalStruct(labelSelector, 'The pods of the ReplicaSet; must match the template.')),
  template: embedded(podTemplateSpec, 'Template of the pods.'),
});

const replicaSetCondition = struct(`${APPS}.ReplicaSetCondition`, 'One aspect of the state of a ReplicaSet.', {
  type: required(text('Aspect in question.')),
  status: required(text('True, False or Unknown.')),
  lastTransitionTime: always(time('When the status last changed.')),
  reason: text('One word for the cause, for programs.'),
  message: text('Explanation for people.'),
});

const replicaSetStatus = struct(`${APPS}.ReplicaSetStatus`, 'Observed state of a ReplicaSet.', {
  replicas: required(int32('Number of pods.')),
  fullyLabeledReplicas: int32('Pods with all labels of the template.'),
  readyReplicas: int32('Pods that are ready.'),
  availableReplicas: int32('Pods that have been ready for minReadySeconds.'),
  terminatingReplicas: pointer(int32('Pods that are terminating.')),
  observedGeneration: int64('Generation that the status was computed from.'),
  conditions: keyedList(replicaSetCondition, 'Conditions of the object, one per type.', { mergeKey: 'type' }),
});

export const replicaSet: StructSchema = kindStruct(
  `${APPS}.ReplicaSet`,
  { group: 'apps', version: 'v1', kind: 'ReplicaSet' },
  'ReplicaSet ensures that a specified number of pod replicas are running at any time.',
  {
    metadata,
    spec: embedded(replicaSetSpec, 'Desired state of the ReplicaSet.'),
    status: embedded(replicaSetStatus, 'Observed state of the ReplicaSet.'),
  },
);

const rollingUpdateStatefulSetStrategy = struct(
  `${APPS}.RollingUpdateStatefulSetStrategy`,
  'Settings of a rolling update.',
  {
    partition: pointer(int32('Ordinal from which pods are updated.')),
    maxUnavailable: intOrString('Pods that may be unavailable during the update: a number or a percentage.'),
  },
);

const statefulSetUpdateStrategy = struct(`${APPS}.StatefulSetUpdateStrategy`, 'How pods are replaced.', {
  type: text('RollingUpdate or OnDelete.'),
  rollingUpdate: optionalStruct(rollingUpdateStatefulSetStrategy, 'Settings of a rolling update.'),
});

const statefulSetPersistentVolumeClaimRetentionPolicy = struct(
  `${APPS}.StatefulSetPersistentVolumeClaimRetentionPolicy`,
  'What happens to the claims of a StatefulSet.',
  {
    whenDeleted: text('When the StatefulSet is deleted: Retain or Delete.'),
    whenScaled: text('When it is scaled down: Retain or Delete.'),
  },
);

const statefulSetOrdinals = struct(`${APPS}.StatefulSetOrdinals`, 'Numbering of the pods.', {
  start: int32('Ordinal of the first pod.'),
});

const statefulSetSpec = struct(`${APPS}.StatefulSetSpec`, 'Desired state of a StatefulSet.', {
  replicas: pointer(int32('Number of pods; 1 if not set.')),
  selector: required(optionalStruct(labelSelector, 'The pods of the StatefulSet; must match the template.')),
  template: required(embedded(podTemplateSpec, 'Template of the pods.')),
  volumeClaimTemplates: list(persistentVolumeClaim, 'Claims that each pod has.'),
  serviceName: text('Service of the DNS names of the pods.'),
  podManagementPolicy: text('OrderedReady or Parallel.'),
  updateStrategy: embedded(statefulSetUpdateStrategy, 'How pods are replaced.'),
  revisionHistoryLimit: pointer(int32('Old revisions that are kept; 10 if not set.')),
  minReadySeconds: int32('Seconds a new pod must be ready to count as available.'),
  persistentVolumeClaimRetentionPolicy: optionalStruct(
    statefulSetPersistentVolumeClaimRetentionPolicy,
    'What happens to the claims.',
  ),
  ordinals: optionalStruct(statefulSetOrdinals, 'Numbering of the pods.'),
});

const statefulSetCondition = struct(`${APPS}.StatefulSetCondition`, 'One aspect of the state of a StatefulSet.', {
  type: required(text('Aspect in question.')),
  status: required(text('True, False or Unknown.')),
  lastTransitionTime: always(time('When the status last changed.')),
  reason: text('One word for the cause, for programs.'),
  message: text('Explanation for people.'),
});

const statefulSetStatus = struct(`${APPS}.StatefulSetStatus`, 'Observed state of a StatefulSet.', {
  observedGeneration: int64('Generation that the status was computed from.'),
  replicas: required(int32('Number of pods.')),
  readyReplicas: int32('Pods that are ready.'),
  currentReplicas: int32('Pods of the current revision.'),
  updatedReplicas: int32('Pods of the update revision.'),
  currentRevision: text('Revision of the pods that are not updated.'),
  updateRevision: text('Revision of the pods that are updated.'),
  collisionCount: pointer(int32('Number of name collisions of new objects.')),
  conditions: keyedList(statefulSetCondition, 'Conditions of the object, one per type.', { mergeKey: 'type' }),
  availableReplicas: int32('Pods that have been ready for minReadySeconds.'),
});

export const statefulSet: StructSchema = kindStruct(
  `${APPS}.StatefulSet`,
  { group: 'apps', version: 'v1', kind: 'StatefulSet' },
  'StatefulSet represents a set of pods with consistent identities.',
  {
    metadata,
    spec: embedded(statefulSetSpec, 'Desired state of the StatefulSet.'),
    status: embedded(statefulSetStatus, 'Observed state of the StatefulSet.'),
  },
);

export const controllerRevision: StructSchema = kindStruct(
  `${APPS}.ControllerRevision`,
  { group: 'apps', version: 'v1', kind: 'ControllerRevision' },
  'ControllerRevision implements an immutable snapshot of state data. Controllers use it for rollouts and rollbacks.',
  {
    metadata,
    data: any('The snapshot.'),
    revision: required(int64('Number of the revision.')),
  },
);

const replicationControllerSpec = struct(
  `${CORE}.ReplicationControllerSpec`,
  'Desired state of a ReplicationController.',
  {
    replicas: pointer(int32('Number of pods; 1 if not set.')),
    minReadySeconds: int32('Seconds a new pod must be ready to count as available.'),
    selector: atomicTextMap('Labels of its pods; those of the template if not set.'),
    template: optionalStruct(podTemplateSpec, 'Template of the pods.'),
  },
);

const replicationControllerCondition = struct(
  `${CORE}.ReplicationControllerCondition`,
  'One aspect of the state of a ReplicationController.',
  {
    type: required(text('Aspect in question.')),
    status: required(text('True, False or Unknown.')),
    lastTransitionTime: always(time('When the status last changed.')),
    reason: text('One word for the cause, for programs.'),
    message: text('Explanation for people.'),
  },
);

const replicationControllerStatus = struct(
  `${CORE}.ReplicationControllerStatus`,
  'Observed state of a ReplicationController.',
  {
    replicas: required(int32('Number of pods.')),
    fullyLabeledReplicas: int32('Pods with all labels of the template.'),
    readyReplicas: int32('Pods that are ready.'),
    availableReplicas: int32('Pods that have been ready for minReadySeconds.'),
    observedGeneration: int64('Generation that the status was computed from.'),
    conditions: keyedList(replicationControllerCondition, 'Conditions of the object, one per type.', {
      mergeKey: 'type',
    }),
  },
);

export const replicationController: StructSchema = kindStruct(
  `${CORE}.ReplicationController`,
  { group: '', version: 'v1', kind: 'ReplicationController' },
  'ReplicationController represents the configuration of a replication controller: a number of equal pods.',
  {
    metadata,
    spec: embedded(replicationControllerSpec, 'Desired state.'),
    status: embedded(replicationControllerStatus, 'Observed state.'),
  },
);

export const podTemplate: StructSchema = kindStruct(
  `${CORE}.PodTemplate`,
  { group: '', version: 'v1', kind: 'PodTemplate' },
  'PodTemplate describes a template for creating copies of a predefined pod.',
  {
    metadata,
    template: embedded(podTemplateSpec, 'Template of the pods.'),
  },
);
