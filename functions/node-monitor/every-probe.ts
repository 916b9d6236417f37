/**
 * A probe through every way of a heartbeat. It is accepted if each of them accepts it, so the safety gate
 * closes when one way fails: some nodes use only that one.
 */
import type { Probe, ProbeOutcome } from './probe.ts';

export const everyProbe = (probes: readonly Probe[]): Probe => ({
  async beat(): Promise<ProbeOutcome> {
    const outcomes = await Promise.all(probes.map((probe) => probe.beat()));
    return outcomes.find(({ kind }) => kind === 'failed') ?? { kind: 'accepted' };
  },
});
