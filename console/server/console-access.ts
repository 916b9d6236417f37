/** The API that the console reads, and the credential it forwards with. */
export interface ConsoleAccess {
  /** Base URL of the API. */
  readonly url: string;
  /** PEM text. Absent: the certificate authorities of the system. */
  readonly ca?: string;
  /** Bearer token. It never reaches the browser. */
  readonly token: string;
}

/** Reads the credential again, after a 401: tokens of exec plugins expire. */
export type RenewAccess = () => ConsoleAccess;

/** A refusal of the console itself. The browser receives `status` and the message as text. */
export class ConsoleError extends Error {
  override readonly name = 'ConsoleError';
  /** HTTP status. */
  readonly status: number;
  constructor(status: number, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.status = status;
  }
}
