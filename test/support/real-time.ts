/** The system's time, for tests of what runs outside this process. */
import { setTimeout as wait } from 'node:timers/promises';
import { systemTime } from '../../agent/adapters/system/time.ts';
import type { AgentTime } from '../../agent/ports/time.ts';

export const realTime: AgentTime = {
  nowMs: Date.now,
  monotonicMs: systemTime.monotonicMs,
  uptimeMs: systemTime.uptimeMs,
  sleep: (milliseconds, signal) =>
    wait(milliseconds, undefined, { ref: false, ...(signal === undefined ? {} : { signal }) }).catch(() => undefined),
};
