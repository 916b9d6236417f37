/** Waiting for something outside this process, with a bound. */

export interface UntilOptions {
  /** Gives up after this. */
  readonly withinMs: number;
  /** Pause between looks. Absent: short at first, then growing. */
  readonly everyMs?: number;
  /** Said when it never became true. */
  readonly what?: string;
}

/** What is soon true is soon seen, and a long wait has a quarter of the looks. */
const FIRST_PAUSE_MS = 100;
const PAUSE_MS_MAX = 400;
const PAUSE_FACTOR = 1.25;

/**
 * Looks until `look` yields something other than undefined and false, and returns it. A look that throws counts as "not
 * yet"; the last error is the cause of the failure.
 */
export async function until<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  options: UntilOptions,
): Promise<T> {
  const deadlineMs = performance.now() + options.withinMs;
  let lastError: unknown;
  let pauseMs = options.everyMs ?? FIRST_PAUSE_MS;
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen;
      lastError = undefined;
    } catch (cause) {
      lastError = cause;
    }
    if (performance.now() >= deadlineMs) break;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (options.everyMs === undefined) pauseMs = Math.min(pauseMs * PAUSE_FACTOR, PAUSE_MS_MAX);
  }
  throw new Error(`${options.what ?? 'what was waited for'} did not come true within ${options.withinMs} ms`, {
    cause: lastError,
  });
}
