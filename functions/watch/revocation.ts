/**
 * Whether the user of a held watch or log may still receive it. A watch is authorized at its start and lasts up to 15
 * minutes. Without this check it would go on after the identity of the machine or the service account was deleted, or
 * the role binding removed. With impersonation the identity of the caller is checked, too.
 *
 * A check per REVOCATION_CHECK_MS, which pauses of up to a second may delay: a watch ends within 5 s.
 *
 * Cost of a check: for a machine half a read unit, for a service account one unit per object that its token needs. For
 * a user with access by roles 2 units, which the watches of one process share (policy-cache.ts). For a custom resource
 * one unit more. That is at most 3,600 units or $0.0005 per hour of a watch. A key that is missing is read again,
 * strongly consistent: an eventually consistent read may not yet have a key that was added a moment ago.
 */

import { isAlive, objectsOfUser } from '../../shared/access/account-token.ts';
import { nodeIdentity } from '../../shared/access/authorize.ts';
import { KEY_ID_EXTRA } from '../../shared/access/node-identity.ts';
import type { NodeKeys } from '../../shared/access/node-keys.ts';
import type { UserInfo } from '../../shared/access/user-info.ts';
import type { Call } from '../../shared/api/call.ts';
import type { Clock } from '../../shared/clock.ts';
import * as status from '../../shared/kubernetes/status.ts';
import type { ObjectStore } from '../../shared/store/object-store.ts';

/** Time between two checks of one watch. Milliseconds. */
export const REVOCATION_CHECK_MS = 3_000;
/**
 * The same while no commit may have withdrawn access, where a process sees all commits. The token of a pod that is
 * being deleted expires without a commit.
 */
const UNCHANGED_CHECK_MS = 60_000;

/** Until the next check is due. `isChanged`: a commit may have withdrawn access since the last one. Milliseconds. */
export const checkIntervalMs = (isChanged: boolean): number => (isChanged ? REVOCATION_CHECK_MS : UNCHANGED_CHECK_MS);

/** Why the user may receive no more events; undefined: it may. Rejects if that cannot be read. */
export type FindRefusal = () => Promise<status.StatusError | undefined>;

type IsAlive = () => Promise<boolean>;

export interface RevocationSources {
  readonly nodeKeys: NodeKeys;
  /** Strongly consistent, in order of the refs. */
  readonly objects: Pick<ObjectStore, 'getMany'>;
  readonly clock: Clock;
}

/** `users`: who was authenticated, and the user that the request acts as. */
export function revocationCheck(
  { nodeKeys, objects, clock }: RevocationSources,
  users: readonly UserInfo[],
  { accessRefusal }: Pick<Call, 'accessRefusal'>,
): FindRefusal {
  const checks = [...new Set(users)].flatMap(
    (user) => machineCheck(nodeKeys, user) ?? accountCheck(objects, clock, user) ?? [],
  );
  return async () => {
    const [refusal, ...alive] = await Promise.all([accessRefusal(clock.nowMs()), ...checks.map((check) => check())]);
    return alive.every(Boolean) ? refusal : status.unauthorized();
  };
}

function machineCheck(keys: NodeKeys, user: UserInfo): IsAlive | undefined {
  const keyId = user.extra?.[KEY_ID_EXTRA]?.[0];
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  if (keyId === undefined || identity.kind !== 'node') return undefined;
  return async () => {
    const { nodeName } = identity;
    const hasKey = async (consistent: boolean): Promise<boolean> =>
      (await keys.keysOf(nodeName, { consistent })).some((key) => key.keyId === keyId);
    return (await hasKey(false)) || hasKey(true);
  };
}

/** A token of a service account is valid while its account and its pod or node exist. */
function accountCheck(objects: RevocationSources['objects'], clock: Clock, user: UserInfo): IsAlive | undefined {
  const required = objectsOfUser(user);
  if (required.length === 0) return undefined;
  return async () => {
    const found = await objects.getMany(required.map(({ ref }) => ref));
    return required.every(({ uid }, index) => isAlive(found[index], uid, clock.nowMs()));
  };
}
