import type { JsonObject } from '../wire/json-value.ts';

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
