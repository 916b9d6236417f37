import type { NodeKey, NodeKeyAlgorithm, NodePublicKey } from './node-identity.ts';

/** The keys of a node; none if it has no identity. */
export interface NodeKeys {
  keysOf(nodeName: string, options: { readonly consistent: boolean }): Promise<readonly NodeKey[]>;
}

export type PublicKeyReading =
  | {
      readonly kind: 'key';
      readonly keyId: string;
      readonly algorithm: NodeKeyAlgorithm;
      readonly publicKey: NodePublicKey;
    }
  | { readonly kind: 'invalid'; readonly why: string };

/**
 * Reads a JSON Web Key: checks that we accept its type and that its point is on its curve, and computes its thumbprint.
 */
export type ReadPublicKey = (jwk: Readonly<Record<string, unknown>>) => PublicKeyReading;
