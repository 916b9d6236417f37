/** The owner of a sync: read once, and unchanged when its effects are committed. */
import { shardsOf } from '../../shared/kinds/resources.ts';
import type { KubeObject, ObjectRef, OwnerReference } from '../../shared/kinds/types.ts';
import { type CheckWrite, StoreFault } from '../../shared/store/item-store.ts';
import { is } from '../../shared/store/layout.ts';
import { resourceVersionOf } from '../../shared/store/object-record.ts';
import { type CommitOutcome, objectKey } from '../../shared/store/object-store.ts';

/** Syncs that another worker overtakes, one after the other. */
const ATTEMPTS_MAX = 4;

export interface SyncReport {
  /** When to look again. Epoch milliseconds; absent: at the next change. */
  readonly lookAgainAtMs?: number;
  /**
   * Nothing was done: it was never synced, and what it may adopt was not searched. It would create what exists already.
   */
  readonly needsOrphans?: true;
}

/** Whether a sync must be repeated with the objects that the owner may adopt. `orphans`: undefined if not searched. */
export const isNewWithout = (orphans: readonly unknown[] | undefined, { status }: KubeObject): boolean =>
  orphans === undefined && status?.['observedGeneration'] === undefined;

/**
 * False: another writer was faster.
 *
 * @throws StoreFault not retryable, when an object is too large, as with a status of many indexes or resources
 */
export function isCommitted(outcome: CommitOutcome): outcome is Extract<CommitOutcome, { kind: 'committed' }> {
  if (outcome.kind === 'tooLarge') {
    throw new StoreFault('too-large', 'an object would be larger than the store accepts', { retryable: false });
  }
  return outcome.kind === 'committed';
}

/** @throws StoreFault retryable, when other writers won every attempt */
export async function syncUnlessOvertaken(
  kind: string,
  attempt: () => Promise<SyncReport | 'overtaken'>,
): Promise<SyncReport> {
  for (let count = 1; count <= ATTEMPTS_MAX; count += 1) {
    const outcome = await attempt();
    if (outcome !== 'overtaken') return outcome;
  }
  throw new StoreFault('throttled', `the ${kind} changed too often to be synced`, { retryable: true });
}

/** For a commit's `extra`: refuses the commit if the object changed since it was read. */
export const unchanged = (ref: ObjectRef, object: KubeObject): CheckWrite => ({
  kind: 'check',
  key: objectKey(ref, shardsOf(ref.resource)),
  when: is('rv', resourceVersionOf(object)),
});

export const refOfObject = (resource: string, { metadata }: KubeObject): ObjectRef => ({
  resource,
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** Kinds of owners with pods. */
export type OwnerKind = 'ReplicaSet' | 'ReplicationController' | 'DaemonSet' | 'StatefulSet' | 'Job' | 'CronJob';

const API_VERSIONS: Readonly<Partial<Record<OwnerKind, string>>> = {
  ReplicationController: 'v1',
  Job: 'batch/v1',
  CronJob: 'batch/v1',
};

/** The reference that a controller writes into what it owns. */
export const controllerReference = (kind: OwnerKind, { metadata }: KubeObject): OwnerReference => ({
  apiVersion: API_VERSIONS[kind] ?? 'apps/v1',
  kind,
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  controller: true,
  blockOwnerDeletion: true,
});

/** The object with other owners. */
export function withOwners<Owned extends KubeObject>(object: Owned, owners: readonly OwnerReference[]): Owned {
  const { ownerReferences: _owners, ...metadata } = object.metadata;
  return { ...object, metadata: owners.length === 0 ? metadata : { ...metadata, ownerReferences: [...owners] } };
}
