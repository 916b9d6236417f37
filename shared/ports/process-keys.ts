import type { ProcessKey } from '../domain/access/process-key.ts';

/** Stores the public half of a key that was just made. Once it returns, whoever looks for the key finds it. */
export type KeepProcessKey = (key: ProcessKey, nowMs: number) => Promise<void>;

/** The keys by which probes sign in; ended ones may still be among them. */
export interface ProbeKeys {
  probeKeys(options: { readonly consistent: boolean }): Promise<readonly ProcessKey[]>;
}

/** The keys that sign watch tickets. */
export interface TicketKeys {
  /** Strongly consistent; undefined: there is none of this id (any more). */
  find(keyId: string): Promise<ProcessKey | undefined>;
}
