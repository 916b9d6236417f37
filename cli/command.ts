/** Input and output of a `nodekeeper` command. */
export interface CommandIo {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly nowMs: number;
  /** Writes one line to standard output. */
  readonly print: (line: string) => void;
  /** Writes one line to standard error, beside what a script reads. Absent: no one reads it. */
  readonly note?: (line: string) => void;
}

/** An expected failure of a command: exit code 1 without a stack trace. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  /** What the user can do next. */
  readonly next: string;
  constructor(message: string, next: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.next = next;
  }
}
