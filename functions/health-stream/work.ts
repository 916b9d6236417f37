/**
 * Reacts to a heartbeat or status post of a suspect node. The node leaves the eviction queue at once, and if its status
 * is Ready, our NoExecute taints are removed. Taints that its own status demands stay until its next status post.
 *
 * The filter of the stream passes what workOf and endOfSilence may act on (manifest.ts). A healthy fleet and a node
 * that registers never invoke this function.
 *
 * A record is never reported as failed. node-monitor decides the same at its next tick, so another delivery would gain
 * less than one period, and it would delay the recovery of the nodes behind the record (law L12). That also holds when
 * the tables are unavailable and every record fails: the first tick after the outage does this work. So a fault that
 * may pass is retried once in place, and then left to node-monitor and counted. A promise that this function could not
 * end is ended by node-monitor (silence-watch.ts).
 */
import { gateOf, gateVerdictOf } from '../../shared/fleet/gate.ts';
import { lastSpokeAtMs, type NodeHealth, nodeHealthOf } from '../../shared/fleet/nodes/health.ts';
import { endPlannedSilence, liftTaints } from '../../shared/fleet/nodes/lift-taints.ts';
import { policyOf } from '../../shared/fleet/nodes/node-profile.ts';
import type { Item } from '../../shared/store/item-store.ts';
import { UNBOUNDED } from '../../shared/ticks/bounded-work.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import {
  type ChangesOutcome,
  handleRecords,
  type ItemChangeRecord,
  isRetryable,
  type RecordWork,
  runRecordWorks,
} from '../../shared/ticks/item-change.ts';

const CONCURRENCY_MAX = 16;

const healthOf = (image: Item | undefined): NodeHealth | undefined =>
  image === undefined ? undefined : nodeHealthOf(image);

export const onHealthChange = (
  dependencies: WorkDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> => handleRecords(dependencies, records, (some) => handleChanges(dependencies, some));

async function handleChanges(
  dependencies: WorkDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> {
  const nowMs = dependencies.clock.nowMs();
  const works = records.flatMap((record, position): RecordWork[] => {
    const before = healthOf(record.oldImage);
    const after = healthOf(record.newImage);
    if (after === undefined) return [];
    const spokeAtMs = lastSpokeAtMs(after);
    const spokeBeforeMs = before?.uid === after.uid ? lastSpokeAtMs(before) : -Infinity;
    if (spokeAtMs <= spokeBeforeMs) return [];
    const run = workOf(dependencies, after, { nowMs, spokeAtMs, spokeBeforeMs });
    const back = endOfSilence(dependencies, after, { nowMs, spokeAtMs, spokeBeforeMs });
    return [run, back].flatMap((each) => (each === undefined ? [] : [{ of: [position], run: each }]));
  });
  const failed = await runRecordWorks(works, { concurrencyMax: CONCURRENCY_MAX, retryBudget: UNBOUNDED });
  const faults = [...failed.values()];
  return { faults: faults.filter((fault) => !isRetryable(fault)), postponed: faults.filter(isRetryable) };
}

interface Silence {
  readonly nowMs: number;
  readonly spokeAtMs: number;
  /** Last sign of life before `spokeAtMs`; -Infinity for none. */
  readonly spokeBeforeMs: number;
}

/**
 * The node was silent for more than one grace period, as it promised, and sends heartbeats again. Only silence while
 * our own heartbeat path and ticks were healthy counts: an outage of ours must not end the promise of a node that has
 * yet to sleep.
 */
function endOfSilence(
  dependencies: WorkDependencies,
  { nodeName, uid, plannedUntilMs, profile }: NodeHealth,
  { nowMs, spokeAtMs, spokeBeforeMs }: Silence,
): RecordWork['run'] | undefined {
  const { policy, fleet } = dependencies;
  const graceMs = policyOf(policy, profile).nodeMonitorGracePeriodSeconds * 1_000;
  const isLong = (sinceMs: number): boolean => spokeAtMs - sinceMs > graceMs;
  if (plannedUntilMs === undefined || !Number.isFinite(spokeBeforeMs) || !isLong(spokeBeforeMs)) return undefined;
  return async () => {
    const { gate } = await fleet.readState();
    if (gateVerdictOf(gate, profile, { nowMs, policy }).kind === 'holding') return;
    if (!isLong(Math.max(spokeBeforeMs, gateOf(gate, profile).freshSinceMs))) return;
    await endPlannedSilence(dependencies, { nodeName, uid, plannedUntilMs }, nowMs);
  };
}

function workOf(
  dependencies: WorkDependencies,
  health: NodeHealth,
  at: { readonly nowMs: number; readonly spokeAtMs: number; readonly spokeBeforeMs: number },
): RecordWork['run'] | undefined {
  const { nodeName, uid, ready, markedAtMs, noExecute } = health;
  if (ready === 'True' && (noExecute.notReady || noExecute.unreachable)) {
    return () => liftTaints(dependencies, { nodeName, uid, nowMs: at.nowMs }, 'ready');
  }
  // Only the first sign of life after the mark changes the queue.
  const isFirst = markedAtMs !== undefined && at.spokeAtMs > markedAtMs && at.spokeBeforeMs <= markedAtMs;
  if (ready === 'Unknown' && isFirst) return () => dependencies.fleet.dequeue(health);
  return undefined;
}
