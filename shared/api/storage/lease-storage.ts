/** Leases of nodes, kept in the `health` table beside the digest of their Node. Leases elsewhere are plain objects. */

import { leaseChangeOf } from '../../heartbeat/lease-change.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Clock, RandomSource } from '../../ports/clock.ts';
import { hasLease } from '../../store/health-row.ts';
import { leaseOf } from '../../store/lease-record.ts';
import type { LeaseStore, LeaseWriteOutcome } from '../../store/lease-store.ts';
import type { ResourceStorage, WriteResult } from './resource-storage.ts';

export interface LeaseStorageDependencies {
  readonly health: LeaseStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** A version that no later write of the cluster stays below. */
  readonly currentVersion: () => Promise<string>;
}

function resultOf(outcome: LeaseWriteOutcome): WriteResult {
  if (outcome.kind !== 'written') return { kind: 'conflict' };
  const object = leaseOf(outcome.row);
  return object === undefined ? { kind: 'conflict' } : { kind: 'written', object };
}

/** A client may send some, or apply from the server's side; they are dropped, not refused. */
function withoutManagedFields(lease: KubeObject): KubeObject {
  const { managedFields: _dropped, ...metadata } = lease.metadata;
  return { ...lease, metadata };
}

export function nodeLeaseStorage(dependencies: LeaseStorageDependencies): ResourceStorage {
  const { health, clock, random } = dependencies;
  const written = (object: KubeObject) => ({
    change: leaseChangeOf(withoutManagedFields(object)),
    nowMs: clock.nowMs(),
    tie: random.fraction(),
  });
  return {
    async get(_namespace, name) {
      const row = await health.getRow(name);
      return row === undefined ? undefined : leaseOf(row);
    },
    async list({ limit, continueAfter }) {
      const page = await health.listLeases({
        limit,
        // Continue keys are `namespace/name`; rows are keyed by name alone.
        ...(continueAfter === undefined ? {} : { continueAfter: continueAfter.slice(continueAfter.indexOf('/') + 1) }),
      });
      const items = page.rows.filter(hasLease).flatMap((row) => leaseOf(row) ?? []);
      return { items, ...(page.next === undefined ? {} : { next: page.next }) };
    },
    listVersion: dependencies.currentVersion,
    // A row has no room for them, and beats stand in no log: one of either would double what a beat costs.
    keepsManagedFields: () => false,
    readsInsteadOfLog: () => true,
    async create(object) {
      return resultOf(await health.createLease({ ...written(object), uid: object.metadata.uid ?? '' }));
    },
    async update(next, old) {
      return resultOf(
        await health.renewLease({ ...written(next), expectedResourceVersion: Number(old.metadata.resourceVersion) }),
      );
    },
    async remove(old) {
      const outcome = await health.deleteLease(old.metadata.name ?? '', {
        resourceVersion: Number(old.metadata.resourceVersion),
      });
      return outcome.kind === 'conflict' ? { kind: 'conflict' } : { kind: 'written', object: old };
    },
  };
}
