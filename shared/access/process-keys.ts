import type { ProcessKey } from './process-key.ts';

/** Stores the public half of a new key. Once it returns, every reader finds the key. */
export type KeepProcessKey = (key: ProcessKey, nowMs: number) => Promise<void>;

/** The keys that authenticate probes; the result may include expired ones. */
export interface ProbeKeys {
  probeKeys(options: { readonly consistent: boolean }): Promise<readonly ProcessKey[]>;
}

/** The keys that sign watch tickets. */
export interface TicketKeys {
  /** Strongly consistent; undefined: no key has this id, or no longer. */
  find(keyId: string): Promise<ProcessKey | undefined>;
}
