/**
 * Who asks a hub: by the same tokens as at the cluster.
 *
 *   tokens of service accounts   by the keys of the cluster, and the objects in the copy
 *   tokens of machines           by the keys of their NodeIdentity
 *   every other token            by a TokenReview of the cluster
 *
 * What is refused here is asked of the cluster, if it can be: the copy may not have the account or the pod of a new
 * token yet. They are then read before the answer: a watch ends when its account is not there.
 */
import { type AccountKeys, accountTokens, type FindObject } from '../../../shared/access/account-tokens.ts';
import type { Authenticator } from '../../../shared/access/authenticator.ts';
import { type BearerScheme, bearerSchemes, bearerTokenOf } from '../../../shared/access/bearer.ts';
import { parseBootstrapToken } from '../../../shared/access/bootstrap-token.ts';
import { CALLER_IDENTITY_PREFIX } from '../../../shared/access/caller-identity-token.ts';
import type { NodeKeys } from '../../../shared/access/node-keys.ts';
import { nodeTokens } from '../../../shared/access/node-tokens.ts';
import { unverified } from './questions.ts';
import type { ReviewedTokens } from './reviewed-tokens.ts';

export interface HubAuthenticatorOptions {
  readonly accountKeys: Pick<AccountKeys, 'find'>;
  readonly nodeKeys: NodeKeys;
  /** Names the cluster in the tokens of its machines. Undefined: not known yet. */
  readonly clusterId: () => string | undefined;
  /** Reads the copy. */
  readonly find: FindObject;
  readonly reviews: ReviewedTokens;
  /** The cluster cannot be reached. */
  readonly isDown: () => boolean;
  /** The copy has only a part of the objects that tokens depend on. */
  readonly isPart: () => boolean;
  /** Resolves when the copy has what the cluster has. */
  readonly caughtUp: (resource: string) => Promise<unknown>;
}

/** Objects that tokens depend on. */
export const REQUIRED = ['serviceaccounts', 'pods'];

/** `nodeKeys` says itself how old a key may be. Milliseconds. */
const KEYS_LIVE_MS = 1_000;
/** How long the cluster is not asked again about a token that it accepted. Milliseconds. */
const REVIEW_LIVES_MS = 60_000;
/** The same for a token that depends on objects, which may be deleted: as at the cluster. Milliseconds. */
const OBJECTS_LIVE_MS = 10_000;

export function hubAuthenticator(options: HubAuthenticatorOptions): Authenticator {
  const { accountKeys, nodeKeys, clusterId, find, reviews, isDown, isPart, caughtUp } = options;
  const onAccepted = () => Promise.all(REQUIRED.map(caughtUp));
  const orByReview = (scheme: BearerScheme): BearerScheme => ({
    recognises: scheme.recognises,
    async authenticate(token, nowMs) {
      const own = await scheme.authenticate(token, nowMs);
      if (own.kind === 'refused' && isDown()) {
        if (isPart()) throw unverified('its pod may be of another site');
        if (own.isByClock === true) throw unverified('nothing checks the clock of this hub without the cluster');
      }
      return own.kind === 'authenticated' || isDown()
        ? own
        : reviews.authenticate(token, nowMs, {
            isBrief: true,
            liveMs: OBJECTS_LIVE_MS,
            onAccepted,
          });
    },
  });
  const otherwise: Authenticator = {
    async authenticate(headers, nowMs) {
      if ((headers['authorization'] ?? '') === '') return { kind: 'anonymous' };
      const token = bearerTokenOf(headers);
      if (token === undefined) return { kind: 'refused', reason: 'not a bearer token' };
      return reviews.authenticate(token, nowMs, {
        isBrief: expiresByItself(token),
        liveMs: REVIEW_LIVES_MS,
      });
    },
  };
  return bearerSchemes(
    [orByReview(accountTokens({ keys: accountKeys, find })), orByReview(machineTokens(nodeKeys, clusterId))],
    otherwise,
  );
}

/** Only the cluster knows when. */
export const expiresByItself = (token: string): boolean =>
  token.startsWith(CALLER_IDENTITY_PREFIX) || parseBootstrapToken(token) !== undefined;

/** Made anew when the cluster says another id. */
function machineTokens(keys: NodeKeys, clusterId: () => string | undefined): BearerScheme {
  const of = (id: string): BearerScheme => nodeTokens({ keys, clusterId: id, keysLiveMs: KEYS_LIVE_MS });
  let made = { id: '', scheme: of('') };
  return {
    recognises: made.scheme.recognises,
    async authenticate(token, nowMs) {
      const id = clusterId();
      if (id === undefined) return { kind: 'refused', reason: 'node token: the cluster has not said its id' };
      if (id !== made.id) made = { id, scheme: of(id) };
      return made.scheme.authenticate(token, nowMs);
    },
  };
}
