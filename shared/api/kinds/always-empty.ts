/**
 * Kinds that kubelets and their plug-ins look up and that are not kept here: each is there and empty. They can be read
 * and watched, not written, and discovery does not name them, so kubectl offers none of them.
 */

import { ageColumn, nameColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';

const NAMED = ['metadata.name', 'metadata.namespace'];

function alwaysEmpty(
  group: string,
  resource: string,
  kind: string,
  scope: 'cluster' | 'namespaced',
  moreFields: readonly string[] = [],
): ResourceDescriptor {
  return {
    group,
    version: 'v1',
    resource,
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    shortNames: [],
    categories: [],
    namespaced: scope === 'namespaced',
    verbs: ['get', 'list', 'watch'],
    subresources: [],
    shards: 1,
    columns: [nameColumn, ageColumn],
    row: () => ['', ''],
    selectableFields: Object.fromEntries([...NAMED, ...moreFields].map((field) => [field, () => ''])),
    unconditionalUpdate: false,
    createOnUpdate: false,
    hasGeneration: false,
    prepareForCreate: (object) => object,
    prepareForUpdate: (next) => next,
    validate: () => [],
  };
}

const alwaysEmptyResources: readonly ResourceDescriptor[] = [
  alwaysEmpty('', 'configmaps', 'ConfigMap', 'namespaced'),
  alwaysEmpty('', 'endpoints', 'Endpoints', 'namespaced'),
  alwaysEmpty('', 'persistentvolumeclaims', 'PersistentVolumeClaim', 'namespaced'),
  alwaysEmpty('', 'persistentvolumes', 'PersistentVolume', 'cluster'),
  alwaysEmpty('', 'secrets', 'Secret', 'namespaced', ['type']),
  alwaysEmpty('', 'serviceaccounts', 'ServiceAccount', 'namespaced'),
  alwaysEmpty('', 'services', 'Service', 'namespaced', ['spec.clusterIP', 'spec.type']),
  alwaysEmpty('discovery.k8s.io', 'endpointslices', 'EndpointSlice', 'namespaced'),
  alwaysEmpty('node.k8s.io', 'runtimeclasses', 'RuntimeClass', 'cluster'),
  alwaysEmpty('storage.k8s.io', 'csidrivers', 'CSIDriver', 'cluster'),
];

export const findAlwaysEmpty = (group: string, version: string, resource: string): ResourceDescriptor | undefined =>
  alwaysEmptyResources.find((each) => each.group === group && each.version === version && each.resource === resource);
