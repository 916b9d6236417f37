/**
 * One tick of pod-gc: volumes that nobody on their node wants, and pods that nobody will ever finish.
 *
 *   read the work list ── nothing in it that a pass could act on: done
 *   claim the slot; loser exits
 *   detach volumes (detach-volumes.ts) ── collect pods (collect-pods.ts) ── sweep, when due (sweep-pods.ts)
 *
 * Nothing acts without a claim; a slot in which there is nothing to do need not be anybody's. Two that overlap, because one took
 * longer than a period, do the work of one: every effect carries its own condition, and a row that was read before the claim
 * is a hint as any other. What a pass that dies leaves is in the list still.
 */
import { slotVerdict } from '../../domain/tick.ts';
import { workUntil } from '../framework/bounded-work.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { type Tick, TickFault } from '../node-monitor/reconcile.ts';
import { detachVolumes } from '../volume-detacher/reconcile.ts';
import { collectPods, hasPodsToJudge } from './collect-pods.ts';
import { isSweepDue, sweepPods } from './sweep-pods.ts';

const POD_GC = 'pod-gc';
/** Kept free at the end of a period. Milliseconds. */
const PERIOD_RESERVE_MS = 500;

export type PodGcReport =
  | { readonly kind: 'stale' }
  | { readonly kind: 'lost' }
  | {
      readonly kind: 'ran';
      readonly podsRemoved: number;
      /** Pods that the next pass begins with. */
      readonly podsLeft: number;
      /** Detaches that EC2 accepted. */
      readonly volumesDetached: number;
    };

/** @throws TickFault when something could not be done; the next tick does it */
export async function runPodGc(dependencies: ControllerDependencies, tick: Tick): Promise<PodGcReport> {
  const { clock, policy, fleet, podGc } = dependencies;
  const nowMs = clock.nowMs();
  const periodSeconds = policy.podGcPeriodSeconds;
  if (slotVerdict({ slot: tick.slot, nowMs, periodSeconds }) === 'stale') return { kind: 'stale' };
  const list = await podGc.read();
  if (list.volumes.length === 0 && !hasPodsToJudge(list, policy) && !isSweepDue(list, nowMs)) {
    return { kind: 'ran', podsRemoved: 0, podsLeft: 0, volumesDetached: 0 };
  }
  if ((await fleet.claimBare(POD_GC, tick.slot, nowMs)) === 'lost') return { kind: 'lost' };
  const timeMs = Math.min(tick.budgetMs ?? Infinity, periodSeconds * 1_000 - PERIOD_RESERVE_MS);
  const pass = { slot: tick.slot, nowMs, budget: workUntil(clock, nowMs + timeMs) };

  const faults: unknown[] = [];
  /** One part that fails does not hold up the others. */
  const part = async <T extends { readonly faults: readonly unknown[] }>(
    run: () => Promise<T>,
  ): Promise<T | undefined> => {
    try {
      const outcome = await run();
      faults.push(...outcome.faults);
      return outcome;
    } catch (fault) {
      faults.push(fault);
      return undefined;
    }
  };
  // Volumes first: a pod that this pass takes away has wanted its volumes until now, and the wait begins when it is gone.
  const volumes = await part(() => detachVolumes(dependencies, list.volumes, pass));
  const pods = await part(() => collectPods(dependencies, list, pass));
  await part(() => sweepPods(dependencies, list, pass));
  if (faults.length > 0) throw new TickFault(faults, 'pod-gc could not finish its tick');
  return {
    kind: 'ran',
    podsRemoved: pods?.removed ?? 0,
    podsLeft: pods?.left ?? 0,
    volumesDetached: volumes?.detached ?? 0,
  };
}
