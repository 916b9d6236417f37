/**
 * Tells events about the Node and its pods. Source: client-go tools/record (event.go, events_cache.go).
 *
 * The same words about the same object are one Event whose count grows. Whoever records never waits: events queue up, in
 * bounds, and what cannot be told in time is dropped and counted. An object about which too much is said falls silent for
 * a while.
 */
import { formatTime } from '../../shared/kube/time.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { Log } from '../../shared/ports/log.ts';
import type { KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime } from '../ports/time.ts';
import { answeredWith, describeAnswer } from '../rules/kube-answer.ts';
import type { NodeEvent } from '../rules/node-event.ts';

/** Events that wait to be told. */
const WAITING_MAX = 200;
/** Events that are remembered, so that a repetition counts up. Upstream has 4096, for a machine with more memory. */
const REMEMBERED_MAX = 500;
/** Tries at one event, and the pause between them (maxTriesPerEvent, sleepDuration). */
const TRIES_MAX = 12;
const TRY_AGAIN_MS = 10_000;
/** Events about one object in a row, and how fast it may go on after that (defaultSpamBurst, defaultSpamQPS). */
const BURST_MAX = 25;
const REFILL_MS = 300_000;
/** A later repetition is a new event: the server forgets events after an hour. Milliseconds. */
const REPETITION_MS = 3_000_000;
const IDLE_MS = 60_000;
/** Passes of one flush over the queue: what is recorded while it runs is sent by the same flush, within this bound. */
const FLUSH_PASSES_MAX = 20;
/** What waits when the agent stops is sent within this time, or lost. Milliseconds. */
const LAST_FLUSH_MS = 2_000;
const MESSAGE_LENGTH_MAX = 1_024;
const SOURCE = 'kubelet';
/** Namespace of events about objects that have none. */
const CLUSTER_NAMESPACE = 'default';

export const EVENTS_DROPPED_METRIC = 'nodekeeper_agent_events_dropped_total';

interface Subject {
  readonly kind: 'Node' | 'Pod';
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

interface Told {
  readonly name: string;
  readonly about: Subject;
  readonly event: NodeEvent;
  /** Wall clock, for the object. */
  readonly firstAtMs: number;
  lastAtMs: number;
  /** When it was last recorded, on the monotonic clock. */
  recordedAtMs: number;
  count: number;
  /** The server has it, under its name. */
  created: boolean;
  tries: number;
}

export interface EventRecorderDependencies {
  readonly nodeName: string;
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: AgentMeter;
}

export interface EventRecorder {
  aboutNode(event: NodeEvent): void;
  aboutPod(pod: KubeObject, event: NodeEvent): void;
  /** Sends what waits until stopped, then once more what was recorded until then, within two seconds. */
  run(stop: AbortSignal): Promise<void>;
  /**
   * Sends what waits, and what is recorded meanwhile. An event that the server did not take is left to the next flush. True
   * when nothing waits any more.
   */
  flush(stop?: AbortSignal): Promise<boolean>;
  /** Sends what waits before the machine goes down. Gives up after two seconds. */
  drain(): Promise<void>;
}

export function createEventRecorder(dependencies: EventRecorderDependencies): EventRecorder {
  const { nodeName, api, time, log, meter } = dependencies;
  const remembered = new Map<string, Told>();
  const waiting = new Set<Told>();
  const spoken = new Map<string, { left: number; atMs: number }>();
  let wake = new AbortController();
  let named = 0;
  /** The flush under way, or the last one: two at once would send the same events. */
  let flushing: Promise<unknown> = Promise.resolve();

  function drop(reason: string): void {
    meter.count(EVENTS_DROPPED_METRIC, { reason });
  }

  /** Whether yet another event about this object may be sent. */
  function mayTell(uid: string, monotonicMs: number): boolean {
    const was = spoken.get(uid) ?? { left: BURST_MAX, atMs: monotonicMs };
    const refilled = Math.floor((monotonicMs - was.atMs) / REFILL_MS);
    const left = Math.min(BURST_MAX, was.left + refilled);
    const may = left >= 1;
    remember(spoken, uid, { left: may ? left - 1 : left, atMs: was.atMs + refilled * REFILL_MS });
    return may;
  }

  function record(about: Subject, event: NodeEvent): void {
    const nowMs = time.nowMs();
    const monotonicMs = time.monotonicMs();
    const message = event.message.slice(0, MESSAGE_LENGTH_MAX);
    const key = [about.uid, event.type, event.reason, message].join('\n');
    if (!mayTell(about.uid, monotonicMs)) {
      drop('spam');
      return;
    }
    const known = remembered.get(key);
    const again = known !== undefined && monotonicMs - known.recordedAtMs < REPETITION_MS;
    const told = again ? known : newlyTold(about, { ...event, message }, nowMs, monotonicMs);
    if (!waiting.has(told) && waiting.size >= WAITING_MAX) {
      drop('queue');
      return;
    }
    if (again) {
      told.count += 1;
      told.lastAtMs = nowMs;
      told.recordedAtMs = monotonicMs;
    }
    remember(remembered, key, told);
    waiting.add(told);
    wake.abort();
  }

  function newlyTold(about: Subject, event: NodeEvent, nowMs: number, monotonicMs: number): Told {
    named += 1;
    const suffix = (BigInt(nowMs) * 1_000_000n + BigInt(named % 1_000_000)).toString(16);
    return {
      name: `${about.name}.${suffix}`,
      about,
      event,
      firstAtMs: nowMs,
      lastAtMs: nowMs,
      recordedAtMs: monotonicMs,
      count: 1,
      created: false,
      tries: 0,
    };
  }

  function requestOf(told: Told): KubeRequest {
    const { about, event } = told;
    const namespace = about.namespace === '' ? CLUSTER_NAMESPACE : about.namespace;
    const path = `/api/v1/namespaces/${namespace}/events`;
    const counted = { count: told.count, lastTimestamp: formatTime(told.lastAtMs) };
    if (told.created) {
      return {
        method: 'PATCH',
        path: `${path}/${told.name}`,
        body: counted,
        contentType: 'application/merge-patch+json',
      };
    }
    return {
      method: 'POST',
      path,
      body: {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: told.name, namespace },
        involvedObject: { apiVersion: 'v1', ...about },
        type: event.type,
        reason: event.reason,
        message: event.message,
        source: { component: SOURCE, host: nodeName },
        reportingComponent: SOURCE,
        reportingInstance: nodeName,
        firstTimestamp: formatTime(told.firstAtMs),
        ...counted,
      },
    };
  }

