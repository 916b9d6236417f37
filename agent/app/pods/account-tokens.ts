/** Service account tokens for the volumes of pods. Source: upstream pkg/kubelet/token/token_manager.go. */

import type { KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import { textOf } from '../../../shared/kubernetes/normal-form.ts';
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import type { AgentTime } from '../../ports/time.ts';
import { answeredWith, describeAnswer, objectIn } from '../../rules/kube-answer.ts';
import { type TokenRequest, type TokenValue, tokenKey, tokenRefreshMs, tokensOf } from '../../rules/volume-content.ts';

/** Times are of the uptime clock: a token also expires while the machine is suspended. Milliseconds. */
interface IssuedToken {
  readonly token: string;
  readonly refreshAtMs: number;
  readonly expiresAtMs: number;
}

/** Wait after a failed request for a token that replaces another. Milliseconds. */
const RETRY_MS = 60_000;

export interface AccountTokensDependencies {
  readonly api: KubeApi;
  readonly time: AgentTime;
}

/** The tokens of one pod. */
export class AccountTokens {
  readonly #dependencies: AccountTokensDependencies;
  readonly #issued = new Map<string, IssuedToken>();
  readonly #faults = new Map<string, string>();

  constructor(dependencies: AccountTokensDependencies) {
    this.#dependencies = dependencies;
  }

  /** Tokens from before a restart, by their key. They are used until others can be requested, also when expired. */
  restore(tokens: Iterable<readonly [key: string, token: string]>): void {
    for (const [key, token] of tokens) {
      this.#issued.set(key, { token, refreshAtMs: 0, expiresAtMs: Number.POSITIVE_INFINITY });
    }
  }

  /** The newest tokens, by their key. */
  issued(): ReadonlyMap<string, string> {
    return new Map([...this.#issued].map(([key, { token }]) => [key, token]));
  }

  get(request: TokenRequest): TokenValue {
    const key = tokenKey(request);
    const issued = this.#issued.get(key);
    if (issued !== undefined && issued.expiresAtMs > this.#dependencies.time.uptimeMs()) {
      return { kind: 'token', token: issued.token };
    }
    return { kind: 'failed', message: this.#faults.get(key) ?? 'failed to fetch token: not requested yet' };
  }

  /** Requests the tokens that are missing or due. */
  async renew(pod: KubePod): Promise<void> {
    const nowMs = this.#dependencies.time.uptimeMs();
    const due = tokensOf(pod).filter((each) => (this.#issued.get(tokenKey(each))?.refreshAtMs ?? 0) <= nowMs);
    await Promise.all(due.map((each) => this.#request(pod, each)));
  }

  /** When the next token is due. Monotonic milliseconds; Infinity without tokens. */
  nextRefreshMs(): number {
    const { time } = this.#dependencies;
    const refreshAtMs = Math.min(...[...this.#issued.values()].map((each) => each.refreshAtMs));
    return refreshAtMs - time.uptimeMs() + time.monotonicMs();
  }

  async #request(pod: KubePod, request: TokenRequest): Promise<void> {
    const { api, time } = this.#dependencies;
    const key = tokenKey(request);
    const account = pod.spec?.serviceAccountName ?? '';
    const answer = await api.send(tokenPost(pod, account, request));
    const nowMs = time.uptimeMs();
    const { token, expirationTimestamp } =
      (answeredWith(answer, 200, 201) ? objectIn<TokenObject>(answer) : undefined)?.status ?? {};
    if (textOf(token) === '') {
      const name = `serviceaccounts ${JSON.stringify(account)}`;
      this.#faults.set(key, `failed to fetch token: ${describeAnswer(answer) || name}`);
      const issued = this.#issued.get(key);
      if (issued !== undefined) this.#issued.set(key, { ...issued, refreshAtMs: nowMs + RETRY_MS });
      return;
    }
    const statedMs = (parseTimeMs(expirationTimestamp) ?? 0) - time.nowMs();
    // A wrong clock of the machine must not make a fresh token look expired.
    const lifeMs = Math.min(Math.max(statedMs, 0) || Number.POSITIVE_INFINITY, request.lifetimeSeconds * 1_000);
    this.#faults.delete(key);
    this.#issued.set(key, {
      token: textOf(token),
      refreshAtMs: nowMs + tokenRefreshMs(lifeMs),
      expiresAtMs: nowMs + lifeMs,
    });
  }
}

interface TokenObject extends KubeObject {
  status?: { token?: string; expirationTimestamp?: string };
}

const tokenPost = ({ metadata }: KubePod, account: string, { audience, lifetimeSeconds }: TokenRequest) => ({
  method: 'POST' as const,
  path: `/api/v1/namespaces/${encodeURIComponent(metadata.namespace ?? '')}/serviceaccounts/${encodeURIComponent(account)}/token`,
  body: {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      audiences: audience === '' ? [] : [audience],
      expirationSeconds: lifetimeSeconds,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: metadata.name, uid: metadata.uid },
    },
  },
});
