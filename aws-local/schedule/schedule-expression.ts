import { StartError } from '../../shared/host/start-error.ts';

/**
 * When a schedule of EventBridge Scheduler fires: `rate(n minutes|hours|days)` or `cron(…)` in UTC, in whole minutes.
 * A rate counts from the epoch here: it fires on round minutes whenever the local mode was started; in AWS it
 * counts from the schedule's creation.
 */
export interface Schedule {
  /** True when the minute that begins at this moment is one to fire in. */
  firesAt(minuteStartMs: number): boolean;
}

export const MINUTE_MS = 60_000;
const UNIT_MINUTES: Record<string, number> = { minute: 1, hour: 60, day: 1_440 };
const DAY_NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const MONTH_NAMES = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];

/** @throws StartError on an expression it does not understand. */
export function parseSchedule(expression: string, where: string): Schedule {
  const rate = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(expression);
  if (rate !== null) {
    const everyMs = Number(rate[1]) * (UNIT_MINUTES[rate[2] ?? ''] ?? 0) * MINUTE_MS;
    if (everyMs > 0) return { firesAt: (minuteStartMs) => minuteStartMs % everyMs === 0 };
  }
  const cron = /^cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)$/.exec(expression);
  if (cron === null) throw new StartError(`${where}: schedule ${expression} is not supported here`);
  const fail = () => new StartError(`${where}: schedule ${expression} is not supported here`);
  const [minute, hour, dayOfMonth, month, dayOfWeek, year] = [
    field(cron[1]!, 0, [], fail),
    field(cron[2]!, 0, [], fail),
    field(cron[3]!, 1, [], fail),
    field(cron[4]!, 1, MONTH_NAMES, fail),
    field(cron[5]!, 1, DAY_NAMES, fail),
    field(cron[6]!, 0, [], fail),
  ];
  return {
    firesAt: (minuteStartMs) => {
      const at = new Date(minuteStartMs);
      return (
        minute(at.getUTCMinutes()) &&
        hour(at.getUTCHours()) &&
        dayOfMonth(at.getUTCDate()) &&
        month(at.getUTCMonth() + 1) &&
        dayOfWeek(at.getUTCDay() + 1) &&
        year(at.getUTCFullYear())
      );
    },
  };
}

/** `*`, `?`, lists, ranges and steps; not L, W and #. Names count from `first`. */
function field(
  text: string,
  first: number,
  names: readonly string[],
  fail: () => StartError,
): (value: number) => boolean {
  const number = (word: string) => {
    const named = names.indexOf(word.toUpperCase());
    const value = named === -1 ? Number(word) : named + first;
    if (!Number.isInteger(value)) throw fail();
    return value;
  };
  const tests = text.split(',').map((part) => {
    const [span = '', step] = part.split('/');
    const every = step === undefined ? 1 : number(step);
    if (every < 1) throw fail();
    if (span === '*' || span === '?') return (value: number) => (value - first) % every === 0;
    const [from = '', to] = span.split('-');
    const low = number(from);
    const high = to !== undefined ? number(to) : step === undefined ? low : Number.POSITIVE_INFINITY;
    return (value: number) => value >= low && value <= high && (value - low) % every === 0;
  });
  return (value) => tests.some((test) => test(value));
}
