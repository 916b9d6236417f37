/**
 * The ledger of decisions (domain/decision-record.ts): one record for what changed, none for what stays as it was.
 *
 * Where something is written because of a decision, `write` goes into that very commit: then neither is there alone. Where
 * nothing is, `tell` puts the record on the condition that it is not there; its key follows from what is told, so a
 * handler that runs twice, or is killed and runs again, tells it once.
 */

import type { Policy } from '../../domain/policy.ts';
import { shortHash } from '../../domain/text-hash.ts';
import type { ItemStore, PutWrite } from '../../ports/item-store.ts';
import { type DecisionDraft, type DecisionRecord, sealed } from '../decisions/decision-record.ts';
import { decisionName, decisionWrite, decisionWriteOnce, type Telling } from '../decisions/decision-store.ts';

/** Names of what this process has told already, so that a pass that finds the same again writes nothing. */
const REMEMBERED_MAX = 4_096;

export interface TickMark {
  readonly slot?: number;
  readonly fence?: number;
}

export interface Ledger {
  /** For the `extra` of a commit. `once`: see decisionName. */
  write(draft: DecisionDraft, tick?: TickMark, once?: Telling): PutWrite;
  tell(draft: DecisionDraft, once: Telling, tick?: TickMark): Promise<void>;
}

/** Sixteen hex digits that two policies hardly share. */
function policyVersion(policy: Policy): string {
  const text = JSON.stringify(Object.entries(policy).sort(([one], [other]) => (one < other ? -1 : 1)));
  return shortHash(text) + shortHash(`2|${text}`);
}

export function ledgerOver(items: ItemStore, policy: Policy): Ledger {
  const version = policyVersion(policy);
  const told = new Set<string>();
  const recordOf = (draft: DecisionDraft, tick: TickMark = {}): DecisionRecord =>
    sealed({
      ...draft,
      v: 1,
      policy: version,
      ...(tick.slot === undefined ? {} : { slot: tick.slot }),
      ...(tick.fence === undefined ? {} : { fence: tick.fence }),
    });
  return {
    write: (draft, tick, once) => decisionWrite(recordOf(draft, tick), once),
    async tell(draft, once, tick) {
      const name = decisionName(draft, once);
      if (told.has(name)) return;
      await items.write(decisionWriteOnce(recordOf(draft, tick), once));
      if (told.size >= REMEMBERED_MAX) told.clear();
      told.add(name);
    },
  };
}
