/**
 * cloud-node: asks EC2 about nodes that are not Ready or not initialised, and applies the answers (rule.ts).
 *
 *   1. Read the watch list (watch-list-store.ts). Done if it is empty.
 *   2. Claim the slot. The loser exits.
 *   3. Ask EC2 about the nodes that are due, in batches.
 *   4. Per node: decide, apply to the Node's current state, store the answer.
 *
 * An EventBridge event about an instance does steps 3 and 4 for its node at once, without a claim. The event is only a
 * trigger: EC2 is asked. Events may come late, twice or not at all, so the tick decides.
 *
 * Calls may run twice, at once or be killed half-way:
 *   - An answer is stored only if the row has not changed since it was read.
 *   - A Node and its row are deleted in one commit, and only at the version that was evaluated (its Ready status).
 *   - A process that dies before it stores an answer loses it; the next tick asks again.
 *
 * The safety gate (D9) does not apply here. It is about missing heartbeats. These decisions rest on EC2's answer about
 * a node that is already NotReady. While the gate is closed no node becomes NotReady, so none is added to the watch
 * list.
 */

import type { DecisionDraft } from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import type { EventText } from '../../shared/events/event-text.ts';
import { eventWrite, type PendingEvent, recordEvents, subjectOf } from '../../shared/events/record-event.ts';
import type { Cloud, InstanceAnswer } from '../../shared/fleet/instances/cloud.ts';
import {
  addressesToWrite,
  type Initialisation,
  initialiseNode,
  isUninitialised,
  type MetadataAnswer,
} from '../../shared/fleet/instances/initialisation.rule.ts';
import type { CloudAnswer } from '../../shared/fleet/instances/instance.ts';
import { type AskedSeconds, isComparisonDue, planPolls } from '../../shared/fleet/instances/poll-plan.rule.ts';
import type { Ec2Instance } from '../../shared/fleet/instances/provider-id.ts';
import {
  AUTOMATIC_OUT_OF_SERVICE_TAINT,
  type CloudDecision,
  type CloudQuestion,
  deletingNodeFailedEvent,
  SHUTDOWN_TAINT,
} from '../../shared/fleet/instances/rule.ts';
import {
  type CloudSeen,
  cloudCheckFailed,
  cloudState,
  confirmWithinMs,
  evaluateNode,
  initialisationFailed,
  instanceOf,
  keptKey,
  pollStrides,
  provenAnswer,
  seenAfter,
  type WatchedNode,
} from '../../shared/fleet/instances/watch-list.rule.ts';
import {
  type CloudStore,
  cloudStore,
  isWatchedNode,
  type WatchRow,
  watchedNodeOf,
} from '../../shared/fleet/instances/watch-list-store.ts';
import { changeNode, type NodeChange, withTaints } from '../../shared/fleet/nodes/change-node.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import { addTaint, removeTaints } from '../../shared/fleet/nodes/taint.ts';
import type { KubeNode, Taint } from '../../shared/kinds/types.ts';
import { rfc3339RoundedUp } from '../../shared/kubernetes/rfc3339.ts';
import type { PutWrite } from '../../shared/store/item-store.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import { type WorkBudget, workThrough, workUntil } from '../../shared/ticks/bounded-work.ts';
import {
  bareClaim,
  reportTickAge,
  runTick,
  type SkippedTick,
  slotStartMs,
  type Tick,
  tickFault,
} from '../../shared/ticks/tick.ts';
import { cloudDraft, heldDraft, outOfServiceDraft } from './decisions.ts';
import { deleteNode, type NodeDeletion } from './delete-node.ts';
import type { CloudNodeDependencies } from './dependencies.ts';
import * as metric from './metrics.ts';

const CLOUD_NODE = 'cloud-node';
const NODE_CONCURRENCY_MAX = 16;
/** Events of failed checks per tick. Later ticks record the remaining ones while the failure lasts. */
const REPORTS_PER_TICK_MAX = 50;
const REMEMBER_ATTEMPTS_MAX = 3;

export type CloudNodeReport =
  | { readonly kind: 'noCloud' }
  | SkippedTick
  | {
      readonly kind: 'ran';
      /** Nodes on the list. */
      readonly watched: number;
      /** Nodes processed in this tick. */
      readonly processed: number;
      readonly deleted: number;
    };

