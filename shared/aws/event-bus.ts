/**
 * Composes the event bus of the cluster, if one is configured. Functions that publish events use it.
 *
 * The event bus in EventBridge: PutEvents, ten events per call, without the SDK's client (200 KB for one call).
 *
 * A call may succeed for some of its entries; the others are sent once more. If the response is lost, the whole call is
 * sent again, so events may be delivered twice, with the same id in their detail. Source: EventBridge API reference,
 * PutEvents.
 */
import type { EventBus } from '../events/cluster-event.ts';
import { type ClusterEvent, detailOf, EVENT_SOURCE } from '../events/cluster-event.ts';
import { type AwsConnection, awsConnectionFrom } from './connection.ts';
import type { Environment } from './controllers.ts';
import { signedPost } from './signed-post.ts';

export const composeEventBus = (
  environment: Environment,
  { clusterId, eventBusName }: { readonly clusterId: string; readonly eventBusName?: string },
): { readonly eventBus?: EventBus } =>
  eventBusName === undefined
    ? {}
    : { eventBus: eventBridgeBus(eventBusConnectionFrom(environment, eventBusName), clusterId) };

export interface EventBusConnection extends AwsConnection {
  readonly busName: string;
}

const TARGET = 'AWSEvents.PutEvents';
const ENTRIES_PER_CALL_MAX = 10;
/** Concurrent calls: when a zone fails, there are events of thousands of nodes. */
const CALLS_AT_ONCE_MAX = 4;
const ATTEMPTS_MAX = 2;
/** A tick waits for both attempts, so they must fit into it. */
const TIMEOUT_MS = 1_000;

/** @throws RangeError that names every missing variable */
export const eventBusConnectionFrom = (
  environment: Readonly<Record<string, string | undefined>>,
  busName: string,
): EventBusConnection => ({ busName, ...awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_EVENTBRIDGE') });

interface PutEventsOutput {
  readonly Entries?: readonly { readonly ErrorCode?: string; readonly ErrorMessage?: string }[];
}

export function eventBridgeBus(connection: EventBusConnection, cluster: string): EventBus {
  const { busName } = connection;
  const post = signedPost(connection, { service: 'events', target: TARGET, timeoutMs: TIMEOUT_MS });

  /** Events that were not accepted, and why. */
  async function put(events: readonly ClusterEvent[], nowMs: number): Promise<Failures> {
    const body = JSON.stringify({
      Entries: events.map((event) => ({
        EventBusName: busName,
        Source: EVENT_SOURCE,
        DetailType: event.type,
        Time: Math.floor(nowMs / 1_000),
        Detail: JSON.stringify(detailOf(event, { nowMs, cluster })),
      })),
    });
    const { status, body: text } = await post(body, nowMs);
    if (status !== 200) return { failed: events, reason: `PutEvents returned status ${status}` };
    const { Entries: entries = [] } = JSON.parse(text) as PutEventsOutput;
    const failed = events.filter((_, index) => entries[index]?.ErrorCode !== undefined);
    const first = entries.find(({ ErrorCode }) => ErrorCode !== undefined);
    return first === undefined
      ? { failed }
      : { failed, reason: `${first.ErrorCode}: ${first.ErrorMessage ?? ''}`.trimEnd() };
  }

  async function putBounded(events: readonly ClusterEvent[], nowMs: number): Promise<Failures> {
    let remaining: Failures = { failed: events };
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && remaining.failed.length > 0; attempt += 1) {
      try {
        remaining = await put(remaining.failed, nowMs);
      } catch (fault) {
        remaining = { failed: remaining.failed, reason: `no response to PutEvents: ${String(fault)}` };
      }
    }
    return remaining;
  }

  return {
    async publish(events, nowMs) {
      const parts: (readonly ClusterEvent[])[] = [];
      for (let first = 0; first < events.length; first += ENTRIES_PER_CALL_MAX) {
        parts.push(events.slice(first, first + ENTRIES_PER_CALL_MAX));
      }
      const failed: ClusterEvent[] = [];
      let reason: string | undefined;
      const sender = async (): Promise<void> => {
        for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
          const outcome = await putBounded(part, nowMs);
          failed.push(...outcome.failed);
          if (outcome.failed.length > 0) reason = outcome.reason ?? reason;
        }
      };
      await Promise.all(Array.from({ length: Math.min(CALLS_AT_ONCE_MAX, parts.length) }, sender));
      return reason === undefined ? { failed } : { failed, reason };
    },
  };
}

interface Failures {
  readonly failed: readonly ClusterEvent[];
  readonly reason?: string;
}
