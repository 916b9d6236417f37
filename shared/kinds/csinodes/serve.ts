import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn } from '../../kubernetes/columns.ts';
import { freshMetadata, inheritMetadata, typed, withoutNulls } from '../../kubernetes/normal-form.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { validateCsiNode } from '../persistentvolumes/validate.ts';
import type { KubeCSINode } from '../types.ts';
import { STORAGE_GROUP } from '../volumeattachments/resource.ts';
import { CSI_NODES } from './resource.ts';

const storedSpec = (given: KubeCSINode['spec']) => ({ drivers: [], ...withoutNulls(given ?? {}) });

/** Every kubelet writes its own CSINode at start. A kubelet that cannot write it exits after two minutes. */
export const csinodes: ResourceDescriptor = {
  ...CSI_NODES,
  singular: 'csinode',
  listKind: 'CSINodeList',
  shortNames: [],
  categories: [],
  subresources: [],
  columns: [
    nameColumn,
    { name: 'Drivers', type: 'integer', format: '', description: 'Volume drivers on the node.', priority: 0 },
    ageColumn,
  ],
  row: (object: KubeCSINode, nowMs) => [
    object.metadata.name ?? '',
    (object.spec?.drivers ?? []).length,
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
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
  validate: (object, { old }) => validateCsiNode(object, old),
};
