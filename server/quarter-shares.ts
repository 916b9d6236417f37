/**
 * What the clients at one address may use of something that all share, before anybody has signed in: a quarter of it. So
 * one machine, or the machines behind one router, leave room for all others.
 */
export interface AddressShares {
  /** False: there is no room for so much, in all or for this address. Nothing is then used. */
  take(address: string, amount: number): boolean;
  give(address: string, amount: number): void;
}

export function addressShares(amountMax: number): AddressShares {
  const used = new Map<string, number>();
  let total = 0;
  return {
    take(address, amount) {
      const own = (used.get(address) ?? 0) + amount;
      if (own > amountMax / 4 || total + amount > amountMax) return false;
      used.set(address, own);
      total += amount;
      return true;
    },
    give(address, amount) {
      const left = (used.get(address) ?? 0) - amount;
      total -= amount;
      if (left > 0) used.set(address, left);
      else used.delete(address);
    },
  };
}
