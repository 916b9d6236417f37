import type { KubeServiceAccount } from '../../kube/application-types.ts';
import { ageColumn, nameColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { withoutEmpty } from '../../kube/normal-form.ts';
import { validateServiceAccount } from '../../kube/validation/config.ts';
import { ageOf, integerColumn, nameOf } from './cells.ts';
import { type KindNames, preparesWhole, storedKind } from './stored-kind.ts';

const NAMES: KindNames = {
  group: '',
  resource: 'serviceaccounts',
  kind: 'ServiceAccount',
  shortNames: ['sa'],
  scope: 'namespaced',
};

export const serviceaccounts: ResourceDescriptor = storedKind(NAMES, {
  columns: [nameColumn, integerColumn('Secrets', 'Number of secrets.'), ageColumn],
  row: (object: KubeServiceAccount, nowMs) => [nameOf(object), (object.secrets ?? []).length, ageOf(object, nowMs)],
  prepare: preparesWhole(NAMES, (object) => withoutEmpty(object, 'secrets', 'imagePullSecrets')),
  validate: validateServiceAccount,
});
