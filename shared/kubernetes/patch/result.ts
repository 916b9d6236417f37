import type { JsonObject } from '../json.ts';

/**
 * What became of a patch.
 *
 * - `patched`: the new object, sharing nothing with what went in.
 * - `malformed`: the patch itself cannot be read (400 BadRequest).
 * - `unprocessable`: it reads well but does not fit this object (422 Invalid, message only).
 * - `tooLarge`: it would make the server do too much (413 RequestEntityTooLarge).
 */
export type PatchResult =
  | { readonly kind: 'patched'; readonly object: JsonObject }
  | { readonly kind: 'malformed'; readonly message: string }
  | { readonly kind: 'unprocessable'; readonly message: string }
  | { readonly kind: 'tooLarge'; readonly message: string };

export type PatchRefusal = Exclude<PatchResult, { kind: 'patched' }>;

/** Deepest nesting of a patch or of a patched object. Real Kubernetes objects stay below 30. */
export const PATCH_DEPTH_MAX = 200;

/** Carries a refusal out of a recursive walk; never leaves the patch function that made it. */
export class PatchRefused extends Error {
  readonly refusal: PatchRefusal;

  constructor(refusal: PatchRefusal) {
    super(refusal.message);
    this.name = 'PatchRefused';
    this.refusal = refusal;
  }
}

export function malformed(message: string): PatchRefusal {
  return { kind: 'malformed', message };
}

export function unprocessable(message: string): PatchRefusal {
  return { kind: 'unprocessable', message };
}

/**
 * Values that one patch may walk, copy or move; a repeated visit counts again. A storable object has up to about 40,000
 * values, so this allows ten visits of each. Without the limit, a short patch could cause thousands of times that work.
 */
export const PATCH_WORK_MAX = 400_000;

/** Counts the work of one patch. */
export class PatchWork {
  private left = PATCH_WORK_MAX;

  /** @throws PatchRefused (413) when the patch does too much */
  spend(values: number): void {
    this.left -= values;
    if (this.left < 0) {
      const message = `a patch may walk ${PATCH_WORK_MAX} values, however few operations it has`;
      throw new PatchRefused({ kind: 'tooLarge', message });
    }
  }

  /** Spends the cost of walking a value once, and stops when the limit is reached. */
  spendOn(value: unknown): void {
    const waiting: unknown[] = [value];
    while (waiting.length > 0) {
      const next = waiting.pop();
      this.spend(1);
      if (typeof next !== 'object' || next === null) continue;
      for (const member of Object.values(next)) waiting.push(member);
    }
  }
}
