/**
 * S3, for pods that the hub of a site moves: once cluster, hub and machine reach each other again, the machine runs no
 * pod of the site that the cluster does not have there. A copy is merged, or it is withdrawn and stops; a pod that the
 * cluster deleted meanwhile stops.
 *
 * By truth: what runs is what machines run, not what they report.
 */
import { COPY_OF } from '../../shared/kinds/pods/site-copy.ts';
import { siteHubOf } from '../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { Mark } from '../coverage.ts';
import type { PodObserver } from '../running-pods.ts';
import { type Law, type LawContext, seconds } from './law.ts';
import { hasEnded, isDeleting, uidOf, type WorkloadWorld } from './workload-world.ts';

/** The hub reads everything, looks, and asks the cluster; then the machine asks the hub. Milliseconds. */
const RETURNED_WITHIN_MS = 120_000;

interface Running {
  readonly machine: string;
  readonly pod: KubePod;
  /** Since when the cluster does not want it there; undefined: it does. */
  unwantedSinceMs: number | undefined;
}

export interface SiteReturnsLaw extends Law, PodObserver {
  /** The way of a machine to the hub is cut until then. */
  onHubCut(machine: string, untilMs: number): void;
}

/** `hubCalmSinceMs`: since when the hub that moves pods runs without a trouble; undefined: it does not. */
export function siteReturns(
  { nowMs, calmSinceMs, machine: machineOf, fail }: LawContext,
  world: Pick<WorkloadWorld, 'withUid'>,
  hubCalmSinceMs: () => number | undefined,
  hit: (mark: Mark) => void,
): SiteReturnsLaw {
  /** By machine and uid: pods of the site that are not about to stop. */
  const running = new Map<string, Running>();
  const hubCutUntilMs = new Map<string, number>();
  const isCopy = ({ metadata }: KubePod): boolean => metadata.annotations?.[COPY_OF] !== undefined;
  const keyOf = (machine: string, pod: KubePod): string => `${machine} ${uidOf(pod)}`;

  const isWanted = ({ machine, pod }: Running): boolean => {
    const stored = world.withUid(uidOf(pod))?.object as KubePod | undefined;
    return stored !== undefined && !isDeleting(stored) && !hasEnded(stored) && stored.spec?.nodeName === machine;
  };

  /** Since when cluster, hub and machine reach each other. */
  function reachedSinceMs(machine: string): number | undefined {
    const [calmMs, hubMs, real] = [calmSinceMs(), hubCalmSinceMs(), machineOf(machine)];
    if (calmMs === undefined || hubMs === undefined || real?.isOn !== true) return undefined;
    return Math.max(calmMs, hubMs, real.sinceMs, real.lastCutMs, hubCutUntilMs.get(machine) ?? 0);
  }

  return {
    name: 'S3',
    onHubCut: (machine, untilMs) => hubCutUntilMs.set(machine, untilMs),
    onStart(machine, pod) {
      if (siteHubOf(pod) === undefined) return;
      running.set(keyOf(machine, pod), { machine, pod, unwantedSinceMs: nowMs() });
    },
    onStopping: (machine, pod) => running.delete(keyOf(machine, pod)),
    onStopped: () => {},
    onMoment() {
      const atMs = nowMs();
      for (const each of running.values()) {
        const { machine, pod } = each;
        if (isWanted(each)) {
          if (each.unwantedSinceMs !== undefined && isCopy(pod)) hit('S3:returned');
          each.unwantedSinceMs = undefined;
          continue;
        }
        each.unwantedSinceMs ??= atMs;
        const reachedMs = reachedSinceMs(machine);
        if (reachedMs === undefined) continue;
        const sinceMs = Math.max(reachedMs, each.unwantedSinceMs);
        if (atMs - sinceMs <= RETURNED_WITHIN_MS) continue;
        const { namespace, name } = pod.metadata;
        const message = `${machine} runs ${namespace}/${name} for ${seconds(atMs - sinceMs)}, which the cluster does not have there`;
        fail({ law: 'S3', subjects: [machine, `${namespace}/${name}`], message, isLate: true });
      }
    },
  };
}
