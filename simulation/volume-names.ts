/** How the volumes of a simulation are called. */
import type { KubeObject } from '../shared/kinds/types.ts';

/** Begins every id. */
export const VOLUME_ID_START = 'vol-5';

/** In `status.volumesInUse` of a Node. */
export const inUseName = (volumeId: string): string => `kubernetes.io/csi/ebs.csi.aws.com^${volumeId}`;

interface NamesVolume {
  readonly awsElasticBlockStore?: { readonly volumeID: string };
}

/** The id of the one volume that a pod has here. */
export const volumeIdOfPod = (pod: KubeObject): string | undefined =>
  ((pod.spec?.['volumes'] as readonly NamesVolume[] | undefined) ?? []).find(
    (volume) => volume.awsElasticBlockStore !== undefined,
  )?.awsElasticBlockStore?.volumeID;
