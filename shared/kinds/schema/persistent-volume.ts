import { metadata, objectReference } from '../../kubernetes/schema/meta.ts';
import {
  always,
  atomicStruct,
  bool,
  embedded,
  int32,
  keyedList,
  kindStruct,
  optionalStruct,
  pointer,
  required,
  resourceList,
  type StructSchema,
  struct,
  text,
  textList,
  textMap,
  time,
} from '../../kubernetes/schema/schema.ts';
import { nodeSelector } from './pod.ts';
import { awsElasticBlockStore, claimSpec, hostPath, nfs } from './volume.ts';

const CORE = 'io.k8s.api.core.v1';

const gcePersistentDiskVolumeSource = struct(
  `${CORE}.GCEPersistentDiskVolumeSource`,
  'A disk of Google Compute Engine.',
  {
    pdName: required(text('Name of the disk.')),
    fsType: text('File system of the volume, such as ext4.'),
    partition: int32('Partition; 0 is the whole disk.'),
    readOnly: bool('Whether the volume is mounted read-only.'),
  },
);

const glusterfsPersistentVolumeSource = struct(`${CORE}.GlusterfsPersistentVolumeSource`, 'A Gluster volume.', {
  endpoints: required(text('Endpoints object with the servers.')),
  path: required(text('Name of the volume.')),
  readOnly: bool('Whether the volume is mounted read-only.'),
  endpointsNamespace: pointer(text('Namespace of the Endpoints object.')),
});

const secretReference = atomicStruct(`${CORE}.SecretReference`, 'Names a Secret.', {
  name: text('Name of the Secret.'),
  namespace: text('Namespace of the Secret.'),
});

