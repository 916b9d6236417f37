/** The system's clock and timers. */

import { uptime } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { defined } from '../../../shared/defined.ts';
import type { AgentTime } from '../../ports/time.ts';

/** Longest wait of a timer; a longer one would end at once. Milliseconds. */
const WAIT_MAX_MS = 2 ** 31 - 1;

export const systemTime: AgentTime = {
  nowMs: Date.now,
  // CLOCK_MONOTONIC, which all processes of one boot share. performance.now() starts at 0 in each process.
  monotonicMs: () => Number(process.hrtime.bigint() / 1_000n) / 1_000,
  // With suspends. libuv, uv_uptime(): /proc/uptime or CLOCK_BOOTTIME (src/unix/linux.c), GetTickCount64()
  // (src/win/util.c).
  uptimeMs: () => uptime() * 1_000,
  async sleep(milliseconds, signal) {
    const waitMs = Math.min(Math.max(0, milliseconds), WAIT_MAX_MS);
    // It rejects only because of the signal.
    await wait(waitMs, undefined, defined({ signal })).catch(() => undefined);
  },
};
