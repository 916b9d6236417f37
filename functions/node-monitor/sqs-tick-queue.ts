/**
 * The tick queue in Amazon SQS: SendMessage and ChangeMessageVisibility. If a response is lost, the message is sent again
 * and exists twice: the claim of the slot decides which of them acts.
 */

import { type QueueConnection, sqsCaller } from '../../shared/aws/connection/sqs.ts';
import type { TickQueue } from './tick-queue.ts';

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