const rbdPersistentVolumeSource = struct(`${CORE}.RBDPersistentVolumeSource`, 'A Ceph block device.', {
  monitors: required(textList('Addresses of the Ceph monitors.')),
  image: required(text('Name of the image.')),
  fsType: text('File system of the volume, such as ext4.'),
  pool: text('Pool of the image.'),
  user: text('User name at the storage system.'),
  keyring: text('Path of the keyring.'),
  secretRef: optionalStruct(secretReference, 'Secret with the credentials of the driver.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
});

const iscsiPersistentVolumeSource = struct(`${CORE}.ISCSIPersistentVolumeSource`, 'An iSCSI disk.', {
  targetPortal: required(text('Address of the target.')),
  iqn: required(text('Qualified name of the target.')),
  lun: required(int32('Unit number.')),
  iscsiInterface: text('Interface of the initiator.'),
  fsType: text('File system of the volume, such as ext4.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
  portals: textList('Further addresses of the target.'),
  chapAuthDiscovery: bool('Whether discovery uses CHAP.'),
  chapAuthSession: bool('Whether sessions use CHAP.'),
  secretRef: optionalStruct(secretReference, 'Secret with the credentials of the driver.'),
  initiatorName: pointer(text('Name of the initiator.')),
});

const cinderPersistentVolumeSource = struct(`${CORE}.CinderPersistentVolumeSource`, 'An OpenStack volume.', {
  volumeID: required(text('Id of the volume.')),
  fsType: text('File system of the volume, such as ext4.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
  secretRef: optionalStruct(secretReference, 'Secret with the credentials of the driver.'),
});

const cephFSPersistentVolumeSource = struct(`${CORE}.CephFSPersistentVolumeSource`, 'A Ceph file system.', {
  monitors: required(textList('Addresses of the Ceph monitors.')),
  path: text('Root directory.'),
  user: text('User name at the storage system.'),
  secretFile: text('Path of the keyring.'),
  secretRef: optionalStruct(secretReference, 'Secret with the credentials of the driver.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
});

const fcVolumeSource = struct(`${CORE}.FCVolumeSource`, 'A Fibre Channel disk.', {
  targetWWNs: textList('World-wide names of the targets.'),
  lun: pointer(int32('Unit number.')),
  fsType: text('File system of the volume, such as ext4.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
  wwids: textList('World-wide ids of the volume.'),
});

const flockerVolumeSource = struct(`${CORE}.FlockerVolumeSource`, 'A Flocker dataset.', {
  datasetName: text('Name of the dataset.'),
  datasetUUID: text('UUID of the dataset.'),
});

const flexPersistentVolumeSource = struct(`${CORE}.FlexPersistentVolumeSource`, 'A volume of a Flex driver.', {
  driver: required(text('Name of the driver.')),
  fsType: text('File system of the volume, such as ext4.'),
  secretRef: optionalStruct(secretReference, 'Secret with the credentials of the driver.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
  options: textMap('Settings for the driver.'),
});

const azureFilePersistentVolumeSource = struct(`${CORE}.AzureFilePersistentVolumeSource`, 'An Azure file share.', {
  secretName: required(text('Secret with the storage account.')),
  shareName: required(text('Name of the share.')),
  readOnly: bool('Whether the volume is mounted read-only.'),
  secretNamespace: pointer(text('Namespace of the Secret.')),
});

const vsphereVirtualDiskVolumeSource = struct(`${CORE}.VsphereVirtualDiskVolumeSource`, 'A vSphere disk.', {
  volumePath: required(text('Path of the disk.')),
  fsType: text('File system of the volume, such as ext4.'),
  storagePolicyName: text('Name of the storage policy.'),
  storagePolicyID: text('Id of the storage policy.'),
});

const quobyteVolumeSource = struct(`${CORE}.QuobyteVolumeSource`, 'A Quobyte volume.', {
  registry: required(text('Addresses of the registries.')),
  volume: required(text('Name of the volume.')),
  readOnly: bool('Whether the volume is mounted read-only.'),
  user: text('User name at the storage system.'),
  group: text('Group name at the storage system.'),
  tenant: text('Tenant of the volume.'),
});

const azureDiskVolumeSource = struct(`${CORE}.AzureDiskVolumeSource`, 'An Azure disk.', {
  diskName: required(text('Name of the disk.')),
  diskURI: required(text('URI of the disk.')),
  cachingMode: pointer(text('None, ReadOnly or ReadWrite.')),
  fsType: pointer(text('File system of the volume, such as ext4.')),
  readOnly: pointer(bool('Whether the volume is mounted read-only.')),
  kind: pointer(text('Shared, Dedicated or Managed.')),
});

const photonPersistentDiskVolumeSource = struct(`${CORE}.PhotonPersistentDiskVolumeSource`, 'A Photon disk.', {
  pdID: required(text('Id of the disk.')),
  fsType: text('File system of the volume, such as ext4.'),
});

const portworxVolumeSource = struct(`${CORE}.PortworxVolumeSource`, 'A Portworx volume.', {
  volumeID: required(text('Id of the volume.')),
  fsType: text('File system of the volume, such as ext4.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
});

const scaleIOPersistentVolumeSource = struct(`${CORE}.ScaleIOPersistentVolumeSource`, 'A ScaleIO volume.', {
  gateway: required(text('Address of the gateway.')),
  system: required(text('Name of the storage system.')),
  secretRef: required(optionalStruct(secretReference, 'Secret with the credentials of the driver.')),
  sslEnabled: bool('Whether the gateway uses TLS.'),
  protectionDomain: text('Protection domain.'),
  storagePool: text('Storage pool.'),
  storageMode: text('ThickProvisioned or ThinProvisioned.'),
  volumeName: text('Name of the volume.'),
  fsType: text('File system of the volume, such as ext4.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
});

const localVolumeSource = struct(`${CORE}.LocalVolumeSource`, 'A disk or directory of one node.', {
  path: required(text('Its path on the node.')),
  fsType: pointer(text('File system of the volume, such as ext4.')),
});

const storageOSPersistentVolumeSource = struct(`${CORE}.StorageOSPersistentVolumeSource`, 'A StorageOS volume.', {
  volumeName: text('Name of the volume.'),
  volumeNamespace: text('Namespace of the volume in StorageOS.'),
  fsType: text('File system of the volume, such as ext4.'),
  readOnly: bool('Whether the volume is mounted read-only.'),
  secretRef: optionalStruct(objectReference, 'Secret with the credentials of the driver.'),
});

const csiPersistentVolumeSource = struct(`${CORE}.CSIPersistentVolumeSource`, 'A volume of a CSI driver.', {
  driver: required(text('Name of the driver.')),
  volumeHandle: required(text('Id of the volume at the driver.')),
  readOnly: bool('Whether the volume is mounted read-only.'),
  fsType: text('File system of the volume, such as ext4.'),
  volumeAttributes: textMap('Settings for the driver.'),
  controllerPublishSecretRef: optionalStruct(secretReference, 'Secret for attaching and detaching.'),
  nodeStageSecretRef: optionalStruct(secretReference, 'Secret for staging on a node.'),
  nodePublishSecretRef: optionalStruct(secretReference, 'Secret for mounting in a pod.'),
  controllerExpandSecretRef: optionalStruct(secretReference, 'Secret for expanding the volume.'),
  nodeExpandSecretRef: optionalStruct(secretReference, 'Secret for expanding the volume on a node.'),
});

const volumeNodeAffinity = struct(`${CORE}.VolumeNodeAffinity`, 'Nodes that can use a volume.', {
  required: optionalStruct(nodeSelector, 'Requirements that a node must meet.'),
});

const persistentVolumeSpec = struct(`${CORE}.PersistentVolumeSpec`, 'Definition of a persistent volume.', {
  capacity: resourceList('Size of the volume.'),
  gcePersistentDisk: optionalStruct(gcePersistentDiskVolumeSource, 'A disk of Google Compute Engine.'),
  awsElasticBlockStore: optionalStruct(awsElasticBlockStore, 'An EBS volume.'),
  hostPath: optionalStruct(hostPath, 'A directory of the node.'),
  glusterfs: optionalStruct(glusterfsPersistentVolumeSource, 'A Gluster volume.'),
  nfs: optionalStruct(nfs, 'A directory of an NFS server.'),
  rbd: optionalStruct(rbdPersistentVolumeSource, 'A Ceph block device.'),
  iscsi: optionalStruct(iscsiPersistentVolumeSource, 'An iSCSI disk.'),
  cinder: optionalStruct(cinderPersistentVolumeSource, 'An OpenStack volume.'),
  cephfs: optionalStruct(cephFSPersistentVolumeSource, 'A Ceph file system.'),
  fc: optionalStruct(fcVolumeSource, 'A Fibre Channel disk.'),
  flocker: optionalStruct(flockerVolumeSource, 'A Flocker dataset.'),
  flexVolume: optionalStruct(flexPersistentVolumeSource, 'A volume of a Flex driver.'),
  azureFile: optionalStruct(azureFilePersistentVolumeSource, 'An Azure file share.'),
  vsphereVolume: optionalStruct(vsphereVirtualDiskVolumeSource, 'A vSphere disk.'),
  quobyte: optionalStruct(quobyteVolumeSource, 'A Quobyte volume.'),
  azureDisk: optionalStruct(azureDiskVolumeSource, 'An Azure disk.'),
  photonPersistentDisk: optionalStruct(photonPersistentDiskVolumeSource, 'A Photon disk.'),
  portworxVolume: optionalStruct(portworxVolumeSource, 'A Portworx volume.'),
  scaleIO: optionalStruct(scaleIOPersistentVolumeSource, 'A ScaleIO volume.'),
  local: optionalStruct(localVolumeSource, 'A disk or directory of one node.'),
  storageos: optionalStruct(storageOSPersistentVolumeSource, 'A StorageOS volume.'),
  csi: optionalStruct(csiPersistentVolumeSource, 'A volume of a CSI driver.'),
  accessModes: textList('How the volume can be mounted.'),
  claimRef: optionalStruct(objectReference, 'Claim that the volume is bound to.'),
  persistentVolumeReclaimPolicy: text('What happens after the claim is deleted: Retain, Recycle or Delete.'),
  storageClassName: text('Storage class of the volume.'),
  mountOptions: textList('Mount options.'),
  volumeMode: pointer(text('Filesystem or Block.')),
  nodeAffinity: optionalStruct(volumeNodeAffinity, 'Nodes that can use the volume.'),
  volumeAttributesClassName: pointer(text('Class of its attributes.')),
});

const persistentVolumeStatus = struct(`${CORE}.PersistentVolumeStatus`, 'Observed state of a persistent volume.', {
  phase: text('Pending, Available, Bound, Released or Failed.'),
  message: text('Explanation for people.'),
  reason: text('One word for the cause, for programs.'),
  lastPhaseTransitionTime: pointer(time('When the phase last changed.')),
});

export const persistentVolume: StructSchema = kindStruct(
  `${CORE}.PersistentVolume`,
  { group: '', version: 'v1', kind: 'PersistentVolume' },
  'PersistentVolume is a storage resource provisioned by an administrator. It is recorded here; nothing binds it.',
  {
    metadata,
    spec: embedded(persistentVolumeSpec, 'Definition of the volume.'),
    status: embedded(persistentVolumeStatus, 'Observed state of the volume.'),
  },
);

const persistentVolumeClaimCondition = struct(
  `${CORE}.PersistentVolumeClaimCondition`,
  'One aspect of the state of a claim.',
  {
    type: required(text('Aspect in question.')),
    status: required(text('True, False or Unknown.')),
    lastProbeTime: always(time('When the condition was last checked.')),
    lastTransitionTime: always(time('When the status last changed.')),
    reason: text('One word for the cause, for programs.'),
    message: text('Explanation for people.'),
  },
);

const modifyVolumeStatus = struct(`${CORE}.ModifyVolumeStatus`, 'State of a change of volume attributes.', {
  targetVolumeAttributesClassName: text('Class that is being applied.'),
  status: required(text('Pending, InProgress or Infeasible.')),
});

const persistentVolumeClaimStatus = struct(`${CORE}.PersistentVolumeClaimStatus`, 'Observed state of a claim.', {
  phase: text('Pending, Bound or Lost.'),
  accessModes: textList('How the bound volume can be mounted.'),
  capacity: resourceList('Size of the bound volume.'),
  conditions: keyedList(persistentVolumeClaimCondition, 'Conditions of the object, one per type.', {
    mergeKey: 'type',
  }),
  allocatedResources: resourceList('Resources allocated to the claim.'),
  allocatedResourceStatuses: textMap('State of a resize, by resource.'),
  currentVolumeAttributesClassName: pointer(text('Class of the attributes in use.')),
  modifyVolumeStatus: optionalStruct(modifyVolumeStatus, 'State of a change of volume attributes.'),
});

export const persistentVolumeClaim: StructSchema = kindStruct(
  `${CORE}.PersistentVolumeClaim`,
  { group: '', version: 'v1', kind: 'PersistentVolumeClaim' },
  "PersistentVolumeClaim is a user's request for and claim to a persistent volume. It is recorded here; nothing binds it.",
  {
    metadata,
    spec: embedded(claimSpec, 'What is wanted of the volume.'),
    status: embedded(persistentVolumeClaimStatus, 'Observed state of the claim.'),
  },
);
