/**
 * Why credentials were refused: told to our own log, never to the client. Each reason once a minute in each environment of
 * a function, with how often it came since: a client that knocks all day must not fill the log.
 */
import type { Log } from '../../ports/log.ts';

const EVERY_MS = 60_000;
/** Reasons kept apart; beyond them the oldest is forgotten. Some name an ARN, so there may be many. */
const REASONS_MAX = 200;

export type NoteRefusal = (reason: string, sourceIp: string, nowMs: number) => void;

export function refusedSignIns(log: Log): NoteRefusal {
  const seen = new Map<string, { readonly toldAtMs: number; untold: number }>();
  return (reason, sourceIp, nowMs) => {
    const before = seen.get(reason);
    if (before !== undefined && nowMs - before.toldAtMs < EVERY_MS) {
      before.untold += 1;
      return;
    }
    log.warn('a sign-in was refused', { reason, sourceIp, repeated: before?.untold ?? 0 });
    seen.delete(reason);
    seen.set(reason, { toldAtMs: nowMs, untold: 0 });
    if (seen.size > REASONS_MAX) seen.delete(seen.keys().next().value as string);
  };
}