const NOTHING_TO_DO = Object.freeze({ kind: 'ran' as const, watched: 0, processed: 0, deleted: 0 });

/** @throws TickFault when an effect failed; the next tick decides it again. */
export async function runCloudNode(dependencies: CloudNodeDependencies, tick: Tick): Promise<CloudNodeReport> {
  const { policy, items, meter, cloud } = dependencies;
  if (cloud === undefined) return { kind: 'noCloud' };
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  return runTick(dependencies, tick, {
    controller: CLOUD_NODE,
    periodSeconds,
    async read() {
      // Read before the claim: a slot without work is not claimed.
      const rows = await cloudStore(items).read();
      return rows.length === 0 ? { kind: 'done', report: NOTHING_TO_DO } : { kind: 'work', world: rows };
    },
    claim: bareClaim(dependencies, CLOUD_NODE, { slot: tick.slot, periodSeconds }),
    async work(rows: readonly WatchRow[], { nowMs, budget, faults }): Promise<CloudNodeReport> {
      const list = cloudStore(items);
      const strides = pollStrides(rows, { nowMs, periodSeconds });
      // Without the times, every node counts as waiting, and the tick asks about as many as it may.
      const asked = strides.areAllDue
        ? {}
        : await list.readAsked().catch((fault: unknown): AskedSeconds => {
            faults.push(fault);
            return {};
          });
      const plan = planPolls(rows, strides, {
        periodSeconds,
        slotStartMs: slotStartMs(tick.slot, periodSeconds),
        asked,
      });
      reportTickAge(meter, { slot: tick.slot, periodSeconds, nowMs });
      meter.add(metric.CLOUD_WATCHED, rows.length, 'Count');
      const processed = await processRows(dependencies, cloud, plan.due, {
        budget: budget(),
        strideOf: strides.strideOf,
        isCompared: (row) => isComparisonDue(row, nowMs),
      });
      faults.push(...processed.faults);
      const askedAfter = plan.askedAfter(processed.begun);
      // A fault here asks EC2 about these nodes again at the next tick.
      if (askedAfter !== undefined) {
        await list.rememberAsked(askedAfter).catch((fault: unknown) => void faults.push(fault));
      }
      return { kind: 'ran', watched: rows.length, processed: plan.due.length, deleted: processed.deleted };
    },
  });
}

/** Processes the nodes of one instance after its state changed. @throws TickFault as a tick does */
export async function processInstance(
  dependencies: CloudNodeDependencies,
  instanceId: string,
  budgetMs?: number,
): Promise<CloudNodeReport> {
  const { clock, policy, items, cloud } = dependencies;
  if (cloud === undefined) return { kind: 'noCloud' };
  const rows = await cloudStore(items).read();
  const ofInstance = rows.filter((row) => {
    const instance = instanceOf(row);
    return instance.kind === 'ec2' && instance.instanceId === instanceId;
  });
  const nowMs = clock.nowMs();
  const { deleted, faults } = await processRows(dependencies, cloud, ofInstance, {
    ...pollStrides(rows, { nowMs, periodSeconds: policy.nodeMonitorPeriodSeconds }),
    budget: workUntil(clock, nowMs + (budgetMs ?? policy.nodeMonitorPeriodSeconds * 1_000)),
    isCompared: () => false,
  });
  if (faults.length > 0) throw tickFault(CLOUD_NODE, faults, { hasRun: true });
  return { kind: 'ran', watched: rows.length, processed: ofInstance.length, deleted };
}

interface ProcessingOptions {
  readonly budget: WorkBudget;
  /** Interval, in ticks, at which EC2 is asked about the node. */
  strideOf(row: WatchRow): number;
  /** Whether the row is compared with its Node in this pass in any case. */
  isCompared(row: WatchRow): boolean;
}

interface ProcessedRows {
  /** Number of deleted Nodes. */
  readonly deleted: number;
  /** Rows that were processed, with or without a fault. The time may end before all are. */
  readonly begun: ReadonlySet<WatchRow>;
  /** Faults of single nodes. */
  readonly faults: readonly unknown[];
}

