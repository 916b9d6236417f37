import type { KubeObject, ObjectRef } from '../kinds/types.ts';
import type { AccountTokenContent } from './account-token.ts';
import type { ProcessKey } from './process-key.ts';

/** Signs tokens of service accounts. Rejects if there is no key and a new one cannot be stored. */
export interface AccountTokenIssuer {
  issue(content: AccountTokenContent, nowMs: number): Promise<string>;
}

/** The public keys that sign tokens of service accounts. */
export interface AccountKeys {
  /** Strongly consistent; undefined: no key has this id, or no longer. */
  find(keyId: string): Promise<ProcessKey | undefined>;
  /** All keys, at most some thousands. */
  all(): Promise<readonly ProcessKey[]>;
}

/** Reads the objects that a token is bound to; undefined: there is none. */
export type FindObject = (ref: ObjectRef) => Promise<KubeObject | undefined>;
