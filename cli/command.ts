/** What the commands of `nodekeeper` share: where they write, and how they fail. */
export interface CommandIo {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly nowMs: number;
  /** One line to standard output. */
  readonly print: (line: string) => void;
}

/** What went wrong, and what to do next. Ends the command with 1 and no stack. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly next: string;
  constructor(message: string, next: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.next = next;
  }
}
