import { labelSelector, objectMeta } from '../../kubernetes/schema/meta.ts';
import {
  any,
  atomicStruct,
  bool,
  embedded,
  int32,
  int64,
  list,
  optionalStruct,
  pointer,
  quantity,
  required,
  resourceList,
  type StructSchema,
  struct,
  text,
  textList,
  textMap,
} from '../../kubernetes/schema/schema.ts';
import { downwardFields, localObjectReference } from './container.ts';

const CORE = 'io.k8s.api.core.v1';

const keyToPath = struct(`${CORE}.KeyToPath`, 'Maps a key to a file.', {
  key: required(text('The key.')),
  path: required(text('Path of the file in the volume.')),
  mode: pointer(int32('Mode bits of the file.')),
});

export const hostPath: StructSchema = struct(`${CORE}.HostPathVolumeSource`, 'A file or directory of the node.', {
  path: required(text('Its path.')),
  type: pointer(text('What it must be: Directory, File, Socket or other; anything if empty.')),
});

const emptyDir = struct(`${CORE}.EmptyDirVolumeSource`, 'A directory that lives as long as the pod.', {
  medium: text('Memory, or the disk of the node if empty.'),
  sizeLimit: quantity('Most it may hold.'),
});

const secret = struct(`${CORE}.SecretVolumeSource`, 'The keys of a Secret as files.', {
  secretName: text('Name of the Secret.'),
  items: list(keyToPath, 'Keys wanted; all if left out.'),
  defaultMode: pointer(int32('Mode bits of the files.')),
  optional: pointer(bool('Whether it may be missing.')),
});

const configMap = struct(`${CORE}.ConfigMapVolumeSource`, 'The keys of a ConfigMap as files.', {
  name: text('Name of the ConfigMap.'),
  items: list(keyToPath, 'Keys wanted; all if left out.'),
  defaultMode: pointer(int32('Mode bits of the files.')),
  optional: pointer(bool('Whether it may be missing.')),
});

const downwardFile = struct(`${CORE}.DownwardAPIVolumeFile`, 'A file with a field of the pod.', {
  path: required(text('Path of the file in the volume.')),
  fieldRef: optionalStruct(downwardFields.objectFieldSelector, 'A field of the pod.'),
  resourceFieldRef: optionalStruct(downwardFields.resourceFieldSelector, 'A resource of a container.'),
  mode: pointer(int32('Mode bits of the file.')),
});

const downwardApi = struct(`${CORE}.DownwardAPIVolumeSource`, 'Files with fields of the pod.', {
  items: list(downwardFile, 'The files.'),
  defaultMode: pointer(int32('Mode bits of the files.')),
});

const projectedKeys = (name: string, what: string): StructSchema =>
  struct(`${CORE}.${name}`, `The keys of a ${what}, as part of a volume.`, {
    name: text(`Name of the ${what}.`),
    items: list(keyToPath, 'Keys wanted; all if left out.'),
    optional: pointer(bool('Whether it may be missing.')),
  });

const tokenProjection = struct(`${CORE}.ServiceAccountTokenProjection`, 'A token of the service account.', {
  audience: text('Intended audience of the token.'),
  expirationSeconds: pointer(int64('Seconds it is good for.')),
  path: required(text('Path of the file in the volume.')),
});

const clusterTrustBundle = struct(`${CORE}.ClusterTrustBundleProjection`, 'Certificates to trust.', {
  name: pointer(text('One bundle, by name.')),
  signerName: pointer(text('All bundles of one signer.')),
  labelSelector: optionalStruct(labelSelector, 'Which of them.'),
  optional: pointer(bool('Whether it may be missing.')),
  path: required(text('Path of the file in the volume.')),
});

const podCertificate = struct(`${CORE}.PodCertificateProjection`, 'A certificate made for the pod.', {
  signerName: text('Who signs it.'),
  keyType: text('Sort of key.'),
  maxExpirationSeconds: pointer(int32('Longest life asked for, in seconds.')),
  credentialBundlePath: text('File for key and certificates together.'),
  keyPath: text('File for the key.'),
  certificateChainPath: text('File for the certificates.'),
  userAnnotations: textMap('Further words to the signer.'),
});

const projection = struct(`${CORE}.VolumeProjection`, 'One source of a combined volume.', {
  secret: optionalStruct(projectedKeys('SecretProjection', 'Secret'), 'A Secret.'),
  downwardAPI: optionalStruct(
    struct(`${CORE}.DownwardAPIProjection`, 'Files with fields of the pod.', {
      items: list(downwardFile, 'The files.'),
    }),
    'Facts of the pod.',
  ),
  configMap: optionalStruct(projectedKeys('ConfigMapProjection', 'ConfigMap'), 'A ConfigMap.'),
  serviceAccountToken: optionalStruct(tokenProjection, 'A token.'),
  clusterTrustBundle: optionalStruct(clusterTrustBundle, 'Certificates to trust.'),
  podCertificate: optionalStruct(podCertificate, 'A certificate for the pod.'),
});

const projected = struct(`${CORE}.ProjectedVolumeSource`, 'Several sources in one directory.', {
  sources: list(projection, 'The sources.'),
  defaultMode: pointer(int32('Mode bits of the files.')),
});

