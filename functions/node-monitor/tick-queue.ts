/** The queue of the messages that start ticks. */
export interface TickQueue {
  /**
   * Sends the message of a slot, to be delivered after whole seconds, 0 to 900. It may be delivered twice.
   * @throws Error when the queue did not accept it
   */
  send(slot: number, at: { readonly delaySeconds: number; readonly nowMs: number }): Promise<void>;
  /**
   * Hides a received message for whole seconds, after which it is delivered again.
   * @throws Error when the queue did not accept it
   */
  postpone(receiptHandle: string, at: { readonly delaySeconds: number; readonly nowMs: number }): Promise<void>;
}
