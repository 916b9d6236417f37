import type { CidrSet } from '../domain/cidrs/cidr-set.ts';
import type { ResourceDescriptor } from '../kube/descriptor.ts';
import type { KubeObject } from '../kube/types.ts';
import type { RandomSource } from '../ports/clock.ts';
import type { NamespacePolicies } from '../store/namespace-policies.ts';
import type { ResourceStorage } from './storage/resource-storage.ts';

/** Dependencies of the verbs, created once per process by compose.ts. */
export interface ApiDependencies {
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  readonly random: RandomSource;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** The CIDRs from which nodes get their pod CIDRs. Empty while allocation is off. */
  readonly cidrSets: readonly CidrSet[];
  /** tolerationSeconds of the default tolerations. Seconds. */
  readonly podEvictionTimeoutSeconds: number;
  /** How far ahead a node may promise silence of its own. Seconds; 0: it may not. */
  readonly maxPlannedSilenceSeconds: number;
  /** The same for a node with these labels. Seconds. Absent: no profile has other seconds. */
  readonly podEvictionTimeoutOn?: (nodeLabels: Readonly<Record<string, string>> | undefined) => number;
  /** The disruption budgets of a pod, each with its current status. */
  readonly budgetsCovering: (pod: KubeObject) => Promise<readonly KubeObject[]>;
  /** ResourceQuotas and LimitRanges, for admission. */
  readonly namespacePolicies: NamespacePolicies;
}
