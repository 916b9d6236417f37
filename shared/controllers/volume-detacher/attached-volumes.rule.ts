/**
 * Which EBS volume an attachment is, who wants it, and whether it is in use: what decideVolumeDetach is asked with.
 *
 * There are no PersistentVolumes and claims here, so a claim cannot be followed to its volume. The rule leans to the side of
 * the data: a pod with any claim wants every EBS volume of its node, and a volume that cannot be named for certain is
 * never detached.
 *
 * Source: pkg/volume/csi/csi_attacher.go (names), pkg/controller/volume/attachdetach/populator and cache (wanted).
 */

export const EBS_DRIVER = 'ebs.csi.aws.com';
/** On a VolumeAttachment: which volume it is, where nothing else says so. */
export const VOLUME_ID_ANNOTATION = 'nodekeeper.dev/volume-id';

const UNIQUE_NAME_PREFIX = `kubernetes.io/csi/${EBS_DRIVER}^`;
const VOLUME_ID = /^vol-[0-9a-z]+$/;

/** Of a volume in status.volumesAttached and volumesInUse of a Node. */
export const uniqueVolumeName = (volumeId: string): string => `${UNIQUE_NAME_PREFIX}${volumeId}`;

/** undefined for volumes of other drivers. */
export const volumeIdOfUniqueName = (name: string): string | undefined =>
  name.startsWith(UNIQUE_NAME_PREFIX) ? asVolumeId(name.slice(UNIQUE_NAME_PREFIX.length)) : undefined;

/** `vol-…`, alone or as the last part of `aws://<zone>/vol-…`. */
export function asVolumeId(text: string | undefined): string | undefined {
  const last = text?.split('/').at(-1);
  return last !== undefined && VOLUME_ID.test(last) ? last : undefined;
}

/** A volume of a pod's spec, as far as it says what it is. */
export interface NamedVolume {
  readonly persistentVolumeClaim?: unknown;
  readonly ephemeral?: unknown;
  readonly csi?: { readonly driver?: string };
  readonly awsElasticBlockStore?: { readonly volumeID?: string };
}

/** Whether a pod's end may leave an EBS volume unwanted. */
export const namesVolumes = (volumes: readonly NamedVolume[]): boolean =>
  volumes.some((volume) => wantsAny(volume) || volume.awsElasticBlockStore !== undefined);

/** Cannot be followed to one volume. */
const wantsAny = ({ persistentVolumeClaim, ephemeral, csi }: NamedVolume): boolean =>
  persistentVolumeClaim !== undefined || ephemeral !== undefined || csi?.driver === EBS_DRIVER;

/** Whether a pod with these volumes wants this EBS volume of its node; `volumeId` absent: not known. */
export const wantsVolume = (volumes: readonly NamedVolume[], volumeId: string | undefined): boolean =>
  volumes.some((volume) => {
    if (wantsAny(volume)) return true;
    if (volume.awsElasticBlockStore === undefined) return false;
    const named = asVolumeId(volume.awsElasticBlockStore.volumeID);
    return named === undefined || volumeId === undefined || named === volumeId;
  });

/**
 * The volume of an attachment: as the attachment says itself, or the one of the node's volumes whose name the CSI attacher
 * made this attachment's name from. undefined: in doubt.
 */
export function volumeIdOf(
  attachment: {
    readonly name: string;
    readonly nodeName: string;
    readonly annotation: string | undefined;
    readonly volumeHandle: string | undefined;
  },
  /** Unique names that the Node's status tells. */
  uniqueNames: readonly string[],
  /** SHA-256 in hex; absent: names are not looked into. */
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
