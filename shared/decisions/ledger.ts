/**
 * The ledger of decisions (decisions/decision-record.ts): one record per change, none while the state stays the same.
 *
 * For a decision that writes an object, `write` is part of the same commit: both are stored, or neither. For a
 * decision without a write, `recordOnce` stores the record if it does not exist. Its key follows from the decision, so
 * a handler that runs twice, or is killed and runs again, records it once.
 */

import { defined } from '../defined.ts';
import type { Policy } from '../fleet/policy.ts';
import type { ItemStore, PutWrite } from '../store/item-store.ts';
import { shortHash } from '../text.ts';
import { type DecisionDraft, type DecisionRecord, sealed } from './decision-record.ts';
import { decisionName, decisionWrite, decisionWriteOnce, decisionWrites, type OnceKey } from './decision-store.ts';

/** Names of records that this process has stored. A tick that repeats a decision then writes nothing. */
const REMEMBERED_MAX = 4_096;

export interface TickMark {
  readonly slot?: number;
  readonly fence?: number;
}

export interface Ledger {
  /** For the `extra` of a commit. `once`: see decisionName. */
  write(draft: DecisionDraft, tick?: TickMark, once?: OnceKey): PutWrite;
  /** For the `extra` of a commit with many decisions. There are fewer writes than drafts where records share items. */
  writeAll(drafts: readonly DecisionDraft[], tick?: TickMark): PutWrite[];
  /** `known`: this process has stored the record before. `recorded`: it is stored now, by this or another process. */
  recordOnce(draft: DecisionDraft, once: OnceKey, tick?: TickMark): Promise<'recorded' | 'known'>;
}

/** Hash of the policy: sixteen hex digits. */
function policyVersion(policy: Policy): string {
  const text = JSON.stringify(Object.entries(policy).sort(([one], [other]) => (one < other ? -1 : 1)));
  return shortHash(text) + shortHash(`2|${text}`);
}

function recordsWith(policy: Policy): (draft: DecisionDraft, tick?: TickMark) => DecisionRecord {
  const version = policyVersion(policy);
  return (draft, { slot, fence } = {}) => sealed({ ...draft, v: 1, policy: version, ...defined({ slot, fence }) });
}

export function ledgerOver(items: ItemStore, policy: Policy): Ledger {
  const recordOf = recordsWith(policy);
  return {
    write: (draft, tick, once) => decisionWrite(recordOf(draft, tick), once),
    writeAll: (drafts, tick) => decisionWrites(drafts.map((draft) => recordOf(draft, tick))),
    ...factLedger(items, policy),
  };
}

/** For a program that records nothing else. */
export function factLedger(items: ItemStore, policy: Policy): Pick<Ledger, 'recordOnce'> {
  const recordOf = recordsWith(policy);
  const recorded = new Set<string>();
  return {
    async recordOnce(draft, once, tick) {
      const name = decisionName(draft, once);
      if (recorded.has(name)) return 'known';
      await items.write(decisionWriteOnce(recordOf(draft, tick), once));
      if (recorded.size >= REMEMBERED_MAX) recorded.clear();
      recorded.add(name);
      return 'recorded';
    },
  };
}
