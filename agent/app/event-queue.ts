/**
 * Events to be sent, within bounds, and recent events with their counts. Source: client-go
 * tools/record/events_cache.go.
 */
import type { AgentTime } from '../ports/time.ts';
import { type EventSubject, eventName, type RecordedEvent } from '../rules/event-request.ts';
import { type SpamBucket, spendEventToken } from '../rules/event-spam.ts';
import type { NodeEvent } from '../rules/node-event.ts';

/** Events that wait to be sent. */
const WAITING_MAX = 200;
/** Events that a repetition can be added to. Upstream keeps 4096, on machines with more memory. */
const RECENT_MAX = 500;
/** A later repetition is a new event, because the server deletes events after an hour. Milliseconds. */
const REPETITION_MS = 3_000_000;
const MESSAGE_LENGTH_MAX = 1_024;

export interface QueuedEvent extends RecordedEvent {
  lastAtMs: number;
  count: number;
  isCreated: boolean;
  /** When it was last recorded. Monotonic milliseconds. */
  recordedAtMs: number;
  /** Failed attempts in a row to send it. */
  failedAttempts: number;
}

export class EventQueue {
  readonly #time: Pick<AgentTime, 'nowMs' | 'monotonicMs'>;
  readonly #recent = new Map<string, QueuedEvent>();
  readonly #waiting = new Set<QueuedEvent>();
  /** By uid of the object. */
  readonly #spamBuckets = new Map<string, SpamBucket>();
  #createdEvents = 0;

  constructor(time: Pick<AgentTime, 'nowMs' | 'monotonicMs'>) {
    this.#time = time;
  }

  /** Adds an event, or counts the repetition of a recent one. */
  add(subject: EventSubject, { type, reason, message }: NodeEvent): 'added' | 'droppedAsSpam' | 'queueFull' {
    const nowMs = this.#time.nowMs();
    const monotonicMs = this.#time.monotonicMs();
    const event = { type, reason, message: message.slice(0, MESSAGE_LENGTH_MAX) };
    const key = [subject.uid, type, reason, event.message].join('\n');
    if (!this.#isBelowSpamLimit(subject.uid, monotonicMs)) return 'droppedAsSpam';
    const recent = this.#recent.get(key);
    const isRepetition = recent !== undefined && monotonicMs - recent.recordedAtMs < REPETITION_MS;
    const queued = isRepetition ? recent : this.#newEvent(subject, event, nowMs, monotonicMs);
    if (!this.#waiting.has(queued) && this.#waiting.size >= WAITING_MAX) return 'queueFull';
    if (isRepetition) {
      queued.count += 1;
      queued.lastAtMs = nowMs;
      queued.recordedAtMs = monotonicMs;
    }
    setNewest(this.#recent, key, queued);
    this.#waiting.add(queued);
    return 'added';
  }

  /** A copy, oldest first. */
  waiting(): readonly QueuedEvent[] {
    return [...this.#waiting];
  }

  isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  remove(event: QueuedEvent): void {
    this.#waiting.delete(event);
  }

  #isBelowSpamLimit(uid: string, monotonicMs: number): boolean {
    const { bucket, isAllowed } = spendEventToken(this.#spamBuckets.get(uid), monotonicMs);
    setNewest(this.#spamBuckets, uid, bucket);
    return isAllowed;
  }

  #newEvent(subject: EventSubject, event: NodeEvent, nowMs: number, monotonicMs: number): QueuedEvent {
    this.#createdEvents += 1;
    return {
      name: eventName(subject.name, nowMs, this.#createdEvents),
      subject,
      event,
      firstAtMs: nowMs,
      lastAtMs: nowMs,
      recordedAtMs: monotonicMs,
      count: 1,
      isCreated: false,
      failedAttempts: 0,
    };
  }
}

/** Sets an entry as the newest one. Above the limit the entry that was not set for longest is deleted. */
function setNewest<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > RECENT_MAX && oldest !== undefined) map.delete(oldest);
}
