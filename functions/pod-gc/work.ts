/**
 * One tick of pod-gc: detaches volumes that no pod on their node uses, and removes pods that no kubelet will finish.
 *
 *   read the work list ── nothing to act on: done
 *   claim the slot; the loser exits
 *   detach volumes (volume-detacher) ── collect pods (collect-pods.ts) ── sweep, when due (sweep-pods.ts)
 *
 * Nothing acts without a claim. A slot without work is not claimed. Two ticks that overlap, because one ran longer than
 * a period, have the effects of one: every effect carries its own condition, and rows read before the claim are only
 * hints. A tick that dies leaves its remaining rows in the list.
 */
import { hasWork } from '../../shared/kinds/pods/collection.rule.ts';
import type { PodGcList } from '../../shared/kinds/pods/work-list-store.ts';
import { bareClaim, type RunningTick, runTick, type SkippedTick, type Tick } from '../../shared/ticks/tick.ts';
import { collectPods } from './collect-pods.ts';
import type { PodGcDependencies } from './dependencies.ts';
import { sweepPods } from './sweep-pods.ts';
import { detachVolumes } from './volumes/reconcile.ts';

const POD_GC = 'pod-gc';

export type PodGcReport =
  | SkippedTick
  | {
      readonly kind: 'ran';
      readonly podsRemoved: number;
      /** Pods left for the next tick. */
      readonly podsLeft: number;
      /** Detaches that EC2 accepted. */
      readonly volumesDetached: number;
    };

/** @throws TickFault when something could not be done; the next tick does it */
export function runPodGc(dependencies: PodGcDependencies, tick: Tick): Promise<PodGcReport> {
  const { policy, podGc } = dependencies;
  return runTick(dependencies, tick, {
    controller: POD_GC,
    periodSeconds: policy.podGcPeriodSeconds,
    async read(nowMs) {
      const list = await podGc.read();
      return hasWork(list, { nowMs, policy })
        ? { kind: 'work', world: list }
        : { kind: 'done', report: { kind: 'ran', podsRemoved: 0, podsLeft: 0, volumesDetached: 0 } };
    },
    claim: bareClaim(dependencies, POD_GC, { slot: tick.slot, periodSeconds: policy.podGcPeriodSeconds }),
    work: (list: PodGcList, running) => passThrough(dependencies, list, running),
  });
}

async function passThrough(
  dependencies: PodGcDependencies,
  list: PodGcList,
  { slot, nowMs, budget, faults }: RunningTick,
): Promise<Extract<PodGcReport, { kind: 'ran' }>> {
  const pass = { slot, nowMs, budget: budget() };
  /** A part that fails does not block the others. */
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
  // Volumes first: a pod removed by this tick used its volumes until now. Their detach wait begins after its removal.
  const volumes = await part(() => detachVolumes(dependencies, list.volumes, pass));
  const pods = await part(() => collectPods(dependencies, list, pass));
  await part(() => sweepPods(dependencies, list, pass));
  return {
    kind: 'ran',
    podsRemoved: pods?.removed ?? 0,
    podsLeft: pods?.left ?? 0,
    volumesDetached: volumes?.detached ?? 0,
  };
}
