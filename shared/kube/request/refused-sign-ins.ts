/** Why credentials were refused: told to our own log, never to the client. Some reasons name an ARN, so there may be many. */
import type { Log } from '../../ports/log.ts';
import { toldEachMinute } from './log-throttle.ts';

export type NoteRefusal = (reason: string, sourceIp: string, nowMs: number) => void;

export function refusedSignIns(log: Log): NoteRefusal {
  const sparingly = toldEachMinute();
  return (reason, sourceIp, nowMs) =>
    sparingly(reason, nowMs, (repeated) => log.warn('a sign-in was refused', { reason, sourceIp, repeated }));
}
