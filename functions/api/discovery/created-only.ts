import { reviews } from '../access/self-reviews.ts';
import { changeReads } from '../changes/kind.ts';
import type { CreatedOnly } from '../verbs/read-created-only.ts';

/** All of them, for discovery and OpenAPI. */
export const createdOnly: readonly CreatedOnly[] = [...reviews, changeReads];
