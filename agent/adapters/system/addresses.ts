/** Addresses of this machine and of names. */
import { lookup } from 'node:dns/promises';
import type { networkInterfaces } from 'node:os';
import type { InterfaceAddress } from '../../ports/machine.ts';

export const addressesOf = (interfaces: ReturnType<typeof networkInterfaces>): readonly InterfaceAddress[] =>
  Object.entries(interfaces).flatMap(([interfaceName, addresses]) =>
    (addresses ?? []).map(({ address, family }) => ({ interfaceName, address, family: family === 'IPv4' ? 4 : 6 })),
  );

export type Lookup = (name: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

export const systemLookup: Lookup = (name) => lookup(name, { all: true });

export async function addressesOfName(
  name: string,
  find: Lookup = systemLookup,
): Promise<readonly { readonly address: string; readonly family: 4 | 6 }[]> {
  try {
    const found = await find(name);
    return found.map(({ address, family }) => ({ address, family: family === 4 ? 4 : 6 }));
  } catch (error) {
    // Unknown, or no DNS server: the name has no address now, and the next pass reads it again.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}
