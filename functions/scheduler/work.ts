/**
 * The scheduler. A pass binds the pods that are due:
 *
 *   begin: another pass is running, or nothing is wanted or due: done
 *   read what changed ── requeue waiting pods that a change may help ── try the due pods in the order of the queue
 *   nothing is due: end, unless a pass was requested meanwhile
 *
 * Passes are requested by object-stream (scheduling-requests.ts), woken by node-monitor when a waiting pod is due, and
 * swept each minute. They may come late, twice or at once: `turn` avoids work that is done twice, and the conditions of
 * each binding make it safe (bind.ts).
 *
 * Cost of a sweep without work: four and a half read units, and what changed of pods since the last one.
 */

import { nodeAbsent } from '../../shared/fleet/nodes/change-node.ts';
import { dropUse } from '../../shared/fleet/nodes/node-use.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { type BackoffPolicy, dueAtMs, inQueueOrder, mayHelp } from '../../shared/scheduling/queue.rule.ts';
import { type QueueStore, queueStore, type WaitingRow } from '../../shared/scheduling/queue-store.ts';
import { isPending, type SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { workUntil } from '../../shared/ticks/bounded-work.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import { isWanted } from '../../shared/ticks/due-rows.ts';
import { type SkippedTick, type Tick, TickFault } from '../../shared/ticks/tick.ts';
import { cycleOptions, type DuePod, type PassContext, type PassCounts, tryPods } from './attempts.ts';
import { ClusterCopy } from './cluster-copy.ts';
import * as metric from './metrics.ts';
import { reportDeleted } from './report-rejection.ts';

/** A pass ends after this time at the latest, with its last transaction. Milliseconds. */
const PASS_MS = 25_000;
/** The reason of the condition PodScheduled, from the creation with gates to the first attempt. */
const GATED_REASON = 'SchedulingGated';
/** Another pass may begin this long after the time limit of one that was killed. Milliseconds. */
const TURN_RESERVE_MS = 5_000;
/** Pods that are tried between two looks at the cluster. */
const PODS_PER_ROUND_MAX = 500;
const ROUNDS_MAX = 400;
/** The metric is above the threshold of the alarm by this time. Milliseconds. */
const ALARM_MARGIN_MS = 1_000;

export type SchedulerReport =
  | SkippedTick
  | {
      readonly kind: 'ran';
      readonly bound: number;
      readonly rejected: number;
      readonly errors: number;
      readonly victims: number;
    };

export interface Scheduler {
  /** @throws TickFault when something could not be done; the next pass does it */
  pass(tick: Tick): Promise<SchedulerReport>;
}

const NOTHING: SchedulerReport = { kind: 'ran', bound: 0, rejected: 0, errors: 0, victims: 0 };

/** Keeps a copy of the cluster between passes. */
export function scheduler(dependencies: WorkDependencies): Scheduler {
  const queue = queueStore(dependencies.items);
  const copy = new ClusterCopy(dependencies, queue);
  return { pass: ({ budgetMs }) => runPass(dependencies, { queue, copy, budgetMs: budgetMs ?? PASS_MS }) };
}

interface PassParts {
  readonly queue: QueueStore;
  readonly copy: ClusterCopy;
  readonly budgetMs: number;
}

async function runPass(dependencies: WorkDependencies, parts: PassParts): Promise<SchedulerReport> {
  const { clock, policy, meter, random } = dependencies;
  const { queue } = parts;
  if (policy.scheduling === 'off') return NOTHING;
  const startMs = clock.nowMs();
  const turn = await queue.peek();
  if (!isWanted(turn, startMs) && !(await hasUntriedPod(parts))) return NOTHING;
  const limitMs = Math.min(PASS_MS, parts.budgetMs);
  const id = random.uuid();
  const wanted = await queue.begin({ id, nowMs: startMs, untilMs: startMs + limitMs + TURN_RESERVE_MS });
  if (wanted === 'busy') return { kind: 'lost' };
  const report: PassCounts = { bound: 0, rejected: 0, errors: 0, victims: 0 };
  try {
    // The pass before left its turn: it was killed.
    const isAfterKill = turn.busyUntilMs > 0 && turn.busyUntilMs <= startMs;
    await runRounds(dependencies, parts, { id, wanted, report, limitMs, isAfterKill });
  } catch (fault) {
    report.errors += 1;
    // The next wake-up finds the same work.
    await queue.abandon(id).catch(() => undefined);
    throw new TickFault([fault], 'the scheduler could not finish its pass', { hasRun: false });
  } finally {
    meter.add(metric.PASS_DURATION, (clock.nowMs() - startMs) / 1_000, 'Seconds');
    countAttempts(dependencies, report);
  }
  return { kind: 'ran', ...report };
}

/** A pod that was never tried, because its stream record was lost: no pass was requested, and it has no row. */
async function hasUntriedPod({ queue, copy }: PassParts): Promise<boolean> {
  if (!(await copy.hasNewPods())) return false;
  await copy.refresh();
  const keys = [...copy.pending.keys()].filter((key) => copy.snapshot.pods.get(key)?.isGated === false);
  if (keys.length === 0) return false;
  const rows = new Set((await queue.rows()).map(({ key }) => key));
  return keys.some((key) => !rows.has(key));
}

async function runRounds(
  dependencies: WorkDependencies,
  { queue, copy }: PassParts,
  pass: {
    readonly id: string;
    readonly wanted: number;
    readonly report: PassCounts;
    readonly limitMs: number;
    readonly isAfterKill: boolean;
  },
): Promise<void> {
  const { clock, policy, fleet, random } = dependencies;
  const { id, report, isAfterKill } = pass;
  let { wanted } = pass;
  const budget = workUntil(clock, clock.nowMs() + pass.limitMs);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    await copy.refresh();
    const rows = new Map((await queue.rows()).map((row) => [row.key, row]));
    await dropRows(dependencies, { queue, copy, rows });
    const due = await duePods(dependencies, { queue, copy, rows });
    if (due.length > 0 && budget.hasTime()) {
      const nodeNames = [...copy.snapshot.nodes.keys()];
      const { options, isHeld } = await cycleOptions(dependencies, nodeNames, await fleet.readState());
      const context: PassContext = { dependencies, copy, queue, options, isHeld, budget, rows, report };
      const ordered = isAfterKill ? startedAt(due, random.fraction()) : due;
      await tryPods(context, ordered.slice(0, PODS_PER_ROUND_MAX));
      wanted = await queue.wanted();
      continue;
    }
    measureQueue(dependencies, copy, rows);
    if (budget.hasTime()) await dropUnusedRows(dependencies, copy);
    const nextMs = due.length > 0 ? clock.nowMs() : nextPassMs([...rows.values()], policy, clock.nowMs());
    if ((await queue.end({ id, wanted, dueAtMs: nextMs })) === 'ended') return;
    // While many pods are created there is a request at each end. The next wake-up finds it.
    if (!budget.hasTime()) return queue.abandon(id);
    wanted = await queue.wanted();
  }
}

