/** The passes of node-monitor at the level of its rules: gate, marks and total disruption, without a store. */

import { NO_TESTIMONIES, type Testimonies } from '../shared/fleet/accusation.rule.ts';
import type { ZoneRecord } from '../shared/fleet/fleet-records.ts';
import {
  decideGate,
  firstProbes,
  type GateRecord,
  needsAllProbes,
  PROBES_PER_TICK_MAX,
  UNTRIED_GATE,
} from '../shared/fleet/gate.ts';
import { decideMonitor, type MarkDecision, type MonitorOutcome } from '../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../shared/fleet/nodes/health.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { applyDisruption, type DisruptionRecord, NO_DISRUPTION } from '../shared/fleet/zone-state.ts';

export interface Pass {
  readonly nodes: readonly NodeHealth[];
  /** By the clock of the process. */
  readonly serverMs: number;
  /** Whether a heartbeat of our own is accepted. */
  readonly probe: () => boolean;
  /** Whether the tick dies half-way. Asked once, after it has decided. */
  readonly dies: () => boolean;
  readonly testimonies?: (gate: GateRecord) => Testimonies;
}

export interface Passed {
  readonly marks: readonly MarkDecision[];
  readonly withheldMarks: number;
  readonly accused: MonitorOutcome['accused'];
}

export class RuleMonitor {
  readonly policy: Policy;
  readonly #zones: readonly ZoneRecord[];
  gate: GateRecord = UNTRIED_GATE;
  disruption: DisruptionRecord = NO_DISRUPTION;
  passes = 0;
  /** Passes in which the gate was closed. */
  held = 0;

  constructor(policy: Policy, zones: readonly string[]) {
    this.policy = policy;
    this.#zones = zones.map((zone) => ({
      zone,
      state: 'Normal',
      limiter: { tatMs: undefined, ratePerSecond: policy.nodeEvictionRatePerSecond },
    }));
  }

  pass({ nodes, serverMs, probe, dies, testimonies }: Pass): Passed {
    this.passes += 1;
    const send = () => ({ sentAtMs: serverMs, accepted: probe() });
    const probes = Array.from({ length: firstProbes(this.policy) }, send);
    const answers = probes.map(({ accepted }) => accepted);
    if (needsAllProbes(this.gate, answers)) while (probes.length < PROBES_PER_TICK_MAX) probes.push(send());
    const gate = decideGate(this.gate, { nowMs: serverMs, probes, policy: this.policy });
    const { disruption } = this;
    const { decisions, withheldMarks, accused } = decideMonitor(
      { nodes, zones: this.#zones, queue: [], disruption, gate, testimonies: testimonies?.(gate) ?? NO_TESTIMONIES },
      { nowMs: serverMs, policy: this.policy },
    );
    if (gate.reasons.length > 0) this.held += 1;
    // A tick that dies half-way has claimed its slot, and stored what it decided about us; it has not finished.
    const died = dies();
    this.gate = died ? { ...gate, lastTickAtMs: this.gate.lastTickAtMs } : gate;
    if (died) return { marks: [], withheldMarks, accused: [] };
    for (const { kind } of decisions) {
      if (kind === 'leaveTotalDisruption' || kind === 'enterTotalDisruption') {
        const step = kind === 'enterTotalDisruption' ? 'enter' : 'leave';
        this.disruption = applyDisruption(this.disruption, step, serverMs);
      }
    }
    return { marks: decisions.filter((each) => each.kind === 'markUnknown'), withheldMarks, accused };
  }
}
