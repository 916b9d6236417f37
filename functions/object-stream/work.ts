/**
 * Immediate reactions to changes of Nodes and Pods. Records are delivered at least once, in order for each object.
 * Every work decides on what is stored when it runs, so a repetition finds nothing to do.
 *
 * Node  events RegisteredNode and RemovingNode, once for each uid; taints and labels (node-taints.ts);
 *       removal from the eviction queue when Ready; evictions of its pods when its NoExecute taints changed; pod CIDRs
 *       (node-cidrs.ts); the list of nodes that EC2 is asked about (watch-list-store.ts), and that of nodes
 *       that route Services (service-readers.ts); the quarantine of missing node names (maintain-work-list.ts)
 * Pod   evictions of its node when it is bound, deleted, or changes its tolerations; a not-ready mark when it is bound
 *       to a node that is not Ready; the work list of pod-gc; the pods version of its node, unless only its status
 *       changed
 * both  a pass of the scheduler (scheduling-requests.ts)
 *
 * A fault of one record concerns that record only. If it may pass, its works are parked and retried.
 * If it can never pass, the record is given up and counted (shared/ticks/item-change.ts).
 *
 * The next tick of node-monitor and evictor repairs the effects of a record that is given up. Events and the pods
 * version are not repaired; agents list their pods periodically anyway.
 *
 * Work of object-stream that failed with a retryable fault. It is parked, and retried until it succeeds or is given up.
 *
 *   1. Works of a batch fail. Their rows are written (parked-store.ts), and the batch succeeds. The records behind
 *      it are delivered at once (law L12).
 *   2. evictor's tick starts a retry of each row that is due and moves its due time.
 *   3. object-stream receives the retry, runs the row's works on the current object, and removes those that succeeded.
 *      A work that fails is given up if it was parked too long ago. So neither an outage of evictor nor one of
 *      object-stream loses a work that was not retried.
 *
 * What happens when calls are concurrent, late, repeated or killed:
 *
 *   - Killed before the rows are written: the batch is not acknowledged and is delivered again.
 *   - Killed between the rows and the acknowledgement: the batch is delivered again. Its works run again. They find
 *     nothing to do, or fail and are parked in the rows that exist.
 *   - The row cannot be written: the record is reported as failed and blocks its lane. The `control` table is then
 *     unavailable, and every record would fail.
 *   - A newer change of the same object runs before the retry, or beside it: both decide on the current object, and
 *     their effects are conditional. If it fails too, its works join the row.
 *   - Works are parked while a retry runs: the retry cannot remove them, because the row's version changed.
 *   - Killed during a retry, or a retry fails: the row stays, with the next due time that evictor wrote.
 *   - A retry runs twice: the second run finds no row, or nothing to do.
 *   - The object was deleted meanwhile: its works run with the names, zone and pod CIDRs that the row kept. An object
 *     of the same name has another uid and another row.
 *
 * Each row is read, run and settled alone, so one that fails delays no other row.
 *
 * Work for a node by its name has one row per node (uid ''), because changes of all its pods may require it. So a
 * thousand pods of a throttled node park one row.
 */
import { defined } from '../../shared/defined.ts';
import { objectEvents, publishEvents } from '../../shared/events/cluster-event.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { UNBOUNDED, workThrough, workUntil } from '../../shared/ticks/bounded-work.ts';
import {
  type ChangesOutcome,
  combined,
  handleRecords,
  type ItemChangeRecord,
  isRetryable,
  runRecordWorks,
} from '../../shared/ticks/item-change.ts';
import {
  type ParkedObject,
  type ParkedRow,
  parkedId,
  parkedStore,
  reportGivenUp,
  retriedId,
} from '../../shared/ticks/parked-store.ts';
import { isWorkGivenUp, parkedNode, parkedPod } from '../../shared/ticks/parking.rule.ts';
import type { ObjectStreamDependencies } from './dependencies.ts';
import {
  type ObjectChanges,
  type ObjectWork,
  WORK_KINDS,
  type WorkKind,
  type WorksDependencies,
  worksOf,
} from './works.ts';

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

