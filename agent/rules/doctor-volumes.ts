/** `nodekeeper-agent doctor`: whether the volumes of claims are limited to their size (docs/volumes.md). */
import { type Finding, ok, warning } from './finding.ts';
import type { NoQuota } from './project-quota.ts';

export type VolumeLimitReading = { readonly kind: 'limited' } | NoQuota;

const CHECK = 'volume-limits';

/** @param read undefined: this machine makes no volumes */
export function volumeFindings(read: VolumeLimitReading | undefined): readonly Finding[] {
  if (read === undefined) return [];
  if (read.kind === 'limited') return [ok(CHECK, 'a claim is limited to its size, by project quota')];
  return [warning(CHECK, `claims are not limited to their size: ${read.why}`, read.todo)];
}
