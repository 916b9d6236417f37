/** Real processes, and an agent that waits a fraction of the time: a wait of ten seconds is over in a fifth of one. */
import { setTimeout as wait } from 'node:timers/promises';
import type { AgentTime } from '../../agent/ports/time.ts';

export function scaledTime(factor: number): AgentTime {
  const startedMs = performance.now();
  const passedMs = (): number => (performance.now() - startedMs) * factor;
  const beganAtMs = Date.now();
  return {
    nowMs: () => Math.round(beganAtMs + passedMs()),
    monotonicMs: () => 1_000 + passedMs(),
    uptimeMs: () => 2_000 + passedMs(),
    sleep: (milliseconds, signal) =>
      wait(milliseconds / factor, undefined, { ref: false, ...(signal === undefined ? {} : { signal }) }).catch(
        () => undefined,
      ),
  };
}
