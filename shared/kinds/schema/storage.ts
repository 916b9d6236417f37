import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  any,
  bool,
  embedded,
  int32,
  keyedList,
  kindStruct,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  textList,
  textMap,
  time,
} from '../../kubernetes/schema/schema.ts';

const STORAGE = 'io.k8s.api.storage.v1';

const attachmentSource = struct(`${STORAGE}.VolumeAttachmentSource`, 'The volume to attach.', {
  persistentVolumeName: pointer(text('Name of the persistent volume.')),
  inlineVolumeSpec: any('Inline definition of a volume without an object. Stored unchecked.'),
});

const attachmentSpec = struct(`${STORAGE}.VolumeAttachmentSpec`, 'Which volume to attach to which node.', {
  attacher: required(text('Driver that attaches it.')),
  source: required(embedded(attachmentSource, 'The volume.')),
  nodeName: required(text('The node.')),
});

const volumeError = struct(`${STORAGE}.VolumeError`, 'An error of the driver.', {
  time: { ...time('When.'), presence: 'always' },
  message: text('Explanation for people.'),
  errorCode: pointer(int32('Code of the driver.')),
});

const attachmentStatus = struct(`${STORAGE}.VolumeAttachmentStatus`, 'Whether the volume is attached.', {
  attached: required(bool('Whether it is attached.')),
  attachmentMetadata: textMap('Metadata from the driver.'),
  attachError: optionalStruct(volumeError, 'Last error of attaching.'),
  detachError: optionalStruct(volumeError, 'Last error of detaching.'),
});

export const volumeAttachment: StructSchema = kindStruct(
  `${STORAGE}.VolumeAttachment`,
  { group: 'storage.k8s.io', version: 'v1', kind: 'VolumeAttachment' },
  'VolumeAttachment captures the intent to attach or detach the specified volume to/from the specified node.',
  {
    metadata,
    spec: required(embedded(attachmentSpec, 'Which volume to attach to which node.')),
    status: embedded(attachmentStatus, 'Whether it is attached.'),
  },
);

const csiNodeDriver = struct(`${STORAGE}.CSINodeDriver`, 'A volume driver that runs on the node.', {
  name: required(text('Name of the driver.')),
  nodeID: required(text('Name of the node as the driver calls it.')),
  topologyKeys: textList('Labels of the node that the driver places volumes by.'),
  allocatable: optionalStruct(
    struct(`${STORAGE}.VolumeNodeResources`, 'Volume limits of the node.', {
      count: pointer(int32('Volumes of this driver at most.')),
    }),
    'Volume limits of the node.',
  ),
});

const csiNodeSpec = struct(`${STORAGE}.CSINodeSpec`, 'The drivers of the node.', {
  drivers: required(keyedList(csiNodeDriver, 'The drivers, one per name.', { mergeKey: 'name' })),
});

export const csiNode: StructSchema = kindStruct(
  `${STORAGE}.CSINode`,
  { group: 'storage.k8s.io', version: 'v1', kind: 'CSINode' },
  'CSINode holds information about all CSI drivers installed on a node. A kubelet writes its own when it starts.',
  {
    metadata,
    spec: required(embedded(csiNodeSpec, 'The drivers of the node.')),
  },
);
