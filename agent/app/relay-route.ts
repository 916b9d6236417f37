/**
 * Sends the heartbeats of this machine through the relay of its site (docs/relay.md).
 *
 * Only the Lease of this node in an answer counts. After anything else the heartbeat is sent directly at once: a
 * refusal of the cluster is then received from the cluster itself. After a failure the relay is not used for a minute.
 *
 * A relay could acknowledge heartbeats that it never sent. So the first heartbeat and one every five minutes is sent
 * directly. It carries the version of the last answer. If the cluster does not know that version, the relay has lied,
 * or another client wrote the Lease: the relay is not used for an hour. Direct heartbeats also keep our estimate of the
 * server's clock. While the direct way fails, it proves nothing about the relay: the same heartbeat is sent through it,
 * and the next one in a minute is direct again.
 *
 * A heartbeat that reports something new about the site is sent directly first: a relay would collect it. So is one
 * that waits for the relay when the relay no longer answers this machine on the site's network: others may report it.
 *
 * A relay that hangs may never mark this node. So the relay is not used while the heartbeat interval is short, and a
 * heartbeat that is already late is sent directly first (rules/relay-use.ts).
 */
import type { Log } from '../../shared/observability/log.ts';
import type { Heartbeat, KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import { answeredWith, isTransient } from '../rules/kube-answer.ts';
import { collectMs, isRelayUsable, RELAY_WAIT_MS, relayWaitMs } from '../rules/relay-use.ts';
import { relayedLease } from '../rules/relayed-lease.ts';

/** After a failure the relay is not used for this long. Milliseconds. */
const RETRY_AFTER_MS = 60_000;
/** Interval of direct heartbeats. Milliseconds. */
export const CHECK_INTERVAL_MS = 300_000;
/** After an acknowledgement that the cluster does not know, the relay is not used for this long. Milliseconds. */
const DISTRUST_MS = 3_600_000;

type RelayableRequest = KubeRequest & { readonly heartbeat: Heartbeat };

export interface RelayRouteOptions {
  /** A client of the relay. */
  readonly relay: KubeApi;
  /** The cluster. */
  readonly direct: KubeApi;
  readonly nodeName: string;
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number;
  readonly log: Log;
}

export function withRelay({ relay, direct, nodeName, monotonicMs, log }: RelayRouteOptions): KubeApi {
  let closedUntilMs = 0;
  let checkAtMs = 0;
  let isFailing = false;
  /** Whether the newest acknowledgement is the relay's. */
  let isRelayed = false;
  /** Begin of the last heartbeat that was accepted. It is stored later. Monotonic milliseconds. */
  let acceptedFromMs = Number.NEGATIVE_INFINITY;
  /** Whether the newest direct heartbeat got no answer of the cluster. */
  let isDirectFailing = false;
  let isIntervalShort = false;

  function close(forMs: number): void {
    closedUntilMs = monotonicMs() + forMs;
    relay.reconnect();
  }

  async function sendDirect(request: KubeRequest): Promise<KubeAnswer> {
    const fromMs = monotonicMs();
    const answer = await direct.send(request);
    isDirectFailing = isTransient(answer);
    if (answeredWith(answer, 200)) {
      acceptedFromMs = fromMs;
      checkAtMs = monotonicMs() + CHECK_INTERVAL_MS;
      isRelayed = false;
    } else if (answer.kind === 'failed' || isDirectFailing || answer.isRepeated === true) {
      // This heartbeat may be stored. A conflict from now on can be with our own write.
      isRelayed = false;
    } else if (answeredWith(answer, 409) && isRelayed) {
      log.warn('the relay acknowledged a heartbeat that the cluster does not know', { node: nodeName });
      close(DISTRUST_MS);
      isRelayed = false;
    }
    return answer;
  }

  /** Undefined: the heartbeat is sent directly. */
  async function sendRelayed(request: RelayableRequest, waitMs: number): Promise<KubeAnswer | undefined> {
    const fromMs = monotonicMs();
    const timeoutMs = Math.min(request.timeoutMs ?? waitMs, waitMs);
    const { signal, heartbeat } = request;
    const urgent = heartbeat.becomesUrgent;
    const signals = [signal, urgent].filter((each) => each !== undefined);
    const answer = await relay.send({
      ...{ ...request, timeoutMs, collectMs: collectMs(timeoutMs, heartbeat.intervalMs) },
      signal: AbortSignal.any(signals),
    });
    const lease = relayedLease(answer, request.body, nodeName);
    if (lease !== undefined) {
      if (isFailing) log.info('the relay is used again', { node: nodeName });
      isFailing = false;
      isRelayed = true;
      acceptedFromMs = fromMs;
      return { kind: 'answered', status: 200, body: lease, isRelayed: true };
    }
    if (signal?.aborted === true) return answer;
    // The version is stale, or the Lease was deleted: no fault of the relay. What it says is not proven.
    isRelayed = false;
    if (urgent?.aborted === true || answeredWith(answer, 404, 409)) return undefined;
    if (!isFailing) log.warn('the relay fails; heartbeats are sent directly', { node: nodeName });
    isFailing = true;
    close(RETRY_AFTER_MS);
    return undefined;
  }

  /** Logs each change of the answer once. */
  function isUsable(intervalMs: number): boolean {
    const isShort = !isRelayUsable(intervalMs);
    if (isShort !== isIntervalShort) {
      isIntervalShort = isShort;
      const details = { node: nodeName, intervalSeconds: intervalMs / 1_000 };
      if (isShort) log.warn('the relay is not used: the heartbeat interval is too short for it', details);
      else log.info('the relay is used: the heartbeat interval is long enough for it', details);
      relay.reconnect();
    }
    return !isShort;
  }

  return {
    async send(request) {
      const { heartbeat } = request;
      if (heartbeat === undefined) return direct.send(request);
      const { intervalMs, isUrgent = false } = heartbeat;
      const nowMs = monotonicMs();
      if (!isUsable(intervalMs) || nowMs < closedUntilMs) return sendDirect(request);
      // While the direct way fails, the relay is the better way, also for a late heartbeat.
      const waitMs = isDirectFailing ? RELAY_WAIT_MS : relayWaitMs(nowMs - acceptedFromMs, intervalMs);
      if (nowMs < checkAtMs && waitMs !== undefined && !isUrgent) {
        return (await sendRelayed({ ...request, heartbeat }, waitMs)) ?? sendDirect(request);
      }
      const checked = await sendDirect(request);
      const isReached = checked.kind === 'answered' && !isTransient(checked);
      if (isReached || request.signal?.aborted === true) return checked;
      checkAtMs = monotonicMs() + RETRY_AFTER_MS;
      return (await sendRelayed({ ...request, heartbeat }, RELAY_WAIT_MS)) ?? checked;
    },
    reconnect() {
      relay.reconnect();
      direct.reconnect();
    },
  };
}