/**
 * One pod may cost more than a pass has time for. It would be the first of each pass, and no pod behind it would ever
 * be tried: so a pass after one that was killed begins anywhere in the queue.
 */
function startedAt(due: readonly DuePod[], fraction: number): readonly DuePod[] {
  const first = Math.floor(due.length * fraction);
  return [...due.slice(first), ...due.slice(0, first)];
}

/**
 * When a pass is needed at the latest: for an attempt, or because a pod has waited as long as the alarm allows. That
 * pass measures it. Epoch milliseconds; undefined: no pod waits.
 */
function nextPassMs(rows: readonly WaitingRow[], policy: Policy, nowMs: number): number | undefined {
  if (rows.length === 0) return undefined;
  const times = rows.flatMap((row) => {
    const alarmMs = row.queuedAtMs + policy.pendingPodAlarmSeconds * 1_000 + ALARM_MARGIN_MS;
    const attemptMs = dueAtMs(row, policy as BackoffPolicy);
    return alarmMs > nowMs ? [attemptMs, alarmMs] : [attemptMs];
  });
  return Math.min(...times);
}

/**
 * When a pod that was never tried entered the queue: at its creation, or when its last gate was removed. The condition
 * shows the gates until the first attempt. Epoch milliseconds.
 */
const enteredAtMs = ({ createdAtMs, scheduledCondition }: SchedulablePod, nowMs: number): number =>
  scheduledCondition?.reason === GATED_REASON ? nowMs : createdAtMs;

interface QueueState {
  readonly queue: QueueStore;
  readonly copy: ClusterCopy;
  readonly rows: Map<string, WaitingRow>;
}

/** Removes the rows of pods that no longer wait. */
async function dropRows(dependencies: WorkDependencies, { queue, copy, rows }: QueueState): Promise<void> {
  for (const row of [...rows.values()]) {
    const pod = copy.snapshot.pods.get(row.key);
    const isSame = pod?.uid === row.uid;
    if (isSame && isPending(pod!)) continue;
    if (isSame && pod!.nodeName === '' && pod!.isTerminating) {
      await reportDeleted(dependencies, pod!, dependencies.clock.nowMs());
    }
    rows.delete(row.key);
    await queue.dropRow(row.key);
  }
}

