import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  CronError,
  isExactTimeZone,
  isTimeZone,
  latestTimeMs,
  nextTimeMs,
  parseCron,
  zoneOffsetMs,
} from './cron-schedule.ts';

const at = (text: string): number => Date.parse(text);

/** The next times after `from`, in UTC. */
function times(schedule: string, from: string, count: number, zone = 'UTC'): readonly string[] {
  const parsed = parseCron(schedule);
  const found: string[] = [];
  let afterMs = at(from);
  while (found.length < count) {
    const next = nextTimeMs(parsed, afterMs, zone);
    if (next === undefined) break;
    found.push(new Date(next).toISOString().slice(0, 16));
    afterMs = next;
  }
  return found;
}

describe('a schedule', () => {
  it.each([
    ['* * * * *', '2026-01-01T00:00:30Z', ['2026-01-01T00:01', '2026-01-01T00:02']],
    ['*/15 3 * * *', '2026-01-01T03:20:00Z', ['2026-01-01T03:30', '2026-01-01T03:45', '2026-01-02T03:00']],
    ['5/20 * * * ?', '2026-01-01T00:00:00Z', ['2026-01-01T00:05', '2026-01-01T00:25', '2026-01-01T00:45']],
    ['0 0 1 Jan,jul *', '2026-01-01T00:00:00Z', ['2026-07-01T00:00', '2027-01-01T00:00']],
    ['30 10-12 * * mon-fri', '2026-01-02T12:00:00Z', ['2026-01-02T12:30', '2026-01-05T10:30']],
    // Both restrict the day: one of them must match.
    ['0 0 13 * 5', '2026-03-01T00:00:00Z', ['2026-03-06T00:00', '2026-03-13T00:00', '2026-03-20T00:00']],
    ['0 0 */2 * 5', '2026-03-01T00:00:00Z', ['2026-03-03T00:00', '2026-03-05T00:00', '2026-03-06T00:00']],
    ['0 0 29 2 *', '2026-03-01T00:00:00Z', ['2028-02-29T00:00']],
    ['@weekly', '2026-01-01T00:00:00Z', ['2026-01-04T00:00', '2026-01-11T00:00']],
    ['@every 1h30m', '2026-01-01T00:00:10Z', ['2026-01-01T01:30', '2026-01-01T03:00']],
  ])('%s after %s', (schedule, from, expected) => {
    expect(times(schedule, from, expected.length)).toEqual(expected);
  });

  it('has no time on 31 February', () => {
    expect(nextTimeMs(parseCron('0 0 31 2 *'), at('2026-01-01T00:00:00Z'), 'UTC')).toBeUndefined();
  });

  it.each([
    ['0 0 * *', 'expected exactly 5 fields, found 4: [0 0 * *]'],
    ['60 * * * *', 'end of range (60) above maximum (59): 60'],
    ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
    ['* * * * 7', 'end of range (7) above maximum (6): 7'],
    ['5-1 * * * *', 'beginning of range (5) beyond end of range (1): 5-1'],
    ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
    ['*/1/2 * * * *', 'too many slashes: */1/2'],
    ['*/0 * * * *', 'step of range should be a positive number: */0'],
    ['x * * * *', 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
    ['@often', 'unrecognized descriptor: @often'],
    ['@every soon', 'failed to parse duration @every soon: time: invalid duration "soon"'],
    ['@every 2562048h', 'failed to parse duration @every 2562048h: time: invalid duration "2562048h"'],
    ['TZ=Nowhere 0 * * * *', 'provided bad location Nowhere: unknown time zone Nowhere'],
  ])('%s is refused', (schedule, message) => {
    expect(() => parseCron(schedule)).toThrow(new CronError(message));
  });
});

describe('a schedule in a time zone', () => {
  const NEW_YORK = 'America/New_York';

  it('WC-17 follows the local time', () => {
    expect(times('0 9 * * *', '2026-07-01T00:00:00Z', 1, NEW_YORK)).toEqual(['2026-07-01T13:00']);
    expect(times('0 9 * * *', '2026-12-01T00:00:00Z', 1, NEW_YORK)).toEqual(['2026-12-01T14:00']);
    expect(times('CRON_TZ=Asia/Kolkata 30 9 * * *', '2026-12-01T00:00:00Z', 1)).toEqual(['2026-12-01T04:00']);
  });

  it('needs a zone with a name, as upstream', () => {
    expect(['Asia/Kolkata', 'UTC', '+05:30', '-01:00', 'Nowhere'].map(isTimeZone)).toEqual([
      ...[true, true],
      ...[false, false, false],
    ]);
  });

  it('has its own case of letters in a new CronJob, as upstream; a stored one is used as it is', () => {
    const exact = ['America/New_York', 'Asia/Kolkata', 'America/Argentina/ComodRivadavia', 'Etc/GMT+5', 'UTC', 'PRC'];
    expect(exact.filter((name) => !isExactTimeZone(name))).toEqual([]);
    const wrong = ['AMERICA/new_york', 'america/new_york', 'asia/kolkata', 'ASIA/KOLKATA', 'utc', 'Nowhere'];
    expect(wrong.filter(isExactTimeZone)).toEqual([]);
    expect(wrong.filter((name) => !isTimeZone(name))).toEqual(['Nowhere']);
  });

  it('keeps the formats of fifty names of zones at most', () => {
    const nameOf = (number: number): string =>
      'indian/maldives'.replace(/[a-z]/g, (letter, at: number) =>
        (number >> (at > 6 ? at - 1 : at)) & 1 ? letter.toUpperCase() : letter,
      );
    const made = vi.spyOn(Intl, 'DateTimeFormat');
    onTestFinished(() => made.mockRestore());
    const madeFor = (number: number): number => {
      const before = made.mock.calls.length;
      zoneOffsetMs(0, nameOf(number));
      return made.mock.calls.length - before;
    };
    for (let number = 0; number <= 50; number += 1) madeFor(number);
    expect([madeFor(0), madeFor(0)]).toEqual([1, 0]);
  });

  it('omits a time that does not exist on a day', () => {
    // The clocks are put forward at 02:00 on 8 March.
    expect(times('30 2 * * *', '2026-03-07T00:00:00Z', 3, NEW_YORK)).toEqual([
      '2026-03-07T07:30',
      '2026-03-09T06:30',
      '2026-03-10T06:30',
    ]);
  });

  it('has a time twice that exists twice', () => {
    // The clocks are put back at 02:00 on 1 November.
    expect(times('0 1 * * *', '2026-10-31T12:00:00Z', 3, NEW_YORK)).toEqual([
      '2026-11-01T05:00',
      '2026-11-01T06:00',
      '2026-11-02T06:00',
    ]);
  });

  it('continues on a day without midnight', () => {
    // Beirut, 29 March 2026: 00:00 becomes 01:00.
    expect(times('30 1 * * *', '2026-03-28T12:00:00Z', 2, 'Asia/Beirut')).toEqual([
      '2026-03-28T22:30',
      '2026-03-29T22:30',
    ]);
    expect(times('0 0 * * *', '2026-03-28T12:00:00Z', 1, 'Asia/Beirut')).toEqual(['2026-03-29T21:00']);
  });
});

describe('the latest time of a schedule', () => {
  const latest = (schedule: string, afterMs: string, untilMs: string): string | undefined => {
    const found = latestTimeMs(parseCron(schedule), { afterMs: at(afterMs), untilMs: at(untilMs) }, 'UTC');
    return found === undefined ? undefined : new Date(found).toISOString().slice(0, 16);
  };

  it.each([
    ['0 * * * *', '2016-05-19T10:00:10Z', '2016-05-19T15:01:00Z', '2016-05-19T15:00'],
    ['0 * * * *', '2016-05-19T10:00:00Z', '2016-05-19T10:59:59Z', undefined],
    ['0 * * * *', '2016-05-19T10:00:00Z', '2016-05-19T11:00:00Z', '2016-05-19T11:00'],
    ['* * * * *', '2016-05-19T10:00:00Z', '2019-05-19T11:00:30Z', '2019-05-19T11:00'],
    ['30 10,11,12 * * 1-5', '2016-05-19T10:30:00Z', '2016-05-20T16:30:00Z', '2016-05-20T12:30'],
    ['@every 1h', '2016-05-19T10:01:00Z', '2016-05-26T10:00:00Z', '2016-05-26T09:01'],
  ])('%s after %s until %s is %s', (schedule, afterMs, untilMs, expected) => {
    expect(latest(schedule, afterMs, untilMs)).toBe(expected);
  });
});
