/**
 * Records events about the Node and its pods. Source: client-go tools/record (event.go, events_cache.go).
 *
 *   record → spam limit → repetition of a recent event, or a new one → queue → POST or PATCH
 *
 * Equal events about one object are one Event with a count. Recording never waits: events are queued within bounds, and
 * an event that cannot be sent in time is dropped and counted.
 */
import { defined } from '../../shared/defined.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime } from '../ports/time.ts';
import { type EventSubject, eventOutcome, eventRequest } from '../rules/event-request.ts';
import { describeAnswer } from '../rules/kube-answer.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { waitAtMost } from './bounded-wait.ts';
import { EventQueue, type QueuedEvent } from './event-queue.ts';

/** Attempts to send one event, and the wait between them (maxTriesPerEvent, sleepDuration). */
const ATTEMPTS_MAX = 12;
const RETRY_WAIT_MS = 10_000;
const IDLE_MS = 60_000;
/** Passes of one flush over the queue. Events that are recorded during a flush are sent by it, within this bound. */
const FLUSH_PASSES_MAX = 20;
/** Time limit of the last flush, when the agent stops. Later events are lost. Milliseconds. */
const LAST_FLUSH_MS = 2_000;

export const EVENTS_DROPPED_METRIC = 'nodekeeper_agent_events_dropped_total';

export interface EventRecorderDependencies {
  readonly nodeName: string;
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: AgentMeter;
}

export interface EventRecorder {
  aboutNode(event: NodeEvent): void;
  aboutPod(pod: KubePod, event: NodeEvent): void;
  about(subject: EventSubject, event: NodeEvent): void;
  /** Sends queued events until stopped, then the rest within two seconds. */
  run(stop: AbortSignal): Promise<void>;
  /**
   * Sends the queued events, and those that are recorded meanwhile. An event that could not be sent stays for the next
   * flush. True if the queue is empty afterwards.
   */
  flush(stop?: AbortSignal): Promise<boolean>;
  /** Sends the queued events within two seconds, before the machine shuts down. */
  drain(): Promise<void>;
}

export function createEventRecorder(dependencies: EventRecorderDependencies): EventRecorder {
  const { nodeName, time, meter } = dependencies;
  const queue = new EventQueue(time);
  const sender = new EventSender(queue, dependencies);
  let wake = new AbortController();

  function record(subject: EventSubject, event: NodeEvent): void {
    const outcome = queue.add(subject, event);
    if (outcome === 'added') wake.abort();
    else meter.count(EVENTS_DROPPED_METRIC, { reason: outcome === 'queueFull' ? 'queue' : 'spam' });
  }

  return {
    // The uid of a Node in events is its name, as kubelets write it. kubectl looks for either.
    aboutNode: (event) => record({ kind: 'Node', namespace: '', name: nodeName, uid: nodeName }, event),
    aboutPod({ metadata: { namespace = '', name = '', uid = '' } }, event) {
      record({ kind: 'Pod', namespace, name, uid }, event);
    },
    about: record,
    flush: (stop) => sender.flush(stop),
    drain: () => sender.drain(),
    async run(stop) {
      while (!stop.aborted) {
        wake = new AbortController();
        const isEmpty = await sender.flush(stop);
        if (isEmpty) await time.sleep(IDLE_MS, AbortSignal.any([stop, wake.signal]));
        else await time.sleep(RETRY_WAIT_MS, stop);
      }
      await sender.drain();
    },
  };
}

class EventSender {
  readonly #queue: EventQueue;
  readonly #dependencies: EventRecorderDependencies;
  /** The newest flush. Two concurrent flushes would send the same events. */
  #flushing: Promise<unknown> = Promise.resolve();

  constructor(queue: EventQueue, dependencies: EventRecorderDependencies) {
    this.#queue = queue;
    this.#dependencies = dependencies;
  }

  flush(stop?: AbortSignal): Promise<boolean> {
    const flushed = this.#flushing.then(() => this.#sendWaiting(stop));
    this.#flushing = flushed.catch(() => undefined);
    return flushed;
  }

  async drain(): Promise<void> {
    if (this.#queue.isEmpty()) return;
    const over = new AbortController();
    await waitAtMost(this.#dependencies.time, LAST_FLUSH_MS, this.flush(over.signal));
    over.abort();
  }

  async #sendWaiting(stop: AbortSignal | undefined): Promise<boolean> {
    const failed = new Set<QueuedEvent>();
    for (let pass = 0; pass < FLUSH_PASSES_MAX; pass += 1) {
      const due = this.#queue.waiting().filter((event) => !failed.has(event));
      if (due.length === 0) break;
      for (const event of due) {
        if (stop?.aborted) return this.#queue.isEmpty();
        if (!(await this.#send(event, stop))) failed.add(event);
      }
    }
    return this.#queue.isEmpty();
  }

  /** False if the event must be sent again by a later flush. */
  async #send(queued: QueuedEvent, stop: AbortSignal | undefined): Promise<boolean> {
    const { api, nodeName } = this.#dependencies;
    const { count } = queued;
    const answer = await api.send({ ...eventRequest(queued, nodeName), ...defined({ signal: stop }) });
    const outcome = eventOutcome(answer, queued);
    if (outcome === 'stored') {
      queued.isCreated = true;
      queued.failedAttempts = 0;
      // Otherwise it was recorded again during the request, and the higher count is still to be sent.
      if (queued.count === count) this.#queue.remove(queued);
      return true;
    }
    if (outcome === 'expired') {
      queued.isCreated = false;
      return false;
    }
    queued.failedAttempts += 1;
    if (outcome === 'failed' && queued.failedAttempts < ATTEMPTS_MAX) return false;
    this.#drop(queued, outcome === 'refused' ? 'refused' : 'unreachable', describeAnswer(answer));
    return true;
  }

  #drop(queued: QueuedEvent, reason: 'refused' | 'unreachable', why: string): void {
    const { log, meter } = this.#dependencies;
    this.#queue.remove(queued);
    meter.count(EVENTS_DROPPED_METRIC, { reason });
    log.warn('an event was not sent', { reason: queued.event.reason, about: queued.subject.name, why });
  }
}
