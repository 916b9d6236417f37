/**
 * The EBS volume of an attachment, the pods that use it, and whether it is mounted: the inputs of decideVolumeDetach.
 *
 * PersistentVolumes and claims are stored, but nothing binds them, so a claim is not resolved to its volume. The rule
 * protects data: a pod with any claim counts as a user of every EBS volume of its node. A volume that is not identified
 * with certainty is never detached.
 *
 * Source: pkg/volume/csi/csi_attacher.go (names), pkg/controller/volume/attachdetach/populator and cache (wanted).
 */

export const EBS_DRIVER = 'ebs.csi.aws.com';
/** On a VolumeAttachment: its volume, where no other field identifies it. */
export const VOLUME_ID_ANNOTATION = 'nodekeeper.dev/volume-id';

const UNIQUE_NAME_PREFIX = `kubernetes.io/csi/${EBS_DRIVER}^`;
const VOLUME_ID = /^vol-[0-9a-z]+$/;

/** The name of a volume in status.volumesAttached and status.volumesInUse of a Node. */
export const uniqueVolumeName = (volumeId: string): string => `${UNIQUE_NAME_PREFIX}${volumeId}`;

/** undefined for volumes of other drivers. */
export const volumeIdOfUniqueName = (name: string): string | undefined =>
  name.startsWith(UNIQUE_NAME_PREFIX) ? asVolumeId(name.slice(UNIQUE_NAME_PREFIX.length)) : undefined;

/** `vol-…`, alone or as the last part of `aws://<zone>/vol-…`. */
export function asVolumeId(text: string | undefined): string | undefined {
  const last = text?.split('/').at(-1);
  return last !== undefined && VOLUME_ID.test(last) ? last : undefined;
}

/** The fields of a pod's volume that identify it. */
export interface NamedVolume {
  readonly persistentVolumeClaim?: unknown;
  readonly ephemeral?: unknown;
  readonly csi?: { readonly driver?: string };
  readonly awsElasticBlockStore?: { readonly volumeID?: string };
}

/** Whether deleting the pod may leave an EBS volume unused. */
export const namesVolumes = (volumes: readonly NamedVolume[]): boolean =>
  volumes.some((volume) => wantsAny(volume) || volume.awsElasticBlockStore !== undefined);

/** Whether the volume cannot be resolved to one EBS volume. */
const wantsAny = ({ persistentVolumeClaim, ephemeral, csi }: NamedVolume): boolean =>
  persistentVolumeClaim !== undefined || ephemeral !== undefined || csi?.driver === EBS_DRIVER;

/** Whether a pod with these volumes may use this EBS volume of its node. `volumeId` absent: not known. */
export const wantsVolume = (volumes: readonly NamedVolume[], volumeId: string | undefined): boolean =>
  volumes.some((volume) => {
    if (wantsAny(volume)) return true;
    if (volume.awsElasticBlockStore === undefined) return false;
    const named = asVolumeId(volume.awsElasticBlockStore.volumeID);
    return named === undefined || volumeId === undefined || named === volumeId;
  });

/**
 * The volume of an attachment: named by the attachment itself, or the volume of the node from which the CSI attacher
 * derives this attachment's name. undefined: not certain.
 */
export function volumeIdOf(
  attachment: {
    readonly name: string;
    readonly nodeName: string;
    readonly annotation: string | undefined;
    readonly volumeHandle: string | undefined;
  },
  /** Unique volume names in the Node's status. */
  uniqueNames: readonly string[],
  /** SHA-256 in hex. Absent: attachment names are not compared. */
  sha256: ((text: string) => string) | undefined,
): string | undefined {
  const annotated = asVolumeId(attachment.annotation);
  const handle = asVolumeId(attachment.volumeHandle);
  if (annotated !== undefined && handle !== undefined && annotated !== handle) return undefined;
  const said = annotated ?? handle;
  if (said !== undefined) return said;
  if (sha256 === undefined) return undefined;
  return uniqueNames
    .flatMap((name) => volumeIdOfUniqueName(name) ?? [])
    .find((volumeId) => attachment.name === `csi-${sha256(`${volumeId}${EBS_DRIVER}${attachment.nodeName}`)}`);
}
