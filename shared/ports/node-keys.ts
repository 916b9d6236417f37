import type { BootstrapToken } from '../domain/access/bootstrap-token.ts';
import type { NodeKey, NodeKeyAlgorithm, NodePublicKey } from '../domain/access/node-identity.ts';

/** The keys that may sign in under a node's name; none when it has no identity. */
export interface NodeKeys {
  keysOf(nodeName: string, options: { readonly consistent: boolean }): Promise<readonly NodeKey[]>;
}

export interface BootstrapTokens {
  /** undefined: there is no such token (any more). */
  find(id: string): Promise<BootstrapToken | undefined>;
}

export type PublicKeyReading =
  | {
      readonly kind: 'key';
      readonly keyId: string;
      readonly algorithm: NodeKeyAlgorithm;
      readonly publicKey: NodePublicKey;
    }
  | { readonly kind: 'invalid'; readonly why: string };

/** Reads a JSON Web Key: that it is a key we take, that its point is on its curve, and its thumbprint. */
export type ReadPublicKey = (jwk: Readonly<Record<string, unknown>>) => PublicKeyReading;