/** Pods to try now, in the order of the queue. A pod that a change may help is tried when its backoff ends. */
async function duePods(
  { clock, policy }: WorkDependencies,
  { queue, copy, rows }: QueueState,
): Promise<readonly DuePod[]> {
  const nowMs = clock.nowMs();
  const due: (DuePod & { readonly pod: SchedulablePod })[] = [];
  for (const key of copy.pending.keys()) {
    const pod = copy.snapshot.pods.get(key);
    if (pod === undefined || pod.isGated) continue;
    const stored = rows.get(key);
    if (stored === undefined) {
      due.push({ key, uid: pod.uid, pod, row: undefined, queuedAtMs: enteredAtMs(pod, nowMs) });
      continue;
    }
    const row = isHelped(copy, pod, stored) ? { ...stored, isRequeued: true } : stored;
    if (dueAtMs(row, policy) <= nowMs) due.push({ key, uid: pod.uid, pod, row, queuedAtMs: row.queuedAtMs });
    else if (row !== stored) {
      rows.set(key, row);
      await queue.putRow(row);
    }
  }
  const queuedAtMs = ({ row, queuedAtMs: sinceMs }: DuePod): number => row?.triedAtMs ?? sinceMs;
  return due.sort((one, other) =>
    inQueueOrder({ pod: one.pod, queuedAtMs: queuedAtMs(one) }, { pod: other.pod, queuedAtMs: queuedAtMs(other) }),
  );
}

/** Whether a change since the last attempt may help. After the attempt of another process not all changes are known. */
function isHelped(copy: ClusterCopy, pod: SchedulablePod, row: WaitingRow): boolean {
  if (row.isRequeued) return false;
  if (row.process !== copy.process) return true;
  const { namespaces } = copy.snapshot;
  return copy.history.mayHelp(row.key, row.changesSeen, (change) => mayHelp(pod, row.plugins, { change, namespaces }));
}

function measureQueue({ meter, clock, policy }: WorkDependencies, copy: ClusterCopy, rows: QueueState['rows']): void {
  const nowMs = clock.nowMs();
  const counts = { active: 0, backoff: 0, unschedulable: 0, gated: 0 };
  const byPlugin = new Map<string, number>();
  let oldestMs = nowMs;
  for (const key of copy.pending.keys()) {
    const pod = copy.snapshot.pods.get(key);
    if (pod === undefined) continue;
    const row = rows.get(key);
    if (pod.isGated) {
      counts.gated += 1;
      continue;
    }
    oldestMs = Math.min(oldestMs, row?.queuedAtMs ?? enteredAtMs(pod, nowMs));
    if (row === undefined || dueAtMs(row, policy) <= nowMs) counts.active += 1;
    else if (row.isRequeued || row.errors > 0) counts.backoff += 1;
    else counts.unschedulable += 1;
    for (const plugin of row?.plugins ?? []) byPlugin.set(plugin, (byPlugin.get(plugin) ?? 0) + 1);
  }
  for (const [queue, count] of Object.entries(counts)) meter.add(metric.PENDING_PODS, count, 'Count', { queue });
  for (const [plugin, count] of byPlugin) meter.add(metric.UNSCHEDULABLE_PODS, count, 'Count', { plugin });
  meter.add(metric.OLDEST_PENDING, (nowMs - oldestMs) / 1_000, 'Seconds');
}

function countAttempts({ meter }: WorkDependencies, { bound, rejected, errors }: PassCounts): void {
  for (const [result, count] of Object.entries({ scheduled: bound, unschedulable: rejected, error: errors })) {
    if (count > 0) meter.add(metric.SCHEDULE_ATTEMPTS, count, 'Count', { result });
  }
}

/** Rows that one pass deletes. */
const ROWS_MAX = 25;

/**
 * Deletes the rows of `use` (node-use.ts) of nodes that no longer exist: a fleet with changing nodes would otherwise
 * leave rows that each new process of the scheduler reads.
 *
 * `v` begins again with a new row. Why no binding compares it with the version of an earlier row:
 *
 *   1. A row is deleted only while its Node does not exist: a condition of the transaction.
 *   2. So the row that exists at a binding began after the Node was created, or before it without a deletion since.
 *   3. The copy forgets the version when it reads a Node with another uid, and reads Nodes before versions in a list.
 *      So it compares only a version that was read while this Node existed, or none (0).
 *   4. With none, the row must not exist at the commit. Pods of earlier rows were bound before the Node was created.
 *      The copy reads pods after Nodes, so it has them.
 *
 * A refused deletion is left to a later process. Cost: 4 write units per row, once.
 */
export async function dropUnusedRows({ items }: Pick<WorkDependencies, 'items'>, copy: ClusterCopy): Promise<void> {
  for (const { nodeName, version } of copy.unusedRows().slice(0, ROWS_MAX)) {
    const outcome = await items.transact([dropUse(nodeName, version), nodeAbsent(nodeName)]);
    if (outcome.kind === 'written') copy.rowDropped(nodeName);
  }
}
