import { type QueueConnection, sqsCaller } from '../../shared/aws/sqs.ts';

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

/**
 * The tick queue in Amazon SQS: SendMessage and ChangeMessageVisibility. If a response is lost, the message is sent
 * again and exists twice: the claim of the slot decides which of them acts.
 */
export function sqsTickQueue(connection: QueueConnection): TickQueue {
  const call = sqsCaller(connection);
  const sendMessage = call('SendMessage');
  const changeVisibility = call('ChangeMessageVisibility');
  return {
    async send(slot, { delaySeconds, nowMs }) {
      await sendMessage({ MessageBody: JSON.stringify({ slot }), DelaySeconds: delaySeconds }, nowMs);
    },
    async postpone(receiptHandle, { delaySeconds, nowMs }) {
      await changeVisibility({ ReceiptHandle: receiptHandle, VisibilityTimeout: delaySeconds }, nowMs);
    },
  };
}
