import { describe, expect, it } from 'vitest';
import { parseSchedule } from './schedule-expression.ts';

const at = (iso: string) => Date.parse(iso);
const fires = (expression: string, iso: string) => parseSchedule(expression, 'Tick').firesAt(at(iso));

describe('schedule expressions', () => {
  it.each([
    ['rate(1 minute)', '2026-11-20T17:44:00Z', true],
    ['rate(5 minutes)', '2026-11-20T17:45:00Z', true],
    ['rate(5 minutes)', '2026-11-20T17:44:00Z', false],
    ['rate(1 hour)', '2026-11-20T17:00:00Z', true],
    ['rate(1 hour)', '2026-11-20T17:30:00Z', false],
    ['rate(1 day)', '2026-11-20T00:00:00Z', true],
    ['cron(* * * * ? *)', '2026-11-20T17:44:00Z', true],
    ['cron(0/15 * * * ? *)', '2026-11-20T17:45:00Z', true],
    ['cron(0/15 * * * ? *)', '2026-11-20T17:44:00Z', false],
    ['cron(0 3 ? * MON-FRI *)', '2026-11-20T03:00:00Z', true],
    ['cron(0 3 ? * MON-FRI *)', '2026-11-21T03:00:00Z', false],
    ['cron(10,20 3 1 JAN,NOV ? 2026)', '2026-11-01T03:20:00Z', true],
    ['cron(10,20 3 1 JAN,NOV ? 2026)', '2026-12-01T03:20:00Z', false],
    ['cron(*/2 * * * ? *)', '2026-11-20T17:44:00Z', true],
  ])('%s at %s: %s', (expression, iso, expected) => {
    expect(fires(expression, iso)).toBe(expected);
  });

  it.each([['rate(0 minutes)'], ['at(2026-11-20T00:00:00)'], ['cron(0 0 L * ? *)'], ['cron(* * *)'], ['soon']])(
    'refuses %s by name',
    (expression) => {
      expect(() => parseSchedule(expression, 'Tick')).toThrow(`Tick: schedule ${expression}`);
    },
  );
});
