/** ReplicaSets and ReplicationControllers: the same pods, selected in two ways. */

import { ageColumn, nameColumn, selectorColumn } from '../../kubernetes/columns.ts';
import { ageOf, integerColumn, labelsCell, nameOf, selectorCell, templateCells, templateColumns } from '../cells.ts';
import type { Column, ResourceDescriptor } from '../descriptor.ts';
import { SCALE_PART, STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeReplicaSet, KubeReplicationController, PodTemplateSpec } from '../types.ts';
import { validateReplicaSet, validateReplicationController } from '../validate-workloads.ts';
import { prepareReplicaSet, prepareReplicationController } from './defaults.ts';
import { REPLICA_SETS, REPLICATION_CONTROLLERS } from './resource.ts';

const columns: readonly Column[] = [
  nameColumn,
  integerColumn('Desired', 'Desired number of pods.'),
  integerColumn('Current', 'Number of pods.'),
  integerColumn('Ready', 'Pods that are ready.'),
  ageColumn,
  ...templateColumns,
  selectorColumn,
];

const cellsOf = (
  object: KubeReplicaSet | KubeReplicationController,
  template: PodTemplateSpec | undefined,
  selector: string,
  nowMs: number,
): unknown[] => [
  nameOf(object),
  object.spec?.replicas ?? 0,
  object.status?.replicas ?? 0,
  object.status?.readyReplicas ?? 0,
  ageOf(object, nowMs),
  ...templateCells(template),
  selector,
];

export const replicasets: ResourceDescriptor = servedKind(REPLICA_SETS, {
  shortNames: ['rs'],
  categories: ['all'],
  subresources: [SCALE_PART, STATUS_PART],
  columns,
  row: (object: KubeReplicaSet, nowMs) =>
    cellsOf(object, object.spec?.template, selectorCell(object.spec?.selector), nowMs),
  prepare: prepareReplicaSet,
  validate: validateReplicaSet,
});

export const replicationcontrollers: ResourceDescriptor = servedKind(REPLICATION_CONTROLLERS, {
  shortNames: ['rc'],
  categories: ['all'],
  subresources: [SCALE_PART, STATUS_PART],
  columns,
  row: (object: KubeReplicationController, nowMs) =>
    cellsOf(object, object.spec?.template, labelsCell(object.spec?.selector), nowMs),
  prepare: prepareReplicationController,
  validate: validateReplicationController,
});
