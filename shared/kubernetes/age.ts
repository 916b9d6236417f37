import { parseTimeMs } from './time.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

const pair = (whole: number, unit: string, rest: number, restUnit: string): string =>
  rest === 0 ? `${whole}${unit}` : `${whole}${unit}${rest}${restUnit}`;

/** A duration as kubectl shows ages: two units while small, one when large, nothing for a zero second part. */
export function formatAge(durationMs: number): string {
  const seconds = Math.trunc(durationMs / 1_000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  const minutes = Math.floor(seconds / MINUTE);
  if (minutes < 10) return pair(minutes, 'm', seconds % MINUTE, 's');
  if (minutes < 3 * 60) return `${minutes}m`;
  const hours = Math.floor(seconds / HOUR);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(seconds / DAY);
  if (days < 8) return pair(days, 'd', hours % 24, 'h');
  if (seconds < 2 * YEAR) return `${days}d`;
  const years = Math.floor(seconds / YEAR);
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`;
}

/** Age of a timestamp as a table cell; `<unknown>` where there is none. */
export function ageSince(timestamp: string | null | undefined, nowMs: number): string {
  const sinceMs = parseTimeMs(timestamp);
  return sinceMs === undefined ? '<unknown>' : formatAge(nowMs - sinceMs);
}
