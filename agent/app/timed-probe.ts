/** A probe. Its outcome counts only if this process ran meanwhile. */
import type { ProbeWitness, WitnessAddress } from '../ports/site.ts';
import type { AgentTime } from '../ports/time.ts';
import { PROBE_TIMEOUT_MS } from '../rules/site-watch.ts';

/** A probe that takes longer than its time limit and this: its answer may have waited here. Milliseconds. */
const EXTRA_MS = 200;

/** `void`: it proves nothing. */
export async function timedProbe(
  probe: ProbeWitness,
  target: WitnessAddress,
  time: Pick<AgentTime, 'monotonicMs' | 'uptimeMs'>,
): Promise<'answered' | 'silent' | 'void'> {
  const [fromMs, fromUptimeMs] = [time.monotonicMs(), time.uptimeMs()];
  if (await probe(target)) return 'answered';
  const tookMs = Math.max(time.monotonicMs() - fromMs, time.uptimeMs() - fromUptimeMs);
  return tookMs <= PROBE_TIMEOUT_MS + EXTRA_MS ? 'silent' : 'void';
}