  /** False when the server did not take it, and it still waits. */
  async function tell(told: Told, stop: AbortSignal | undefined): Promise<boolean> {
    const { count } = told;
    const answer = await api.send({ ...requestOf(told), ...(stop === undefined ? {} : { signal: stop }) });
    if (answeredWith(answer, 404) && told.created) {
      // The server has forgotten it: told anew at the next turn.
      told.created = false;
      return false;
    }
    if (answeredWith(answer, 200, 201) || (answeredWith(answer, 409) && !told.created)) {
      told.created = true;
      told.tries = 0;
      // It may have been said again meanwhile.
      if (told.count === count) waiting.delete(told);
      return true;
    }
    told.tries += 1;
    // The server said no, and will say so again; where it was busy, or silent, it may not.
    const final = answer.kind === 'answered' && answer.status < 500 && answer.status !== 429 && answer.status !== 401;
    if (!final && told.tries < TRIES_MAX) return false;
    waiting.delete(told);
    drop(final ? 'refused' : 'unreachable');
    log.warn('an event was not told', {
      reason: told.event.reason,
      about: told.about.name,
      why: describeAnswer(answer),
    });
    return true;
  }

  function flush(stop?: AbortSignal): Promise<boolean> {
    const turn = flushing.then(() => sendWaiting(stop));
    flushing = turn.catch(() => undefined);
    return turn;
  }

  async function sendWaiting(stop: AbortSignal | undefined): Promise<boolean> {
    const failed = new Set<Told>();
    for (let pass = 0; pass < FLUSH_PASSES_MAX; pass += 1) {
      const due = [...waiting].filter((told) => !failed.has(told));
      if (due.length === 0) break;
      for (const told of due) {
        if (stop?.aborted) return waiting.size === 0;
        if (!(await tell(told, stop))) failed.add(told);
      }
    }
    return waiting.size === 0;
  }

  async function drain(): Promise<void> {
    if (waiting.size === 0) return;
    const over = new AbortController();
    const timeOut = new AbortController();
    const timer = time.sleep(LAST_FLUSH_MS, over.signal).then(() => timeOut.abort());
    await Promise.race([flush(timeOut.signal), timer]);
    over.abort();
  }

  return {
    // Kubelets give the name for the uid of a Node, and kubectl looks for either.
    aboutNode: (event) => record({ kind: 'Node', namespace: '', name: nodeName, uid: nodeName }, event),
    aboutPod({ metadata }, event) {
      record(
        { kind: 'Pod', namespace: metadata.namespace ?? '', name: metadata.name ?? '', uid: metadata.uid ?? '' },
        event,
      );
    },
    flush,
    drain,
    async run(stop) {
      while (!stop.aborted) {
        wake = new AbortController();
        const done = await flush(stop);
        if (done) await time.sleep(IDLE_MS, AbortSignal.any([stop, wake.signal]));
        else await time.sleep(TRY_AGAIN_MS, stop);
      }
      await drain();
    },
  };
}

/** Puts an entry last, and forgets the one that was longest without use. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > REMEMBERED_MAX && oldest !== undefined) map.delete(oldest);
}
