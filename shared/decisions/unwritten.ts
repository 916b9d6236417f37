/** The decision record that every controller may write: an object that could not be written. */

import type { DecisionAbout, DraftOf, ReplayRules } from './decision-record.ts';

interface UnwrittenInputs {
  /** No rule: the store refused the write. */
  readonly fact: {
    /** The change that was not written, such as `mark the node Unknown`. */
    readonly what: string;
    /** JSON of the stored object, without the change. UTF-16 units. */
    readonly characters: number;
    /** UTF-16 units of one object at most. */
    readonly charactersMax: number;
  };
}

export type UnwrittenDraft = DraftOf<UnwrittenInputs>;

export const notWrittenDraft = (
  about: DecisionAbout,
  nowMs: number,
  inputs: UnwrittenInputs['fact'],
): UnwrittenDraft => ({
  act: 'NotWritten',
  about,
  atMs: nowMs,
  reason:
    `could not ${inputs.what}: the object has ${inputs.characters} characters and would exceed ` +
    `${inputs.charactersMax} characters or 400 KB; shorten its annotations or status`,
  rule: 'fact',
  inputs,
  outcome: {},
});

export const unwrittenReplay: ReplayRules<UnwrittenInputs> = {
  fact: (_inputs, { outcome }) => outcome,
};
