import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { textOf } from '../../kubernetes/normal-form.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { prepareLease } from './defaults.ts';
import { LEASES } from './resource.ts';
import { validateLease } from './validate.ts';

export const leases: ResourceDescriptor = {
  ...LEASES,
  singular: 'lease',
  listKind: 'LeaseList',
  shortNames: [],
  categories: [],
  subresources: [],
  columns: [nameColumn, textColumn('Holder', 'Who holds the lease.'), ageColumn],
  row: (object, nowMs) => [
    object.metadata.name ?? '',
    textOf(object.spec?.['holderIdentity']),
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  unconditionalUpdate: false,
  createOnUpdate: true,
  ...prepareLease,
  validate: (object, { old }) => validateLease(object, old),
};
