/**
 * Sends heartbeats to the URL that the server names in its answers (docs/decisions/0039). It costs the operator half as
 * much as a heartbeat through the HTTP API.
 *
 * A heartbeat is sent through the API until an answer names a URL. When a heartbeat through the URL fails, it is sent
 * through the API at once, and so are all heartbeats of the next minute. The answer then names the URL again, or
 * another one, or none where the URL is no longer deployed. Requests that are no renewal of a Lease always use the API.
 * An attempt that hangs leaves time for another one (rules/relay-use.ts).
 */
import { LEASE_BATCH_KIND, LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import { heartbeatUrlOf } from '../rules/lease.ts';
import { limitedAttempt } from '../rules/relay-use.ts';

/** After a failure the URL is not used for this long. Milliseconds. */
const RETRY_AFTER_MS = 60_000;
/** Time limit of a heartbeat through the URL: time is left to send it through the API. Milliseconds. */
const DOOR_TIMEOUT_MS = 3_000;

export interface HeartbeatDoorOptions {
  /** The HTTP API. */
  readonly api: KubeApi;
  /** A client for this URL, with the credentials and the certificate authority of `api`. */
  readonly open: (url: string) => KubeApi;
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number;
}

export function withHeartbeatDoor({ api, open, monotonicMs }: HeartbeatDoorOptions): KubeApi {
  let door: { readonly url: string; readonly client: KubeApi } | undefined;
  let closedUntilMs = 0;

  function learn(answer: KubeAnswer): void {
    if (answer.kind !== 'answered' || answer.status !== 200) return;
    const url = heartbeatUrlOf(answer.body);
    if (url === door?.url) return;
    door?.client.reconnect();
    door = url === undefined ? undefined : { url, client: open(url) };
    closedUntilMs = 0;
  }

  return {
    async send(request) {
      if (!isRenewal(request)) return api.send(request);
      let isRepeated = false;
      if (door !== undefined && monotonicMs() >= closedUntilMs) {
        const timeoutMs = Math.min(request.timeoutMs ?? DOOR_TIMEOUT_MS, DOOR_TIMEOUT_MS);
        const answer = await door.client.send({ ...request, timeoutMs });
        if (isFromFunction(answer) || request.signal?.aborted === true) return answer;
        closedUntilMs = monotonicMs() + RETRY_AFTER_MS;
        door.client.reconnect();
        isRepeated = true;
      }
      const answer = await api.send(limitedAttempt(request, monotonicMs()));
      learn(answer);
      // Neither way works: the next attempt begins with the URL again.
      if (!isFromFunction(answer)) closedUntilMs = 0;
      return isRepeated && answer.kind === 'answered' ? { ...answer, isRepeated } : answer;
    },
    reconnect() {
      door?.client.reconnect();
      api.reconnect();
    },
  };
}

/** A heartbeat, or a relay's batch of them. */
const isRenewal = ({ method, path }: KubeRequest): boolean =>
  ((method === 'PUT' || method === 'PATCH') && path.includes('/namespaces/kube-node-lease/leases/')) ||
  (method === 'POST' && path === LEASE_BATCHES_PATH);

/**
 * Whether function `heartbeat` answered, and will answer the same through the API: with a Lease, a batch, or with a
 * Status that refuses the request. Everything else is a failure of this way: no answer, throttled, a fault of the
 * server, an answer of AWS (403 without a Status, where the URL was deleted or blocked), or the page of a proxy.
 */
function isFromFunction(answer: KubeAnswer): boolean {
  if (answer.kind === 'failed' || answer.status === 429 || answer.status >= 500) return false;
  const kind = (answer.body as { readonly kind?: unknown } | null | undefined)?.kind;
  return answer.status === 200 ? kind === 'Lease' || kind === LEASE_BATCH_KIND : kind === 'Status';
}
