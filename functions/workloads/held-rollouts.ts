/**
 * Whether rollouts are held, and reports of it: a metric at each sync, a decision record and an event once per hold.
 */

import { recordEvents, subjectOf } from '../../shared/events/record-event.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { heldText, rolloutHeldDraft } from './decisions.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { type HoldInputs, type WorkloadHold, workloadHold } from './hold.rule.ts';
import * as metric from './metrics.ts';

/** Until a held rollout is tried again. Milliseconds. */
export const HELD_RETRY_MS = 10_000;

export interface HoldReading {
  /** undefined: nothing is held. */
  readonly hold: WorkloadHold | undefined;
  readonly state: HoldInputs;
}

/** One read of half a read unit. */
export async function readHold({ fleet, policy }: WorkloadDependencies, nowMs: number): Promise<HoldReading> {
  const { gate, disruption } = await fleet.readState();
  const state = { gate, disruption };
  return { hold: workloadHold(state, { nowMs, policy }), state };
}

/**
 * @param of `held`: each reduction, replacement or deletion that waits; empty: nothing is reported
 */
export async function reportHeld(
  dependencies: WorkloadDependencies,
  owner: {
    readonly kind: 'Deployment' | 'DaemonSet' | 'StatefulSet';
    readonly object: KubeObject;
    readonly component: string;
  },
  of: HoldReading & { readonly held: readonly string[]; readonly nowMs: number },
): Promise<void> {
  const { ledger, meter, policy } = dependencies;
  const { hold, state, held, nowMs } = of;
  if (hold === undefined || held.length === 0) return;
  meter.add(metric.REDUCTIONS_HELD, held.length, 'Count', { kind: owner.kind });
  const about = subjectOf(owner.kind, owner.object);
  const key = `${hold.kind}/${owner.object.metadata.generation ?? 0}`;
  const draft = rolloutHeldDraft({ ...about, kind: owner.kind }, hold, { state, held, policy, nowMs });
  const recorded = await ledger.recordOnce(draft, { atMs: hold.sinceMs, key });
  if (recorded === 'known') return;
  const once = `${hold.sinceMs}/${key}`;
  const text = { type: 'Warning' as const, reason: 'RolloutHeld', message: `${heldText(hold, held)}.` };
  await recordEvents(dependencies, [{ ...text, source: owner.component, about, once }], nowMs);
}
