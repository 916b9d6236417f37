/**
 * A suspect node beats (or posts) again: it leaves the eviction queue at once, and NoExecute taints of ours go when its
 * status is Ready. What it carries as long as its own status is not Ready stays; its next status post ends that.
 *
 * The table's stream is filtered to new rows and rows of suspect nodes, so a healthy fleet calls this never. node-monitor
 * decides the same at its next tick; this is only sooner.
 */
import { lastSpokeAtMs } from '../../domain/nodes/health.ts';
import type { NodeHealth } from '../../domain/nodes/node-health.ts';
import type { Item } from '../../ports/item-store.ts';
import { nodeHealthOf } from '../../store/health-row.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import {
  type ChangesOutcome,
  handleInHalves,
  type ItemChangeRecord,
  measureFaults,
  type RecordWork,
  runRecordWork,
} from '../framework/item-change.ts';
import { liftTaints } from '../node-reconciler/lift-taints.ts';

const CONCURRENCY_MAX = 16;

const healthOf = (image: Item | undefined): NodeHealth | undefined =>
  image === undefined ? undefined : nodeHealthOf(image);

export const onHealthChange = async (
  dependencies: ControllerDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> =>
  measureFaults(dependencies, await handleInHalves(records, (some) => handleChanges(dependencies, some)));

async function handleChanges(
  dependencies: ControllerDependencies,
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
    return run === undefined ? [] : [{ of: [position], run }];
  });
  return runRecordWork(works, CONCURRENCY_MAX);
}

function workOf(
  dependencies: ControllerDependencies,
  health: NodeHealth,
  at: { readonly nowMs: number; readonly spokeAtMs: number; readonly spokeBeforeMs: number },
): RecordWork['run'] | undefined {
  const { nodeName, uid, ready, markedAtMs, noExecute } = health;
  if (ready === 'True' && (noExecute.notReady || noExecute.unreachable)) {
    return () => liftTaints(dependencies, { nodeName, uid, nowMs: at.nowMs }, 'ready');
  }
  // The first sign of life after the mark; those that follow have nothing to add.
  const returns = markedAtMs !== undefined && at.spokeAtMs > markedAtMs && at.spokeBeforeMs <= markedAtMs;
  if (ready === 'Unknown' && returns) return () => dependencies.fleet.dequeue(health);
  return undefined;
}