/** Retries begin within this time after the other works: they delay the records behind them little. Milliseconds. */
const RETRY_BUDGET_MS = 2_000;

/** Parks the works with retryable faults. The others are given up. */
async function parkFailed(
  { items }: WorksDependencies,
  changes: ObjectChanges,
  failed: ReadonlyMap<ObjectWork, unknown>,
  nowMs: number,
): Promise<ChangesOutcome> {
  const faults = [...failed.values()];
  const postponed = faults.filter(isRetryable);
  const notParked: unknown[] = [];
  const failedAt: number[] = [];
  const store = parkedStore(items);
  const rows = rowsToPark(changes, new Map([...failed].filter(([, fault]) => isRetryable(fault))));
  await workThrough(rows, { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED }, async (row) => {
    try {
      await store.park(row.object, [...row.works], nowMs);
    } catch (fault) {
      notParked.push(fault);
      if (isRetryable(fault)) failedAt.push(row.position);
    }
  });
  return {
    faults: [...faults.filter((fault) => !isRetryable(fault)), ...notParked],
    postponed,
    ...defined({ failedFrom: failedAt.length === 0 ? undefined : Math.min(...failedAt) }),
  };
}

interface RowToPark {
  /** Its latest state in this batch. */
  readonly object: ParkedObject;
  readonly works: Set<WorkKind>;
  /** Position of its first record in the batch. */
  readonly position: number;
}

function rowsToPark({ nodes, pods }: ObjectChanges, failed: ReadonlyMap<ObjectWork, unknown>): readonly RowToPark[] {
  const changes = new Map<number, () => readonly Incarnation[]>();
  for (const { before, after, position } of nodes) changes.set(position, () => incarnations('nodes', before, after));
  for (const { before, after, position } of pods) changes.set(position, () => incarnations('pods', before, after));
  const rows = new Map<string, RowToPark>();
  for (const { kind, of, nodeName } of failed.keys()) {
    for (const position of of) {
      for (const { object, isBefore, isAfter } of nodeName === undefined ? changes.get(position)!() : named(nodeName)) {
        if ((kind === 'registered' && !isAfter) || (kind === 'removed' && !isBefore)) continue;
        const row = rows.get(parkedId(object));
        rows.set(parkedId(object), {
          object: row === undefined || row.object.resourceVersion < object.resourceVersion ? object : row.object,
          works: new Set([...(row?.works ?? []), kind]),
          position: Math.min(row?.position ?? position, position),
        });
      }
    }
  }
  return [...rows.values()];
}

interface Incarnation {
  readonly object: ParkedObject;
  readonly isBefore: boolean;
  readonly isAfter: boolean;
}

/** The objects that a change concerns: one, or two if an object was replaced by another of its name. */
function incarnations(
  resource: 'nodes' | 'pods',
  before: KubeObject | undefined,
  after: KubeObject | undefined,
): readonly Incarnation[] {
  const isSame = before?.metadata.uid === after?.metadata.uid;
  if (isSame && after !== undefined) return [{ object: parkedObject(resource, after), isBefore: true, isAfter: true }];
  return [
    ...(before === undefined ? [] : [{ object: parkedObject(resource, before), isBefore: true, isAfter: false }]),
    ...(after === undefined ? [] : [{ object: parkedObject(resource, after), isBefore: false, isAfter: true }]),
  ];
}

/** The node of this name, whatever its uid. */
const named = (name: string): readonly Incarnation[] => [
  { object: parkedObject('nodes', { metadata: { name } }), isBefore: true, isAfter: true },
];

