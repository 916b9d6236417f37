/**
 * Whether the identity of a machine or a service account that holds a watch or a log still exists. With impersonation it
 * is that of the caller. A watch is authorized once, at
 * its start, and lasts up to 15 minutes. Without this check, it would show events until then, although the identity was
 * deleted.
 *
 * Cost: for a machine half a read unit, for a service account one unit per object that its token needs, when the watch
 * starts and once per minute. A key that is missing is read
 * again, strongly consistent: an eventually consistent read may not yet have a key that was added a moment ago.
 */
import { KEY_ID_EXTRA } from '../../domain/access/node-identity.ts';
import { nodeIdentity } from '../../domain/access/node-restriction.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import { isAlive, objectsOfUser } from '../../kube/accounts/account-token.ts';
import type { Clock } from '../../ports/clock.ts';
import type { NodeKeys } from '../../ports/node-keys.ts';
import type { ObjectStore } from '../../store/object-store.ts';

/** Time between two checks of one watch. Milliseconds. */
export const REVOCATION_CHECK_MS = 60_000;

/** Whether the user may still receive events. Rejects if the keys cannot be read. */
export type IsStillAllowed = () => Promise<boolean>;

export interface RevocationSources {
  readonly nodeKeys: NodeKeys;
  /** Strongly consistent, in order of the refs. */
  readonly objects: Pick<ObjectStore, 'getMany'>;
  readonly clock: Clock;
}

/**
 * `users`: who was authenticated, and the user that the request acts as. undefined: none of them has a credential that can
 * be checked, such as a person.
 */
export function revocationCheck(
  { nodeKeys, objects, clock }: RevocationSources,
  users: readonly UserInfo[],
): IsStillAllowed | undefined {
  const checks = [...new Set(users)].flatMap(
    (user) => machineCheck(nodeKeys, user) ?? accountCheck(objects, clock, user) ?? [],
  );
  if (checks.length === 0) return undefined;
  return async () => (await Promise.all(checks.map((check) => check()))).every(Boolean);
}

function machineCheck(keys: NodeKeys, user: UserInfo): IsStillAllowed | undefined {
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
function accountCheck(objects: RevocationSources['objects'], clock: Clock, user: UserInfo): IsStillAllowed | undefined {
  const required = objectsOfUser(user);
  if (required.length === 0) return undefined;
  return async () => {
    const found = await objects.getMany(required.map(({ ref }) => ref));
    return required.every(({ uid }, index) => isAlive(found[index], uid, clock.nowMs()));
  };
}
