/** What a hub asks its cluster about credentials, with its own. */
import { jsonObjectIn } from '../../../shared/access/bearer.ts';
import type { StartTimeLimit } from '../../../shared/clock.ts';
import type { JsonObject } from '../../../shared/kubernetes/json.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { quarterShares } from '../../quarter-shares.ts';
import { type Upstream, UpstreamUnreachable } from '../upstream.ts';

/** Until an answer is here. Milliseconds. */
const ANSWER_MS = 10_000;
/**
 * At once, and a quarter for one address. More are refused: tokens that somebody invents must not fill the hub, nor its
 * cluster, nor keep others from signing in.
 */
const QUESTIONS_MAX = 32;
const RETRY_AFTER_SECONDS = 5;

export type ClusterAnswer =
  /** A success, or `body` is undefined: the cluster says that there is no such object. */
  | { readonly kind: 'answered'; readonly body: JsonObject | undefined }
  /** The cluster cannot be reached, or cannot answer now. Also an answer of something in between. */
  | { readonly kind: 'unanswered'; readonly why: string };

export interface Questions {
  /** @throws StatusError 429 when too many are asked, 503 when the hub may not ask */
  ask(method: 'GET' | 'POST', path: string, body?: object): Promise<ClusterAnswer>;
}

export interface QuestionOptions {
  readonly upstream: Upstream;
  /** The cluster is known to be out of reach: it is not asked. */
  readonly isDown: () => boolean;
  /** Of the client that is being answered. */
  readonly address: () => string;
}

export function questions({ upstream, isDown, address }: QuestionOptions): Questions {
  const shares = quarterShares(QUESTIONS_MAX);
  /** Clients that reconnect at the same time ask the same: they share the answer. */
  const running = new Map<string, Promise<ClusterAnswer>>();
  return {
    async ask(method, path, body) {
      const text = body && JSON.stringify(body);
      if (isDown()) return { kind: 'unanswered', why: 'the cluster cannot be reached' };
      const question = `${method} ${path} ${text ?? ''}`;
      const asked = running.get(question);
      if (asked !== undefined) return asked;
      const asker = address();
      const share = shares.use(asker, 1);
      if (share !== 'used') {
        const whose = share === 'ownerAtLimit' ? 'of one address ' : '';
        throw status.tooManyRequests(`this hub verifies too many credentials ${whose}at once`, {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        });
      }
      const answer = send(method, path, text).finally(() => {
        running.delete(question);
        shares.free(asker, 1);
      });
      running.set(question, answer);
      return answer;
    },
  };

  async function send(method: 'GET' | 'POST', path: string, body: string | undefined): Promise<ClusterAnswer> {
    try {
      const headers = { accept: 'application/json', ...(body && { 'content-type': 'application/json' }) };
      const request = { method, path, headers, ...(body && { body: Buffer.from(body) }) };
      const answer = await upstream.send(request, { timeoutMs: ANSWER_MS });
      if (answer.status === 401 || answer.status === 403) {
        throw unverified(`this hub may not ask the cluster (${answer.status} to ${method} ${path})`);
      }
      const found = jsonObjectIn(answer.body);
      if (answer.status >= 200 && answer.status < 300 && found !== undefined) return { kind: 'answered', body: found };
      // A balancer without a cluster behind it answers 404, too.
      if (answer.status === 404 && found?.['kind'] === 'Status') return { kind: 'answered', body: undefined };
      return { kind: 'unanswered', why: `the cluster answered ${answer.status}` };
    } catch (error) {
      if (error instanceof UpstreamUnreachable) return { kind: 'unanswered', why: error.message };
      throw error;
    }
  }
}

/** A slow cluster delays a client that is known by this at most, each time it is asked again. Milliseconds. */
const KNOWN_WAIT_MS = 500;

/** What is being asked, or what is known if that is not answered soon. */
export async function orKnown<T>(asked: Promise<T>, known: T, startTimeLimit: StartTimeLimit): Promise<T> {
  const limit = startTimeLimit(KNOWN_WAIT_MS);
  // Whoever asks again joins it, or reads its answer.
  asked.catch(() => {});
  try {
    return await Promise.race([asked, limit.reached.then(() => known)]);
  } finally {
    limit.cancel();
  }
}

/** 503: it is not known whether a credential is valid. A client keeps its credential, and tries again. */
export const unverified = (why: string): status.StatusError =>
  status.serviceUnavailable(`credentials cannot be verified: ${why}`, { retryAfterSeconds: RETRY_AFTER_SECONDS });
