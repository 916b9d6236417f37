/** ReplicaSets and ReplicationControllers: the same pods, selected in two ways. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import type {
  KubeReplicaSet,
  KubeReplicationController,
  PodTemplateSpec,
  ReplicaSetSpec,
  ReplicationControllerSpec,
} from '../application-types.ts';
import { ageOf, integerColumn, labelsCell, nameOf, selectorCell, templateCells, templateColumns } from '../cells.ts';
import type { Column, ResourceDescriptor } from '../descriptor.ts';
import { defaultTemplate, withTemplateLabels } from '../pods/template-defaults.ts';
import { type KindNames, preparesStatus, SCALE_PART, STATUS_PART, storedKind } from '../stored-kind.ts';
import { validateReplicaSet, validateReplicationController } from '../validate-workloads.ts';

const columns: readonly Column[] = [
  nameColumn,
  integerColumn('Desired', 'Desired number of pods.'),
  integerColumn('Current', 'Number of pods.'),
  integerColumn('Ready', 'Pods that are ready.'),
  ageColumn,
  ...templateColumns,
  textColumn('Selector', 'Labels of the pods.', 1),
];

const EMPTY_STATUS = { emptyStatus: { replicas: 0 } };
const selectableFields: ResourceDescriptor['selectableFields'] = {
  'status.replicas': (object: KubeReplicaSet) => String(object.status?.replicas ?? 0),
};

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

const REPLICA_SETS: KindNames = {
  group: 'apps',
  resource: 'replicasets',
  kind: 'ReplicaSet',
  shortNames: ['rs'],
  categories: ['all'],
  scope: 'namespaced',
};

function storedSetSpec(given: ReplicaSetSpec = {}): ReplicaSetSpec {
  const spec = withoutNulls(given);
  return withoutEmpty({ replicas: 1, ...spec, template: defaultTemplate(spec.template) }, 'minReadySeconds');
}

export const replicasets: ResourceDescriptor = storedKind(REPLICA_SETS, {
  subresources: [SCALE_PART, STATUS_PART],
  columns,
  row: (object: KubeReplicaSet, nowMs) =>
    cellsOf(object, object.spec?.template, selectorCell(object.spec?.selector), nowMs),
  selectableFields,
  prepare: preparesStatus(REPLICA_SETS, storedSetSpec, EMPTY_STATUS),
  validate: validateReplicaSet,
});

const REPLICATION_CONTROLLERS: KindNames = {
  group: '',
  resource: 'replicationcontrollers',
  kind: 'ReplicationController',
  shortNames: ['rc'],
  categories: ['all'],
  scope: 'namespaced',
};

/** Without a selector, the labels of the template select the pods. Source: pkg/apis/core/v1/defaults.go. */
function storedControllerSpec(given: ReplicationControllerSpec = {}): ReplicationControllerSpec {
  const spec = withoutNulls(given);
  const labels = spec.template?.metadata?.labels ?? {};
  const own = spec.selector ?? {};
  const selector = Object.keys(own).length > 0 ? own : labels;
  const template = spec.template === undefined ? {} : { template: defaultTemplate(spec.template) };
  return withoutEmpty({ replicas: 1, ...spec, selector, ...template }, 'selector', 'minReadySeconds');
}

const prepareController = preparesStatus(REPLICATION_CONTROLLERS, storedControllerSpec, EMPTY_STATUS);

/** Source: pkg/apis/core/v1/defaults.go. */
const withLabels = (object: KubeReplicationController): KubeReplicationController =>
  withTemplateLabels(object, object.spec?.template);

export const replicationcontrollers: ResourceDescriptor = storedKind(REPLICATION_CONTROLLERS, {
  subresources: [SCALE_PART, STATUS_PART],
  columns,
  row: (object: KubeReplicationController, nowMs) =>
    cellsOf(object, object.spec?.template, labelsCell(object.spec?.selector), nowMs),
  selectableFields,
  prepare: {
    ...prepareController,
    prepareForCreate: (object, context) => prepareController.prepareForCreate(withLabels(object), context),
    prepareForUpdate: (next, old, context) =>
      prepareController.prepareForUpdate(context.subresource === '' ? withLabels(next) : next, old, context),
  },
  validate: validateReplicationController,
});
