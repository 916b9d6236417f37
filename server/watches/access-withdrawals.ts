import { hasNodeKeys } from '../../shared/access/node-key-store.ts';
import { storedResource } from '../../shared/store/layout.ts';
import type { StoreChange } from '../../shared/store/writes/store-change.ts';

/** Any change of these may withdraw access. */
export const GRANTS: ReadonlySet<string> = new Set(['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings']);
/** A token is valid while these exist (shared/access/account-token.ts). */
const REQUIRED: ReadonlySet<string> = new Set(['serviceaccounts', 'pods', 'nodes']);

/**
 * Whether a user may have less access after this change, or a custom resource has another form. A held watch is then
 * checked (functions/watch/watch-stream.ts).
 */
export function mayWithdrawAccess({ key, type }: Pick<StoreChange, 'key' | 'type'>): boolean {
  if (key.table === 'control') return type !== 'INSERT' && hasNodeKeys(key.pk);
  if (key.table !== 'objects') return false;
  const resource = storedResource(key.pk);
  if (resource === undefined) return false;
  return (
    GRANTS.has(resource) ||
    (type === 'REMOVE' && REQUIRED.has(resource)) ||
    (type !== 'INSERT' && resource === 'customresourcedefinitions')
  );
}
