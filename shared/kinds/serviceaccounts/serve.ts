import { ageColumn, nameColumn } from '../../kubernetes/columns.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import { validateServiceAccount } from '../configmaps/validate.ts';
import type { ResourceDescriptor, Subresource } from '../descriptor.ts';
import { servedKind } from '../served-kind.ts';
import type { KubeServiceAccount } from '../types.ts';
import { prepareServiceAccount } from './defaults.ts';
import { SERVICE_ACCOUNTS } from './resource.ts';

const TOKEN_PART: Subresource = {
  name: 'token',
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenRequest',
  verbs: ['create'],
};

export const serviceaccounts: ResourceDescriptor = servedKind(SERVICE_ACCOUNTS, {
  shortNames: ['sa'],
  subresources: [TOKEN_PART],
  columns: [nameColumn, integerColumn('Secrets', 'Number of secrets.'), ageColumn],
  row: (object: KubeServiceAccount, nowMs) => [nameOf(object), (object.secrets ?? []).length, ageOf(object, nowMs)],
  prepare: prepareServiceAccount,
  validate: validateServiceAccount,
});
