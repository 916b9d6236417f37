/**
 * Kinds that kubelets and their plug-ins look up and that are not kept here: each is there and empty. They can be read
 * and watched, not written, and discovery does not name them, so kubectl offers none of them.
 */

import { ageColumn, nameColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';

const NAMED = ['metadata.name', 'metadata.namespace'];

function unkept(
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

const unkeptResources: readonly ResourceDescriptor[] = [
  unkept('', 'configmaps', 'ConfigMap', 'namespaced'),
  unkept('', 'endpoints', 'Endpoints', 'namespaced'),
  unkept('', 'persistentvolumeclaims', 'PersistentVolumeClaim', 'namespaced'),
  unkept('', 'persistentvolumes', 'PersistentVolume', 'cluster'),
  unkept('', 'secrets', 'Secret', 'namespaced', ['type']),
  unkept('', 'serviceaccounts', 'ServiceAccount', 'namespaced'),
  unkept('', 'services', 'Service', 'namespaced', ['spec.clusterIP', 'spec.type']),
  unkept('discovery.k8s.io', 'endpointslices', 'EndpointSlice', 'namespaced'),
  unkept('node.k8s.io', 'runtimeclasses', 'RuntimeClass', 'cluster'),
  unkept('storage.k8s.io', 'csidrivers', 'CSIDriver', 'cluster'),
];

export const findUnkept = (group: string, version: string, resource: string): ResourceDescriptor | undefined =>
  unkeptResources.find((each) => each.group === group && each.version === version && each.resource === resource);
