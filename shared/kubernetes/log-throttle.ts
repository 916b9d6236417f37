/**
 * Logs repeated problems once per minute and reason, in each execution environment of a function, with the number of
 * repetitions. So neither a client that keeps retrying nor an unreachable store fills the log.
 */

import type { Log } from '../observability/log.ts';
import { StoreFault } from '../store/item-store.ts';
import { StatusError } from './status.ts';

const EVERY_MS = 60_000;
/** Maximum number of reasons; beyond it the oldest is dropped. */
const REASONS_MAX = 200;

/** Calls `write` at most once per minute and reason. `repeated`: number of calls skipped since the last line. */
type LogThrottle = (reason: string, nowMs: number, write: (repeated: number) => void) => void;

export function oncePerMinute(): LogThrottle {
  const seen = new Map<string, { readonly loggedAtMs: number; skipped: number }>();
  return (reason, nowMs, write) => {
    const before = seen.get(reason);
    // A logged time after nowMs means that the clock was set back.
    if (before !== undefined && Math.abs(nowMs - before.loggedAtMs) < EVERY_MS) {
      before.skipped += 1;
      return;
    }
    write(before?.skipped ?? 0);
    seen.delete(reason);
    seen.set(reason, { loggedAtMs: nowMs, skipped: 0 });
    if (seen.size > REASONS_MAX) seen.delete(seen.keys().next().value as string);
  };
}

/** Logs a request that failed. `fields` describe the request that is logged. */
export type NoteFault = (error: unknown, fields: Readonly<Record<string, unknown>>, nowMs: number) => void;

/** Message of the API and of the watch function. */
export const REQUEST_FAILED = 'request failed';

export function failedRequests(log: Log, message: string): NoteFault {
  const throttled = oncePerMinute();
  return (error, fields, nowMs) =>
    throttled(kindOfFault(error), nowMs, (repeated) => log.error(message, { error, ...fields, repeated }));
}

/** The reason for the throttle. Messages of store faults differ per table and request, so their code is used. */
function kindOfFault(error: unknown): string {
  if (error instanceof StoreFault) return `${error.name} ${error.code}`;
  if (error instanceof StatusError) return `${error.name} ${error.status.code} ${error.status.reason}`;
  return error instanceof Error ? `${error.name} ${error.message}` : String(error);
}

/**
 * Logs the reason for which credentials were refused. The client does not receive it. Reasons may contain an ARN, so
 * their number is not bounded.
 */
export type NoteRefusal = (reason: string, sourceIp: string, nowMs: number) => void;

export function refusedSignIns(log: Log): NoteRefusal {
  const throttled = oncePerMinute();
  return (reason, sourceIp, nowMs) =>
    throttled(reason, nowMs, (repeated) => log.warn('a sign-in was refused', { reason, sourceIp, repeated }));
}
