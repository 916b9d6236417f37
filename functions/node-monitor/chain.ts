/**
 * The chain of node-monitor's ticks. EventBridge Scheduler fires at any second of a minute, so it cannot be the clock
 * of ticks of five seconds ("Schedule types", EventBridge Scheduler User Guide). Each tick starts the next one instead.
 *
 *   a message arrives ── claim the slot of this moment ──lost── delete the message, send nothing
 *                              │ won
 *                        send the message of the next slot, delayed to its start ── effects ── delete the message
 *
 *   a watchdog message, each minute ── claimed within two periods? ──yes── delete it
 *                                              │ no
 *                                        as any other message
 *
 * Why the chain does not multiply. Only the winner of a slot sends, and it sends one message. A slot has one winner, so
 * at most one message is sent per slot, whatever arrives. Each message runs for the slot in which it arrives, and is
 * addressed to the start of the slot after the claimed one. So two messages on time meet in the same slot, where one of
 * them loses and ends. A message that is late, doubled, or sent twice because a response was lost only adds a loser.
 *
 * Why it does not end. A message is deleted only when its successor is in the queue or another tick has its slot:
 *   - The tick fails before its claim is decided, or cannot send: its own message is returned to the queue until the
 *     next slot (`keepsChain`). The returned message is the one that was there, so returning cannot multiply.
 *   - The response to the claim is lost, and the repeated claim is refused by itself: the claim carries the id of its
 *     tick, so it counts as won (fleet-store.ts).
 *   - The function is killed, between claim and send too: SQS delivers its message again after the visibility timeout
 *     (cdk/lib/tick.ts), 40 s. It claims the slot of that moment.
 *   - The clock of the receiver is behind that of the sender: it may claim a slot two seconds before it begins.
 *   - The message is lost, or was received too often: the watchdog's message restarts the chain. It comes in each
 *     minute, at any second of it, so a chain is dead for less than two minutes.
 *
 * A gap of over half a grace period closes the gate at the next tick (shared/fleet/gate.ts).
 *
 * Lambda ends a chain of a function and a queue after about 16 invocations, unless the function's recursive loop
 * detection is `Allow` (AWS Lambda Developer Guide, "Use Lambda recursive loop detection to prevent infinite loops").
 */

import { type QueueConnection, sqsCaller } from '../../shared/aws/sqs.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { secondsToSlot, TickFault } from '../../shared/ticks/tick.ts';

/** The message of the next slot could not be sent. */
export class ChainBroken extends Error {
  override readonly name = 'ChainBroken';
  readonly code = 'chain-broken';
}

/** The winner of a slot sends the message of the next one, before it applies effects. Returns the fault, if any. */
export async function sendNextTick(
  { tickQueue, clock, policy }: Pick<WorkDependencies, 'clock' | 'policy'> & { readonly tickQueue?: TickQueue },
  slot: number,
): Promise<ChainBroken | undefined> {
  if (tickQueue === undefined) return undefined;
  const nowMs = clock.nowMs();
  const next = slot + 1;
  try {
    await tickQueue.send(next, { delaySeconds: secondsToSlot(next, nowMs, policy.nodeMonitorPeriodSeconds), nowMs });
    return undefined;
  } catch (cause) {
    return new ChainBroken('the message of the next tick could not be sent', { cause });
  }
}

/** Whether a tick that ended with this error has a successor: it won its slot, and sent the message. */
export const keepsChain = (error: unknown): boolean =>
  error instanceof TickFault && !error.errors.some((fault) => fault instanceof ChainBroken);

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
