/**
 * Kinds that can be read and watched, not written. kube-controller-manager, Argo CD, k9s and kube-state-metrics list
 * them.
 */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { recordsOf, textOf } from '../../kubernetes/normal-form.ts';
import { ageOf, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesWhole, servedKind } from '../served-kind.ts';
import type { StoredResource } from '../stored-resource.ts';
import { ALWAYS_EMPTY, COMPONENT_STATUSES } from './resource.ts';

const SHORT_NAMES = new Map([[COMPONENT_STATUSES, ['cs']]]);

function alwaysEmpty(stored: StoredResource): ResourceDescriptor {
  const served = servedKind(stored, {
    shortNames: SHORT_NAMES.get(stored) ?? [],
    columns: [nameColumn, ageColumn],
    row: (object, nowMs) => [nameOf(object), ageOf(object, nowMs)],
    prepare: preparesWhole(stored),
    validate: () => [],
  });
  return stored === COMPONENT_STATUSES ? { ...served, ...COMPONENT_STATUS_CELLS } : served;
}

/** Computed: shared/kinds/services/api-objects.ts. */
const COMPONENT_STATUS_CELLS: Pick<ResourceDescriptor, 'columns' | 'row'> = {
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

export const alwaysEmptyResources: readonly ResourceDescriptor[] = ALWAYS_EMPTY.map(alwaysEmpty);
