/**
 * Verifies tokens that nodes and node-monitor's probe sign themselves (JWT, RFC 7519; rules in
 * shared/access/node-token.ts). No other service is called.
 *
 * The stored key alone determines the algorithm. A header with another algorithm is refused. This excludes `none`, a
 * public key as a secret, and a key that is sent with the token.
 *
 * All caches are bounded. With them a heartbeat in steady state reads nothing and verifies no signature: verified
 * tokens are kept until they expire, and count only while their key is among the keys of the node; not those that are
 * bound to one request body, because each is used once.
 */
import { createHash, type KeyObject, verify } from 'node:crypto';
import { defined } from '../defined.ts';
import type { Authentication } from './authenticator.ts';
import { NODES_GROUP } from './authorize.ts';
import { type BearerScheme, boundedMemory, jsonObjectIn, lookupMemory } from './bearer.ts';
import {
  algorithmOf,
  BEAT_ONLY_EXTRA,
  BODY_SHA256_EXTRA,
  KEY_ID_EXTRA,
  type NodeKey,
  type NodeKeyAlgorithm,
} from './node-identity.ts';
import type { NodeKeys } from './node-keys.ts';
import { NODE_TOKEN_CHARACTERS_MAX, type NodeTokenClaims, nodeTokenVerdict } from './node-token.ts';
import { PROBE_GROUP, PROBE_USER } from './probe-identity.ts';
import { hasEnded } from './process-key.ts';
import type { ProbeKeys } from './process-keys.ts';
import { keyObjectOf } from './public-keys.ts';
import type { UserInfo } from './user-info.ts';

const TOKENS_MAX = 20_000;

export interface NodeTokenOptions extends KnownKeyOptions {
  /** The audience that tokens must name. */
  readonly clusterId: string;
  /** Whether tokens for heartbeats alone are accepted. Default: no. */
  readonly acceptsBeatTokens?: boolean;
}

interface KnownToken {
  readonly claims: NodeTokenClaims;
  readonly authentication: Authentication;
}

/** header.payload.signature in base64url. */
const TOKEN_FORMAT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;
/** r and s of P-256, or an Ed25519 signature: 64 bytes in base64url. */
const SIGNATURE_CHARACTERS = 86;

const refused = (reason: string, isByClock = false): Authentication => ({
  ...{ kind: 'refused', reason },
  ...(isByClock && { isByClock }),
});

