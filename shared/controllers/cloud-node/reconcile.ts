/**
 * cloud-node: asks EC2 about nodes that are not Ready or not initialised, and does what follows (domain/cloud-node.ts).
 *
 *   read the list (store/cloud-store.ts) ── empty? nothing else
 *   claim the slot; loser exits
 *   ask EC2 about the nodes whose turn it is, in batches
 *   node by node: decide, apply to the Node as it is now, remember what was said
 *
 * A change of an instance that EventBridge tells of makes the same happen at once for its node, without a claim. The event
 * is never taken at its word: EC2 is asked. It may come late, twice or not at all; the tick decides.
 *
 * Twice, at once, half-way: what was seen is remembered only if nobody saw more since it was read, and a Node is deleted in
 * the commit that takes its row off the list, on the same condition, and only in the version whose Ready was looked at. A
 * process that dies between an answer and its memory has heard nothing: the next tick asks again.
 *
 * The gate (D9) does not hold any of this up. It stands for doubt in our own ears, and what is done here is done on EC2's
 * word about a node that is marked already: while the gate holds nobody new is, so nobody new comes to be asked about.
 */

import type { CloudAnswer } from '../../domain/cloud/instance.ts';
import type { Ec2Instance } from '../../domain/cloud/provider-id.ts';
import type { EventText } from '../../domain/events/event-text.ts';
import { addTaint, removeTaints } from '../../domain/nodes/taint.ts';
import { rfc3339RoundedUp } from '../../domain/rfc3339.ts';
import { slotVerdict } from '../../domain/tick.ts';
import type { KubeNode, Taint } from '../../kube/types.ts';
import type { Cloud, InstanceAnswer } from '../../ports/cloud.ts';
import type { PutWrite } from '../../ports/item-store.ts';
import { shardOf } from '../../store/layout.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import type { DecisionDraft } from '../decisions/decision-record.ts';
import { workThrough, workUntil } from '../framework/bounded-work.ts';
import { changeNode, type NodeChange, withTaints } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { eventWrite, type PendingEvent, recordEvents, subjectOf } from '../framework/record-event.ts';
import { tellTickAge } from '../framework/tick-age.ts';
import { type Tick, TickFault } from '../node-monitor/reconcile.ts';
import { cloudDraft, outOfServiceDraft } from './decisions.ts';
import { deleteNode, type NodeDeletion } from './delete-node.ts';
import {
  addressesToWrite,
  type Initialisation,
  initialiseNode,
  isUninitialised,
  type MetadataAnswer,
} from './initialisation.rule.ts';
import { isWatchedNode, watchedNodeOf } from './maintain-watch-list.ts';
import * as metric from './metrics.ts';
import {
  AUTOMATIC_OUT_OF_SERVICE_TAINT,
  type CloudDecision,
  type CloudQuestion,
  deletingNodeFailedEvent,
  SHUTDOWN_TAINT,
} from './rule.ts';
import {
  type CloudSeen,
  cloudCheckFailed,
  cloudState,
  confirmWithinMs,
  initialisationFailed,
  instanceOf,
  judgeNode,
  keptKey,
  pollStrides,
  provenAnswer,
  seenAfter,
  type WatchedNode,
} from './watch-list.rule.ts';
import { type CloudStore, cloudStore, type WatchRow } from './watch-list-store.ts';

const CLOUD_NODE = 'cloud-node';
const NODES_AT_ONCE_MAX = 16;
/** Kept free at the end of a period. Milliseconds. */
const PERIOD_RESERVE_MS = 500;
/** Nodes told in one tick that EC2 gave no answer; the others are told by later ticks, should it last. */
const TOLD_A_TICK_MAX = 50;
const REMEMBER_ATTEMPTS_MAX = 3;
/** Every row is compared with its Node once in so many ticks: ten minutes at 5 s. */
const COMPARE_EVERY_TICKS = 120;

