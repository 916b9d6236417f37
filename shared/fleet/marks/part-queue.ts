/** The queue of parts of work for other processes. A message may be delivered late, twice, or not at all. */
export interface PartQueue {
  /** Sends messages. Returns the positions of those that were not accepted. Never rejects. */
  send(bodies: readonly string[], nowMs: number): Promise<readonly number[]>;
  /**
   * Hides a received message for whole seconds, after which it is delivered again.
   * @throws Error when the queue did not accept it
   */
  postpone(receiptHandle: string, at: { readonly delaySeconds: number; readonly nowMs: number }): Promise<void>;
}
