/**
 * The keys of this machine: the one that counts, and while it is being replaced the one to come. Both are on the disk, so
 * that an agent that starts has each key the cluster may know it by.
 */
import type { NodePublicKey } from '../../shared/domain/access/node-identity.ts';

export interface PublicHalf {
  /** RFC 7638 thumbprint. */
  readonly keyId: string;
  readonly publicKey: NodePublicKey;
}

export interface MachineKeys {
  /** As they lie on the disk now. Rejects while the machine has no identity. */
  held(): Promise<{ readonly current: PublicHalf; readonly next: PublicHalf | undefined }>;
  /** Makes the key to come, or finds the one that is there. It lies on the disk when this resolves. */
  makeNext(): Promise<PublicHalf>;
  /**
   * Signs with the key to come from the next request on. When it is refused the other one signs again, and the request is
   * repeated with it.
   */
  signWithNext(): void;
  /** Of the key that signs requests now; undefined before the first. */
  signingKeyId(): string | undefined;
  /** The key to come takes the place of the current one, on the disk when this resolves. The other one is gone. */
  adoptNext(): Promise<void>;
  /** Our clock, corrected by the server's last answer. Milliseconds since the epoch. */
  serverNowMs(): number;
}
