/**
 * Whether the identity of a machine that holds a watch still exists. A watch is authorized once, at its start, and lasts up
 * to 15 minutes. Without this check, a machine would receive events until then, although its identity was deleted.
 *
 * Cost: half a read unit when the watch starts and once per minute, for machines only. A key that is missing is read
 * again, strongly consistent: an eventually consistent read may not yet have a key that was added a moment ago.
 */
import { KEY_ID_EXTRA } from '../../domain/access/node-identity.ts';
import { nodeIdentity } from '../../domain/access/node-restriction.ts';
import type { UserInfo } from '../../domain/access/user-info.ts';
import type { NodeKeys } from '../../ports/node-keys.ts';

/** Time between two checks of one watch. Milliseconds. */
export const REVOCATION_CHECK_MS = 60_000;

/** Whether the user may still receive events. Rejects if the keys cannot be read. */
export type IsStillAllowed = () => Promise<boolean>;

/** undefined: the user is no machine with a key of its own, so there is nothing to check. */
export function revocationCheck(keys: NodeKeys, user: UserInfo | undefined): IsStillAllowed | undefined {
  const keyId = user?.extra?.[KEY_ID_EXTRA]?.[0];
  if (user === undefined || keyId === undefined) return undefined;
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  if (identity.kind !== 'node') return undefined;
  return async () => {
    const { nodeName } = identity;
    const hasKey = async (consistent: boolean): Promise<boolean> =>
      (await keys.keysOf(nodeName, { consistent })).some((key) => key.keyId === keyId);
    return (await hasKey(false)) || hasKey(true);
  };
}
