/**
 * The claims of generic ephemeral volumes: created with the pod, owned by it, and so removed with it.
 * Source: pkg/controller/volume/ephemeral/controller.go.
 */
import { recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import { ephemeralClaimName } from '../../../shared/kinds/pods/pod-needs.ts';
import type { KubePersistentVolumeClaim, KubePod, ObjectRef, Volume } from '../../../shared/kinds/types.ts';
import { shortHash } from '../../../shared/text.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { type SyncReport, syncUnlessOvertaken } from '../owner.ts';
import { ensureClaim } from './new-claim.ts';

const COMPONENT = 'ephemeral_volume';

export const syncEphemeralClaims = (dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport> =>
  syncUnlessOvertaken('Pod', () => attemptSync(dependencies, ref));

async function attemptSync(dependencies: WorkloadDependencies, ref: ObjectRef): Promise<SyncReport | 'overtaken'> {
  const pod: KubePod | undefined = await dependencies.objects.get(ref);
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return {};
  const times: number[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    if (volume.ephemeral === undefined) continue;
    const given = claimOf(pod, volume);
    const outcome = await ensureClaim(dependencies, { kind: 'Pod', object: pod }, given);
    if (outcome.kind === 'overtaken') return 'overtaken';
    if ('retryMs' in outcome) times.push(dependencies.clock.nowMs() + outcome.retryMs);
    const message = failureOf(pod, given, outcome);
    if (message === undefined) continue;
    const event = { type: 'Warning', reason: 'FailedBinding', message, source: COMPONENT } as const;
    const about = subjectOf('Pod', pod);
    await recordEvents(dependencies, [{ ...event, about, once: shortHash(message) }], dependencies.clock.nowMs());
  }
  return times.length === 0 ? {} : { lookAgainAtMs: Math.min(...times) };
}

function failureOf(
  { metadata }: KubePod,
  given: KubePersistentVolumeClaim,
  outcome: Exclude<Awaited<ReturnType<typeof ensureClaim>>, { kind: 'overtaken' }>,
): string | undefined {
  if (outcome.kind === 'created' || outcome.kind === 'waiting') return undefined;
  const volume = `ephemeral volume claim ${given.metadata.namespace}/${given.metadata.name}`;
  if (outcome.kind === 'refused') return `${volume}: ${outcome.message}`;
  const isOwn = outcome.claim.metadata.ownerReferences?.some(
    ({ uid, controller }) => controller === true && uid === metadata.uid,
  );
  if (isOwn === true) return undefined;
  return `PVC ${metadata.namespace}/${given.metadata.name} was not created for pod ${metadata.namespace}/${metadata.name} (pod is not owner)`;
}

function claimOf(pod: KubePod, volume: Volume): KubePersistentVolumeClaim {
  const { metadata: { labels, annotations } = {}, spec = {} } = volume.ephemeral?.volumeClaimTemplate ?? {};
  const { namespace = '', name = '', uid = '' } = pod.metadata;
  const owner = { apiVersion: 'v1', kind: 'Pod', name, uid, blockOwnerDeletion: true, controller: true };
  return {
    metadata: {
      namespace,
      name: ephemeralClaimName(pod, volume),
      ownerReferences: [owner],
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec,
  };
}
