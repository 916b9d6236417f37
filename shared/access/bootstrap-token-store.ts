/**
 * Bootstrap tokens in the `control` table:
 *
 *   pk `bootstrap-tokens` sk id   v resourceVersion, uid, createdAtMs, secretSha256, expiresAtMs, uses, usesLeft,
 *                                 pattern, labels JSON, reissue 1; ttl a week after it expired
 *
 * A use is counted by a conditional update in the transaction that writes the identity, so there are never more
 * identities than uses, even for concurrent requests.
 */
import { defined } from '../defined.ts';
import type { Item, ItemKey, ItemStore, UpdateWrite } from '../store/item-store.ts';
import { all, is, RESOURCE_VERSIONS_PER_MS } from '../store/layout.ts';
import type { BootstrapToken, BootstrapTokens } from './bootstrap-token.ts';

const PARTITION = 'bootstrap-tokens';
/** How long an expired token is still shown. Seconds. */
const KEPT_AFTER_EXPIRY_SECONDS = 7 * 86_400;

const tokenKey = (id: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: id });

export interface StoredBootstrapToken extends BootstrapToken {
  readonly uid: string;
  /** resourceVersion. */
  readonly version: number;
  readonly createdAtMs: number;
  /** Machines that may use it. */
  readonly uses: number;
}

export interface BootstrapTokenStore extends BootstrapTokens {
  /** Strongly consistent. */
  find(id: string): Promise<StoredBootstrapToken | undefined>;
  list(page: { readonly limit: number; readonly continueAfter?: string }): Promise<{
    readonly tokens: readonly StoredBootstrapToken[];
    readonly next?: string;
  }>;
  create(
    token: Omit<StoredBootstrapToken, 'version'>,
  ): Promise<{ readonly kind: 'created'; readonly token: StoredBootstrapToken } | { readonly kind: 'taken' }>;
  /** Not conditional on the uses: a revocation ends all that are left. */
  remove(id: string, expected: { readonly uid: string }): Promise<'removed' | 'conflict'>;
}

/** Counts one use, in the transaction that it is for. Refused if none is left, or the token expired or was revoked. */
export const takeUseWrite = ({ id, uid }: StoredBootstrapToken, nowMs: number): UpdateWrite => ({
  kind: 'update',
  key: tokenKey(id),
  add: { usesLeft: -1, v: 1 },
  when: all(
    is('uid', uid),
    { kind: 'compare', attribute: 'usesLeft', op: '>=', value: 1 },
    { kind: 'compare', attribute: 'expiresAtMs', op: '>', value: nowMs },
  ),
});

export function bootstrapTokenStore(items: ItemStore): BootstrapTokenStore {
  return {
    async find(id) {
      const item = await items.get(tokenKey(id), { consistent: true });
      return item === undefined ? undefined : tokenOf(item);
    },

    async list({ limit, continueAfter }) {
      const page = await items.query({
        table: 'control',
        pk: PARTITION,
        consistent: true,
        limit,
        ...defined({ after: continueAfter }),
      });
      return { tokens: page.items.map(tokenOf), ...defined({ next: page.next }) };
    },

    async create(wanted) {
      const token = { ...wanted, version: wanted.createdAtMs * RESOURCE_VERSIONS_PER_MS };
      const outcome = await items.write({
        kind: 'put',
        key: tokenKey(token.id),
        item: itemOf(token),
        when: { kind: 'itemAbsent' },
      });
      return outcome.kind === 'written' ? { kind: 'created', token } : { kind: 'taken' };
    },

    async remove(id, { uid }) {
      const outcome = await items.write({
        kind: 'delete',
        key: tokenKey(id),
        when: is('uid', uid),
      });
      return outcome.kind === 'written' ? 'removed' : 'conflict';
    },
  };
}

function itemOf(token: StoredBootstrapToken): Item {
  const { nodeNamePattern, nodeLabels } = token;
  return {
    v: token.version,
    uid: token.uid,
    createdAtMs: token.createdAtMs,
    secretSha256: token.secretSha256,
    expiresAtMs: token.expiresAtMs,
    uses: token.uses,
    usesLeft: token.usesLeft,
    ttl: Math.ceil(token.expiresAtMs / 1_000) + KEPT_AFTER_EXPIRY_SECONDS,
    ...defined({ pattern: nodeNamePattern }),
    ...(nodeLabels === undefined ? {} : { labels: JSON.stringify(nodeLabels) }),
    ...(token.reissue ? { reissue: 1 } : {}),
  };
}

type TokenRow = {
  readonly sk: string;
  readonly v: number;
  readonly uid: string;
  readonly createdAtMs: number;
  readonly secretSha256: string;
  readonly expiresAtMs: number;
  readonly uses: number;
  readonly usesLeft: number;
  readonly reissue?: 1;
  readonly pattern?: string;
  readonly labels?: string;
};

function tokenOf(item: Item): StoredBootstrapToken {
  const { sk: id, v: version, reissue, pattern, labels, ...row } = item as TokenRow;
  const { uid, createdAtMs, secretSha256, expiresAtMs, uses, usesLeft } = row;
  return {
    ...{ id, uid, version, createdAtMs, secretSha256, expiresAtMs, uses, usesLeft },
    reissue: reissue === 1,
    ...defined({
      nodeNamePattern: pattern,
      nodeLabels: labels === undefined ? undefined : (JSON.parse(labels) as Record<string, string>),
    }),
  };
}
