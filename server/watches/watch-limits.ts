/**
 * Watches at once in this process. A watch is a connection and some kilobytes here, not an execution environment, so the
 * limit protects only against exhaustion: one user holds at most a quarter of them.
 */
import type { WatchSlots } from '../../functions/watch/watch-slot-store.ts';

/** A held watch costs about 30 KB with its TLS connection. */
export const WATCHES_MAX = 10_000;

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
