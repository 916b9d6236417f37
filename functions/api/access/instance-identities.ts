/**
 * Authenticates EC2 instances by their signed identity document: `Bearer ec2.<base64url of the PKCS #7>`. The document
 * is the response of http://169.254.169.254/latest/dynamic/instance-identity/rsa2048, there in base64 with line ends.
 *
 * The token permits only enrolment. Enrolment checks whether the instance is running and which name it may have.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import type { Authentication } from '../../../shared/access/authenticator.ts';
import type { BearerScheme } from '../../../shared/access/bearer.ts';
import { jsonObjectIn } from '../../../shared/access/bearer.ts';
import { BOOTSTRAP_GROUP } from '../../../shared/access/bootstrap-token.ts';
import { INSTANCE_USER_PREFIX, type InstanceScope, instanceVerdict } from './instance-identity.ts';

const PREFIX = 'ec2.';
/** A token of EC2's document has about 2,000 characters. */
const TOKEN_CHARACTERS_MAX = 8_192;
const MODULUS_BITS_MIN = 2_048;

export interface InstanceIdentityOptions extends InstanceScope {
  /** SubjectPublicKeyInfo of the region's certificate in DER, base64. Source: EC2 User Guide, "RSA-2048 signature". */
  readonly publicKey: string;
}

const refused = (reason: string): Authentication => ({ kind: 'refused', reason: `instance identity: ${reason}` });

/** @throws Error if `publicKey` is no RSA key of at least 2048 bits */
export function instanceIdentities({ publicKey, ...scope }: InstanceIdentityOptions): BearerScheme {
  const key: KeyObject = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
  if (key.asymmetricKeyType !== 'rsa' || (key.asymmetricKeyDetails?.modulusLength ?? 0) < MODULUS_BITS_MIN) {
    throw new Error('the key of instance identities must be of RSA with 2048 bits or more');
  }
  return {
    recognises: (token) => token.startsWith(PREFIX),
    async authenticate(token, nowMs) {
      const encoded = token.slice(PREFIX.length);
      if (token.length > TOKEN_CHARACTERS_MAX || !/^[A-Za-z0-9_-]+$/.test(encoded)) return refused('malformed');
      // Loaded on demand: the PKCS #7 library is as large as the rest of the function, and only enrolment needs it.
      const { signedContent } = await import('./pkcs7.ts');
      const outcome = signedContent(Buffer.from(encoded, 'base64url'), key);
      if (outcome.kind === 'refused') return refused(outcome.reason);
      const document = jsonObjectIn(outcome.content);
      if (document === undefined) return refused('no JSON document');
      const verdict = instanceVerdict(document, scope, nowMs);
      if (verdict.kind === 'refused') return refused(verdict.reason);
      const username = `${INSTANCE_USER_PREFIX}${verdict.instanceId}`;
      return { kind: 'authenticated', user: { username, groups: [BOOTSTRAP_GROUP, 'system:authenticated'] } };
    },
  };
}
