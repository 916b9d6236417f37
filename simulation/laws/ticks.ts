/**
 * The chain of node-monitor's ticks: it neither multiplies nor ends.
 *
 *   - No more messages were sent than slots were claimed: only the winner of a slot sends, and it sends one.
 *   - In calm it ticks: the watchdog restarts it within two minutes.
 */

import { fleetKeyOf } from '../../shared/fleet/fleet-store.ts';
import { type Law, type LawContext, seconds } from './law.ts';

/** A minute, the precision of the schedule, and a step of all clocks back by half a minute. Milliseconds. */
const RESTARTED_WITHIN_MS = 160_000;
/** A tick is regular if it comes at most this much later than a period after the one before. Milliseconds. */
const REGULAR_LATE_MAX_MS = 3_000;

export interface TicksLaw extends Law {
  /** A message of the next tick was sent. */
  onSent(): void;
  /** Since when ticks have been regular; undefined while they are not. */
  regularSinceMs(): number | undefined;
}

export function chainIsOne(context: Pick<LawContext, 'plan' | 'nowMs' | 'most' | 'fail'>, startMs: number): TicksLaw {
  const { plan, nowMs, most, fail } = context;
  let claims = 0;
  let sent = 0;
  let claimedAtMs = startMs;
  let sinceMs = startMs;
  const gapMaxMs = (): number => most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000 + REGULAR_LATE_MAX_MS;
  return {
    name: 'ticks',
    onSent() {
      sent += 1;
    },
    regularSinceMs: () => (nowMs() - claimedAtMs > gapMaxMs() ? undefined : sinceMs),
    onHappened(happened) {
      if (happened.kind !== 'control') return;
      const { key, oldImage, newImage } = happened.change;
      if (fleetKeyOf(key)?.kind !== 'state' || newImage?.['slot'] === oldImage?.['slot']) return;
      claims += 1;
      if (nowMs() - claimedAtMs > gapMaxMs()) sinceMs = nowMs();
      claimedAtMs = nowMs();
    },
    onMoment() {
      if (sent > claims) {
        const message = `${sent} messages of next ticks were sent, and ${claims} slots were claimed`;
        fail({ law: 'ticks', subjects: [], message });
      }
      const calmMs = plan.calmSinceMs();
      if (calmMs === undefined || nowMs() - calmMs < RESTARTED_WITHIN_MS) return;
      const silentMs = nowMs() - claimedAtMs;
      if (silentMs <= gapMaxMs()) return;
      fail({ law: 'ticks', subjects: [], message: `node-monitor has not ticked for ${seconds(silentMs)}` });
    },
  };
}
