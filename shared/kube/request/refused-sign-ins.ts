/**
 * Logs why credentials were refused; the client does not receive it. Some reasons contain an ARN, so there may be many.
 */
import type { Log } from '../../ports/log.ts';
import { oncePerMinute } from './log-throttle.ts';

export type NoteRefusal = (reason: string, sourceIp: string, nowMs: number) => void;

export function refusedSignIns(log: Log): NoteRefusal {
  const throttled = oncePerMinute();
  return (reason, sourceIp, nowMs) =>
    throttled(reason, nowMs, (repeated) => log.warn('a sign-in was refused', { reason, sourceIp, repeated }));
}