export type CloudNodeReport =
  | { readonly kind: 'noCloud' }
  | { readonly kind: 'stale' }
  | { readonly kind: 'lost' }
  | {
      readonly kind: 'ran';
      /** Nodes on the list. */
      readonly watched: number;
      /** Nodes EC2 was asked about, or whose providerID says that it need not be. */
      readonly looked: number;
      readonly deleted: number;
    };

const NOTHING_TO_DO = Object.freeze({ kind: 'ran' as const, watched: 0, looked: 0, deleted: 0 });

/** @throws TickFault when something could not be done; the next tick does it. */
export async function runCloudNode(dependencies: ControllerDependencies, tick: Tick): Promise<CloudNodeReport> {
  const { clock, policy, items, fleet, meter, cloud } = dependencies;
  if (cloud === undefined) return { kind: 'noCloud' };
  const nowMs = clock.nowMs();
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  if (slotVerdict({ slot: tick.slot, nowMs, periodSeconds }) === 'stale') return { kind: 'stale' };
  // Read before the claim: a slot in which there is nothing to do need not be anybody's.
  const rows = await cloudStore(items).read();
  if (rows.length === 0) return NOTHING_TO_DO;
  if ((await fleet.claimBare(CLOUD_NODE, tick.slot, nowMs)) === 'lost') return { kind: 'lost' };

  const { strideOf } = pollStrides(rows, { nowMs, periodSeconds });
  const isTurnOf = (row: WatchRow, everyTicks: number): boolean =>
    (tick.slot + shardOf(row.nodeName, everyTicks)) % everyTicks === 0;
  const due = rows.filter((row) => isTurnOf(row, strideOf(row)));
  tellTickAge(meter, { slot: tick.slot, periodSeconds, nowMs });
  meter.add(metric.CLOUD_WATCHED, rows.length, 'Count');
  const deleted = await look(dependencies, cloud, due, {
    nowMs,
    budgetMs: Math.min(tick.budgetMs ?? Infinity, periodSeconds * 1_000 - PERIOD_RESERVE_MS),
    strideOf,
    isCompared: (row) => isTurnOf(row, COMPARE_EVERY_TICKS),
  });
  return { kind: 'ran', watched: rows.length, looked: due.length, deleted };
}

/** The nodes of an instance whose state has changed, at once. @throws TickFault as a tick does */
export async function lookAtInstance(
  dependencies: ControllerDependencies,
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
  if (ofInstance.length === 0) return { ...NOTHING_TO_DO, watched: rows.length };
  const nowMs = clock.nowMs();
  const deleted = await look(dependencies, cloud, ofInstance, {
    nowMs,
    ...pollStrides(rows, { nowMs, periodSeconds: policy.nodeMonitorPeriodSeconds }),
    budgetMs: budgetMs ?? policy.nodeMonitorPeriodSeconds * 1_000,
    isCompared: () => false,
  });
  return { kind: 'ran', watched: rows.length, looked: ofInstance.length, deleted };
}

interface Looking {
  readonly nowMs: number;
  readonly budgetMs: number;
  /** Every how many ticks it is asked about. */
  strideOf(row: WatchRow): number;
  /** Whether the row is to be compared with its Node even if nothing else asks for it. */
  isCompared(row: WatchRow): boolean;
}

