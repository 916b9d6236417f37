import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import {
  freshMetadata,
  inheritMetadata,
  recordOf,
  typed,
  withoutEmpty,
  withoutNulls,
} from '../../kubernetes/normal-form.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import type { KubeVolumeAttachment } from '../types.ts';
import { STORAGE_GROUP, VOLUME_ATTACHMENTS } from './resource.ts';
import { validateVolumeAttachment } from './validate.ts';

export const volumeattachments: ResourceDescriptor = {
  ...VOLUME_ATTACHMENTS,
  singular: 'volumeattachment',
  listKind: 'VolumeAttachmentList',
  shortNames: [],
  categories: [],
  subresources: [{ name: 'status', verbs: ['get', 'patch', 'update'] }],
  columns: [
    nameColumn,
    textColumn('Attacher', 'Driver that attaches the volume.'),
    textColumn('PV', 'Name of the persistent volume.'),
    textColumn('Node', 'Node the volume is attached to.'),
    {
      name: 'Attached',
      type: 'boolean',
      format: '',
      description: 'Whether the driver has said that it is attached.',
      priority: 0,
    },
    ageColumn,
  ],
  row: (object: KubeVolumeAttachment, nowMs) => [
    object.metadata.name ?? '',
    object.spec?.attacher ?? '',
    object.spec?.source?.persistentVolumeName ?? '',
    object.spec?.nodeName ?? '',
    object.status?.attached === true,
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  unconditionalUpdate: false,
  createOnUpdate: false,
  hasGeneration: false,
  prepareForCreate: (object) =>
    typed(STORAGE_GROUP, 'v1', 'VolumeAttachment', {
      ...object,
      metadata: freshMetadata(object.metadata),
      spec: withoutNulls(recordOf(object.spec)),
      status: { attached: false },
    }),
  prepareForUpdate(next, old, { subresource }) {
    const onStatus = subresource === 'status';
    return typed(STORAGE_GROUP, 'v1', 'VolumeAttachment', {
      ...next,
      metadata: inheritMetadata(next.metadata, old.metadata),
      spec: onStatus ? (old.spec ?? {}) : withoutNulls(recordOf(next.spec)),
      status: onStatus
        ? { attached: false, ...withoutEmpty(withoutNulls(recordOf(next.status)), 'attachmentMetadata') }
        : (old.status ?? { attached: false }),
    });
  },
  validate: (object, { old }) => validateVolumeAttachment(object, old),
};
