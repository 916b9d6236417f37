/**
 * Where the volumes of a pod's claims are on this machine. Only volumes with a directory of the machine are supported:
 * `local`, as the local provisioner makes them, and `hostPath`.
 */
import { defined } from '../../../shared/defined.ts';
import { BIND_COMPLETED } from '../../../shared/kinds/persistentvolumes/annotations.ts';
import { annotationOf, isBoundToClaim } from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import { claimNameOf } from '../../../shared/kinds/pods/pod-needs.ts';
import type {
  KubeObject,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  KubePod,
  Volume,
} from '../../../shared/kinds/types.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import { answeredWith, describeAnswer, objectIn } from '../../rules/kube-answer.ts';

export type ClaimedVolume =
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'failed'; readonly message: string }
  /** No answer, so a directory that was found before is still right. */
  | { readonly kind: 'unknown'; readonly message: string };

export const isClaimed = ({ persistentVolumeClaim, ephemeral }: Volume): boolean =>
  persistentVolumeClaim !== undefined || ephemeral !== undefined;

/** Two requests. */
export async function claimedVolume(
  api: KubeApi,
  pod: KubePod,
  volume: Volume,
  signal?: AbortSignal,
): Promise<ClaimedVolume> {
  const namespace = encodeURIComponent(pod.metadata.namespace ?? '');
  const claimName = claimNameOf(pod, volume) ?? '';
  const claims = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
  const claim = await readOf<KubePersistentVolumeClaim>(api, `${claims}/${encodeURIComponent(claimName)}`, signal);
  if ('kind' in claim) return claim;
  const { volumeName = '' } = claim.found.spec ?? {};
  if (volumeName === '' || annotationOf(claim.found, BIND_COMPLETED) === undefined) {
    return { kind: 'failed', message: `can't use PVC ${JSON.stringify(claimName)}: PVC is not bound` };
  }
  const owner = claim.found.metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (volume.ephemeral !== undefined && owner?.uid !== pod.metadata.uid) {
    return {
      kind: 'failed',
      message: `PVC ${claimName} was not created for pod ${pod.metadata.name} (pod is not owner)`,
    };
  }
  const read = await readOf<KubePersistentVolume>(
    api,
    `/api/v1/persistentvolumes/${encodeURIComponent(volumeName)}`,
    signal,
  );
  if ('kind' in read) return read;
  const { local, hostPath, volumeMode = 'Filesystem' } = read.found.spec ?? {};
  const path = local?.path ?? hostPath?.path;
  if (!isBoundToClaim(read.found, claim.found)) {
    return { kind: 'failed', message: `PV ${volumeName} is bound to another claim than ${claimName}` };
  }
  if (path === undefined || volumeMode !== 'Filesystem') {
    return { kind: 'failed', message: `PV ${volumeName} has no directory of this node: it is not supported here` };
  }
  return { kind: 'directory', path };
}

async function readOf<Kind extends KubeObject>(
  api: KubeApi,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly found: Kind } | Exclude<ClaimedVolume, { kind: 'directory' }>> {
  const answer = await api.send({ method: 'GET', path, ...defined({ signal }) });
  const found = answeredWith(answer, 200) ? objectIn<Kind>(answer) : undefined;
  if (found !== undefined) return { found };
  const message = `${path}: ${describeAnswer(answer)}`;
  return { kind: answeredWith(answer, 403, 404) ? 'failed' : 'unknown', message };
}