/** Asks EC2, decides, applies. */
async function processRows(
  dependencies: CloudNodeDependencies,
  cloud: Cloud,
  rows: readonly WatchRow[],
  { budget, strideOf, isCompared }: ProcessingOptions,
): Promise<ProcessedRows> {
  const { clock, meter, policy } = dependencies;
  const instances = new Map<string, Ec2Instance>();
  for (const row of rows) {
    const instance = instanceOf(row);
    if (instance.kind === 'ec2') instances.set(instance.instanceId, instance);
  }
  // The time of the request, not of the tick: two answers confirm each other only when they are a period apart.
  const askedAtMs = clock.nowMs();
  const answers = instances.size === 0 ? new Map() : await cloud.describeInstances([...instances.values()]);
  countAnswers(dependencies, rows, answers);
  let deleted = 0;
  const begun = new Set<WatchRow>();
  let reportsLeft = REPORTS_PER_TICK_MAX;
  const { faults } = await workThrough(rows, { concurrencyMax: NODE_CONCURRENCY_MAX, budget }, async (row) => {
    begun.add(row);
    const settled = await settle(dependencies, row, answerFor(row, answers), {
      nowMs: askedAtMs,
      confirmWithinMs: confirmWithinMs(strideOf(row), policy.nodeMonitorPeriodSeconds),
      isCompared: isCompared(row),
      mayReport: () => {
        reportsLeft -= 1;
        return reportsLeft >= 0;
      },
    });
    if (settled === 'deleted') deleted += 1;
  });
  if (deleted > 0) meter.add(metric.CLOUD_NODE_DELETIONS, deleted, 'Count');
  return { deleted, begun, faults };
}

function answerFor(row: WatchRow, answers: ReadonlyMap<string, InstanceAnswer>): InstanceAnswer {
  const instance = instanceOf(row);
  if (instance.kind === 'refused') return { answer: { kind: 'notEc2', reason: instance.reason } };
  const received = answers.get(instance.instanceId);
  return received === undefined
    ? { answer: { kind: 'failed', cause: 'error', message: 'the EC2 response does not contain the instance' } }
    : { ...received, answer: provenAnswer(instance, received.answer) };
}

function countAnswers(
  { meter }: CloudNodeDependencies,
  rows: readonly WatchRow[],
  answers: ReadonlyMap<string, InstanceAnswer>,
): void {
  const counts = new Map<string, number>();
  let failed = 0;
  for (const row of rows) {
    const { answer } = answerFor(row, answers);
    const state = cloudState(answer);
    counts.set(state, (counts.get(state) ?? 0) + 1);
    if (answer.kind === 'failed') failed += 1;
  }
  for (const [state, count] of counts) meter.add(metric.CLOUD_ANSWERS, count, 'Count', { state });
  if (failed > 0) meter.add(metric.CLOUD_ANSWERS_FAILED, failed, 'Count');
}

interface Settling {
  readonly nowMs: number;
  readonly confirmWithinMs: number;
  readonly isCompared: boolean;
  /** Whether one more event of a failed check may be recorded in this tick. */
  mayReport(): boolean;
}

/** One watched node in this tick: EC2's answer, and functions that decide by it for a given state of the Node. */
interface NodeCase {
  readonly row: WatchRow;
  readonly answer: CloudAnswer;
  readonly metadata: InstanceAnswer['metadata'];
  readonly nowMs: number;
  evaluate(node: WatchedNode, seen?: CloudSeen): ReturnType<typeof evaluateNode>;
  questionOf(node: WatchedNode, seen?: CloudSeen): WatchedNode & Pick<CloudQuestion, 'answer' | 'memory'>;
  draftOf(node: WatchedNode, decided: CloudDecision, seen?: CloudSeen): DecisionDraft;
}

function caseOf(
  { policy }: CloudNodeDependencies,
  row: WatchRow,
  { answer, metadata }: InstanceAnswer,
  { nowMs, confirmWithinMs: withinMs }: Settling,
): NodeCase {
  const questionOf = (node: WatchedNode, { memory } = row.seen) => ({
    ...node,
    answer,
    memory,
    confirmWithinMs: withinMs,
  });
  return {
    row,
    answer,
    metadata,
    nowMs,
    evaluate: (node, { memory } = row.seen) =>
      evaluateNode(node, answer, memory, { nowMs, policy, confirmWithinMs: withinMs }),
    questionOf,
    draftOf: (node, decided, seen = row.seen) => cloudDraft(decided, questionOf(node, seen), nowMs, policy),
  };
}

