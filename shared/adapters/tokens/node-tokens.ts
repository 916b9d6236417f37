/**
 * Tokens that nodes sign themselves, and node-monitor's probe as they do (JWT, RFC 7519; rules in
 * shared/domain/access/node-token.ts), checked inside the function: no second hop, no service to ask.
 *
 * Which algorithm a key is used with follows from the stored key alone; a header that says another is refused, so
 * there is no `none`, no key taken for a secret, and no key that a token brings along.
 *
 * Memories, all bounded, so that a beat in calm reads nothing and checks no signature:
 *   keys of a node      keysLiveMs since they were read: how long a revoked key may still open something here. Those of the
 *                       probe likewise, as of one more node; each has an end of its own besides
 *   no such key         ABSENT_LIVES_MS: a flood of tokens for nobody costs two reads a name in so long. Names without
 *                       any key are kept apart: anybody can make them up, and they must not push out keys of nodes
 *   tokens seen good    to their end, and only while the key they were signed with is among the node's
 */
import { createHash, type KeyObject, verify } from 'node:crypto';
import { algorithmOf, KEY_ID_EXTRA, type NodeKey, type NodeKeyAlgorithm } from '../../domain/access/node-identity.ts';
import { NODES_GROUP } from '../../domain/access/node-restriction.ts';
import { judgeNodeToken, NODE_TOKEN_CHARACTERS_MAX, type NodeTokenClaims } from '../../domain/access/node-token.ts';
import { PROBE_GROUP, PROBE_USER } from '../../domain/access/probe-identity.ts';
import { hasEnded } from '../../domain/access/process-key.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import type { Authentication } from '../../ports/authenticator.ts';
import type { NodeKeys } from '../../ports/node-keys.ts';
import type { ProbeKeys } from '../../ports/process-keys.ts';
import type { BearerScheme } from './bearer.ts';
import { boundedMemory, lookupMemory } from './bounded-memory.ts';
import { jsonObjectIn } from './json-object.ts';
import { keyObjectOf } from './public-keys.ts';

const ABSENT_LIVES_MS = 5_000;
const NODES_MAX = 20_000;
const TOKENS_MAX = 20_000;

export interface NodeTokenOptions {
  readonly keys: NodeKeys;
  /** Absent: probes do not sign in here. */
  readonly probeKeys?: ProbeKeys;
  /** The audience that tokens must name. */
  readonly clusterId: string;
  /** How long keys are believed after they were read. Milliseconds: a revocation takes effect within it. */
  readonly keysLiveMs: number;
  /** Nodes, names without a key, and tokens remembered at most, each. */
  readonly rememberedMax?: number;
}

interface KnownKey {
  readonly algorithm: NodeKeyAlgorithm;
  readonly key: KeyObject;
  /** Last moment it counts, however it is remembered; a node's key has no end. Epoch milliseconds. */
  readonly throughMs: number;
}

/** A node, or the probe. */
interface KnownNode {
  readonly keys: ReadonlyMap<string, KnownKey>;
  readonly readAtMs: number;
  /** Whether it was the newest state at that time, and not possibly a moment older. */
  readonly newest: boolean;
}

type Who = Pick<NodeTokenClaims, 'username' | 'nodeName'>;
type StoredKey = Pick<NodeKey, 'keyId' | 'publicKey'> & { readonly throughMs?: number };

interface KnownToken {
  readonly claims: NodeTokenClaims;
  readonly authentication: Authentication;
}

/** header.payload.signature in base64url. */
const FORM = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;
/** r and s of P-256, or an Ed25519 signature: 64 bytes in base64url. */
const SIGNATURE_CHARACTERS = 86;

const refused = (reason: string): Authentication => ({ kind: 'refused', reason });

export function nodeTokens(options: NodeTokenOptions): BearerScheme {
  const { clusterId, keysLiveMs } = options;
  const nodes = lookupMemory<KnownNode>(options.rememberedMax ?? NODES_MAX, ({ keys }) => keys.size > 0);
  const tokens = boundedMemory<KnownToken>(options.rememberedMax ?? TOKENS_MAX);

  async function readNode(who: Who, nowMs: number, consistent: boolean): Promise<KnownNode> {
    const stored: readonly StoredKey[] =
      who.nodeName === undefined
        ? ((await options.probeKeys?.probeKeys({ consistent })) ?? [])
        : await options.keys.keysOf(who.nodeName, { consistent });
    const keys = new Map<string, KnownKey>();
    for (const { keyId, publicKey, throughMs = Number.POSITIVE_INFINITY } of stored) {
      keys.set(keyId, { algorithm: algorithmOf(publicKey), key: keyObjectOf(publicKey), throughMs });
    }
    const known = { keys, readAtMs: nowMs, newest: consistent };
    nodes.keep(who.username, known);
    return known;
  }

  /** The key, from memory while that is fresh. A key that is not there is looked for once more, in the newest state. */
  async function keyOf(claims: NodeTokenClaims, nowMs: number): Promise<KnownKey | undefined> {
    const { username, keyId } = claims;
    const known = nodes.find(username);
    // What was read in the future was read before the clock was set back: it is as old as it was young.
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(nowMs - known.readAtMs);
    const found = ageMs < keysLiveMs ? known?.keys.get(keyId) : undefined;
    if (found !== undefined) return unended(found, nowMs);
    if (known?.newest === true && ageMs < ABSENT_LIVES_MS) return undefined;
    if (ageMs >= keysLiveMs) {
      const cheaply = (await readNode(claims, nowMs, false)).keys.get(keyId);
      if (cheaply !== undefined) return unended(cheaply, nowMs);
    }
    return unended((await readNode(claims, nowMs, true)).keys.get(keyId), nowMs);
  }

  async function authenticateNew(token: string, nowMs: number): Promise<KnownToken | Authentication> {
    const [, header = '', payload = '', signature = ''] = FORM.exec(token) ?? [];
    if (signature.length !== SIGNATURE_CHARACTERS) return refused('malformed node token');
    const headerObject = jsonObjectIn(Buffer.from(header, 'base64url'));
    const payloadObject = jsonObjectIn(Buffer.from(payload, 'base64url'));
    if (headerObject === undefined || payloadObject === undefined) return refused('malformed node token');
    const verdict = judgeNodeToken(headerObject, payloadObject, { nowMs, clusterId });
    if (verdict.kind === 'refused') return refused(`node token: ${verdict.reason}`);
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
        if (nowMs < fromMs || nowMs > throughMs) return refused('node token: expired');
        // The signature stays as good as it was; whether the key still counts may have changed.
        if ((await keyOf(seen.claims, nowMs)) !== undefined) return seen.authentication;
        return refused('node token: no such key');
      }
      const outcome = await authenticateNew(token, nowMs);
      if ('kind' in outcome) return outcome;
      tokens.keep(digest, outcome);
      return outcome.authentication;
    },
  };
}

const unended = (key: KnownKey | undefined, nowMs: number): KnownKey | undefined =>
  key === undefined || hasEnded(key, nowMs) ? undefined : key;

function userOf({ username, nodeName, keyId }: NodeTokenClaims): UserInfo {
  if (nodeName === undefined) return { username: PROBE_USER, groups: [PROBE_GROUP, 'system:authenticated'] };
  return {
    username,
    groups: [NODES_GROUP, 'system:authenticated'],
    extra: { [KEY_ID_EXTRA]: [keyId] },
  };
}
