/** Snapshots and templates that controllers and people keep: ControllerRevisions and PodTemplates. */

import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import type { KubeControllerRevision, KubePodTemplate } from '../application-types.ts';
import { ageOf, integerColumn, labelsCell, nameOf, templateCells, templateColumns } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { defaultTemplate } from '../pods/template-defaults.ts';
import { type KindNames, preparesWhole, storedKind } from '../stored-kind.ts';
import type { ObjectMeta } from '../types.ts';
import { validateControllerRevision, validatePodTemplate } from '../validate-workloads.ts';

const REVISIONS: KindNames = {
  group: 'apps',
  resource: 'controllerrevisions',
  kind: 'ControllerRevision',
  scope: 'namespaced',
};

function controllerCell({ ownerReferences = [] }: ObjectMeta): string {
  const owner = ownerReferences.find((each) => each.controller === true);
  if (owner === undefined) return NONE;
  const [group = '', version] = owner.apiVersion.split('/');
  return `${owner.kind.toLowerCase()}${version === undefined ? '' : `.${group}`}/${owner.name}`;
}

const stored = preparesWhole(REVISIONS, (object: KubeControllerRevision) => ({
  ...object,
  revision: object.revision ?? 0,
}));

/** Nulls in the data stay: clients compare its bytes. */
const withData = (prepared: KubeControllerRevision, { data }: KubeControllerRevision): KubeControllerRevision =>
  data === undefined ? prepared : { ...prepared, data };

export const controllerrevisions: ResourceDescriptor = storedKind(REVISIONS, {
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
  prepare: {
    ...stored,
    prepareForCreate: (object, context) => withData(stored.prepareForCreate(object, context), object),
    prepareForUpdate: (next, old, context) => withData(stored.prepareForUpdate(next, old, context), next),
  },
  validate: validateControllerRevision,
});

const TEMPLATES: KindNames = { group: '', resource: 'podtemplates', kind: 'PodTemplate', scope: 'namespaced' };

export const podtemplates: ResourceDescriptor = storedKind(TEMPLATES, {
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
  prepare: preparesWhole(TEMPLATES, (object: KubePodTemplate) => ({
    ...object,
    template: defaultTemplate(object.template),
  })),
  validate: validatePodTemplate,
});