const claim = struct(`${CORE}.PersistentVolumeClaimVolumeSource`, 'A volume the pod has a claim on.', {
  claimName: required(text('Name of the claim.')),
  readOnly: bool('Whether it is mounted read-only.'),
});

export const typedReference: StructSchema = atomicStruct(
  `${CORE}.TypedLocalObjectReference`,
  'Names an object in the same namespace.',
  {
    apiGroup: pointer(text('Group of the object.')),
    kind: required(text('Kind of the object.')),
    name: required(text('Name of the object.')),
  },
);

const typedObjectReference = struct(`${CORE}.TypedObjectReference`, 'Names an object.', {
  apiGroup: pointer(text('Group of the object.')),
  kind: required(text('Kind of the object.')),
  name: required(text('Name of the object.')),
  namespace: pointer(text('Namespace of the object.')),
});

export const claimSpec: StructSchema = struct(`${CORE}.PersistentVolumeClaimSpec`, 'What is wanted of a volume.', {
  accessModes: textList('How it is to be used.'),
  selector: optionalStruct(labelSelector, 'Which volumes will do.'),
  resources: embedded(
    struct(`${CORE}.VolumeResourceRequirements`, 'How large a volume must be.', {
      limits: resourceList('The most it may be.'),
      requests: resourceList('The least it must be.'),
    }),
    'Its size.',
  ),
  volumeName: text('The volume bound to.'),
  storageClassName: pointer(text('Storage class.')),
  volumeMode: pointer(text('Filesystem or Block.')),
  dataSource: optionalStruct(typedReference, 'What to fill it with.'),
  dataSourceRef: optionalStruct(typedObjectReference, 'What to fill it with, of any kind.'),
  volumeAttributesClassName: pointer(text('Class of its attributes.')),
});

const claimTemplate = struct(`${CORE}.PersistentVolumeClaimTemplate`, 'A claim made with the pod.', {
  metadata: embedded(objectMeta, 'Labels and annotations of the claim.'),
  spec: required(embedded(claimSpec, 'What is wanted of the volume.')),
});

const ephemeral = struct(`${CORE}.EphemeralVolumeSource`, 'A volume claimed for the life of the pod.', {
  volumeClaimTemplate: optionalStruct(claimTemplate, 'The claim.'),
});

const csi = struct(`${CORE}.CSIVolumeSource`, 'A volume a CSI driver makes on the node.', {
  driver: required(text('Name of the driver.')),
  readOnly: pointer(bool('Whether it is mounted read-only.')),
  fsType: pointer(text('File system.')),
  volumeAttributes: textMap('Settings for the driver.'),
  nodePublishSecretRef: optionalStruct(localObjectReference, 'Secret for the driver.'),
});

const image = struct(`${CORE}.ImageVolumeSource`, 'The content of an image.', {
  reference: text('The image.'),
  pullPolicy: text('When it is fetched: Always, IfNotPresent or Never.'),
});

export const nfs: StructSchema = struct(`${CORE}.NFSVolumeSource`, 'A directory of an NFS server.', {
  server: required(text('Host of the server.')),
  path: required(text('Directory it exports.')),
  readOnly: bool('Whether it is mounted read-only.'),
});

export const awsElasticBlockStore: StructSchema = struct(`${CORE}.AWSElasticBlockStoreVolumeSource`, 'An EBS volume.', {
  volumeID: required(text('Id of the volume.')),
  fsType: text('File system.'),
  partition: int32('Partition; 0 is the whole volume.'),
  readOnly: bool('Whether it is mounted read-only.'),
});

const OLD = 'A removed in-tree driver. Stored unchecked.';

export const volume: StructSchema = struct(`${CORE}.Volume`, 'A directory or device that containers may mount.', {
  name: required(text('Name of the volume, unique in the pod.')),
  hostPath: optionalStruct(hostPath, 'A file or directory of the node.'),
  emptyDir: optionalStruct(emptyDir, 'A directory that lives as long as the pod.'),
  secret: optionalStruct(secret, 'The keys of a Secret.'),
  configMap: optionalStruct(configMap, 'The keys of a ConfigMap.'),
  downwardAPI: optionalStruct(downwardApi, 'Facts of the pod.'),
  projected: optionalStruct(projected, 'Several sources in one directory.'),
  persistentVolumeClaim: optionalStruct(claim, 'A volume the pod has a claim on.'),
  ephemeral: optionalStruct(ephemeral, 'A volume claimed for the life of the pod.'),
  csi: optionalStruct(csi, 'A volume a CSI driver makes on the node.'),
  image: optionalStruct(image, 'The content of an image.'),
  nfs: optionalStruct(nfs, 'A directory of an NFS server.'),
  awsElasticBlockStore: optionalStruct(awsElasticBlockStore, 'An EBS volume.'),
  azureDisk: any(OLD),
  azureFile: any(OLD),
  cephfs: any(OLD),
  cinder: any(OLD),
  fc: any(OLD),
  flexVolume: any(OLD),
  flocker: any(OLD),
  gcePersistentDisk: any(OLD),
  gitRepo: any(OLD),
  glusterfs: any(OLD),
  iscsi: any(OLD),
  photonPersistentDisk: any(OLD),
  portworxVolume: any(OLD),
  quobyte: any(OLD),
  rbd: any(OLD),
  scaleIO: any(OLD),
  storageos: any(OLD),
  vsphereVolume: any(OLD),
});
