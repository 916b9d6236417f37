/**
 * Durations that somebody wrote into an object, read back as numbers that can become a time. The API refuses absurd
 * ones, but what was stored before it did stays stored, and a time beyond the calendar cannot be written at all.
 */

/** 68 years: the largest duration of 32 bits, which is what clients of Kubernetes can count on. */
export const SECONDS_MAX = 2 ** 31 - 1;

/** Whole seconds from 0 to SECONDS_MAX; undefined for what is no number. Infinity counts as the largest. */
export function boundedSeconds(stored: unknown): number | undefined {
  if (typeof stored !== 'number' || Number.isNaN(stored)) return undefined;
  return Math.min(Math.max(0, stored), SECONDS_MAX);
}
