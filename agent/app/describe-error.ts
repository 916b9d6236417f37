/** The text of a caught value, for logs. */
export const describeError = (error: unknown): string => (error instanceof Error ? error.message : String(error));
