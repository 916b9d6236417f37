import type { NftCommand } from '../rules/services/nft-table.ts';

/** The packet filter of this machine. */
export interface PacketFilter {
  /** Applies all of it, or nothing. @throws PacketFilterError */
  apply(commands: readonly NftCommand[]): Promise<void>;
}

/** The message says why. */
export class PacketFilterError extends Error {
  override readonly name = 'PacketFilterError';
}
