import { ageSince } from '../../kube/age.ts';
import { ageColumn, nameColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { freshMetadata, inheritMetadata, typed, withoutNulls } from '../../kube/normal-form.ts';
import type { Cause } from '../../kube/status.ts';
import type { KubeCsiNode, KubeObject } from '../../kube/types.ts';
import { duplicate, required } from '../../kube/validation/causes.ts';
import { validateObjectMetadata } from '../../kube/validation/metadata.ts';
import { subdomainName } from '../../kube/validation/names.ts';
import { STORAGE_GROUP } from './volumeattachments.ts';

const storedSpec = (given: KubeCsiNode['spec']) => ({ drivers: [], ...withoutNulls(given ?? {}) });

/** CSINode (pkg/apis/storage/validation/validation.go): drivers have names and ids, each name once. */
function validate(object: KubeCsiNode, old: KubeObject | undefined): Cause[] {
  const causes = validateObjectMetadata(object, old, { namespaced: false, name: subdomainName });
  const seen = new Set<string>();
  for (const [index, driver] of (object.spec?.drivers ?? []).entries()) {
    const name = driver.name ?? '';
    if (name === '') causes.push(required(`spec.drivers[${index}].name`));
    if ((driver.nodeID ?? '') === '') causes.push(required(`spec.drivers[${index}].nodeID`));
    if (name !== '' && seen.has(name)) causes.push(duplicate(`spec.drivers[${index}].name`, name));
    seen.add(name);
  }
  return causes;
}

/** Every kubelet writes its own CSINode at start. A kubelet that cannot write it exits after two minutes. */
export const csinodes: ResourceDescriptor = {
  group: STORAGE_GROUP,
  version: 'v1',
  resource: 'csinodes',
  singular: 'csinode',
  kind: 'CSINode',
  listKind: 'CSINodeList',
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [],
  shards: 1,
  columns: [
    nameColumn,
    { name: 'Drivers', type: 'integer', format: '', description: 'Volume drivers on the node.', priority: 0 },
    ageColumn,
  ],
  row: (object: KubeCsiNode, nowMs) => [
    object.metadata.name ?? '',
    (object.spec?.drivers ?? []).length,
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  selectableFields: { 'metadata.name': (object) => object.metadata.name ?? '' },
  unconditionalUpdate: false,
  createOnUpdate: false,
  hasGeneration: false,
  prepareForCreate: (object) =>
    typed(STORAGE_GROUP, 'v1', 'CSINode', {
      ...object,
      metadata: freshMetadata(object.metadata),
      spec: storedSpec(object.spec),
    }),
  prepareForUpdate: (next, old) =>
    typed(STORAGE_GROUP, 'v1', 'CSINode', {
      ...next,
      metadata: inheritMetadata(next.metadata, old.metadata),
      spec: storedSpec(next.spec),
    }),
  validate: (object, { old }) => validate(object, old),
};
