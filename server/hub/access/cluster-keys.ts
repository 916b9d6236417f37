/**
 * Public keys of the cluster, which verify tokens without asking for each: those that sign tokens of service accounts,
 * and those of machines. They are kept for the time when the cluster cannot be reached.
 */
import type { AccountKeys } from '../../../shared/access/account-tokens.ts';
import { boundedMemory } from '../../../shared/access/bearer.ts';
import { type NodeKey, type NodePublicKey, publicKeyOf } from '../../../shared/access/node-identity.ts';
import type { NodeKeys } from '../../../shared/access/node-keys.ts';
import type { ProcessKey } from '../../../shared/access/process-key.ts';
import { thumbprintOf } from '../../../shared/access/public-keys.ts';
import type { Clock, StartTimeLimit } from '../../../shared/clock.ts';
import type { JsonObject } from '../../../shared/kubernetes/json.ts';
import type { KeptAnswers } from './kept-answers.ts';
import { orKnown, type Questions, unverified } from './questions.ts';

interface KeySource<T> {
  readonly questions: Questions;
  readonly kept: KeptAnswers<readonly T[]>;
  readonly clock: Clock;
}

const JWKS_PATH = '/openid/v1/jwks';
/** The only set of keys. */
const ACCOUNT_KEYS = 'accounts';

/** Between two requests for the keys, for key ids that somebody invents. Milliseconds. */
const KEY_SET_LIVES_MS = 5_000;

/**
 * The key set says which keys are valid, not until when, and is asked again each hour (account-tokens.ts). Offline, a
 * key stays valid: its tokens expire within a day.
 */
export function clusterAccountKeys({ questions, kept, clock }: KeySource<NodePublicKey>): Pick<AccountKeys, 'find'> {
  let recent: { readonly keys: readonly NodePublicKey[]; readonly readAtMs: number } | undefined;

  async function keySet(): Promise<readonly NodePublicKey[]> {
    const nowMs = clock.nowMs();
    if (recent !== undefined && Math.abs(nowMs - recent.readAtMs) < KEY_SET_LIVES_MS) return recent.keys;
    const answer = await questions.ask('GET', JWKS_PATH);
    const listed = answer.kind === 'answered' ? answer.body?.['keys'] : undefined;
    if (!Array.isArray(listed)) {
      const last = await kept.find(ACCOUNT_KEYS);
      if (last === undefined) throw unverified(answer.kind === 'unanswered' ? answer.why : 'the cluster has no keys');
      return last.value;
    }
    const keys = listed.flatMap((key: Readonly<Record<string, unknown>>) => publicKeyOf(key) ?? []);
    recent = { keys, readAtMs: nowMs };
    await kept.keep(ACCOUNT_KEYS, keys, nowMs);
    return keys;
  }

  return {
    async find(keyId) {
      const publicKey = (await keySet()).find((key) => thumbprintOf(key) === keyId);
      return publicKey && ({ keyId, publicKey, throughMs: Number.POSITIVE_INFINITY } satisfies ProcessKey);
    },
  };
}

/** How long keys of a machine are used without asking: so long is a deleted identity accepted. Milliseconds. */
const MACHINE_KEYS_LIVE_MS = 60_000;
const MACHINES_MAX = 20_000;

export interface ClusterNodeKeys extends NodeKeys {
  /** Its Node was deleted. */
  forget(nodeName: string): Promise<void>;
}

/** Keys of machines, by their NodeIdentity. `consistent` asks the cluster. */
export function clusterNodeKeys({
  questions,
  kept,
  clock,
  startTimeLimit,
}: KeySource<NodeKey> & { readonly startTimeLimit: StartTimeLimit }): ClusterNodeKeys {
  const known = boundedMemory<{ readonly keys: readonly NodeKey[]; readonly readAtMs: number }>(MACHINES_MAX);
  async function ask(nodeName: string, before: readonly NodeKey[] | undefined): Promise<readonly NodeKey[]> {
    const path = `/apis/nodekeeper.dev/v1alpha1/nodeidentities/${encodeURIComponent(nodeName)}`;
    const answer = await questions.ask('GET', path);
    const keys = answer.kind === 'answered' ? machineKeysIn(answer.body) : undefined;
    if (keys === undefined) {
      const last = before ?? (await kept.find(nodeName))?.value;
      if (last === undefined) {
        throw unverified(answer.kind === 'unanswered' ? answer.why : 'the cluster answered no keys');
      }
      return last;
    }
    known.keep(nodeName, { keys, readAtMs: clock.nowMs() });
    await (keys.length === 0 ? kept.drop(nodeName) : kept.keep(nodeName, keys, clock.nowMs()));
    return keys;
  }

  return {
    async keysOf(nodeName, { consistent }) {
      const recent = known.find(nodeName);
      const ageMs = recent === undefined ? Number.POSITIVE_INFINITY : Math.abs(clock.nowMs() - recent.readAtMs);
      if (recent !== undefined && !consistent && ageMs < MACHINE_KEYS_LIVE_MS) return recent.keys;
      const asked = ask(nodeName, recent?.keys);
      return recent === undefined || consistent ? asked : orKnown(asked, recent.keys, startTimeLimit);
    },
    async forget(nodeName) {
      known.forget(nodeName);
      await kept.drop(nodeName);
    },
  };
}

/** None: there is no such identity. undefined: this is not one. */
function machineKeysIn(body: JsonObject | undefined): readonly NodeKey[] | undefined {
  if (body === undefined) return [];
  const { spec } = body as { readonly spec?: { readonly keys?: readonly { readonly publicKey?: object }[] } };
  return spec?.keys?.flatMap(({ publicKey: jwk = {} }) => {
    const publicKey = publicKeyOf(jwk as Readonly<Record<string, unknown>>);
    return publicKey === undefined ? [] : [{ keyId: thumbprintOf(publicKey), publicKey, addedAtMs: 0 }];
  });
}
