import { ageColumn, nameColumn, selectorColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, integerColumn, nameOf, selectorCell, templateCells, templateColumns } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { defaultTemplate } from '../pods/spec-defaults.ts';
import { preparesStatus, SCALE_PART, STATUS_PART, servedKind } from '../served-kind.ts';
import type { DeploymentSpec, KubeDeployment } from '../types.ts';
import { validateDeployment } from '../validate-workloads.ts';
import { DEPLOYMENTS } from './resource.ts';

/** Defaults of pkg/apis/apps/v1/defaults.go. */
function storedSpec(given: DeploymentSpec = {}): DeploymentSpec {
  const spec = withoutNulls(given);
  const type = spec.strategy?.type || 'RollingUpdate';
  const rollingUpdate = { maxUnavailable: '25%', maxSurge: '25%', ...spec.strategy?.rollingUpdate };
  return withoutEmpty(
    {
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      ...spec,
      template: defaultTemplate(spec.template),
      strategy: type === 'RollingUpdate' ? { type, rollingUpdate } : { ...spec.strategy, type },
    },
    'minReadySeconds',
    'paused',
  );
}

export const deployments: ResourceDescriptor = servedKind(DEPLOYMENTS, {
  shortNames: ['deploy'],
  categories: ['all'],
  subresources: [SCALE_PART, STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Ready', 'Pods that are ready, of the desired number.'),
    integerColumn('Up-to-date', 'Pods of the current template.'),
    integerColumn('Available', 'Pods that have been ready for minReadySeconds.'),
    ageColumn,
    ...templateColumns,
    selectorColumn,
  ],
  row: (object: KubeDeployment, nowMs) => [
    nameOf(object),
    `${object.status?.readyReplicas ?? 0}/${object.spec?.replicas ?? 0}`,
    object.status?.updatedReplicas ?? 0,
    object.status?.availableReplicas ?? 0,
    ageOf(object, nowMs),
    ...templateCells(object.spec?.template),
    selectorCell(object.spec?.selector),
  ],
  // Source: pkg/registry/apps/deployment/strategy.go, deploymentStrategy and deploymentStatusStrategy.
  prepare: preparesStatus(DEPLOYMENTS, storedSpec, { keepsLabels: true, annotationsCount: true }),
  validate: validateDeployment,
});
