/** Code that stays although no program reaches it. An entry that no longer applies fails `npm run reach`. */
import type { Exception } from './examine.ts';

export const exceptions: readonly Exception[] = [];
