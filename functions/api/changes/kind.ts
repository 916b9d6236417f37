import { CHANGE_READS } from '../../../shared/watches/change-read.ts';
import type { CreatedOnly } from '../verbs/read-created-only.ts';

/** ChangeReads, as discovery shows them. */
export const changeReads: CreatedOnly = {
  ...CHANGE_READS,
  singular: CHANGE_READS.kind.toLowerCase(),
  namespaced: false,
  verbs: ['create'],
};
