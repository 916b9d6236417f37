import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import {
  freshMetadata,
  inheritMetadata,
  type Json,
  recordOf,
  textOf,
  typed,
  withoutNulls,
} from '../../kubernetes/normal-form.ts';
import { canonicalMicroTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { validateLease } from './validate.ts';

export const LEASE_GROUP = 'coordination.k8s.io';

function storedSpec(received: unknown): Json {
  const spec = withoutNulls(recordOf(received));
  for (const key of ['acquireTime', 'renewTime']) {
    const time = spec[key];
    if (typeof time === 'string') spec[key] = canonicalMicroTime(time);
  }
  return spec;
}

export const leases: ResourceDescriptor = {
  group: LEASE_GROUP,
  version: 'v1',
  resource: 'leases',
  singular: 'lease',
  kind: 'Lease',
  listKind: 'LeaseList',
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [],
  shards: 1,
  columns: [nameColumn, textColumn('Holder', 'Who holds the lease.'), ageColumn],
  row: (object, nowMs) => [
    object.metadata.name ?? '',
    textOf(object.spec?.['holderIdentity']),
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  selectableFields: {
    'metadata.name': (object) => object.metadata.name ?? '',
    'metadata.namespace': (object) => object.metadata.namespace ?? '',
  },
  unconditionalUpdate: false,
  createOnUpdate: true,
  hasGeneration: false,
  prepareForCreate: (object) =>
    typed(LEASE_GROUP, 'v1', 'Lease', {
      ...object,
      metadata: freshMetadata(object.metadata),
      spec: storedSpec(object.spec),
    }),
  prepareForUpdate: (next, old) =>
    typed(LEASE_GROUP, 'v1', 'Lease', {
      ...next,
      metadata: inheritMetadata(next.metadata, old.metadata),
      spec: storedSpec(next.spec),
    }),
  validate: (object, { old }) => validateLease(object, old),
};
