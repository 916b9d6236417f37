/**
 * The keys of this machine: the current one, and during a rotation the next one. Both are on disk, so after a restart
 * the agent has every key that the cluster may have enrolled.
 */
import type { NodePublicKey } from '../../shared/access/node-identity.ts';

export interface PublicHalf {
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
  readonly publicKey: NodePublicKey;
}

export interface MachineKeys {
  /** Reads the keys on disk. Rejects while the machine has no identity. */
  held(): Promise<{ readonly current: PublicHalf; readonly next: PublicHalf | undefined }>;
  /** Creates the next key, or returns the existing one. It is on disk when this resolves. */
  makeNext(): Promise<PublicHalf>;
  /**
   * Signs with the next key from the next request on. If it is refused, the request is repeated with the other key,
   * which signs from then on.
   */
  signWithNext(): void;
  /** Id of the key that signs requests; undefined before the first request. */
  signingKeyId(): string | undefined;
  /** Replaces the current key with the next one. The old key is removed from disk when this resolves. */
  adoptNext(): Promise<void>;
  /** The server's clock, from its last answer. Milliseconds since the Unix epoch. */
  serverNowMs(): number;
}
