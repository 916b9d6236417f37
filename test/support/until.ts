/** Waiting for something outside this process, with a bound. */

export interface UntilOptions {
  /** Gives up after this. */
  readonly withinMs: number;
  /** Pause between looks. */
  readonly everyMs?: number;
  /** Said when it never became true. */
  readonly what?: string;
}

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
  for (;;) {
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen;
      lastError = undefined;
    } catch (cause) {
      lastError = cause;
    }
    if (performance.now() >= deadlineMs) break;
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 100));
  }
  throw new Error(`${options.what ?? 'what was waited for'} did not come true within ${options.withinMs} ms`, {
    cause: lastError,
  });
}
