/**
 * Mutants that no test has to detect, each with the reason: they change no behaviour. A mutant is known by its file, the
 * function around it and its change; an entry that matches no mutant any more fails accepted.test.ts and leaves the list.
 */
import type { Mutant } from './mutators.ts';

export interface Accepted {
  /** The end of a path: moving a folder leaves the entry valid. */
  readonly file: string;
  readonly within: string;
  readonly change: string;
  /** Why no caller can see a difference. */
  readonly reason: string;
}

export const ACCEPTED: readonly Accepted[] = [
  {
    file: 'dynamodb/errors.ts',
    within: 'cancellationOf',
    change:
      "reasons.map((reason) => reason.Code ?? 'None').filter((code) => code !== 'None') → reasons.map((reason) => reason.Code ?? 'None')",
    reason: "The codes are only looked up in sets, and 'None' is in none of them.",
  },
  {
    file: 'dynamodb/item-store.ts',
    within: 'isEmptyRange',
    change: 'compareKeys(after, beginsWith) < 0 → compareKeys(after, beginsWith) <= 0',
    reason: 'Equal keys have the prefix, and the line before answers for those.',
  },
  {
    file: 'store/object-record.ts',
    within: 'refOf',
    change: 'slash < 0 → slash <= 0',
    reason: 'No sort key begins with a slash: an object without a namespace is stored under its name alone.',
  },
  {
    file: 'decisions/ledger.ts',
    within: 'policyVersion',
    change: 'one < other → one <= other',
    reason: 'The names of one object are never equal.',
  },
  {
    file: 'bootstrap-token.ts',
    within: 'matchesPattern',
    change: 'wanted !== undefined && wanted === name[at] → wanted === name[at]',
    reason: 'Within the loop name[at] is a character, so an undefined `wanted` is never equal to it.',
  },
  {
    file: 'tokens/node-tokens.ts',
    within: 'nodeTokens.authenticateNew',
    change: "claims.algorithm === 'ES256' → false",
    reason: 'Without a digest OpenSSL verifies by the default of the key, which is SHA-256 for a key of P-256.',
  },
  {
    file: 'node-monitor/work.ts',
    within: 'gateTransition',
    change: 'sinceMs > 0 → sinceMs >= 0',
    reason: 'With sinceMs 0 the other part of the condition is false: no time of a tick is below 0.',
  },
  {
    file: 'instances/initialisation.rule.ts',
    within: 'byIdentity',
    change: '1 → 2',
    reason: 'Sorting uses only the sign.',
  },
  {
    file: 'agent/rules/status-report.ts',
    within: 'comparable',
    change: '1 → 2',
    reason: 'Sorting uses only the sign.',
  },
  {
    file: 'agent/rules/swap.ts',
    within: 'limitOf',
    change: 'limit > 0 → limit >= 0',
    reason: 'It differs only where request and limit are 0. These are equal, which the next condition refuses.',
  },
  {
    file: 'agent/rules/lease.ts',
    within: 'nameFraction',
    change: 'index < name.length → index <= name.length',
    reason: 'One more round of the hash: another number, spread as evenly over the names.',
  },
  {
    file: 'agent/adapters/http/kube-api.ts',
    within: '',
    change: '8 → 9',
    reason: 'A bound that no valid response reaches; a megabyte more bounds memory as well.',
  },
  {
    file: 'agent/adapters/identity/key-file.ts',
    within: 'write',
    change: "code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' → code !== 'EPERM' && code !== 'ENOTSUP'",
    reason: 'On Linux both names have one number, and Node reports it as ENOTSUP.',
  },
  {
    file: 'agent/adapters/config/documents.ts',
    within: 'offsetOf',
    change: 'document.contents?.range?.[0] ?? document.range?.[0] → document.contents?.range?.[0]',
    reason: 'Every parsed document has contents with a range; an empty one has a null.',
  },
];

export function accepts(entry: Accepted, mutant: Mutant): boolean {
  const sameFile = mutant.file === entry.file || mutant.file.endsWith(`/${entry.file}`);
  return sameFile && mutant.within === entry.within && mutant.change === entry.change;
}
