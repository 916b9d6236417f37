/**
 * Watches a version on trial, in its process. A version that is confirmed has removed the record of its trial.
 *
 *   ended        the version is confirmed: it runs on, and the watch is over
 *   silent       the time is over, and the record is still there: the version is not kept
 *   unreadable   the time is over, and the record cannot be read: the agent exits, and the next start decides
 *
 * The record is read during the trial, not only at its end: a disk that fails later does not end a confirmed version.
 *
 * If it cannot be read at the end, it is unknown whether the version works:
 * - It is not recorded as failed: the disk may be at fault.
 * - It does not continue: a version that opens too many files cannot read its record either.
 * - The next start counts, and starts are limited (startDecision). While a start cannot read the record, the installed
 *   agent runs. It ends the trial when the disk works again, and the version may be installed again.
 */
import type { AgentTime } from '../../ports/time.ts';
import { TRIAL_MS, type Trial } from '../../rules/update-record.ts';
import type { InstalledVersions } from './installed-versions.ts';

/** Between two reads of the record. Milliseconds. */
const READ_EVERY_MS = 10_000;
/** Reads at the end until one succeeds, and the time between them. Together less than the guard of the start waits. */
const LAST_READS_MAX = 5;
const LAST_READ_EVERY_MS = 1_000;

export type TrialOutcome =
  | { readonly kind: 'ended' }
  | { readonly kind: 'silent' }
  | { readonly kind: 'unreadable'; readonly cause: unknown };

export interface TrialWatch {
  readonly versions: Pick<InstalledVersions, 'trial'>;
  readonly time: Pick<AgentTime, 'sleep'>;
}

/** Resolves at the end of the trial. Never rejects. */
export async function trialOutcome(trial: Trial, { versions, time }: TrialWatch): Promise<TrialOutcome> {
  const read = (): Promise<TrialOutcome> =>
    versions.trial().then(
      (still) => ({ kind: still?.file === trial.file ? 'silent' : 'ended' }),
      (cause: unknown) => ({ kind: 'unreadable', cause }),
    );
  let outcome: TrialOutcome = { kind: 'silent' };
  for (let passedMs = 0; passedMs < TRIAL_MS; passedMs += READ_EVERY_MS) {
    await time.sleep(READ_EVERY_MS);
    outcome = await read();
    if (outcome.kind === 'ended') return outcome;
  }
  for (let reads = 1; reads < LAST_READS_MAX && outcome.kind === 'unreadable'; reads += 1) {
    await time.sleep(LAST_READ_EVERY_MS);
    outcome = await read();
  }
  return outcome;
}
