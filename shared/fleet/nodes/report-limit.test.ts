import { expect, it } from 'vitest';
import { REPORT_INTERVAL_MS, REPORTED_SUBJECTS_MAX, reportLimit } from './report-limit.ts';

it('reports a subject once per interval', () => {
  const limit = reportLimit();
  expect(limit.verdictOn('a', 0)).toBe('report');
  expect(limit.verdictOn('a', REPORT_INTERVAL_MS - 1)).toBe('skip');
  expect(limit.verdictOn('b', REPORT_INTERVAL_MS - 1)).toBe('report');
  expect(limit.verdictOn('a', REPORT_INTERVAL_MS)).toBe('report');
});

it('reports a limited number of subjects per interval, and the limit itself once', () => {
  const limit = reportLimit();
  const verdicts = Array.from({ length: 2 * REPORTED_SUBJECTS_MAX }, (_, index) => limit.verdictOn(`n-${index}`, 1));
  expect(verdicts.filter((each) => each === 'report')).toHaveLength(REPORTED_SUBJECTS_MAX);
  expect(verdicts.filter((each) => each === 'limit')).toHaveLength(1);
  expect(limit.verdictOn('later', REPORT_INTERVAL_MS)).toBe('skip');
  expect(limit.verdictOn('later', REPORT_INTERVAL_MS + 1)).toBe('report');
});

it('reports again after the clock was set back by more than an interval', () => {
  const limit = reportLimit();
  expect(limit.verdictOn('a', 2 * REPORT_INTERVAL_MS)).toBe('report');
  expect(limit.verdictOn('a', 0)).toBe('report');
});
