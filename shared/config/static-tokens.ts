/**
 * STATIC_TOKENS, for every function that accepts such tokens. It is validated without the schema library, which the
 * bundle of the heartbeat does not contain.
 */
export interface StaticTokenConfig {
  /** SHA-256 of the token, lower-case hex. */
  readonly sha256: string;
  readonly user: string;
  readonly groups: readonly string[];
}

export const STATIC_TOKENS_RULE = 'must be a JSON list of {sha256: 64 lower-case hex digits, user, groups: [text]}';

/** The tokens in this document, frozen; undefined if it breaks the rule. */
export function staticTokensIn(document: unknown): readonly StaticTokenConfig[] | undefined {
  if (!Array.isArray(document) || !document.every(isStaticToken)) return undefined;
  return Object.freeze(document.map((token) => Object.freeze({ ...token, groups: Object.freeze(token.groups) })));
}

function isStaticToken(value: unknown): value is StaticTokenConfig {
  if (typeof value !== 'object' || value === null) return false;
  const { sha256, user, groups, ...unknown } = value as Record<string, unknown>;
  return (
    Object.keys(unknown).length === 0 &&
    typeof sha256 === 'string' &&
    /^[0-9a-f]{64}$/.test(sha256) &&
    typeof user === 'string' &&
    user !== '' &&
    Array.isArray(groups) &&
    groups.every((group) => typeof group === 'string' && group !== '')
  );
}
