/**
 * Lets agents read changed Services, EndpointSlices and NetworkPolicies, and no more often than they send heartbeats. A
 * slow rollout changes endpoints for minutes, and each announcement costs a write and a request per agent.
 *
 * A change is announced at once, or a due time is stored, which all changes of the pause share. The tick announces it,
 * CLOCK_SKEW_MS after the last change that stored this time, also by the clock of another process. A batch that is
 * killed is delivered again, and a due time is removed only after its announcement. So each change is announced once
 * or more often, after it was committed.
 *
 * Pauses are known in one process. Others announce at most as often again.
 */
import type { Clock } from '../../../shared/clock.ts';
import { announceServices } from '../../../shared/fleet/nodes/service-readers.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import { addDue } from '../../../shared/ticks/due-rows.ts';

/** Half of the interval of heartbeats. */
const PAUSE_MS = 5_000;
/** A write and the request that follows it. */
const PAUSE_MS_PER_NODE = 1;
const PAUSE_MS_MAX = 60_000;
/** Clocks of two processes differ by less. */
const CLOCK_SKEW_MS = 2_000;
/** Zones in memory. The oldest is dropped first, and is then not paused. */
const KNOWN_MAX = 1_000;

export interface Announcements {
  /** When changes may be announced to this zone again. Epoch milliseconds; undefined: now. */
  pausedUntilMs(zone: string): number | undefined;
  /** They are announced to so many nodes of these zones now. */
  pause(zones: readonly string[], nodes: number): void;
}

export function announcements(clock: Clock): Announcements {
  const pausedUntilMs = new Map<string, number>();
  return {
    pausedUntilMs(zone) {
      const untilMs = pausedUntilMs.get(zone) ?? 0;
      return untilMs <= clock.nowMs() ? undefined : untilMs;
    },
    pause(zones, nodes) {
      const untilMs = clock.nowMs() + Math.min(PAUSE_MS_MAX, PAUSE_MS + PAUSE_MS_PER_NODE * nodes);
      for (const zone of zones) {
        pausedUntilMs.delete(zone);
        pausedUntilMs.set(zone, untilMs);
      }
      while (pausedUntilMs.size > KNOWN_MAX) pausedUntilMs.delete(pausedUntilMs.keys().next().value as string);
    },
  };
}

interface Dependencies {
  readonly items: Pick<ItemStore, 'query' | 'write'>;
  readonly announcements: Announcements;
}

/** Announces a change to these zones now, or stores when. */
export async function announce(dependencies: Dependencies, zones: readonly string[]): Promise<void> {
  const now: string[] = [];
  for (const zone of zones) {
    const untilMs = dependencies.announcements.pausedUntilMs(zone);
    if (untilMs === undefined) now.push(zone);
    else await addDue(dependencies.items, { atMs: untilMs + CLOCK_SKEW_MS, key: { kind: 'announce', zone } });
  }
  if (now.length > 0) await announceNow(dependencies, now);
}

export async function announceNow(dependencies: Dependencies, zones: readonly string[]): Promise<void> {
  // Of several calls at once, one announces. The others are about changes that it may have missed.
  dependencies.announcements.pause(zones, 0);
  const nodes = await announceServices(dependencies.items, zones);
  dependencies.announcements.pause(zones, nodes);
}
