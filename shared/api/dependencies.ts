import type { CidrSet } from '../domain/cidrs/cidr-set.ts';
import type { ResourceDescriptor } from '../kube/descriptor.ts';
import type { KubeObject } from '../kube/types.ts';
import type { RandomSource } from '../ports/clock.ts';
import type { ResourceStorage } from './storage/resource-storage.ts';

/** What the verbs need, made once a process by compose.ts. */
export interface ApiDependencies {
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  readonly random: RandomSource;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Of which nodes get their pod CIDRs; empty while allocation is off. */
  readonly cidrSets: readonly CidrSet[];
  /** tolerationSeconds of pods that bring none. Seconds. */
  readonly podEvictionTimeoutSeconds: number;
  /** The disruption budgets of a pod, each with a true status. */
  readonly budgetsCovering: (pod: KubeObject) => Promise<readonly KubeObject[]>;
}