/** Applies EC2's answer to one node: deletes or changes the Node, reports a failed check and stores the answer. */
async function settle(
  dependencies: CloudNodeDependencies,
  row: WatchRow,
  instance: InstanceAnswer,
  at: Settling,
): Promise<'deleted' | 'kept'> {
  const { answer, metadata } = instance;
  const nodeCase = caseOf(dependencies, row, instance, at);
  const list = cloudStore(dependencies.items);
  const evaluated = nodeCase.evaluate(row);
  if (evaluated.decision.kind === 'delete') {
    const outcome = await removeNode(dependencies, nodeCase, evaluated.decision.reason);
    if (outcome === 'deleted') return 'deleted';
    if (outcome === 'gone') await list.drop(row);
    if (outcome === 'gone' || outcome === 'overtaken') return 'kept';
    // The Node was not deleted. The answer is stored nevertheless.
  }
  const addresses = metadata === undefined ? undefined : JSON.stringify(metadata.addresses);
  const hasNewAddresses = addresses !== undefined && addresses !== row.seen.addresses;
  let failure = checkFailure(answer);
  const { decision, outOfService } = evaluated;
  const changesTaint = decision.kind === 'addShutdownTaint' || decision.kind === 'removeShutdownTaint';
  if (changesTaint || outOfService !== 'keep' || row.uninitialised || hasNewAddresses || at.isCompared) {
    const changed = await changeWatchedNode(dependencies, nodeCase);
    if (changed === 'unwatched') {
      await list.drop(row);
      return 'kept';
    }
    failure = changed.failure ?? failure;
  }
  const reported = await reportFailure(dependencies, nodeCase, failure, at);
  const { isCompared } = at;
  await rememberAnswer(dependencies, nodeCase, evaluated, { isCompared, ...defined({ reported, addresses }) });
  return 'kept';
}

/** Deletes the Node if its current state still requires the deletion. */
const removeNode = (
  dependencies: CloudNodeDependencies,
  nodeCase: NodeCase,
  reason: string,
): Promise<NodeDeletion['kind']> =>
  remove(dependencies, nodeCase.row, reason, nodeCase.nowMs, (node) => {
    const current = nodeCase.evaluate(watchedNodeOf(node)).decision;
    if (current.kind !== 'delete') return undefined;
    const draft = nodeCase.draftOf(watchedNodeOf(node), current);
    const isHeld = (node.metadata.finalizers ?? []).length > 0;
    return { event: current.event, record: dependencies.ledger.write(isHeld ? heldDraft(draft) : draft) };
  });

/** A failed check. `key` is stored: the same failure is reported once. */
interface CheckFailure {
  readonly event: EventText;
  readonly key: string;
}

function checkFailure(answer: CloudAnswer): CheckFailure | undefined {
  const event = cloudCheckFailed(answer);
  return event === undefined ? undefined : { event, key: cloudState(answer) };
}

/** Writes the taints, labels and addresses that the answer requires. 'unwatched': the caller deletes the row. */
async function changeWatchedNode(
  dependencies: CloudNodeDependencies,
  nodeCase: NodeCase,
): Promise<'unwatched' | { readonly failure: CheckFailure | undefined }> {
  const { objects } = dependencies;
  const { row, answer, nowMs } = nodeCase;
  let isStillWatched = true;
  let failure: CheckFailure | undefined;
  const outcome = await changeNode(objects, { nodeName: row.nodeName, uid: row.uid, nowMs }, (node) => {
    isStillWatched = isWatchedNode(node);
    const evaluated = nodeCase.evaluate(watchedNodeOf(node));
    const { change, failed } = nodeAfter(dependencies, node, evaluated, nodeCase);
    if (failed !== undefined) {
      failure = { event: initialisationFailed(failed), key: `uninitialised ${cloudState(answer)}` };
    }
    if (change === undefined) return undefined;
    return { ...change, extra: taintRecords(dependencies, nodeCase.questionOf(watchedNodeOf(node)), evaluated, nowMs) };
  });
  if (outcome.kind === 'gone' || (outcome.kind === 'nothing' && !isStillWatched)) return 'unwatched';
  if (outcome.kind === 'tooLarge') {
    const what = 'change its taints, labels or addresses after an EC2 answer';
    await reportUnwritable(dependencies, { kind: 'Node', object: outcome.node, what, nowMs });
  }
  return { failure };
}

