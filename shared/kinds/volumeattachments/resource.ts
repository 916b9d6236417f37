import { storedResource } from '../stored-resource.ts';

export const STORAGE_GROUP = 'storage.k8s.io';

export const VOLUME_ATTACHMENTS = storedResource({
  group: STORAGE_GROUP,
  resource: 'volumeattachments',
  kind: 'VolumeAttachment',
  scope: 'cluster',
});
