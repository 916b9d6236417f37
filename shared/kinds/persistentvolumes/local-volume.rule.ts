/**
 * The volume that the agent of a machine makes for a claim: a directory of it. Pure. The API offers it to the agent
 * without the path; the admission of the creation makes it again and compares. So a machine can create no other volume.
 */
import { sameJson } from '../../kubernetes/causes.ts';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../types.ts';
import { LOCAL_PROVISIONER, PROVISIONED_BY } from './annotations.ts';
import { annotationOf, classNameOf, selectedNodeOf } from './binding.rule.ts';

/** On a volume: what limits its size, `project` (the project quota of its directory) or `none`. */
export const QUOTA_ANNOTATION = 'nodekeeper.dev/quota';

const NAME_FIELD = 'metadata.name';

export const localVolumeName = ({ metadata }: KubePersistentVolumeClaim): string => `pvc-${metadata.uid ?? ''}`;

/** The only node that reaches a volume of the local provisioner; undefined: it is none. */
export function localNodeOf(volume: KubePersistentVolume): string | undefined {
  if (annotationOf(volume, PROVISIONED_BY) !== LOCAL_PROVISIONER) return undefined;
  const terms = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const fields = terms.length === 1 ? (terms[0]?.matchFields ?? []) : [];
  const [field] = fields;
  const isName = fields.length === 1 && field?.key === NAME_FIELD && field.operator === 'In';
  return isName && field.values?.length === 1 ? field.values[0] : undefined;
}

/** Why the agent of the node makes no volume for the claim; undefined: it does. */
export function provisionRefusal(
  nodeName: string,
  claim: KubePersistentVolumeClaim | undefined,
  storage: KubeStorageClass | undefined,
): string | undefined {
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return 'the claim does not exist';
  if ((claim.spec?.volumeName ?? '') !== '') return 'the claim has a volume';
  if (selectedNodeOf(claim) !== nodeName) return 'the claim is not for this node';
  return storage?.provisioner === LOCAL_PROVISIONER ? undefined : `its class is not of ${LOCAL_PROVISIONER}`;
}

export function localVolume(
  nodeName: string,
  claim: KubePersistentVolumeClaim,
  { reclaimPolicy = 'Delete', mountOptions }: KubeStorageClass,
  path: string,
): KubePersistentVolume {
  const { name = '', namespace = '', uid = '' } = claim.metadata;
  const { accessModes = [], volumeMode = 'Filesystem', resources } = claim.spec ?? {};
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: localVolumeName(claim), annotations: { [PROVISIONED_BY]: LOCAL_PROVISIONER } },
    spec: {
      capacity: { storage: String(resources?.requests?.['storage'] ?? '0') },
      accessModes,
      claimRef: { kind: 'PersistentVolumeClaim', namespace, name, uid, apiVersion: 'v1' },
      persistentVolumeReclaimPolicy: reclaimPolicy,
      storageClassName: classNameOf(claim),
      volumeMode,
      ...(mountOptions === undefined ? {} : { mountOptions }),
      local: { path },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchFields: [{ key: NAME_FIELD, operator: 'In', values: [nodeName] }] }] },
      },
    },
  };
}

/** Whether a machine created the volume that was offered to it: only the path and the note on the quota are its own. */
export function isOfferedVolume(given: KubePersistentVolume, offered: KubePersistentVolume): boolean {
  const { annotations = {}, labels = {} } = given.metadata;
  const { [QUOTA_ANNOTATION]: _quota, ...others } = annotations;
  return (
    given.metadata.name === offered.metadata.name &&
    Object.keys(labels).length === 0 &&
    (given.metadata.ownerReferences ?? []).length === 0 &&
    sameJson(others, offered.metadata.annotations) &&
    sameJson(given.spec, { ...offered.spec, local: given.spec?.local })
  );
}
