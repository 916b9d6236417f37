/**
 * The event bus in EventBridge: PutEvents, ten events a call, without the SDK's client (200 KB for one call).
 *
 * The call may succeed for some of its entries; the others are sent once more. An answer that was lost is sent again
 * whole, so events may come twice, with the same id in their detail.
 * Source: EventBridge API reference, PutEvents.
 */
import { createHash, createHmac, type Hash } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { type ClusterEvent, detailOf, EVENT_SOURCE } from '../../domain/cluster-event.ts';
import type { EventBus } from '../../ports/event-bus.ts';

export interface EventBusConnection {
  readonly region: string;
  readonly busName: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
  /** Only for a bus of our own: AWS_ENDPOINT_URL_EVENTBRIDGE. */
  readonly endpoint?: string;
}

const TARGET = 'AWSEvents.PutEvents';
const ENTRIES_A_CALL_MAX = 10;
/** Calls at once: a zone that goes dark tells of thousands of nodes. */
const CALLS_AT_ONCE_MAX = 4;
const ATTEMPTS_MAX = 2;
/** Both attempts fit a tick, which waits for them. */
const TIMEOUT_MS = 1_000;

/** The connection a Lambda's environment holds. @throws RangeError that names every missing variable */
export function eventBusConnectionFrom(
  environment: Readonly<Record<string, string | undefined>>,
  busName: string,
): EventBusConnection {
  const names = ['AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;
  const missing = names.filter((name) => !environment[name]);
  if (missing.length > 0) throw new RangeError(`missing from the environment: ${missing.join(', ')}`);
  const sessionToken = environment['AWS_SESSION_TOKEN'];
  const endpoint = environment['AWS_ENDPOINT_URL_EVENTBRIDGE'];
  return {
    busName,
    region: environment['AWS_REGION'] as string,
    credentials: {
      accessKeyId: environment['AWS_ACCESS_KEY_ID'] as string,
      secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] as string,
      ...(sessionToken ? { sessionToken } : {}),
    },
    ...(endpoint ? { endpoint } : {}),
  };
}

interface Answer {
  readonly Entries?: readonly { readonly ErrorCode?: string; readonly ErrorMessage?: string }[];
}

export function eventBridgeBus(connection: EventBusConnection, cluster: string): EventBus {
  const { region, credentials, busName } = connection;
  const endpoint = new URL(connection.endpoint ?? defaultEndpoint(region));
  const signer = new SignatureV4({ service: 'events', region, credentials, sha256: Sha256 });

  /** Those that were not taken, and why. */
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
    const { headers } = await signer.sign(
      {
        method: 'POST',
        protocol: endpoint.protocol,
        hostname: endpoint.hostname,
        path: '/',
        query: {},
        headers: { host: endpoint.host, 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': TARGET },
        body,
      },
      { signingDate: new Date(nowMs) },
    );
    const { host: _host, ...sent } = headers;
    const answer = await fetch(endpoint, {
      method: 'POST',
      headers: sent,
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await answer.text();
    if (answer.status !== 200) return { failed: events, reason: `PutEvents was answered ${answer.status}` };
    const { Entries: entries = [] } = JSON.parse(text) as Answer;
    const failed = events.filter((_, index) => entries[index]?.ErrorCode !== undefined);
    const first = entries.find(({ ErrorCode }) => ErrorCode !== undefined);
    return first === undefined
      ? { failed }
      : { failed, reason: `${first.ErrorCode}: ${first.ErrorMessage ?? ''}`.trimEnd() };
  }

  async function putBounded(events: readonly ClusterEvent[], nowMs: number): Promise<Failures> {
    let left: Failures = { failed: events };
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && left.failed.length > 0; attempt += 1) {
      try {
        left = await put(left.failed, nowMs);
      } catch (fault) {
        left = { failed: left.failed, reason: `no answer to PutEvents: ${String(fault)}` };
      }
    }
    return left;
  }

  return {
    async publish(events, nowMs) {
      const parts: (readonly ClusterEvent[])[] = [];
      for (let first = 0; first < events.length; first += ENTRIES_A_CALL_MAX) {
        parts.push(events.slice(first, first + ENTRIES_A_CALL_MAX));
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

const defaultEndpoint = (region: string): string =>
  `https://events.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;

class Sha256 {
  #hash: Hash;
  constructor(secret?: unknown) {
    this.#hash = (secret === undefined ? createHash('sha256') : createHmac('sha256', secret as Uint8Array)) as Hash;
  }
  update(data: unknown): void {
    this.#hash.update(data as Uint8Array);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {}
}
