/**
 * Kinds that clients list and that are not kept here: each exists and is empty, but for one ComponentStatus. They can be read and watched, not
 * written. kube-controller-manager, Argo CD, k9s and kube-state-metrics list them.
 */

import { ageColumn, nameColumn, textColumn } from '../kubernetes/columns.ts';
import { recordsOf, textOf } from '../kubernetes/normal-form.ts';
import { ageOf, nameOf } from './cells.ts';
import type { ResourceDescriptor, Verb } from './descriptor.ts';
import { type KindNames, preparesWhole, storedKind } from './stored-kind.ts';

const READING: readonly Verb[] = ['get', 'list', 'watch'];

function alwaysEmpty(
  group: string,
  resource: string,
  kind: string,
  shortNames: readonly string[] = [],
  verbs: readonly Verb[] = READING,
): ResourceDescriptor {
  const names: KindNames = { group, resource, kind, shortNames, scope: 'cluster' };
  return storedKind(names, {
    verbs,
    columns: [nameColumn, ageColumn],
    row: (object, nowMs) => [nameOf(object), ageOf(object, nowMs)],
    prepare: preparesWhole(names),
    validate: () => [],
  });
}

/** Computed: shared/kinds/services/api-objects.ts. */
const componentstatuses: ResourceDescriptor = {
  ...alwaysEmpty('', 'componentstatuses', 'ComponentStatus', ['cs'], ['get', 'list']),
  columns: [
    nameColumn,
    textColumn('Status', 'Healthy, Unhealthy or Unknown.'),
    textColumn('Message', 'What the check of the component returned.'),
    textColumn('Error', 'Why the component could not be checked.'),
  ],
  row: (object) => {
    const [condition] = recordsOf(object['conditions']);
    const status = condition?.['status'] === 'True' ? 'Healthy' : 'Unhealthy';
    return [nameOf(object), status, textOf(condition?.['message']), textOf(condition?.['error'])];
  },
};

const ADMISSION = 'admissionregistration.k8s.io';

export const alwaysEmptyResources: readonly ResourceDescriptor[] = [
  componentstatuses,
  alwaysEmpty(ADMISSION, 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration'),
  alwaysEmpty(ADMISSION, 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy'),
  alwaysEmpty(ADMISSION, 'validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding'),
  alwaysEmpty(ADMISSION, 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration'),
  alwaysEmpty('apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition', ['crd', 'crds']),
  alwaysEmpty('apiregistration.k8s.io', 'apiservices', 'APIService'),
];

export const findAlwaysEmpty = (group: string, version: string, resource: string): ResourceDescriptor | undefined =>
  alwaysEmptyResources.find((each) => each.group === group && each.version === version && each.resource === resource);
