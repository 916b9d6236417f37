/** `nodekeeper-agent doctor`: whether the volumes of claims are limited to their size (docs/volumes.md). */
import { type Finding, ok } from './finding.ts';
import type { NoQuota } from './project-quota.ts';

export type VolumeLimitReading = { readonly kind: 'limited' } | NoQuota;

const CHECK = 'volume-limits';

/**
 * No warning without limits: a file system rarely has project quotas, and most machines need none.
 *
 * @param read undefined: this machine makes no volumes
 */
export function volumeFindings(read: VolumeLimitReading | undefined): readonly Finding[] {
  if (read === undefined) return [];
  if (read.kind === 'limited') return [ok(CHECK, 'a claim is limited to its size, by project quota')];
  const { why, todo } = read;
  return [{ check: CHECK, outcome: 'ok', message: `claims are not limited to their size: ${why}`, todo }];
}