function parkedObject(resource: 'nodes' | 'pods', object: KubeObject): ParkedObject {
  const { namespace = '', name = '', uid = '', resourceVersion } = object.metadata;
  const kept = resource === 'nodes' ? parkedNode(object as KubeNode) : parkedPod(object);
  const version = Number(resourceVersion);
  return {
    resource,
    namespace,
    name,
    uid,
    resourceVersion: Number.isSafeInteger(version) ? version : 0,
    text: JSON.stringify(kept),
  };
}

/** Retries the parked rows that the records name. Never reports a record as failed. */
async function retryParked(
  dependencies: WorksDependencies,
  records: readonly ItemChangeRecord[],
  nowMs: number,
): Promise<ChangesOutcome> {
  const { clock } = dependencies;
  // From now, not from the start of the batch: otherwise slow batches would never leave time for a retry.
  const budget = workUntil(clock, clock.nowMs() + RETRY_BUDGET_MS);
  const ids = new Set(records.flatMap(({ key }) => retriedId(key) ?? []));
  const outcomes: RetryOutcome[] = [];
  // A row that is not begun within the budget, or that cannot be read, is due again soon.
  const { faults } = await workThrough([...ids], { concurrencyMax: CONCURRENCY_MAX, budget }, async (id) => {
    outcomes.push(await retryRow(dependencies, id, nowMs));
  });
  return {
    faults: [...outcomes.flatMap(({ givenUp }) => givenUp), ...faults.filter((fault) => !isRetryable(fault))],
    postponed: [...outcomes.flatMap(({ left }) => left), ...faults.filter(isRetryable)],
  };
}

interface RetryOutcome {
  /** Faults of works that stay parked. */
  readonly left: readonly unknown[];
  /** Faults that are not retryable. */
  readonly givenUp: readonly unknown[];
}

async function retryRow(dependencies: WorksDependencies, id: string, nowMs: number): Promise<RetryOutcome> {
  const store = parkedStore(dependencies.items);
  const row = await store.get(id);
  if (row === undefined) return { left: [], givenUp: [] };
  const left = new Map<WorkKind, unknown>();
  const givenUp: unknown[] = [];
  const tooOld: WorkKind[] = [];
  for (const kind of WORK_KINDS.filter((each) => row.works.includes(each))) {
    try {
      // Events need only the names that the row has.
      const isEvent = kind === 'registered' || kind === 'removed';
      const changes = retriedChanges(row, kind, isEvent ? undefined : await currentObject(dependencies, row));
      for (const work of worksOf(kind, dependencies, changes, nowMs)) await work.run();
    } catch (fault) {
      if (!isRetryable(fault)) givenUp.push(fault);
      else if (isWorkGivenUp(row.workParkedAtMs[kind]!, nowMs)) tooOld.push(kind);
      else left.set(kind, fault);
    }
  }
  const settled = await store.settle(row, [...left.keys()]);
  if (tooOld.length > 0 && settled === 'written') reportGivenUp(dependencies, row, { works: tooOld, nowMs });
  return { left: [...left.values()], givenUp };
}

const isNode = ({ id }: ParkedRow): boolean => id.startsWith('nodes#');
const keptOf = ({ text }: ParkedRow): KubeObject => JSON.parse(text) as KubeObject;

async function currentObject({ objects }: WorksDependencies, row: ParkedRow): Promise<KubeObject | undefined> {
  const { namespace = '', name = '' } = keptOf(row).metadata;
  return objects.get({ resource: isNode(row) ? 'nodes' : 'pods', namespace, name });
}

/** The change from the parked object to the current one, as the works of a record expect it. */
function retriedChanges(row: ParkedRow, kind: WorkKind, current: KubeObject | undefined): ObjectChanges {
  const kept = keptOf(row);
  const sides = kind === 'registered' ? { before: undefined, after: kept } : { before: kept, after: current };
  const change = { position: 0, isRetry: true, ...sides };
  return isNode(row) ? { nodes: [change], pods: [] } : { nodes: [], pods: [change] };
}