/** Records the event of a failed check, once per failure. Returns the key to store. */
async function reportFailure(
  dependencies: CloudNodeDependencies,
  { row, nowMs }: NodeCase,
  failure: CheckFailure | undefined,
  { mayReport }: Settling,
): Promise<string | undefined> {
  if (failure === undefined || failure.key === row.seen.reported) return failure?.key;
  if (!mayReport()) return row.seen.reported;
  await recordEvents(dependencies, [{ ...failure.event, about: aboutNode(row), once: failure.key }], nowMs);
  return failure.key;
}

/** Stores the answer in the node's row. Writes a decision record when the Node is kept for a new reason. */
async function rememberAnswer(
  { items, ledger }: CloudNodeDependencies,
  { row, answer, nowMs, evaluate, draftOf }: NodeCase,
  first: ReturnType<typeof evaluateNode>,
  extra: Pick<CloudSeen, 'reported' | 'addresses'> & { readonly isCompared: boolean },
): Promise<void> {
  const seenOf = (current: WatchRow): { readonly seen: CloudSeen; readonly record?: PutWrite } => {
    const { decision, memory } = current === row ? first : evaluate(current, current.seen);
    const kept = recordsKept(current) ? keptKey(answer, decision) : current.seen.kept;
    const seen = seenAfter(current.seen, answer, { ...extra, ...defined({ kept }), nowMs, memory });
    const isKept = decision.kind === 'wait' || decision.kind === 'nothing';
    if (!isKept || kept === current.seen.kept) return { seen };
    return { seen, record: ledger.write(draftOf(current, decision, current.seen)) };
  };
  await remember(cloudStore(items), row, seenOf, answer.kind === 'found');
}

/**
 * Whether a decision to keep the node is recorded. For a Ready or uninitialised node, keeping it is the normal case.
 */
const recordsKept = ({ ready, uninitialised }: WatchedNode): boolean => ready !== 'True' && !uninitialised;

/** Records of the taints that EC2's answer adds or removes. */
function taintRecords(
  { ledger, policy }: CloudNodeDependencies,
  question: WatchedNode & Pick<CloudQuestion, 'answer' | 'memory' | 'confirmWithinMs'>,
  { decision, memory, outOfService }: ReturnType<typeof evaluateNode>,
  nowMs: number,
): PutWrite[] {
  const drafts: DecisionDraft[] = [];
  if (decision.kind === 'addShutdownTaint' || decision.kind === 'removeShutdownTaint') {
    drafts.push(cloudDraft(decision, question, nowMs, policy));
  }
  if (outOfService !== 'keep') {
    drafts.push(outOfServiceDraft(outOfService, { ...question, nowMs, policy }, { ...question, memory }));
  }
  return drafts.map((draft) => ledger.write(draft));
}

/**
 * Stores the answer. After a concurrent change only `isThere` is stored again: an answer that the instance exists must
 * not be lost between two answers that it does not exist. Any other answer would overwrite a later one.
 */
async function remember(
  list: CloudStore,
  row: WatchRow,
  seenOf: (row: WatchRow) => { readonly seen: CloudSeen; readonly record?: PutWrite },
  isThere: boolean,
): Promise<void> {
  let now: WatchRow | undefined = row;
  for (let attempt = 1; attempt <= REMEMBER_ATTEMPTS_MAX && now?.uid === row.uid; attempt += 1) {
    const { seen, record } = seenOf(now);
    if (JSON.stringify(seen) === now.seenText) return;
    if ((await list.remember(now, seen, record)) === 'written' || !isThere) return;
    now = await list.get(row.nodeName);
  }
}

const aboutNode = ({ nodeName, uid }: WatchRow) => ({ kind: 'Node', namespace: '', name: nodeName, uid }) as const;

