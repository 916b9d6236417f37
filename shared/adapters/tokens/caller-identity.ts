/**
 * Signs people in by their pre-signed GetCallerIdentity requests: the request is sent to STS, whose answer says who
 * signed it; access entries say who that is here.
 *
 * A verdict is kept while the token is good, at most VERDICT_SECONDS, by the token's hash: kubectl sends the same token for
 * many requests. So an access entry that was taken away counts from the next deployment on (functions start anew), and
 * an AWS credential that was revoked within VERDICT_SECONDS.
 */

import { createHash } from 'node:crypto';
import { type AccessEntry, type CallerIdentity, mapIdentity } from '../../domain/access/access-entry.ts';
import {
  CALLER_IDENTITY_PREFIX,
  CLUSTER_HEADER,
  readCallerIdentityToken,
} from '../../domain/access/caller-identity-token.ts';
import { defined } from '../../domain/defined.ts';
import * as status from '../../kube/status.ts';
import type { Authentication } from '../../ports/authenticator.ts';
import type { BearerScheme } from './bearer.ts';
import { boundedMemory } from './bounded-memory.ts';

/** A good verdict holds so long at most. */
const VERDICT_SECONDS = 300;
/** A refusal by STS holds so long, so that a client that repeats it costs nothing. */
const REFUSAL_SECONDS = 10;
/** Verdicts kept; the oldest goes first. */
const VERDICTS_MAX = 1_000;
/** An answer of STS is about 400 bytes. */
const ANSWER_BYTES_MAX = 65_536;
const TIMEOUT_MS = 5_000;
/** Questions to STS at one time; beyond it requests are asked to come back. */
const QUESTIONS_AT_ONCE_MAX = 16;
const RETRY_AFTER_SECONDS = 2;

export interface CallerIdentityOptions {
  readonly clusterId: string;
  readonly entries: readonly AccessEntry[];
  /** How STS is asked; the runtime's own fetch unless said. */
  readonly fetch?: typeof fetch;
}

interface Verdict {
  readonly answer: Authentication;
  readonly untilMs: number;
}

export function callerIdentityTokens(options: CallerIdentityOptions): BearerScheme {
  const verdicts = boundedMemory<Verdict>(VERDICTS_MAX);
  const asking = new Map<string, Promise<Authentication>>();

  async function settle(key: string, url: string, at: { nowMs: number; goodUntilMs: number }): Promise<Authentication> {
    const told = await askSts(options, url);
    const answer = told.kind === 'identity' ? userOf(told.identity, options.entries) : told;
    const holdsMs = (answer.kind === 'authenticated' ? VERDICT_SECONDS : REFUSAL_SECONDS) * 1_000;
    verdicts.keep(key, { answer, untilMs: Math.min(at.goodUntilMs, at.nowMs + holdsMs) });
    return answer;
  }

  return {
    recognises: (text) => text.startsWith(CALLER_IDENTITY_PREFIX),
    async authenticate(text, nowMs) {
      const token = readCallerIdentityToken(text, nowMs);
      if (token.kind === 'other') return { kind: 'refused', reason: 'no caller identity token' };
      if (token.kind === 'refused') return token;
      const key = createHash('sha256').update(text).digest('base64');
      const known = verdicts.find(key);
      if (known !== undefined && nowMs < known.untilMs) return known.answer;
      const running = asking.get(key);
      if (running !== undefined) return running;
      if (asking.size >= QUESTIONS_AT_ONCE_MAX) throw notNow();
      const question = settle(key, token.url, { nowMs, goodUntilMs: token.goodUntilMs }).finally(() =>
        asking.delete(key),
      );
      asking.set(key, question);
      return question;
    },
  };
}

const notNow = (cause?: unknown): Error =>
  status.serviceUnavailable('sign-in could not be checked with AWS STS', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    ...defined({ cause }),
  });

function userOf(identity: CallerIdentity, entries: readonly AccessEntry[]): Authentication {
  const user = mapIdentity(identity, entries);
  if (user === undefined) return { kind: 'refused', reason: `no access entry names ${identity.arn}` };
  return {
    kind: 'authenticated',
    user: {
      username: user.username,
      uid: `nodekeeper:${identity.accountId}:${identity.userId.split(':')[0] ?? ''}`,
      groups: [...user.groups, 'system:authenticated'],
      extra: { arn: [identity.arn] },
    },
  };
}

type StsAnswer =
  | { readonly kind: 'identity'; readonly identity: CallerIdentity }
  | { readonly kind: 'refused'; readonly reason: string };

/** @throws the Status 503 when STS gave no answer that says anything about the caller */
async function askSts(options: CallerIdentityOptions, url: string): Promise<StsAnswer> {
  let response: Response;
  let text: string;
  try {
    response = await (options.fetch ?? fetch)(url, {
      method: 'GET',
      // The value that was signed: a token for another cluster has another, and STS refuses it.
      headers: { [CLUSTER_HEADER]: options.clusterId, accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await boundedText(response);
  } catch (cause) {
    throw notNow(cause);
  }
  if (response.status >= 500 || response.status === 429) throw notNow();
  if (response.status !== 200) return { kind: 'refused', reason: `STS answered ${response.status}` };
  const identity = identityIn(text);
  return identity === undefined
    ? { kind: 'refused', reason: 'STS answered something else than a caller identity' }
    : { kind: 'identity', identity };
}

async function boundedText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer is too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function identityIn(text: string): CallerIdentity | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const result = field(field(parsed, 'GetCallerIdentityResponse'), 'GetCallerIdentityResult');
  const [arn, accountId, userId] = ['Arn', 'Account', 'UserId'].map((name) => field(result, name));
  return typeof arn === 'string' && typeof accountId === 'string' && typeof userId === 'string'
    ? { arn, accountId, userId }
    : undefined;
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
