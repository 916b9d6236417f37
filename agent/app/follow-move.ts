/**
 * Follows a cluster that has moved. Its old address answers 421 with the new one; this agent asks there, remembers it,
 * and starts again with it. Pods stay.
 *
 * Why a false answer leads no agent away:
 *
 * - The 421 comes over TLS, from a server that the certificate authority of this agent signed. Whoever can send it is
 *   the cluster already. What a relay answers is not looked at: a relay may make answers up.
 * - The new address is asked for our own Node, over TLS by the authorities that the 421 names. It must accept our
 *   token: the token is for this cluster by its audience, and signed by a key that only a cluster with our identity
 *   knows. Another cluster answers 401, and a captive portal has no such certificate.
 * - Where we know the uid of our Node, it must be the same.
 *
 * Nothing is remembered before all of this holds, so an address that does not serve yet is asked again later. A token
 * that is sent to a wrong address is valid for five minutes at most.
 */
import { type ClusterAddress, MOVED_CODE, movedAddressIn } from '../../shared/agents/moved-cluster.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { KubeAnswer, KubeApi } from '../ports/kube-api.ts';
import { nodePath } from '../rules/lease.ts';

/** Between two questions to a new address. Milliseconds. */
const ASK_AGAIN_MS = 10_000;
const TIMEOUT_MS = 10_000;

export interface MoveFollowing {
  readonly nodeName: string;
  /** A client for this address. Its answers change nothing about our identity. */
  readonly open: (address: ClusterAddress) => KubeApi;
  /** Durable when it resolves. */
  readonly remember: (address: ClusterAddress) => Promise<void>;
  readonly restart: () => void;
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number;
  readonly log: Log;
}

export class MoveFollower {
  readonly #options: MoveFollowing;
  #uid: string | undefined;
  #askedAtMs: number | undefined;

  constructor(options: MoveFollowing) {
    this.#options = options;
  }

  /** The same client; its answers are looked at. Not for a relay. */
  watching(api: KubeApi): KubeApi {
    return {
      send: async (request) => {
        const answer = await api.send(request);
        this.#look(answer);
        return answer;
      },
      reconnect: () => api.reconnect(),
    };
  }

  #look(answer: KubeAnswer): void {
    if (answer.kind !== 'answered') return;
    if (answer.status === 200) this.#uid = this.#uidIn(answer.body) ?? this.#uid;
    const address = answer.status === MOVED_CODE ? movedAddressIn(answer.body) : undefined;
    if (address === undefined) return;
    const { monotonicMs, log } = this.#options;
    const nowMs = monotonicMs();
    if (this.#askedAtMs !== undefined && nowMs - this.#askedAtMs < ASK_AGAIN_MS) return;
    this.#askedAtMs = nowMs;
    this.#follow(address).catch((error: unknown) => {
      log.warn('the cluster has moved; its new address could not be stored', { endpoint: address.endpoint, error });
    });
  }

  async #follow(address: ClusterAddress): Promise<void> {
    const { nodeName, open, remember, restart, log } = this.#options;
    const { endpoint } = address;
    const api = open(address);
    const answer = await api.send({ method: 'GET', path: nodePath(nodeName), timeoutMs: TIMEOUT_MS });
    api.reconnect();
    const uid = answer.kind === 'answered' && answer.status === 200 ? this.#uidIn(answer.body) : undefined;
    if (uid === undefined || (this.#uid !== undefined && uid !== this.#uid)) {
      const why = answer.kind === 'failed' ? String(answer.cause) : uid === undefined ? answer.status : 'another Node';
      log.warn('the cluster has moved, but its new address does not know this node yet', { endpoint, why });
      return;
    }
    await remember(address);
    log.info('the cluster has moved: starting again with its new address; pods stay', { endpoint });
    restart();
  }

  /** The uid of our Node. Undefined: the body is something else. */
  #uidIn(body: unknown): string | undefined {
    const { kind, metadata } = (body ?? {}) as { kind?: unknown; metadata?: { name?: unknown; uid?: unknown } };
    if (kind !== 'Node' || metadata?.name !== this.#options.nodeName) return undefined;
    return typeof metadata.uid === 'string' ? metadata.uid : undefined;
  }
}