async function remove(
  dependencies: CloudNodeDependencies,
  row: WatchRow,
  reason: string,
  nowMs: number,
  decide: Parameters<typeof deleteNode>[3],
): Promise<NodeDeletion['kind']> {
  const { nodeName } = row;
  try {
    const outcome = await deleteNode(dependencies, row, nowMs, decide);
    if (outcome.kind === 'deleted') {
      dependencies.log.warn('Node deleted: its instance no longer exists', {
        nodeName,
        providerID: row.providerId,
        reason,
      });
    }
    return outcome.kind;
  } catch (fault) {
    const why = fault instanceof Error ? fault.message : String(fault);
    const failed: PendingEvent = { ...deletingNodeFailedEvent(nodeName, why), about: aboutNode(row), once: 'cloud' };
    await recordEvents(dependencies, [failed], nowMs).catch((another: unknown) => {
      throw new AggregateError([fault, another], 'a Node could not be deleted, and the event could not be recorded');
    });
    throw fault;
  }
}

/** The Node after EC2's answer, in one write. */
function nodeAfter(
  { random }: CloudNodeDependencies,
  node: KubeNode,
  { decision, outOfService }: ReturnType<typeof evaluateNode>,
  { answer, metadata, row, nowMs }: NodeCase,
): { readonly change: NodeChange | undefined; readonly failed?: Extract<Initialisation, { kind: 'failed' }> } {
  const before = node.spec?.taints ?? [];
  let taints: readonly Taint[] = before;
  if (decision.kind === 'addShutdownTaint') taints = addTaint(taints, { ...SHUTDOWN_TAINT });
  if (decision.kind === 'removeShutdownTaint') taints = removeTaints(taints, [SHUTDOWN_TAINT]);
  if (outOfService === 'add') {
    taints = addTaint(taints, { ...AUTOMATIC_OUT_OF_SERVICE_TAINT, timeAdded: rfc3339RoundedUp(nowMs) });
  }
  if (outOfService === 'remove') taints = removeTaints(taints, [AUTOMATIC_OUT_OF_SERVICE_TAINT]);

  const labels = node.metadata.labels ?? {};
  const annotations = node.metadata.annotations ?? {};
  const present = node.status?.addresses ?? [];
  let next: KubeNode = taints === before ? node : withTaints(node, taints);
  if (!isUninitialised(taints)) {
    const addresses =
      metadata === undefined ? undefined : addressesToWrite({ addresses: present, annotations }, metadata.addresses);
    if (addresses !== undefined) next = { ...next, status: { ...next.status, addresses } };
    return { change: next === node ? undefined : { next } };
  }
  const initialised = initialiseNode(
    { labels, annotations, taints, addresses: present },
    metadataAnswer(answer, metadata, row),
  );
  if (initialised.kind !== 'initialised') {
    const change = next === node ? undefined : { next };
    return initialised.kind === 'failed' ? { change, failed: initialised } : { change };
  }
  next = withTaints(next, initialised.taints);
  next = {
    ...next,
    metadata: { ...next.metadata, labels: { ...initialised.labels } },
  };
  if (initialised.addresses !== undefined) {
    next = { ...next, status: { ...next.status, addresses: [...initialised.addresses] } };
  }
  const synced: ObjectWrite = eventWrite(
    { ...initialised.event, about: subjectOf('Node', node), once: 'synced' },
    { nowMs, eventUid: random.uuid() },
  );
  return { change: { next, events: [synced] } };
}

/** EC2's metadata for a node that is not initialised yet. */
function metadataAnswer(answer: CloudAnswer, metadata: InstanceAnswer['metadata'], row: WatchRow): MetadataAnswer {
  if (metadata !== undefined) return { kind: 'metadata', metadata };
  switch (answer.kind) {
    case 'found':
      return { kind: 'none' };
    case 'notFound':
      return { kind: 'failed', message: 'EC2 does not know the instance' };
    case 'failed':
      return { kind: 'failed', message: `${answer.cause}: ${answer.message}` };
    case 'foreign':
    case 'notEc2':
      return {
        kind: 'failed',
        message: row.providerId === '' ? 'the node has no providerID, so EC2 cannot be asked' : answer.reason,
      };
    default:
      return answer satisfies never;
  }
}
