/**
 * What one owner may use of something that all share: a quarter of it. So one machine, the machines behind one router,
 * or one user leave room for all others.
 */
export interface QuarterShares {
  /** Nothing is used unless it says `used`. */
  use(owner: string, amount: number): 'used' | 'ownerAtLimit' | 'allAtLimit';
  free(owner: string, amount: number): void;
  usedBy(owner: string): number;
  used(): number;
}

export function quarterShares(amountMax: number): QuarterShares {
  const owners = new Map<string, number>();
  const ofOwnerMax = Math.max(1, Math.floor(amountMax / 4));
  let total = 0;
  const usedBy = (owner: string): number => owners.get(owner) ?? 0;
  return {
    use(owner, amount) {
      const own = usedBy(owner) + amount;
      if (own > ofOwnerMax) return 'ownerAtLimit';
      if (total + amount > amountMax) return 'allAtLimit';
      owners.set(owner, own);
      total += amount;
      return 'used';
    },
    free(owner, amount) {
      const left = usedBy(owner) - amount;
      total -= amount;
      if (left > 0) owners.set(owner, left);
      else owners.delete(owner);
    },
    usedBy,
    used: () => total,
  };
}
