/**
 * Reports requests that were refused because their identity is over its limit. A refusal costs no write and no log
 * line, except for the first of an identity in a minute: that one logs and stores how many there were since the report
 * before.
 */

import type { NoteFault } from '../kubernetes/log-throttle.ts';
import type { Log } from '../observability/log.ts';
import type { RefusedRequest } from './request-throttle.ts';

const EVERY_MS = 60_000;
/** Identities in memory. The one that was reported longest ago is dropped first, with what it has not reported. */
const IDENTITIES_MAX = 200;

export interface Refusals extends RefusedRequest {
  readonly count: number;
}

/** Stores refusals of one identity in the minute of `nowMs`. */
export type StoreRefusals = (refusals: Refusals, nowMs: number) => Promise<void>;

export function refusedRequests({
  log,
  store,
  noteFault,
}: {
  readonly log: Log;
  readonly store: StoreRefusals;
  /** What could not be stored is stored with the next report. */
  readonly noteFault: NoteFault;
}): (refused: RefusedRequest, nowMs: number) => Promise<void> | undefined {
  const unreported = new Map<string, { dueAtMs: number; count: number }>();

  async function report(refused: RefusedRequest, nowMs: number, count: number): Promise<void> {
    log.warn('requests of an identity were refused', { ...refused, count });
    try {
      await store({ ...refused, count }, nowMs);
    } catch (error) {
      const entry = unreported.get(refused.username);
      if (entry !== undefined) entry.count += count;
      noteFault(error, { identity: refused.username }, nowMs);
    }
  }

  return (refused, nowMs) => {
    const { username } = refused;
    const entry = unreported.get(username) ?? { dueAtMs: nowMs, count: 0 };
    entry.count += 1;
    // A due time further ahead than a minute means that the clock was set back.
    const isDue = nowMs >= entry.dueAtMs || entry.dueAtMs - nowMs > EVERY_MS;
    if (!isDue) return undefined;
    const { count } = entry;
    unreported.delete(username);
    unreported.set(username, { dueAtMs: nowMs + EVERY_MS, count: 0 });
    if (unreported.size > IDENTITIES_MAX) unreported.delete(unreported.keys().next().value as string);
    return report(refused, nowMs, count);
  };
}
