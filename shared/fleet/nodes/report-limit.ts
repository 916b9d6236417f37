/**
 * Bounds what one process reports about the same problem: one report per subject within ten minutes, and at most a
 * hundred subjects. Beyond that a problem is only counted. Bad objects can then fill neither the log nor the ledger.
 */

/** Time between two reports about one subject. Milliseconds. */
export const REPORT_INTERVAL_MS = 600_000;
/** Subjects that are reported within one interval. */
export const REPORTED_SUBJECTS_MAX = 100;

/**
 * report: report this subject. limit: one subject too many, which is reported once per interval. skip: was reported, or
 * the limit was.
 */
export type ReportVerdict = 'report' | 'limit' | 'skip';

export interface ReportLimit {
  verdictOn(subject: string, nowMs: number): ReportVerdict;
}

export function reportLimit(): ReportLimit {
  const reportedAtMs = new Map<string, number>();
  let limitReportedAtMs: number | undefined;
  // A time in the future was noted before the clock was set back.
  const isRecent = (atMs: number | undefined, nowMs: number): boolean =>
    atMs !== undefined && Math.abs(nowMs - atMs) < REPORT_INTERVAL_MS;
  return {
    verdictOn(subject, nowMs) {
      if (isRecent(reportedAtMs.get(subject), nowMs)) return 'skip';
      for (const [each, atMs] of reportedAtMs) if (!isRecent(atMs, nowMs)) reportedAtMs.delete(each);
      if (reportedAtMs.size < REPORTED_SUBJECTS_MAX) {
        reportedAtMs.set(subject, nowMs);
        return 'report';
      }
      if (isRecent(limitReportedAtMs, nowMs)) return 'skip';
      limitReportedAtMs = nowMs;
      return 'limit';
    },
  };
}
