/**
 * The storage of node leases: rows of the `health` table, with the digest of their Node. Other leases are objects that
 * are renewed at one write unit.
 */
import type { KindStorage } from '../../api/kind-storage.ts';
import { splitStorage } from '../../api/object-storage.ts';
import type { ResourceStorage, WriteResult } from '../../api/resource-storage.ts';
import type { Clock, RandomSource } from '../../clock.ts';
import { defined } from '../../defined.ts';
import { hasLease } from '../../fleet/nodes/health.ts';
import { NAME_LENGTH_MAX } from '../../kubernetes/kubernetes.ts';
import type { ItemStore } from '../../store/item-store.ts';
import type { KubeObject } from '../types.ts';
import { leaseChangeOf } from './lease-change.ts';
import { leaseOf } from './lease-record.ts';
import { type LeaseStore, type LeaseWriteOutcome, leaseStore } from './lease-store.ts';
import { isRenewal, renewObject } from './renew-object.ts';
import { LEASE_NAMESPACE } from './resource.ts';
import { leases } from './serve.ts';

export interface LeaseStorageDependencies {
  readonly health: LeaseStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** A version that every later write of the cluster exceeds. */
  readonly currentVersion: () => Promise<string>;
}

function resultOf(outcome: LeaseWriteOutcome): WriteResult {
  if (outcome.kind !== 'written') return { kind: 'conflict' };
  const object = leaseOf(outcome.row);
  return object === undefined ? { kind: 'conflict' } : { kind: 'written', object };
}

/** Clients may send managedFields. They are dropped, not refused. */
function withoutManagedFields(lease: KubeObject): KubeObject {
  const { managedFields: _dropped, ...metadata } = lease.metadata;
  return { ...lease, metadata };
}

export function nodeLeaseStorage(dependencies: LeaseStorageDependencies): ResourceStorage {
  const { health, clock, random } = dependencies;
  const leaseWrite = (object: KubeObject) => ({
    change: leaseChangeOf(withoutManagedFields(object)),
    nowMs: clock.nowMs(),
    tie: random.fraction(),
  });
  return {
    async get(_namespace, name) {
      // It may come from a selector, and be longer than a key of the store.
      const row = name.length > NAME_LENGTH_MAX ? undefined : await health.getRow(name);
      return row === undefined ? undefined : leaseOf(row);
    },
    async list({ limit, continueAfter }) {
      const page = await health.listLeases({
        limit,
        // Continue keys are `namespace/name`. The key of a row is the name alone.
        ...defined({ continueAfter: continueAfter?.slice(continueAfter.indexOf('/') + 1) }),
      });
      const items = page.rows.filter(hasLease).flatMap((row) => leaseOf(row) ?? []);
      return { items, ...defined({ next: page.next }) };
    },
    listVersion: dependencies.currentVersion,
    // managedFields, or an entry in a change log, would double the cost of a beat.
    keepsManagedFields: () => false,
    readsInsteadOfLog: () => true,
    async create(object) {
      return resultOf(await health.createLease({ ...leaseWrite(object), uid: object.metadata.uid ?? '' }));
    },
    async update(next, old) {
      return resultOf(
        await health.renewLease({ ...leaseWrite(next), expectedResourceVersion: Number(old.metadata.resourceVersion) }),
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

/** Leases of other namespaces. Their renewals are in no log: watches compare reads, as for those of nodes. */
function renewedStorage(
  plain: ResourceStorage,
  { items, clock, random }: Pick<LeaseStorageDependencies, 'clock' | 'random'> & { readonly items: ItemStore },
): ResourceStorage {
  return {
    ...plain,
    readsInsteadOfLog: () => true,
    update: (next, old, along = []) =>
      along.length === 0 && isRenewal(next, old)
        ? renewObject(items, { next, old }, { nowMs: clock.nowMs(), tie: random.fraction() })
        : plain.update(next, old, along),
  };
}

export const leaseStorages: readonly KindStorage[] = [
  [
    leases,
    (descriptor, { plain, items, clock, random, versionOf }) => {
      const currentVersion = () => versionOf(leases);
      const ofNodes = nodeLeaseStorage({ health: leaseStore(items), clock, random, currentVersion });
      return splitStorage(LEASE_NAMESPACE, ofNodes, renewedStorage(plain(descriptor), { items, clock, random }));
    },
  ],
];
