/** Durations as scenario files write them: `90s`, `5m`, `1h30m`, `250ms`, `-8h`. */
const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
const DURATION = /^(-)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?$/;

/** Milliseconds; undefined for a text that is no duration. A bare 0 is one, any other number lacks its unit. */
export function parseDurationMs(text: string): number | undefined {
  if (text === '0') return 0;
  const match = DURATION.exec(text);
  if (match === null || match.slice(2).every((part) => part === undefined)) return undefined;
  const [, sign, hours, minutes, seconds, millis] = match;
  const sum =
    Number(hours ?? 0) * UNITS_MS['h']! +
    Number(minutes ?? 0) * UNITS_MS['m']! +
    Number(seconds ?? 0) * UNITS_MS['s']! +
    Number(millis ?? 0);
  const rounded = Math.round(sum);
  return sign === '-' ? -rounded : rounded;
}

/** The same in the fewest words: `1m45s`, `0s`, `-8h`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0s';
  let left = Math.abs(Math.round(milliseconds));
  let text = milliseconds < 0 ? '-' : '';
  for (const [unit, unitMs] of Object.entries(UNITS_MS)) {
    const count = Math.floor(left / unitMs);
    left -= count * unitMs;
    if (count > 0) text += `${count}${unit}`;
  }
  return text;
}