export function nodeTokens(options: NodeTokenOptions): BearerScheme {
  const { clusterId, acceptsBeatTokens = false } = options;
  const keyOf = knownKeys(options);
  const tokens = boundedMemory<KnownToken>(options.rememberedMax ?? TOKENS_MAX);

  async function authenticateNew(token: string, nowMs: number): Promise<KnownToken | Authentication> {
    const [, header = '', payload = '', signature = ''] = TOKEN_FORMAT.exec(token) ?? [];
    if (signature.length !== SIGNATURE_CHARACTERS) return refused('malformed node token');
    const headerObject = jsonObjectIn(Buffer.from(header, 'base64url'));
    const payloadObject = jsonObjectIn(Buffer.from(payload, 'base64url'));
    if (headerObject === undefined || payloadObject === undefined) return refused('malformed node token');
    const verdict = nodeTokenVerdict(headerObject, payloadObject, { nowMs, clusterId, acceptsBeatTokens });
    if (verdict.kind === 'refused') return refused(`node token: ${verdict.reason}`, verdict.isByClock);
    const { claims } = verdict;
    const known = await keyOf(claims, nowMs);
    if (known === undefined) return refused('node token: no such key');
    if (known.algorithm !== claims.algorithm) return refused('node token: the key is of another algorithm');
    const isSigned = verify(
      claims.algorithm === 'ES256' ? 'sha256' : null,
      Buffer.from(`${header}.${payload}`, 'latin1'),
      { key: known.key, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    if (!isSigned) return refused('node token: wrong signature');
    return { claims, authentication: { kind: 'authenticated', user: userOf(claims) } };
  }

  return {
    recognises: (token) => token.startsWith('eyJ') && token.split('.', 4).length === 3,

    async authenticate(token, nowMs) {
      if (token.length > NODE_TOKEN_CHARACTERS_MAX) return refused('node token: too long');
      const digest = createHash('sha256').update(token).digest('base64');
      const seen = tokens.find(digest);
      if (seen !== undefined) {
        const { fromMs, throughMs } = seen.claims;
        if (nowMs < fromMs || nowMs > throughMs) return refused('node token: expired', true);
        // The signature stays valid, but the key may have been revoked.
        if ((await keyOf(seen.claims, nowMs)) !== undefined) return seen.authentication;
        return refused('node token: no such key');
      }
      const outcome = await authenticateNew(token, nowMs);
      if ('kind' in outcome) return outcome;
      if (outcome.claims.bodySha256 === undefined) tokens.keep(digest, outcome);
      return outcome.authentication;
    },
  };
}

function userOf({ username, nodeName, keyId, isBeatOnly, bodySha256 }: NodeTokenClaims): UserInfo {
  if (nodeName === undefined) return { username: PROBE_USER, groups: [PROBE_GROUP, 'system:authenticated'] };
  return {
    username,
    groups: [NODES_GROUP, 'system:authenticated'],
    extra: {
      [KEY_ID_EXTRA]: [keyId],
      ...(isBeatOnly ? { [BEAT_ONLY_EXTRA]: ['true'] } : {}),
      ...(bodySha256 === undefined ? {} : { [BODY_SHA256_EXTRA]: [bodySha256] }),
    },
  };
}

const ABSENT_KEYS_LIVE_MS = 5_000;
const NODES_MAX = 20_000;

export interface KnownKeyOptions {
  readonly keys: NodeKeys;
  /** Absent: tokens of probes are refused. */
  readonly probeKeys?: ProbeKeys;
  /** Lifetime of cached keys. Milliseconds: a revocation takes effect within it. */
  readonly keysLiveMs: number;
  /** Maximum number of cached nodes, and of names without a key, each. */
  readonly rememberedMax?: number;
}

/** The owner of a key, and its id. */
export type KeySubject = Pick<NodeTokenClaims, 'username' | 'nodeName' | 'keyId'>;

export interface KnownKey {
  readonly algorithm: NodeKeyAlgorithm;
  readonly key: KeyObject;
  /** Expiry, independent of the cache. Epoch milliseconds. Absent: a node's key does not expire. */
  readonly throughMs?: number;
}

/** A node, or the probe. */
interface KnownNode {
  readonly keys: ReadonlyMap<string, KnownKey>;
  readonly readAtMs: number;
  /** Whether the read was strongly consistent. */
  readonly isConsistent: boolean;
}

type StoredKey = Pick<NodeKey, 'keyId' | 'publicKey'> & { readonly throughMs?: number };

/**
 * The key of a subject, from bounded memory while that is fresh. A missing key is read again, strongly consistent.
 *
 *   keys of a node      for keysLiveMs: how long a revoked key may still be accepted. The probe's keys are cached
 *                       like those of one more node, and each also has an expiry
 *   missing keys        for ABSENT_KEYS_LIVE_MS: a flood of unknown names costs two reads per name in that time.
 *                       They are kept separately, because invented names must not push out keys of nodes
 */
export function knownKeys(
  options: KnownKeyOptions,
): (subject: KeySubject, nowMs: number) => Promise<KnownKey | undefined> {
  const { keysLiveMs } = options;
  const nodes = lookupMemory<KnownNode>(options.rememberedMax ?? NODES_MAX, ({ keys }) => keys.size > 0);

  async function readNode(subject: KeySubject, nowMs: number, consistent: boolean): Promise<KnownNode> {
    const stored: readonly StoredKey[] =
      subject.nodeName === undefined
        ? ((await options.probeKeys?.probeKeys({ consistent })) ?? [])
        : await options.keys.keysOf(subject.nodeName, { consistent });
    const keys = new Map<string, KnownKey>();
    for (const { keyId, publicKey, throughMs } of stored) {
      keys.set(keyId, { algorithm: algorithmOf(publicKey), key: keyObjectOf(publicKey), ...defined({ throughMs }) });
    }
    const known = { keys, readAtMs: nowMs, isConsistent: consistent };
    nodes.keep(subject.username, known);
    return known;
  }

  return async (subject, nowMs) => {
    const { username, keyId } = subject;
    const known = nodes.find(username);
    // A read time in the future means that the clock was set back. Then the distance is the age.
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(nowMs - known.readAtMs);
    const found = ageMs < keysLiveMs ? known?.keys.get(keyId) : undefined;
    if (found !== undefined) return unexpired(found, nowMs);
    if (known?.isConsistent === true && ageMs < ABSENT_KEYS_LIVE_MS) return undefined;
    if (ageMs >= keysLiveMs) {
      const key = (await readNode(subject, nowMs, false)).keys.get(keyId);
      if (key !== undefined) return unexpired(key, nowMs);
    }
    return unexpired((await readNode(subject, nowMs, true)).keys.get(keyId), nowMs);
  };
}

function unexpired(key: KnownKey | undefined, nowMs: number): KnownKey | undefined {
  const throughMs = key?.throughMs;
  return throughMs !== undefined && hasEnded({ throughMs }, nowMs) ? undefined : key;
}
