/**
 * Bootstrap tokens: a permission to enrol a number of machines for a limited time. The form is `id.secret`. The id is
 * public and names the token. The secret is 32 random bytes in base64url, so an unsalted hash of it may be stored and
 * shown.
 * Source of the form: Kubernetes, "Authenticating with Bootstrap Tokens". Its secrets are shorter and stored in clear.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import type { BearerScheme } from './bearer.ts';

/** Group and user of a request that carries a bootstrap token. */
export const BOOTSTRAP_GROUP = 'system:bootstrappers';
export const BOOTSTRAP_USER_PREFIX = 'system:bootstrap:';

export const BOOTSTRAP_USES_MAX = 100_000;
/** Longest life of a token. Seconds: 400 days. */
export const BOOTSTRAP_LIFE_SECONDS_MAX = 400 * 86_400;

const ID = /^[a-z0-9]{6,20}$/;
const SECRET = /^[A-Za-z0-9_-]{43}$/;
const PATTERN = /^[-a-z0-9.*?]+$/;

export const isBootstrapTokenId = (text: string): boolean => ID.test(text);
export const isNamePattern = (text: string): boolean => text.length <= NAME_LENGTH_MAX && PATTERN.test(text);

/** The parts of a token, undefined if the text does not have the form `id.secret`. */
export function parseBootstrapToken(text: string): { readonly id: string; readonly secret: string } | undefined {
  const divide = text.indexOf('.');
  if (divide < 0) return undefined;
  const id = text.slice(0, divide);
  const secret = text.slice(divide + 1);
  return ID.test(id) && SECRET.test(secret) ? { id, secret } : undefined;
}

export interface BootstrapToken {
  readonly id: string;
  /** SHA-256 of the secret. Lower-case hex. */
  readonly secretSha256: string;
  readonly expiresAtMs: number;
  readonly usesLeft: number;
  /** Glob over node names: `*` any characters, `?` one. Absent: any name. */
  readonly nodeNamePattern?: string;
  /** Labels for the machines to register with. */
  readonly nodeLabels?: Readonly<Record<string, string>>;
  /** True: it may enrol a name in use. The keys of an identity of that name are then replaced. */
  readonly reissue: boolean;
}

export interface BootstrapTokens {
  /** undefined: the token does not exist, or no longer exists. */
  find(id: string): Promise<BootstrapToken | undefined>;
}

export type BootstrapVerdict =
  | { readonly kind: 'granted' }
  /** The bearer has proved that it knows the secret, so the response contains the reason. */
  | { readonly kind: 'forbidden'; readonly reason: string }
  /** The name has an identity, and this token may not replace its keys. */
  | { readonly kind: 'taken' };

/** Who has the name: a machine with keys, or a Node without keys, for example after they were deleted. */
export type NameUse = 'free' | 'identity' | 'node';

/**
 * Whether this token may enrol this name now. The caller has verified the secret.
 *
 * The pods and Secrets of an existing Node belong to its machine. Only a token with `reissue`, or one that was created
 * for this very name, may take over a Node without an identity.
 */
export function bootstrapVerdict(
  token: BootstrapToken,
  wanted: { readonly nodeName: string; readonly nowMs: number; readonly use: NameUse },
): BootstrapVerdict {
  if (wanted.nowMs >= token.expiresAtMs) return forbidden(`bootstrap token ${token.id} has expired`);
  if (token.usesLeft < 1) return forbidden(`bootstrap token ${token.id} has no uses left`);
  if (token.nodeNamePattern !== undefined && !matchesPattern(token.nodeNamePattern, wanted.nodeName)) {
    return forbidden(`bootstrap token ${token.id} is for names like "${token.nodeNamePattern}"`);
  }
  if (token.reissue) return { kind: 'granted' };
  if (wanted.use === 'identity') return { kind: 'taken' };
  if (wanted.use === 'node' && token.nodeNamePattern !== wanted.nodeName) {
    return forbidden(
      `a Node "${wanted.nodeName}" exists: bootstrap token ${token.id} may enrol it only if it was created for this ` +
        `name (--nodes ${wanted.nodeName}) or with --reissue; otherwise delete the Node first`,
    );
  }
  return { kind: 'granted' };
}

const forbidden = (reason: string): BootstrapVerdict => ({ kind: 'forbidden', reason });

/** Glob: `*` for zero or more characters, `?` for one. Needs at most pattern length times name length steps. */
export function matchesPattern(pattern: string, name: string): boolean {
  let at = 0;
  let inPattern = 0;
  // Position of the last `*`, and of the first character of the name that it does not match yet.
  let star = -1;
  let taken = 0;
  while (at < name.length) {
    const wanted = pattern[inPattern];
    if (wanted === '*') {
      star = inPattern;
      taken = at;
      inPattern += 1;
    } else if (wanted === '?' || (wanted !== undefined && wanted === name[at])) {
      inPattern += 1;
      at += 1;
    } else if (star >= 0) {
      taken += 1;
      at = taken;
      inPattern = star + 1;
    } else {
      return false;
    }
  }
  while (pattern[inPattern] === '*') inPattern += 1;
  return inPattern === pattern.length;
}

/**
 * Authenticates bootstrap tokens. It verifies only the secret. The enrolment request checks whether the token is still
 * valid and for which node, because its response can state the reason.
 */
export function bootstrapTokens(tokens: BootstrapTokens): BearerScheme {
  return {
    recognises: (token) => parseBootstrapToken(token) !== undefined,
    async authenticate(token) {
      const parsed = parseBootstrapToken(token);
      if (parsed === undefined) return { kind: 'refused', reason: 'malformed bootstrap token' };
      const stored = await tokens.find(parsed.id);
      const presented = createHash('sha256').update(parsed.secret).digest();
      const known = Buffer.from(stored?.secretSha256 ?? '', 'hex');
      if (stored === undefined || known.length !== presented.length || !timingSafeEqual(known, presented)) {
        return { kind: 'refused', reason: 'unknown bootstrap token' };
      }
      return {
        kind: 'authenticated',
        user: {
          username: `${BOOTSTRAP_USER_PREFIX}${parsed.id}`,
          groups: [BOOTSTRAP_GROUP, 'system:authenticated'],
        },
      };
    },
  };
}
