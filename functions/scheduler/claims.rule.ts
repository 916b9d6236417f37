/**
 * Why the claims of a pod keep it from every node. Claims are stored, and nothing binds or mounts them. Pure.
 * Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (podHasPVCs, PreFilter).
 */
import type { KubePersistentVolumeClaim } from '../../shared/kinds/types.ts';

/** @param stored the claims of these names; undefined where there is none */
export function claimsRejection(
  names: readonly string[],
  stored: readonly (KubePersistentVolumeClaim | undefined)[],
): string {
  for (const [index, name] of names.entries()) {
    const claim = `persistentvolumeclaim ${JSON.stringify(name)}`;
    const found = stored[index];
    if (found === undefined) return `${claim} not found`;
    if (found.metadata.deletionTimestamp !== undefined) return `${claim} is being deleted`;
  }
  const isBound = stored.every((claim) => claim?.status?.['phase'] === 'Bound');
  // The second text is ours: upstream would now look at the volume.
  return isBound
    ? 'volumes of persistentvolumeclaims are not supported'
    : 'pod has unbound immediate PersistentVolumeClaims';
}
