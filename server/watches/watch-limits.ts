/**
 * Watches at once in this process. A watch is a connection and some kilobytes here, not an execution environment, so the
 * limit protects only against exhaustion: one user holds at most a quarter of them.
 */
import type { WatchSlots } from '../../functions/watch/watch-slot-store.ts';

/** 2,000 idle watches took 25 KB each, and 100 KB with a TLS connection for each (2026-11-28, resident memory). */
export const WATCHES_MAX = 5_000;

export function watchLimits(watchesMax: number): WatchSlots & { held(): number } {
  const byUser = new Map<string, number>();
  const userMax = Math.max(1, Math.floor(watchesMax / 4));
  let total = 0;
  return {
    limitedBy: 'this process',
    held: () => total,
    async acquire({ user }) {
      const held = byUser.get(user) ?? 0;
      if (held >= userMax) return { kind: 'userAtLimit', held };
      if (total >= watchesMax) return { kind: 'levelAtLimit', slots: watchesMax };
      byUser.set(user, held + 1);
      total += 1;
      let isHeld = true;
      return {
        kind: 'acquired',
        measured: undefined,
        slot: {
          async release() {
            if (!isHeld) return;
            isHeld = false;
            total -= 1;
            const left = (byUser.get(user) ?? 1) - 1;
            if (left > 0) byUser.set(user, left);
            else byUser.delete(user);
          },
        },
      };
    },
  };
}
