/**
 * Authenticates users by their pre-signed GetCallerIdentity requests. The request is sent to STS. The response of STS
 * identifies the signer. Access entries map that identity to a user and groups.
 *
 * kubectl sends the same token for many requests, so a verdict is cached by the token's hash, at most VERDICT_SECONDS
 * and at most until the token expires. The removal of an access entry takes effect with the deployment, which restarts
 * the functions. The revocation of an AWS credential takes effect within VERDICT_SECONDS.
 */

import { createHash } from 'node:crypto';
import { type AccessEntry, type CallerIdentity, mapIdentity } from '../../shared/access/access-entry.ts';
import type { Authentication } from '../../shared/access/authenticator.ts';
import type { BearerScheme } from '../../shared/access/bearer.ts';
import { boundedMemory } from '../../shared/access/bearer.ts';
import {
  CALLER_IDENTITY_PREFIX,
  CLUSTER_HEADER,
  readCallerIdentityToken,
} from '../../shared/access/caller-identity-token.ts';
import { defined } from '../../shared/defined.ts';
import * as status from '../../shared/kubernetes/status.ts';

/** Maximum lifetime of a positive verdict. */
const VERDICT_SECONDS = 300;
/** Lifetime of a refusal by STS. Within it a client that repeats the token causes no call. */
const REFUSAL_SECONDS = 10;
/** Maximum number of cached verdicts; the oldest is dropped first. */
const VERDICTS_MAX = 1_000;
/** A response of STS has about 400 bytes. */
const RESPONSE_BYTES_MAX = 65_536;
const TIMEOUT_MS = 5_000;
/** Concurrent calls to STS. Beyond it clients must retry. */
const CONCURRENT_CALLS_MAX = 16;
const RETRY_AFTER_SECONDS = 2;

export interface CallerIdentityOptions {
  readonly clusterId: string;
  readonly entries: readonly AccessEntry[];
  /** Sends requests to STS; by default the runtime's fetch. */
  readonly fetch?: typeof fetch;
}

interface Verdict {
  readonly authentication: Authentication;
  readonly untilMs: number;
}

export function callerIdentityTokens(options: CallerIdentityOptions): BearerScheme {
  const verdicts = boundedMemory<Verdict>(VERDICTS_MAX);
  const pending = new Map<string, Promise<Authentication>>();

  async function authenticateWithSts(
    key: string,
    url: string,
    at: { nowMs: number; goodUntilMs: number },
  ): Promise<Authentication> {
    const response = await callSts(options, url);
    const authentication = response.kind === 'identity' ? userOf(response.identity, options.entries) : response;
    const lifetimeMs = (authentication.kind === 'authenticated' ? VERDICT_SECONDS : REFUSAL_SECONDS) * 1_000;
    verdicts.keep(key, { authentication, untilMs: Math.min(at.goodUntilMs, at.nowMs + lifetimeMs) });
    return authentication;
  }

  return {
    recognises: (text) => text.startsWith(CALLER_IDENTITY_PREFIX),
    async authenticate(text, nowMs) {
      const token = readCallerIdentityToken(text, nowMs);
      if (token.kind === 'other') return { kind: 'refused', reason: 'no caller identity token' };
      if (token.kind === 'refused') return token;
      const key = createHash('sha256').update(text).digest('base64');
      const known = verdicts.find(key);
      if (known !== undefined && nowMs < known.untilMs) return known.authentication;
      const running = pending.get(key);
      if (running !== undefined) return running;
      if (pending.size >= CONCURRENT_CALLS_MAX) throw stsUnavailable();
      const call = authenticateWithSts(key, token.url, { nowMs, goodUntilMs: token.goodUntilMs }).finally(() =>
        pending.delete(key),
      );
      pending.set(key, call);
      return call;
    },
  };
}

const stsUnavailable = (cause?: unknown): Error =>
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

type StsOutcome =
  | { readonly kind: 'identity'; readonly identity: CallerIdentity }
  | { readonly kind: 'refused'; readonly reason: string };

/** @throws the Status 503 if the response of STS neither identifies nor refuses the caller */
async function callSts(options: CallerIdentityOptions, url: string): Promise<StsOutcome> {
  let response: Response;
  let text: string;
  try {
    response = await (options.fetch ?? fetch)(url, {
      method: 'GET',
      // The value that was signed: a token for another cluster has a different one, so STS refuses it.
      headers: { [CLUSTER_HEADER]: options.clusterId, accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await boundedText(response);
  } catch (cause) {
    throw stsUnavailable(cause);
  }
  if (response.status >= 500 || response.status === 429) throw stsUnavailable();
  if (response.status !== 200) return { kind: 'refused', reason: `STS returned status ${response.status}` };
  const identity = identityIn(text);
  return identity === undefined
    ? { kind: 'refused', reason: 'STS returned no caller identity' }
    : { kind: 'identity', identity };
}

async function boundedText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > RESPONSE_BYTES_MAX) throw new Error('the response is too large');
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
