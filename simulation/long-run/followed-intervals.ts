/**
 * Which interval each machine follows. The answer to a heartbeat asks for one, and the rules of the agent decide when
 * it is followed. The times of a profile that changed reach a machine with its next heartbeat that is stored.
 */
import { type FollowedTiming, followedTiming, type LeaseTiming } from '../../agent/rules/lease.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { Heartbeats } from './heartbeats.ts';

/** From the latest regular delivery of a heartbeat to the look at it. Milliseconds. */
const DELIVERED_AFTER_MS = 41;
/** Between two looks, at most. Milliseconds. */
const LOOKS_APART_MS = 3_000;
/** Looks at one machine at most. It may be silent, or the network loses its heartbeats. */
const LOOKS_MAX = 20_000;

export interface FollowedIntervals {
  /** The answer to the heartbeats of this machine may ask for other times from now on. */
  onTimesChanged(node: number): void;
}

export function followedIntervals(options: {
  readonly time: VirtualTime;
  readonly heartbeats: Heartbeats;
  readonly nodes: number;
  /** What an answer to a heartbeat of this machine asks for now. */
  readonly answeredTo: (node: number) => LeaseTiming;
}): FollowedIntervals {
  const { time, heartbeats, answeredTo } = options;
  const followed: FollowedTiming[] = Array.from({ length: options.nodes }, (_, node) => answeredTo(node));
  /** Number of the last change: looks for an earlier one end. */
  const changes = new Uint32Array(options.nodes);

  /** Follows the answer to the first heartbeat that is stored after `sinceMs`. */
  async function learn(node: number, sinceMs: number): Promise<void> {
    const change = changes[node]!;
    for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
      const nextMs = heartbeats.nextSentMs(node, time.nowMs()) + DELIVERED_AFTER_MS - time.nowMs();
      // A heartbeat that an outage refused may be stored before the next one is sent.
      await time.sleep(Math.min(nextMs, LOOKS_APART_MS));
      if (changes[node] !== change) return;
      const lastMs = heartbeats.lastMs(node, time.nowMs());
      if (lastMs <= sinceMs || heartbeats.isSilent(node, time.nowMs())) continue;
      const before = followed[node]!;
      const next = followedTiming(before, answeredTo(node), time.nowMs());
      followed[node] = next;
      if (next.intervalMs !== before.intervalMs)
        heartbeats.follow(node, next.intervalMs, { lastMs, nowMs: time.nowMs() });
      if (next.longerSinceMs === undefined) return;
    }
    throw new RangeError(`machine ${node} stored no heartbeat in ${LOOKS_MAX} looks`);
  }

  return {
    onTimesChanged(node) {
      if (answeredTo(node).intervalMs === followed[node]!.intervalMs && followed[node]!.longerSinceMs === undefined) {
        changes[node]! += 1;
        return;
      }
      changes[node]! += 1;
      void learn(node, time.nowMs());
    },
  };
}
