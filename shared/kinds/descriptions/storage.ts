import type { Descriptions } from './descriptions.ts';

export const storage: Descriptions = {
  'core/v1.TopologySelectorLabelRequirement': {
    '': 'One requirement for a topology label.',
    key: 'Label key.',
    values: 'Allowed values.',
  },
  'core/v1.TopologySelectorTerm': {
    '': 'Requirements for topology labels.',
    matchLabelExpressions: 'Requirements that must all be met.',
  },
  'storage/v1.CSIDriver': {
    '': 'CSIDriver captures information about a Container Storage Interface volume driver deployed on the cluster.',
    spec: 'Properties of the driver.',
  },
  'storage/v1.CSIDriverSpec': {
    '': 'Properties of a CSI driver.',
    attachRequired: 'Whether volumes must be attached.',
    podInfoOnMount: 'Whether the driver needs information about the pod.',
    volumeLifecycleModes: 'Persistent, Ephemeral or both.',
    storageCapacity: 'Whether the scheduler considers storage capacity.',
    fsGroupPolicy: 'ReadWriteOnceWithFSType, File or None.',
    tokenRequests: 'Tokens that the driver needs.',
    requiresRepublish: 'Whether volumes are published again periodically.',
    seLinuxMount: 'Whether the driver supports SELinux mounts.',
    nodeAllocatableUpdatePeriodSeconds: 'Seconds between updates of the allocatable volumes.',
    serviceAccountTokenInSecrets: 'Whether tokens are passed as secrets.',
  },
  'storage/v1.CSINode': {
    '': 'CSINode holds information about all CSI drivers installed on a node. A kubelet writes its own when it starts.',
    spec: 'The drivers of the node.',
  },
  'storage/v1.CSINodeDriver': {
    '': 'A volume driver that runs on the node.',
    name: 'Name of the driver.',
    nodeID: 'Name of the node as the driver calls it.',
    topologyKeys: 'Labels of the node that the driver places volumes by.',
    allocatable: 'Volume limits of the node.',
  },
  'storage/v1.CSINodeSpec': {
    '': 'The drivers of the node.',
    drivers: 'The drivers, one per name.',
  },
  'storage/v1.CSIStorageCapacity': {
    '': 'CSIStorageCapacity stores the result of one CSI GetCapacity call.',
    nodeTopology: 'Nodes that can use the capacity.',
    storageClassName: 'Storage class of the capacity.',
    capacity: 'Available capacity.',
    maximumVolumeSize: 'Largest size of a volume.',
  },
  'storage/v1.StorageClass': {
    '': 'StorageClass describes the parameters for a class of storage for which volumes can be dynamically provisioned.',
    provisioner: 'Provisioner of the volumes.',
    parameters: 'Settings for the provisioner.',
    reclaimPolicy: 'Reclaim policy of the volumes: Delete or Retain.',
    mountOptions: 'Mount options of the volumes.',
    allowVolumeExpansion: 'Whether volumes can be expanded.',
    volumeBindingMode: 'Immediate or WaitForFirstConsumer.',
    allowedTopologies: 'Where volumes can be provisioned.',
  },
  'storage/v1.TokenRequest': {
    '': 'A token that a driver needs.',
    audience: 'Audience of the token.',
    expirationSeconds: 'Validity of the token in seconds.',
  },
  'storage/v1.VolumeAttachment': {
    '': 'VolumeAttachment captures the intent to attach or detach the specified volume to/from the specified node.',
    spec: 'Which volume to attach to which node.',
    status: 'Whether it is attached.',
  },
  'storage/v1.VolumeAttachmentSource': {
    '': 'The volume to attach.',
    persistentVolumeName: 'Name of the persistent volume.',
    inlineVolumeSpec: 'Inline definition of a volume without an object. Stored unchecked.',
  },
  'storage/v1.VolumeAttachmentSpec': {
    '': 'Which volume to attach to which node.',
    attacher: 'Driver that attaches it.',
    source: 'The volume.',
    nodeName: 'The node.',
  },
  'storage/v1.VolumeAttachmentStatus': {
    '': 'Whether the volume is attached.',
    attached: 'Whether it is attached.',
    attachmentMetadata: 'Metadata from the driver.',
    attachError: 'Last error of attaching.',
    detachError: 'Last error of detaching.',
  },
  'storage/v1.VolumeError': {
    '': 'An error of the driver.',
    time: 'When.',
    errorCode: 'Code of the driver.',
  },
  'storage/v1.VolumeNodeResources': {
    '': 'Volume limits of the node.',
    count: 'Volumes of this driver at most.',
  },
};
