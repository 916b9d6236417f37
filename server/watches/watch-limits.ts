/**
 * Watches at once in this process. A watch is a connection and some kilobytes here, not an execution environment, so
 * the limit protects only against exhaustion: one user holds at most a quarter of them.
 */
import type { WatchSlots } from '../../functions/watch/watch-slot-store.ts';
import { quarterShares } from '../quarter-shares.ts';

/** An idle watch takes about 35 KB, and 100 KB with a TLS connection of its own (docs/quality.md, resident memory). */
export const WATCHES_MAX = 5_000;

export function watchLimits(watchesMax: number): WatchSlots & { held(): number } {
  const shares = quarterShares(watchesMax);
  return {
    limitedBy: 'this process',
    held: () => shares.used(),
    async acquire({ user }) {
      const outcome = shares.use(user, 1);
      if (outcome === 'ownerAtLimit') return { kind: 'userAtLimit', held: shares.usedBy(user) };
      if (outcome === 'allAtLimit') return { kind: 'levelAtLimit', slots: watchesMax };
      let isHeld = true;
      return {
        kind: 'acquired',
        measured: undefined,
        slot: {
          async release() {
            if (isHeld) shares.free(user, 1);
            isHeld = false;
          },
        },
      };
    },
  };
}
