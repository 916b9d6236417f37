/** Kinds that clients list and that are not kept here: each exists and is empty, but for one ComponentStatus. */

import { type StoredResource, storedResource, type Verb } from '../stored-resource.ts';

const READING: readonly Verb[] = ['get', 'list', 'watch'];

const alwaysEmpty = (group: string, resource: string, kind: string, verbs = READING): StoredResource =>
  storedResource({ group, resource, kind, scope: 'cluster', verbs });

export const COMPONENT_STATUSES = alwaysEmpty('', 'componentstatuses', 'ComponentStatus', ['get', 'list']);

export const ALWAYS_EMPTY: readonly StoredResource[] = [
  COMPONENT_STATUSES,
  alwaysEmpty('apiregistration.k8s.io', 'apiservices', 'APIService'),
];