/** Asks, decides, applies. Answers how many Nodes were deleted. */
async function look(
  dependencies: ControllerDependencies,
  cloud: Cloud,
  rows: readonly WatchRow[],
  { nowMs, budgetMs, strideOf, isCompared }: Looking,
): Promise<number> {
  const { clock, meter, policy } = dependencies;
  const budget = workUntil(clock, nowMs + budgetMs);
  const instances = new Map<string, Ec2Instance>();
  for (const row of rows) {
    const instance = instanceOf(row);
    if (instance.kind === 'ec2') instances.set(instance.instanceId, instance);
  }
  // Two answers confirm each other by when they were asked for: what came before it in the tick may have taken seconds.
  const askedAtMs = clock.nowMs();
  const answers = instances.size === 0 ? new Map() : await cloud.describeInstances([...instances.values()]);
  countAnswers(dependencies, rows, answers);
  let deleted = 0;
  let tellable = TOLD_A_TICK_MAX;
  const { faults } = await workThrough(rows, { concurrencyMax: NODES_AT_ONCE_MAX, budget }, async (row) => {
    const settled = await settle(dependencies, row, answerFor(row, answers), {
      nowMs: askedAtMs,
      confirmWithinMs: confirmWithinMs(strideOf(row), policy.nodeMonitorPeriodSeconds),
      isCompared: isCompared(row),
      mayTell: () => {
        tellable -= 1;
        return tellable >= 0;
      },
    });
    if (settled === 'deleted') deleted += 1;
  });
  if (deleted > 0) meter.add(metric.CLOUD_NODE_DELETIONS, deleted, 'Count');
  if (faults.length > 0) throw new TickFault([...faults], 'cloud-node could not finish its tick');
  return deleted;
}

function answerFor(row: WatchRow, answers: ReadonlyMap<string, InstanceAnswer>): InstanceAnswer {
  const instance = instanceOf(row);
  if (instance.kind === 'refused') return { answer: { kind: 'notEc2', reason: instance.reason } };
  const told = answers.get(instance.instanceId);
  return told === undefined
    ? { answer: { kind: 'failed', cause: 'error', message: 'the answer does not name the instance' } }
    : { ...told, answer: provenAnswer(instance, told.answer) };
}

function countAnswers(
  { meter }: ControllerDependencies,
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
  /** Whether one more node may be told of a failed check. */
  mayTell(): boolean;
}

async function settle(
  dependencies: ControllerDependencies,
  row: WatchRow,
  { answer, metadata }: InstanceAnswer,
  { nowMs, isCompared, mayTell, confirmWithinMs: withinMs }: Settling,
): Promise<'deleted' | 'kept'> {
  const { items, objects, policy, ledger } = dependencies;
  const list = cloudStore(items);
  const questionOf = (node: WatchedNode, { memory: before } = row.seen) => ({
    ...node,
    answer,
    memory: before,
    confirmWithinMs: withinMs,
  });
  const noteOf = (node: WatchedNode, decided: CloudDecision, seen = row.seen): DecisionDraft =>
    cloudDraft(decided, questionOf(node, seen), nowMs, policy);
  const judge = (node: WatchedNode, { memory: before } = row.seen) =>
    judgeNode(node, answer, before, { nowMs, policy, confirmWithinMs: withinMs });
  const { decision, memory, outOfService } = judge(row);
  if (decision.kind === 'delete') {
    const outcome = await remove(dependencies, row, decision.reason, nowMs, (node) => {
      const now = judge(watchedNodeOf(node)).decision;
      if (now.kind !== 'delete') return undefined;
      return { event: now.event, record: ledger.write(noteOf(watchedNodeOf(node), now)) };
    });
    if (outcome === 'deleted') return 'deleted';
    if (outcome === 'gone') await list.drop(row);
    if (outcome === 'gone' || outcome === 'overtaken') return 'kept';
    // Held or spared: what was said is kept all the same.
  }

  const addresses = metadata === undefined ? undefined : JSON.stringify(metadata.addresses);
  const newAddresses = addresses !== undefined && addresses !== row.seen.addresses;
  let failure: EventText | undefined = cloudCheckFailed(answer);
  let told = failure === undefined ? undefined : cloudState(answer);
  const acts = decision.kind === 'addShutdownTaint' || decision.kind === 'removeShutdownTaint';
  if (acts || outOfService !== 'keep' || row.uninitialised || newAddresses || isCompared) {
    let isStillWatched = true;
    const outcome = await changeNode(objects, { nodeName: row.nodeName, uid: row.uid, nowMs }, (node) => {
      isStillWatched = isWatchedNode(node);
      const judged = judge(watchedNodeOf(node));
      const change = nodeAfter(dependencies, node, judged, { answer, metadata, row, nowMs });
      if (change.failed !== undefined) {
        failure = initialisationFailed(change.failed);
        told = `uninitialised ${cloudState(answer)}`;
      }
      if (change.change === undefined) return undefined;
      const records = taintRecords(dependencies, questionOf(watchedNodeOf(node)), judged, nowMs);
      return { ...change.change, extra: records };
    });
    if (outcome.kind === 'gone' || (outcome.kind === 'nothing' && !isStillWatched)) {
      await list.drop(row);
      return 'kept';
    }
    if (outcome.kind === 'tooLarge')
      dependencies.log.error('a Node is too large to be changed', { nodeName: row.nodeName });
  }

  if (failure !== undefined && told !== row.seen.told) {
    if (mayTell()) await recordEvents(dependencies, [{ ...failure, about: aboutNode(row), once: told ?? '' }], nowMs);
    else told = row.seen.told;
  }
  const more = { ...(told === undefined ? {} : { told }), ...(addresses === undefined ? {} : { addresses }) };
  await remember(
    list,
    row,
    (now) => {
      const judged = now === row ? { decision, memory } : judge(now, now.seen);
      const kept = tellsKept(now) ? keptKey(answer, judged.decision) : now.seen.kept;
      const seen = seenAfter(now.seen, answer, {
        ...more,
        ...(kept === undefined ? {} : { kept }),
        nowMs,
        memory: judged.memory,
      });
      const isKept = judged.decision.kind === 'wait' || judged.decision.kind === 'nothing';
      const isNews = isKept && kept !== now.seen.kept;
      return isNews ? { seen, record: ledger.write(noteOf(now, judged.decision, now.seen)) } : { seen };
    },
    answer.kind === 'found',
  );
  return 'kept';
}

