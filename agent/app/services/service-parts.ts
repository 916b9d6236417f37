import type { PacketFilter } from '../../ports/packet-filter.ts';
import type { NameAnswer } from '../../rules/services/names.ts';
import type { ResolverConfig } from '../../rules/services/pod-resolver.ts';
import type { ServiceMemory } from './service-rules.ts';

/** What a machine needs to route Services and to answer their names. */
export interface ServiceParts {
  readonly filter: PacketFilter;
  readonly memory: ServiceMemory;
  /** Networks of the pods of this machine, as CIDRs. */
  readonly podNetworks: () => Promise<readonly string[]>;
  /** The kernel shows packets between pods of one bridge to its packet filter. */
  readonly filtersBridges: () => Promise<boolean>;
  readonly machineResolver: () => ResolverConfig;
  /** Rejects if it cannot listen. */
  readonly serveNames: (
    answer: (name: string, type: string) => NameAnswer,
    onQuestion: (kind: QuestionOutcome) => void,
  ) => Promise<{ close(): Promise<void> }>;
}

/** `cluster`: answered from the Services; `forwarded`: by a resolver of the machine; `dropped`: too many at a time. */
export type QuestionOutcome = 'cluster' | 'forwarded' | 'failed' | 'dropped';
