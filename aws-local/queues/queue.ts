import { createHash, randomUUID } from 'node:crypto';

/**
 * A standard SQS queue in memory. Time is an argument, so a test moves it and the local mode passes the wall clock.
 * At-least-once as there: a message that is not deleted within the visibility timeout is delivered again, until it has
 * been received `maxReceiveCount` times; then it moves to the dead-letter queue.
 */
export interface QueueSettings {
  readonly name: string;
  /** DelaySeconds of the queue, for messages that bring none. */
  readonly delaySeconds: number;
  readonly visibilityTimeoutSeconds: number;
  /** Counted from the moment of sending, delay included. */
  readonly retentionSeconds: number;
  readonly redrive?: { readonly maxReceiveCount: number; readonly deadLetters: LocalQueue };
}

export interface QueueMessage {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  /** The header of the request that sent the message: attribute AWSTraceHeader. */
  readonly traceHeader: string | undefined;
  readonly md5OfBody: string;
  readonly sentAtMs: number;
  readonly firstReceivedAtMs: number;
  readonly receiveCount: number;
}

interface StoredMessage {
  readonly messageId: string;
  readonly body: string;
  readonly traceHeader: string | undefined;
  readonly sentAtMs: number;
  visibleAtMs: number;
  firstReceivedAtMs: number | undefined;
  receiveCount: number;
  receiptHandle: string | undefined;
}

/** Far above what a local cluster produces; a queue that reaches it is being filled by a fault. */
const MESSAGES_MAX = 100_000;

export class LocalQueue {
  readonly settings: QueueSettings;
  readonly counters = { sent: 0, received: 0, deleted: 0, expired: 0, deadLettered: 0 };
  #messages: StoredMessage[] = [];
  #listeners: (() => void)[] = [];

  constructor(settings: QueueSettings) {
    this.settings = settings;
  }

  /** Called whenever something may have become receivable earlier than was known. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  send(
    body: string,
    nowMs: number,
    options: { readonly delaySeconds?: number; readonly messageId?: string; readonly traceHeader?: string } = {},
  ): string {
    if (this.#messages.length >= MESSAGES_MAX)
      throw new Error(`queue ${this.settings.name} holds ${MESSAGES_MAX} messages`);
    const messageId = options.messageId ?? randomUUID();
    this.#messages.push({
      messageId,
      body,
      traceHeader: options.traceHeader,
      sentAtMs: nowMs,
      visibleAtMs: nowMs + (options.delaySeconds ?? this.settings.delaySeconds) * 1_000,
      firstReceivedAtMs: undefined,
      receiveCount: 0,
      receiptHandle: undefined,
    });
    this.counters.sent += 1;
    this.#changed();
    return messageId;
  }

  /** Up to `max` visible messages, oldest visibility first; each is hidden for the visibility timeout. */
  receive(max: number, nowMs: number): QueueMessage[] {
    this.#expire(nowMs);
    const received: QueueMessage[] = [];
    const visible = this.#messages.filter((message) => message.visibleAtMs <= nowMs);
    visible.sort((a, b) => a.visibleAtMs - b.visibleAtMs);
    for (const message of visible) {
      if (received.length === max) break;
      const { redrive } = this.settings;
      if (redrive !== undefined && message.receiveCount >= redrive.maxReceiveCount) {
        this.#remove(message);
        this.counters.deadLettered += 1;
        redrive.deadLetters.send(message.body, nowMs, { messageId: message.messageId });
        continue;
      }
      message.receiveCount += 1;
      message.firstReceivedAtMs ??= nowMs;
      message.visibleAtMs = nowMs + this.settings.visibilityTimeoutSeconds * 1_000;
      message.receiptHandle = randomUUID();
      this.counters.received += 1;
      received.push({
        messageId: message.messageId,
        receiptHandle: message.receiptHandle,
        body: message.body,
        traceHeader: message.traceHeader,
        md5OfBody: createHash('md5').update(message.body).digest('hex'),
        sentAtMs: message.sentAtMs,
        firstReceivedAtMs: message.firstReceivedAtMs,
        receiveCount: message.receiveCount,
      });
    }
    return received;
  }

  /** False when the handle is no longer the latest one: the message has been delivered again meanwhile. */
  delete(receiptHandle: string): boolean {
    const message = this.#messages.find((candidate) => candidate.receiptHandle === receiptHandle);
    if (message === undefined) return false;
    this.#remove(message);
    this.counters.deleted += 1;
    return true;
  }

  /** Hides a received message for another time from now on. `unknown`: the handle is no longer the latest one. */
  changeVisibility(
    receiptHandle: string,
    timeoutSeconds: number,
    nowMs: number,
  ): 'changed' | 'unknown' | 'notInFlight' {
    const message = this.#messages.find((candidate) => candidate.receiptHandle === receiptHandle);
    if (message === undefined) return 'unknown';
    if (message.visibleAtMs <= nowMs) return 'notInFlight';
    message.visibleAtMs = nowMs + timeoutSeconds * 1_000;
    this.#changed();
    return 'changed';
  }

  /** When the next message becomes visible; undefined while the queue is empty. */
  nextVisibleAtMs(): number | undefined {
    let next: number | undefined;
    for (const message of this.#messages) {
      if (next === undefined || message.visibleAtMs < next) next = message.visibleAtMs;
    }
    return next;
  }

  depth(nowMs: number): { readonly visible: number; readonly hidden: number } {
    const visible = this.#messages.filter((message) => message.visibleAtMs <= nowMs).length;
    return { visible, hidden: this.#messages.length - visible };
  }

  #expire(nowMs: number): void {
    const oldestMs = nowMs - this.settings.retentionSeconds * 1_000;
    const before = this.#messages.length;
    this.#messages = this.#messages.filter((message) => message.sentAtMs > oldestMs);
    this.counters.expired += before - this.#messages.length;
  }

  #remove(message: StoredMessage): void {
    this.#messages.splice(this.#messages.indexOf(message), 1);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
