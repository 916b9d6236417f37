/**
 * The identity of a machine: the public keys that may sign in under a node's name. Only a key proves the name, so a
 * client that adds a key must already have one, or a permission to enrol.
 */
import { NAME_LENGTH_MAX } from '../kubernetes/kubernetes.ts';
import { PROBE_LEASE } from './probe-identity.ts';

/** Member of a user's `extra` with the key that signed its token. Key rotation depends on it. */
export const KEY_ID_EXTRA = 'nodekeeper.dev/key-id';

/** Member of a user's `extra`: its token is good for renewing the Lease of its node and nothing else. */
export const BEAT_ONLY_EXTRA = 'nodekeeper.dev/beat-only';
/** Member of a user's `extra`: SHA-256 of the only request body that its token is good for, base64url. */
export const BODY_SHA256_EXTRA = 'nodekeeper.dev/body-sha256';

export type NodeKeyAlgorithm = 'ES256' | 'EdDSA';

/** A JSON Web Key with only its public members (RFC 7517; RFC 7518 §6.2, RFC 8037 §2). */
export type NodePublicKey =
  | { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string }
  | { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string };

export interface NodeKey {
  /** JWK thumbprint, RFC 7638, SHA-256, base64url. */
  readonly keyId: string;
  readonly publicKey: NodePublicKey;
  readonly addedAtMs: number;
}

/** The only algorithm that a key may be used with. The algorithm in the header of a token is not trusted. */
export const algorithmOf = (publicKey: NodePublicKey): NodeKeyAlgorithm => (publicKey.kty === 'EC' ? 'ES256' : 'EdDSA');

/** 32 bytes in base64url. */
const COORDINATE = /^[A-Za-z0-9_-]{43}$/;

/** The public members of a JWK, undefined for an unsupported key. Does not check that the point is on its curve. */
export function publicKeyOf(jwk: Readonly<Record<string, unknown>>): NodePublicKey | undefined {
  const { kty, crv, x, y } = jwk;
  if (typeof x !== 'string' || !COORDINATE.test(x)) return undefined;
  if (kty === 'OKP' && crv === 'Ed25519') return { kty, crv, x };
  if (kty === 'EC' && crv === 'P-256' && typeof y === 'string' && COORDINATE.test(y)) return { kty, crv, x, y };
  return undefined;
}

/**
 * The keys of an identity after its machine requested a key rotation.
 * - A request for another key than the signing key: the signing key and the requested key. All others are removed.
 * - A request for the signing key completes the rotation: only the signing key is left.
 * A repeated request changes nothing.
 *
 * @returns undefined when the identity does not have the signing key, or no longer has it
 */
export function keysAfterRotation(
  keys: readonly NodeKey[],
  signingKeyId: string,
  wanted: NodeKey,
): readonly NodeKey[] | undefined {
  const signing = keys.find(({ keyId }) => keyId === signingKeyId);
  if (signing === undefined) return undefined;
  if (wanted.keyId === signing.keyId) return [signing];
  return [signing, keys.find(({ keyId }) => keyId === wanted.keyId) ?? wanted];
}

const NAME_PART = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

/**
 * Whether a Node may have this name: a DNS subdomain (apimachinery pkg/util/validation) except the name of the probe's
 * Lease.
 */
export const isNodeName = (name: string): boolean =>
  name !== PROBE_LEASE && name.length <= NAME_LENGTH_MAX && name.split('.').every((part) => NAME_PART.test(part));
