/** What a hub asks its cluster about credentials, with its own. */
import * as status from '../../../shared/kubernetes/status.ts';
import { type Upstream, UpstreamUnreachable } from '../upstream.ts';

/** Until an answer is here. Milliseconds. */
const ANSWER_MS = 10_000;
/** At once. More are refused: tokens that somebody invents must not fill the hub, nor its cluster. */
const QUESTIONS_MAX = 32;
const RETRY_AFTER_SECONDS = 5;

export type ClusterAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly body: unknown }
  /** The cluster cannot be reached, or cannot answer now. */
  | { readonly kind: 'unanswered'; readonly why: string };

export interface Questions {
  /** @throws StatusError 429 when too many are asked, 503 when the hub may not ask */
  ask(method: 'GET' | 'POST', path: string, body?: object): Promise<ClusterAnswer>;
}

/** @param isDown the cluster is known to be out of reach: it is not asked */
export function questions(upstream: Upstream, isDown: () => boolean): Questions {
  let asked = 0;
  return {
    async ask(method, path, body) {
      if (isDown()) return { kind: 'unanswered', why: 'the cluster cannot be reached' };
      if (asked >= QUESTIONS_MAX) {
        throw status.tooManyRequests('this hub verifies too many credentials at once', {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        });
      }
      asked += 1;
      try {
        const headers = { accept: 'application/json', ...(body && { 'content-type': 'application/json' }) };
        const request = { method, path, headers, ...(body && { body: Buffer.from(JSON.stringify(body)) }) };
        const answer = await upstream.send(request, { timeoutMs: ANSWER_MS });
        if (answer.status === 401 || answer.status === 403) {
          throw unverified(`this hub may not ask the cluster (${answer.status} to ${method} ${path})`);
        }
        if (answer.status === 429 || answer.status >= 500) {
          return { kind: 'unanswered', why: `the cluster answered ${answer.status}` };
        }
        const text = answer.body.toString('utf8');
        return { kind: 'answered', status: answer.status, body: answer.status < 300 ? JSON.parse(text) : undefined };
      } catch (error) {
        if (error instanceof UpstreamUnreachable) return { kind: 'unanswered', why: error.message };
        throw error;
      } finally {
        asked -= 1;
      }
    },
  };
}

/** 503: it is not known whether a credential is valid. A client keeps its credential, and tries again. */
export const unverified = (why: string): status.StatusError =>
  status.serviceUnavailable(`credentials cannot be verified: ${why}`, { retryAfterSeconds: RETRY_AFTER_SECONDS });
