/** Connections of the agent to the API on which both sides send messages. */
export interface SessionConnection extends AsyncIterable<Uint8Array> {
  /** Resolves when the next message may be sent; false if the connection has closed. */
  send(message: Uint8Array): Promise<boolean>;
  /** Closes after what was sent. */
  close(): void;
  /** Ends it at once, also when it is not read. */
  destroy(): void;
  readonly closed: Promise<void>;
}

export type SessionOpening =
  | { readonly kind: 'opened'; readonly connection: SessionConnection }
  /** An answer without an upgrade. */
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'failed'; readonly cause: unknown };

export interface SessionApi {
  open(path: string): Promise<SessionOpening>;
}
