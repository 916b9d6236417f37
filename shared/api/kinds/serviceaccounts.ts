import type { KubeServiceAccount } from '../../kube/application-types.ts';
import { ageColumn, nameColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor, Subresource } from '../../kube/descriptor.ts';
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
