import { ageColumn, nameColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import type { KubeServiceAccount } from '../application-types.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import { validateServiceAccount } from '../configmaps/validate.ts';
import type { ResourceDescriptor, Subresource } from '../descriptor.ts';
import { type KindNames, preparesWhole, storedKind } from '../stored-kind.ts';

const NAMES: KindNames = {
  group: '',
  resource: 'serviceaccounts',
  kind: 'ServiceAccount',
  shortNames: ['sa'],
  scope: 'namespaced',
};

const TOKEN_PART: Subresource = {
  name: 'token',
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenRequest',
  verbs: ['create'],
};

export const serviceaccounts: ResourceDescriptor = storedKind(NAMES, {
  subresources: [TOKEN_PART],
  columns: [nameColumn, integerColumn('Secrets', 'Number of secrets.'), ageColumn],
  row: (object: KubeServiceAccount, nowMs) => [nameOf(object), (object.secrets ?? []).length, ageOf(object, nowMs)],
  prepare: preparesWhole(NAMES, (object) => withoutEmpty(object, 'secrets', 'imagePullSecrets')),
  validate: validateServiceAccount,
});
