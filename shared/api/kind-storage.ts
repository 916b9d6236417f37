/** How a kind says where its objects are stored: its folder's storage.ts exports a list of KindStorage. */
import type { Policies } from '../access/policy-cache.ts';
import type { AdmissionPolicies } from '../admission/policy-memory.ts';
import type { Clock, RandomSource } from '../clock.ts';
import type { Policy } from '../fleet/policy.ts';
import type { DefinitionCatalog } from '../kinds/customresourcedefinitions/catalog.ts';
import type { DefinitionSections } from '../kinds/customresourcedefinitions/sections.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { ApiAddress, ApiAuthorities, NewObjectContext } from '../kinds/namespaces/contents.ts';
import type { NamespacePolicies } from '../kinds/quotas/namespace-policies.ts';
import type { ChangeLog } from '../store/change-log.ts';
import type { ItemStore } from '../store/item-store.ts';
import type { ObjectStorageOptions } from './object-storage.ts';
import type { ResourceStorage } from './resource-storage.ts';

export interface StorageOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Waits between attempts at a contended write. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  readonly policy: Policy;
  readonly changes: ChangeLog;
  /** Absent: none are published. */
  readonly apiAuthorities?: ApiAuthorities;
  /** Absent: the API has no fixed address. */
  readonly apiAddress?: ApiAddress;
  /** False in a process that may not write. Absent: true. */
  readonly makesInitialObjects?: boolean;
}

/** What the storage of a kind may use. */
export interface StorageContext extends Required<Omit<StorageOptions, 'apiAuthorities' | 'apiAddress' | 'pause'>> {
  /** The storage of plain objects in the `objects` table. */
  readonly plain: (descriptor: ResourceDescriptor, more?: Partial<ObjectStorageOptions>) => ResourceStorage;
  /** The storage of another resource. */
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  /** For an object that is created by a read. */
  readonly newObject: () => NewObjectContext;
  /** The version of a list of this resource. */
  readonly versionOf: (descriptor: ResourceDescriptor) => Promise<string>;
  readonly definitions: DefinitionCatalog;
  /** The schemas of definitions, and other large texts of theirs. */
  readonly sections: DefinitionSections;
  readonly budgets: ResourceStorage;
  readonly policies: Policies;
  /** Admission policies, in memory. */
  readonly admissionPolicies: AdmissionPolicies;
  readonly namespacePolicies: NamespacePolicies;
}

/** A resource and its storage. A resource without one has plain objects. */
export type KindStorage = readonly [
  ResourceDescriptor,
  (descriptor: ResourceDescriptor, context: StorageContext) => ResourceStorage,
];
