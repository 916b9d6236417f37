import { labelSelector, metadata } from '../../kubernetes/schema/meta.ts';
import {
  atomicStruct,
  bool,
  embedded,
  int64,
  kindStruct,
  list,
  listOf,
  optionalStruct,
  pointer,
  quantity,
  required,
  type StructSchema,
  struct,
  text,
  textList,
  textMap,
} from '../../kubernetes/schema/schema.ts';

const CORE = 'io.k8s.api.core.v1';
const STORAGE = 'io.k8s.api.storage.v1';

const topologySelectorLabelRequirement = struct(
  `${CORE}.TopologySelectorLabelRequirement`,
  'One requirement for a topology label.',
  {
    key: required(text('Label key.')),
    values: required(textList('Allowed values.')),
  },
);

const topologySelectorTerm = atomicStruct(`${CORE}.TopologySelectorTerm`, 'Requirements for topology labels.', {
  matchLabelExpressions: list(topologySelectorLabelRequirement, 'Requirements that must all be met.'),
});

export const storageClass: StructSchema = kindStruct(
  `${STORAGE}.StorageClass`,
  { group: 'storage.k8s.io', version: 'v1', kind: 'StorageClass' },
  'StorageClass describes the parameters for a class of storage for which volumes can be dynamically provisioned.',
  {
    metadata,
    provisioner: required(text('Provisioner of the volumes.')),
    parameters: textMap('Settings for the provisioner.'),
    reclaimPolicy: pointer(text('Reclaim policy of the volumes: Delete or Retain.')),
    mountOptions: textList('Mount options of the volumes.'),
    allowVolumeExpansion: pointer(bool('Whether volumes can be expanded.')),
    volumeBindingMode: pointer(text('Immediate or WaitForFirstConsumer.')),
    allowedTopologies: list(topologySelectorTerm, 'Where volumes can be provisioned.'),
  },
);

const driverTokenRequest = struct(`${STORAGE}.TokenRequest`, 'A token that a driver needs.', {
  audience: required(text('Audience of the token.')),
  expirationSeconds: pointer(int64('Validity of the token in seconds.')),
});

const csiDriverSpec = struct(`${STORAGE}.CSIDriverSpec`, 'Properties of a CSI driver.', {
  attachRequired: pointer(bool('Whether volumes must be attached.')),
  podInfoOnMount: pointer(bool('Whether the driver needs information about the pod.')),
  volumeLifecycleModes: listOf({ kind: 'string' }, 'Persistent, Ephemeral or both.', { listType: 'set' }),
  storageCapacity: pointer(bool('Whether the scheduler considers storage capacity.')),
  fsGroupPolicy: pointer(text('ReadWriteOnceWithFSType, File or None.')),
  tokenRequests: list(driverTokenRequest, 'Tokens that the driver needs.'),
  requiresRepublish: pointer(bool('Whether volumes are published again periodically.')),
  seLinuxMount: pointer(bool('Whether the driver supports SELinux mounts.')),
  nodeAllocatableUpdatePeriodSeconds: pointer(int64('Seconds between updates of the allocatable volumes.')),
  serviceAccountTokenInSecrets: pointer(bool('Whether tokens are passed as secrets.')),
});

export const csiDriver: StructSchema = kindStruct(
  `${STORAGE}.CSIDriver`,
  { group: 'storage.k8s.io', version: 'v1', kind: 'CSIDriver' },
  'CSIDriver captures information about a Container Storage Interface volume driver deployed on the cluster.',
  {
    metadata,
    spec: required(embedded(csiDriverSpec, 'Properties of the driver.')),
  },
);

export const csiStorageCapacity: StructSchema = kindStruct(
  `${STORAGE}.CSIStorageCapacity`,
  { group: 'storage.k8s.io', version: 'v1', kind: 'CSIStorageCapacity' },
  'CSIStorageCapacity stores the result of one CSI GetCapacity call.',
  {
    metadata,
    nodeTopology: optionalStruct(labelSelector, 'Nodes that can use the capacity.'),
    storageClassName: required(text('Storage class of the capacity.')),
    capacity: quantity('Available capacity.'),
    maximumVolumeSize: quantity('Largest size of a volume.'),
  },
);
