/** Creates the claims of the pods of a StatefulSet before the pods, and keeps their owners by its retention policy. */

import type { AdmissionWait } from '../../../shared/admission/created-object.ts';
import { recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import type { KubePersistentVolumeClaim, KubePod } from '../../../shared/kinds/types.ts';
import type { ObjectWrite } from '../../../shared/store/object-store.ts';
import { shortHash } from '../../../shared/text.ts';
import { inParts } from '../../../shared/ticks/bounded-work.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { isCommitted } from '../owner.ts';
import { ensureClaim } from '../volumes/new-claim.ts';
import type { KubeStatefulSet } from '../workload-types.ts';
import { claimNamesFor, claimsFor, withOwnersOf } from './claims.rule.ts';
import { podNameOf } from './identity.rule.ts';

const COMPONENT = 'statefulset-controller';
const CLAIMS = 'persistentvolumeclaims';
/** Each with its log entry, head and owner index, below the 100 items of a transaction. */
const CLAIMS_PER_COMMIT = 12;

export type ClaimsOutcome =
  | { readonly kind: 'ready' }
  /** `retryMs`: until the next attempt, milliseconds. Absent: a minute. */
  | { readonly kind: 'failed'; readonly message: string; readonly retryMs?: number }
  | AdmissionWait
  | { readonly kind: 'overtaken' };

/** All claims of one pod exist. A claim that was there before the set is used as it is, as upstream. */
export async function ensureClaims(
  dependencies: WorkloadDependencies,
  set: KubeStatefulSet,
  ordinal: number,
): Promise<ClaimsOutcome> {
  for (const given of claimsFor(set, ordinal)) {
    const { name = '' } = given.metadata;
    const outcome = await ensureClaim(dependencies, { kind: 'StatefulSet', object: set }, given);
    if (outcome.kind === 'overtaken' || outcome.kind === 'waiting') return outcome;
    if (outcome.kind === 'created') await report(dependencies, set, { ordinal, claim: name });
    const message =
      outcome.kind === 'refused'
        ? outcome.message
        : outcome.kind === 'exists' && outcome.claim.metadata.deletionTimestamp !== undefined
          ? `pvc ${name} is being deleted`
          : undefined;
    if (message === undefined) continue;
    await report(dependencies, set, { ordinal, claim: name, failure: message });
    return { kind: 'failed', message, ...('retryMs' in outcome && { retryMs: outcome.retryMs }) };
  }
  return { kind: 'ready' };
}

async function report(
  dependencies: WorkloadDependencies,
  set: KubeStatefulSet,
  { ordinal, claim, failure }: { readonly ordinal: number; readonly claim: string; readonly failure?: string },
): Promise<void> {
  const setName = set.metadata.name ?? '';
  const what = `create Claim ${claim} Pod ${podNameOf(setName, ordinal)} in StatefulSet ${setName}`;
  const event =
    failure === undefined
      ? ({ type: 'Normal', reason: 'SuccessfulCreate', message: `${what} success` } as const)
      : ({ type: 'Warning', reason: 'FailedCreate', message: `${what} failed error: ${failure}` } as const);
  const about = subjectOf('StatefulSet', set);
  const once = shortHash(event.message);
  await recordEvents(dependencies, [{ ...event, source: COMPONENT, about, once }], dependencies.clock.nowMs());
}

export interface ClaimedPod {
  readonly ordinal: number;
  readonly pod: KubePod;
  /** It is scaled down. */
  readonly isCondemned: boolean;
}

/**
 * Before pods are deleted: the claims of a pod that is scaled down belong to the pod, if the policy deletes them, and
 * are collected with it. One read unit per claim, and writes only where an owner is missing.
 */
export async function settleClaimOwners(
  { objects }: WorkloadDependencies,
  set: KubeStatefulSet,
  pods: readonly ClaimedPod[],
): Promise<'settled' | 'overtaken'> {
  const { namespace = '' } = set.metadata;
  const named = pods.flatMap((each) => claimNamesFor(set, each.ordinal).map((name) => ({ ...each, name })));
  const claims = await objects.getMany(named.map(({ name }) => ({ resource: CLAIMS, namespace, name })));
  const writes = named.flatMap((each, index): ObjectWrite[] => {
    const previous: KubePersistentVolumeClaim | undefined = claims[index];
    if (previous === undefined || previous.metadata.deletionTimestamp !== undefined) return [];
    const object = withOwnersOf(previous, set, each);
    const ref = { resource: CLAIMS, namespace, name: each.name };
    return object === undefined ? [] : [{ kind: 'update', ref, object, previous }];
  });
  for (const part of inParts(writes, CLAIMS_PER_COMMIT)) {
    if (!isCommitted(await objects.commit({ writes: part }))) return 'overtaken';
  }
  return 'settled';
}
