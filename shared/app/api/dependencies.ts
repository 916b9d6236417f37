import type { ResourceDescriptor } from '../../kube/resources/descriptor.ts';
import type { RandomSource } from '../../ports/clock.ts';
import type { ResourceStorage } from './storage.ts';

/** What the verbs need, made once a process by compose.ts. */
export interface ApiDependencies {
  readonly storageOf: (descriptor: ResourceDescriptor) => ResourceStorage;
  /** Storage of the pods subresources and admission look things up here, by plural resource name. */
  readonly random: RandomSource;
  /** tolerationSeconds of pods that bring none. Seconds. */
  readonly podEvictionTimeoutSeconds: number;
}
