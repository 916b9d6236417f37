/**
 * Kubernetes timestamps as text, by arithmetic: rules have no Date. RFC 3339 in UTC; written with whole seconds, as
 * metav1.Time is.
 */
const MS_PER_DAY = 86_400_000;
const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

const isLeapYear = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;

/** Days from 1970-01-01 to the first of January of a year. */
function daysBeforeYear(year: number): number {
  const past = year - 1;
  const leapDays = Math.floor(past / 4) - Math.floor(past / 100) + Math.floor(past / 400);
  return (year - 1970) * 365 + leapDays - 477; // 477 leap days lie before 1970
}

const daysInMonth = (year: number, monthIndex: number): number =>
  (MONTH_DAYS[monthIndex] ?? 0) + (monthIndex === 1 && isLeapYear(year) ? 1 : 0);

const padded = (value: number, digits: number): string => String(value).padStart(digits, '0');

/**
 * Milliseconds since the Unix epoch as `2026-01-31T23:59:59Z`; fractions of a second are dropped.
 * Years 1 to 9999.
 */
export function rfc3339(epochMs: number): string {
  const days = Math.floor(epochMs / MS_PER_DAY);
  const secondOfDay = Math.floor((epochMs - days * MS_PER_DAY) / 1_000);
  let year = 1970 + Math.floor(days / 365.2425);
  if (daysBeforeYear(year) > days) year -= 1;
  if (daysBeforeYear(year + 1) <= days) year += 1;
  let day = days - daysBeforeYear(year);
  let month = 0;
  while (month < 11 && day >= daysInMonth(year, month)) {
    day -= daysInMonth(year, month);
    month += 1;
  }
  const date = `${padded(year, 4)}-${padded(month + 1, 2)}-${padded(day + 1, 2)}`;
  const hour = padded(Math.floor(secondOfDay / 3_600), 2);
  const minute = padded(Math.floor(secondOfDay / 60) % 60, 2);
  return `${date}T${hour}:${minute}:${padded(secondOfDay % 60, 2)}Z`;
}

/**
 * The same, rounded up to a whole second. For a time from which something is counted down (a taint's timeAdded): what
 * was rounded down would fall due up to a second early.
 */
export const rfc3339RoundedUp = (epochMs: number): string => rfc3339(Math.ceil(epochMs / 1_000) * 1_000);

const PATTERN = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/**
 * Milliseconds since the Unix epoch of an RFC 3339 text (microseconds of MicroTime are dropped); undefined when it is
 * none.
 */
export function parseRfc3339(text: string): number | undefined {
  const match = PATTERN.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month - 1)) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const offsetHours = Number(match[9] ?? 0);
  const offsetMinutes = Number(match[10] ?? 0);
  if (offsetHours > 23 || offsetMinutes > 59) return undefined;
  let days = daysBeforeYear(year) + day - 1;
  for (let index = 0; index < month - 1; index += 1) days += daysInMonth(year, index);
  const fractionMs = Math.floor(Number(`0.${match[7] ?? '0'}`) * 1_000 + 1e-6);
  const offsetMs = (match[8] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60_000;
  return days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1_000 + fractionMs - offsetMs;
}
