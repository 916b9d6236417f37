/**
 * Logs the reason for which credentials were refused. The client does not receive it. Reasons may contain an ARN, so
 * their number is not bounded.
 */
import type { Log } from '../../observability/log.ts';
import { oncePerMinute } from './log-throttle.ts';

export type NoteRefusal = (reason: string, sourceIp: string, nowMs: number) => void;

export function refusedSignIns(log: Log): NoteRefusal {
  const throttled = oncePerMinute();
  return (reason, sourceIp, nowMs) =>
    throttled(reason, nowMs, (repeated) => log.warn('a sign-in was refused', { reason, sourceIp, repeated }));
}
