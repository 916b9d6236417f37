/** The claims of a pod: those that it names, and those of its ephemeral volumes, which are named after it. */
import { NAME_LENGTH_MAX } from '../../kubernetes/kubernetes.ts';
import type { KubePod, Volume } from '../types.ts';

const NONE: readonly never[] = Object.freeze([]);

/** Source: EphemeralVolumeClaimName of component-helpers. A key of the store is not longer than a name may be. */
export const ephemeralClaimName = ({ metadata }: KubePod, volume: Pick<Volume, 'name'>): string =>
  `${metadata.name ?? ''}-${volume.name}`.slice(0, NAME_LENGTH_MAX);

/** The claim of a volume; undefined: it is of another source. */
export function claimNameOf(pod: KubePod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName ?? '';
  return volume.ephemeral === undefined ? undefined : ephemeralClaimName(pod, volume);
}

/** Each volume's, in their order. */
export function claimNamesOf(pod: KubePod): readonly string[] {
  const names = (pod.spec?.volumes ?? NONE).flatMap((volume) => claimNameOf(pod, volume) ?? []);
  return names.length === 0 ? NONE : names;
}