/** A node that is Ready, or only waits to be initialised while its instance runs, is left alone as a matter of course. */
const tellsKept = ({ ready, uninitialised }: WatchedNode): boolean => ready !== 'True' && !uninitialised;

/** Of the taints that EC2's word puts on a Node or takes off. */
function taintRecords(
  { ledger, policy }: ControllerDependencies,
  question: WatchedNode & Pick<CloudQuestion, 'answer' | 'memory' | 'confirmWithinMs'>,
  { decision, memory, outOfService }: ReturnType<typeof judgeNode>,
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
 * Keeps what was seen. Where somebody else saw something meanwhile, only that the instance is there is said again: it must
 * not be lost between two answers that say it is not. Anything else would put an answer after one that came later.
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
  dependencies: ControllerDependencies,
  row: WatchRow,
  reason: string,
  nowMs: number,
  decide: Parameters<typeof deleteNode>[3],
): Promise<NodeDeletion['kind']> {
  const { nodeName } = row;
  try {
    const outcome = await deleteNode(dependencies, row, nowMs, decide);
    if (outcome.kind === 'deleted') {
      dependencies.log.warn('a Node is deleted: its instance is gone', {
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
      throw new AggregateError([fault, another], 'a Node could not be deleted, nor could that be told');
    });
    throw fault;
  }
}

interface Heard {
  readonly answer: CloudAnswer;
  readonly metadata: InstanceAnswer['metadata'];
  readonly row: WatchRow;
  readonly nowMs: number;
}

/** The Node after what EC2 said, in one write. */
function nodeAfter(
  { random }: ControllerDependencies,
  node: KubeNode,
  { decision, outOfService }: ReturnType<typeof judgeNode>,
  { answer, metadata, row, nowMs }: Heard,
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

/** What EC2's answer is worth to a node that waits to be initialised. */
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
        message: row.providerId === '' ? 'the node has no providerID, and EC2 is asked by nothing else' : answer.reason,
      };
    default:
      return answer satisfies never;
  }
}
