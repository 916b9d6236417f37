/** Decision records of the garbage collector. */

import type { DraftOf, ReplayRules } from '../../../shared/decisions/decision-record.ts';
import { fateOf, type JudgedOwner } from './rule.ts';

interface CollectorInputs {
  readonly ownersGone: { readonly owners: readonly JudgedOwner[]; readonly hasDependents: boolean };
}

export type CollectorDraft = DraftOf<CollectorInputs>;

export function collectedDraft(
  ref: { readonly resource: string; readonly namespace: string; readonly name: string },
  object: { readonly kind?: string; readonly metadata: { readonly uid?: string } },
  { owners, hasDependents }: CollectorInputs['ownersGone'],
  nowMs: number,
): CollectorDraft {
  const names = owners.map(({ reference: { kind, name } }) => `${kind} ${name}`).join(', ');
  return {
    act: 'Collected',
    about: {
      kind: object.kind === 'Pod' ? 'Pod' : 'Object',
      namespace: ref.namespace,
      name: object.kind === 'Pod' ? ref.name : `${ref.resource}/${ref.name}`,
      uid: object.metadata.uid ?? '',
    },
    atMs: nowMs,
    reason: `its owners no longer exist or wait for it: ${names}`,
    rule: 'ownersGone',
    inputs: { owners, hasDependents },
    outcome: { ...fateOf(owners, { isDeleting: false, hasDependents }) },
  };
}

export const collectorReplay: ReplayRules<CollectorInputs> = {
  ownersGone: ({ owners, hasDependents }) => ({ ...fateOf(owners, { isDeleting: false, hasDependents }) }),
};
