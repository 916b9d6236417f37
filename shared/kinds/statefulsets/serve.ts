import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, nameOf, templateCells, templateColumns } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { defaultTemplate } from '../pods/spec-defaults.ts';
import { preparesStatus, SCALE_PART, STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeStatefulSet, StatefulSetSpec } from '../types.ts';
import { validateStatefulSet } from '../validate-workloads.ts';
import { STATEFUL_SETS } from './resource.ts';

/** Defaults of pkg/apis/apps/v1/defaults.go. */
function storedSpec(given: StatefulSetSpec = {}): StatefulSetSpec {
  const spec = withoutNulls(given);
  const { updateStrategy: strategy = {}, persistentVolumeClaimRetentionPolicy: retention = {} } = spec;
  const type = strategy.type || 'RollingUpdate';
  const rollingUpdate = { partition: 0, ...strategy.rollingUpdate };
  return withoutEmpty(
    {
      replicas: 1,
      revisionHistoryLimit: 10,
      ...spec,
      podManagementPolicy: spec.podManagementPolicy || 'OrderedReady',
      updateStrategy: type === 'RollingUpdate' ? { type, rollingUpdate } : { ...strategy, type },
      persistentVolumeClaimRetentionPolicy: {
        whenDeleted: retention.whenDeleted || 'Retain',
        whenScaled: retention.whenScaled || 'Retain',
      },
      template: defaultTemplate(spec.template),
    },
    'minReadySeconds',
    'volumeClaimTemplates',
    'serviceName',
  );
}

export const statefulsets: ResourceDescriptor = servedKind(STATEFUL_SETS, {
  shortNames: ['sts'],
  categories: ['all'],
  subresources: [SCALE_PART, STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Ready', 'Pods that are ready, of the desired number.'),
    ageColumn,
    ...templateColumns,
  ],
  row: (object: KubeStatefulSet, nowMs) => [
    nameOf(object),
    `${object.status?.readyReplicas ?? 0}/${object.spec?.replicas ?? 0}`,
    ageOf(object, nowMs),
    ...templateCells(object.spec?.template),
  ],
  prepare: preparesStatus(STATEFUL_SETS, storedSpec, { emptyStatus: { availableReplicas: 0, replicas: 0 } }),
  validate: validateStatefulSet,
});
