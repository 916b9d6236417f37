/**
 * Immediate reactions to changes of Nodes and Pods. Records are delivered at least once, in order for each object.
 * Every work decides on what is stored when it runs, so a repetition finds nothing to do.
 *
 * Node  events RegisteredNode and RemovingNode, once for each uid; taints and labels (node-taints.ts);
 *       removal from the eviction queue when Ready; evictions of its pods when its NoExecute taints changed; pod CIDRs
 *       (node-cidrs.ts); the list of nodes that EC2 is asked about (maintain-watch-list.ts), and that of nodes
 *       that route Services (service-readers.ts); the quarantine of missing node names (maintain-work-list.ts)
 * Pod   evictions of its node when it is bound, deleted, or changes its tolerations; a not-ready mark when it is bound
 *       to a node that is not Ready; the work list of pod-gc; the pods version of its node, unless only its status
 *       changed
 * both  a pass of the scheduler (scheduling-requests.ts)
 *
 * A fault of one record concerns that record only. If it may pass, its works are parked and retried (parked-works.ts).
 * If it can never pass, the record is given up and counted (shared/ticks/item-change.ts).
 *
 * The next tick of node-monitor and evictor repairs the effects of a record that is given up. Events and the pods
 * version are not repaired; agents list their pods periodically anyway.
 */

import { objectEvents, publishEvents } from '../../shared/events/cluster-event.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { workUntil } from '../../shared/ticks/bounded-work.ts';
import {
  type ChangesOutcome,
  combined,
  handleRecords,
  type ItemChangeRecord,
  runRecordWorks,
} from '../../shared/ticks/item-change.ts';
import type { ObjectStreamDependencies } from './dependencies.ts';
import { parkFailed, retryParked } from './parked-works.ts';
import { type ObjectChanges, WORK_KINDS, worksOf } from './works.ts';

/** Works that run concurrently. */
const CONCURRENCY_MAX = 8;
/** The repetition of failed works begins within this time after the start of the batch. Milliseconds. */
const REPETITION_BUDGET_MS = 2_000;
const NODES_PREFIX = 'o#nodes#';
const PODS_PREFIX = 'o#pods#';

export const onObjectChange = (
  dependencies: ObjectStreamDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> => handleRecords(dependencies, records, (some) => handleChanges(dependencies, some));

async function handleChanges(
  dependencies: ObjectStreamDependencies,
  records: readonly ItemChangeRecord[],
): Promise<ChangesOutcome> {
  const nowMs = dependencies.clock.nowMs();
  const withState = { ...dependencies, fleetState: once(() => dependencies.fleet.readState()) };
  const changes: ObjectChanges = {
    nodes: changesOf(records, NODES_PREFIX),
    pods: changesOf(records, PODS_PREFIX),
  };
  const works = WORK_KINDS.flatMap((kind) => worksOf(kind, withState, changes, nowMs));
  const retryBudget = workUntil(dependencies.clock, nowMs + REPETITION_BUDGET_MS);
  const limits = { concurrencyMax: CONCURRENCY_MAX, retryBudget };
  // Not parked: publishEvents never rejects, so this fails only for an unreadable object.
  const publishing = {
    of: [],
    run: () => publishEvents(dependencies, objectEvents(changes.nodes, changes.pods), nowMs),
  };
  const [failed, unpublished] = await Promise.all([
    runRecordWorks(
      works.filter(({ kind }) => kind !== 'evictions'),
      limits,
    ),
    runRecordWorks([publishing], limits),
  ]);
  // After the other works, which change the taints that they depend on.
  const failedEvictions = await runRecordWorks(
    works.filter(({ kind }) => kind === 'evictions'),
    limits,
  );
  return combined(
    { faults: [...unpublished.values()], postponed: [] },
    await parkFailed(withState, changes, new Map([...failed, ...failedEvictions]), nowMs),
    await retryParked(withState, records, nowMs),
  );
}

/** Reads once and returns the same result to all callers. After a fault the next call reads again. */
function once<T>(read: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= read().catch((fault: unknown) => {
      result = undefined;
      throw fault;
    });
    return result;
  };
}

const changesOf = (records: readonly ItemChangeRecord[], prefix: string) =>
  records.flatMap(({ key, oldImage, newImage }, position) =>
    key.pk.startsWith(prefix)
      ? [
          {
            position,
            before: oldImage === undefined ? undefined : objectOf(oldImage),
            after: newImage === undefined ? undefined : objectOf(newImage),
          },
        ]
      : [],
  );
