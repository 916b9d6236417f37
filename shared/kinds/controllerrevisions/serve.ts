/** Snapshots and templates that controllers and people keep: ControllerRevisions and PodTemplates. */

import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { ageOf, integerColumn, labelsCell, nameOf, templateCells, templateColumns } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { defaultTemplate } from '../pods/spec-defaults.ts';
import { preparesWhole, servedKind } from '../served-kind.ts';
import type { KubeControllerRevision, KubePodTemplate, ObjectMeta } from '../types.ts';
import { validateControllerRevision, validatePodTemplate } from '../validate-workloads.ts';
import { prepareRevision } from './defaults.ts';
import { CONTROLLER_REVISIONS, POD_TEMPLATES } from './resource.ts';

function controllerCell({ ownerReferences = [] }: ObjectMeta): string {
  const owner = ownerReferences.find((each) => each.controller === true);
  if (owner === undefined) return NONE;
  const [group = '', version] = owner.apiVersion.split('/');
  return `${owner.kind.toLowerCase()}${version === undefined ? '' : `.${group}`}/${owner.name}`;
}

export const controllerrevisions: ResourceDescriptor = servedKind(CONTROLLER_REVISIONS, {
  columns: [
    nameColumn,
    textColumn('Controller', 'Controller of the revision.'),
    integerColumn('Revision', 'Number of the revision.'),
    ageColumn,
  ],
  row: (object: KubeControllerRevision, nowMs) => [
    nameOf(object),
    controllerCell(object.metadata),
    object.revision ?? 0,
    ageOf(object, nowMs),
  ],
  prepare: prepareRevision,
  validate: validateControllerRevision,
});

export const podtemplates: ResourceDescriptor = servedKind(POD_TEMPLATES, {
  columns: [
    nameColumn,
    ...templateColumns.map((column) => ({ ...column, priority: 0 })),
    textColumn('Pod Labels', 'Labels of the pods.'),
  ],
  row: (object: KubePodTemplate) => [
    nameOf(object),
    ...templateCells(object.template),
    labelsCell(object.template?.metadata?.labels),
  ],
  prepare: preparesWhole(POD_TEMPLATES, (object: KubePodTemplate) => ({
    ...object,
    template: defaultTemplate(object.template),
  })),
  validate: validatePodTemplate,
});
