/**
 * What keeps happening, told once a minute a reason in each environment of a function, with how often it came since: neither
 * a client that knocks all day nor a store that is away may fill the log.
 */

import { StoreFault } from '../../ports/item-store.ts';
import type { Log } from '../../ports/log.ts';
import { StatusError } from '../status.ts';

const EVERY_MS = 60_000;
/** Reasons kept apart; beyond them the oldest is forgotten. */
const REASONS_MAX = 200;

/** Tells it, unless that was done within the minute; `repeated`: how often it came untold. */
type TellSparingly = (reason: string, nowMs: number, tell: (repeated: number) => void) => void;

export function toldEachMinute(): TellSparingly {
  const seen = new Map<string, { readonly toldAtMs: number; untold: number }>();
  return (reason, nowMs, tell) => {
    const before = seen.get(reason);
    // A time from the future was told before the clock was set back.
    if (before !== undefined && Math.abs(nowMs - before.toldAtMs) < EVERY_MS) {
      before.untold += 1;
      return;
    }
    tell(before?.untold ?? 0);
    seen.delete(reason);
    seen.set(reason, { toldAtMs: nowMs, untold: 0 });
    if (seen.size > REASONS_MAX) seen.delete(seen.keys().next().value as string);
  };
}

/** A request that we could not serve. `fields` are those of the request that is told. */
export type NoteFault = (error: unknown, fields: Readonly<Record<string, unknown>>, nowMs: number) => void;

/** Message of the API and of the watch function. */
export const REQUEST_FAILED = 'request failed';

export function failedRequests(log: Log, message: string): NoteFault {
  const sparingly = toldEachMinute();
  return (error, fields, nowMs) =>
    sparingly(kindOfFault(error), nowMs, (repeated) => log.error(message, { error, ...fields, repeated }));
}

/** What faults of one cause have in common: messages of the store name tables and requests. */
function kindOfFault(error: unknown): string {
  if (error instanceof StoreFault) return `${error.name} ${error.code}`;
  if (error instanceof StatusError) return `${error.name} ${error.status.code} ${error.status.reason}`;
  return error instanceof Error ? `${error.name} ${error.message}` : String(error);
}
