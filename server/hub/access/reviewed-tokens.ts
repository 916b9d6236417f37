/**
 * Tokens that only the cluster can verify, by its TokenReview. An answer counts for a time: a client is not
 * reviewed with each request.
 *
 * While the cluster cannot be reached, a token that it accepted counts on, by its hash. So a token that was withdrawn
 * meanwhile, or up to OFFLINE_AGE_MS before, is accepted until the cluster can be asked again. Tokens that expire by
 * themselves are `brief`: they never count longer than that time.
 */
import { createHash } from 'node:crypto';
import type { Authentication } from '../../../shared/access/authenticator.ts';
import { lookupMemory } from '../../../shared/access/bearer.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { StartTimeLimit } from '../../../shared/clock.ts';
import { defined } from '../../../shared/defined.ts';
import { isJsonObject, type JsonObject } from '../../../shared/kubernetes/json.ts';
import type { KeptAnswers } from './kept-answers.ts';
import { orKnown, type Questions, unverified } from './questions.ts';

const REFUSED_LIVE_MS = 5_000;
/** Between the last review of a token and the loss of the link. Milliseconds. */
const OFFLINE_AGE_MS = 86_400_000;
const TOKENS_MAX = 5_000;
/** The longest tokens are those of users with AWS credentials. Characters. */
const TOKEN_CHARACTERS_MAX = 8_192;

const REFUSED: Authentication = { kind: 'refused', reason: 'the cluster does not accept the token' };

interface Reviewed {
  /** undefined: the cluster refused the token. */
  readonly user: UserInfo | undefined;
  readonly atMs: number;
}

export interface TokenUse {
  readonly isBrief: boolean;
  /** How long the cluster is not asked again about a token that it accepted. Milliseconds. */
  readonly liveMs: number;
  /** The cluster has just accepted it. */
  readonly onAccepted?: () => Promise<unknown>;
}

export interface ReviewedTokens {
  /** @throws StatusError 503 when it is not known */
  authenticate(token: string, nowMs: number, use: TokenUse): Promise<Authentication>;
}

export interface ReviewOptions {
  readonly questions: Questions;
  readonly kept: KeptAnswers<UserInfo>;
  /** Since when the cluster cannot be reached. undefined: it can. Epoch milliseconds. */
  readonly downSinceMs: () => number | undefined;
  readonly startTimeLimit: StartTimeLimit;
}

export function reviewedTokens({ questions, kept, downSinceMs, startTimeLimit }: ReviewOptions): ReviewedTokens {
  const reviewed = lookupMemory<Reviewed>(TOKENS_MAX, ({ user }) => user !== undefined);
  const running = new Map<string, Promise<Reviewed>>();

  async function review(
    token: string,
    hash: string,
    nowMs: number,
    { isBrief, onAccepted }: TokenUse,
  ): Promise<Reviewed> {
    const answer = await questions.ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token },
    });
    const verdict = answer.kind === 'answered' ? answer.body?.['status'] : undefined;
    if (!isJsonObject(verdict)) {
      const last = isBrief ? undefined : await kept.find(hash);
      const isRecent = last !== undefined && last.atMs >= (downSinceMs() ?? nowMs) - OFFLINE_AGE_MS;
      if (!isRecent)
        throw unverified(answer.kind === 'unanswered' ? answer.why : 'the cluster did not review the token');
      return { user: last.value, atMs: nowMs };
    }
    const user = userIn(verdict);
    if (user !== undefined) await onAccepted?.();
    const outcome = { user, atMs: nowMs };
    reviewed.keep(hash, outcome);
    if (!isBrief) await (user === undefined ? kept.drop(hash) : kept.keep(hash, user, nowMs));
    return outcome;
  }

  return {
    async authenticate(token, nowMs, use) {
      if (token.length > TOKEN_CHARACTERS_MAX) return { kind: 'refused', reason: 'token too long' };
      const hash = createHash('sha256').update(token).digest('hex');
      const known = reviewed.find(hash);
      const liveMs = known?.user === undefined ? REFUSED_LIVE_MS : use.liveMs;
      // A time in the future means that the clock was set back.
      if (known !== undefined && Math.abs(nowMs - known.atMs) < liveMs) return authenticationOf(known);
      const reviewing = running.get(hash) ?? review(token, hash, nowMs, use).finally(() => running.delete(hash));
      running.set(hash, reviewing);
      // For as long as the cluster is asked, 10 s at most. A token that expires by itself does not count longer.
      const isKnown = known?.user !== undefined && !use.isBrief;
      return authenticationOf(await (isKnown ? orKnown(reviewing, known, startTimeLimit) : reviewing));
    },
  };
}

const authenticationOf = ({ user }: Reviewed): Authentication =>
  user === undefined ? REFUSED : { kind: 'authenticated', user };

/** undefined: the token is not valid. */
function userIn(verdict: JsonObject): UserInfo | undefined {
  if (verdict['authenticated'] !== true || !isJsonObject(verdict['user'])) return undefined;
  const { username, uid, groups, extra } = verdict['user'] as Partial<UserInfo>;
  return typeof username === 'string' ? { username, groups: groups ?? [], ...defined({ uid, extra }) } : undefined;
}
