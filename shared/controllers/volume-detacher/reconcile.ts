/**
 * EBS volumes of nodes that a pod has left (domain/volume-detach.ts decides).
 *
 *   rows of the work list ── VolumeAttachments, Node and pods of each, live
 *   nothing there, or everything wanted: the row goes
 *   healthy node without an out-of-service taint: nothing is begun, and a wait that ran is forgotten
 *   else ask EC2 about volumes and instances, decide, keep the memory; then, for each volume that is to go:
 *     pods once more ── report "not attached" on the Node ── DetachVolume
 *   in a later pass, when EC2 says that it is off: the VolumeAttachment says so and goes
 *
 * Killed anywhere, the next pass goes on from there: the memory is stored before the first effect, and each effect
 * finds what is done already. Twice at once is twice the same request of EC2.
 *
 * Ordinary detaching from healthy nodes is the business of whoever attaches; there is no CSI attacher in here. So a
 * volume that a machine in good health holds is never touched, mounted or not.
 */

import { parseProviderId } from '../../domain/cloud/provider-id.ts';
import type { EventText } from '../../domain/events/event-text.ts';
import type { ConditionStatus } from '../../domain/kubernetes.ts';
import { readyStatusOf } from '../../domain/nodes/conditions.ts';
import { gateVerdictFor } from '../../domain/zones/gate.ts';
import { markDeleted } from '../../kube/deletion.ts';
import { isTerminated } from '../../kube/pods/phase.ts';
import type { KubeNode, KubeObject, ObjectRef } from '../../kube/types.ts';
import type { Cloud, InstanceAnswer, VolumeAnswer } from '../../ports/cloud.ts';
import { StoreFault } from '../../ports/item-store.ts';
import type { DecisionDraft } from '../decisions/decision-record.ts';
import { groupedBy, type WorkBudget, workThrough } from '../framework/bounded-work.ts';
import { changeNode, nodeRef } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import { type EventSubject, recordEvents, subjectOf } from '../framework/record-event.ts';
import { volumesOf } from '../pod-gc/maintain-work-list.ts';
import { isOutOfService } from '../pod-gc/rule.ts';
import type { NodeVolumes, VolumeMemory } from '../pod-gc/work-list-store.ts';
import {
  EBS_DRIVER,
  type NamedVolume,
  uniqueVolumeName,
  VOLUME_ID_ANNOTATION,
  volumeIdOf,
  wantsVolume,
} from './attached-volumes.rule.ts';
import { detachDraft, volumeKeptDraft } from './decisions.ts';
import { listAttachments } from './list-attachments.ts';
import * as metric from './metrics.ts';
import { type DetachDecision, decideVolumeDetach, type VolumeNode } from './rule.ts';

/** Nodes looked at in one pass; with more, passes take turns. */
const NODES_A_PASS_MAX = 200;
const NODES_AT_ONCE_MAX = 8;
/** Detaches asked of EC2 in one pass. */
const DETACHES_A_PASS_MAX = 100;

const DETACH_COMPONENT = 'attachdetach-controller';

/** Label `reason` of attachdetach_controller_withheld_detaches. */
type WithheldReason = 'unknown-volume' | 'refused' | 'no-answer' | 'doubt' | 'switched-off';

const withheldEvent = (volume: string, nodeName: string, why: string): EventText => ({
  type: 'Warning',
  reason: 'VolumeDetachWithheld',
  message: `Volume ${volume} is not detached from node ${nodeName}: ${why}`,
  source: DETACH_COMPONENT,
});

interface DetachedVolumes {
  /** Detaches that EC2 accepted. */
  readonly detached: number;
  readonly faults: readonly unknown[];
}

interface Pass {
  readonly slot: number;
  readonly nowMs: number;
  readonly budget: WorkBudget;
}

interface Unwanted {
  readonly attachment: KubeObject;
  /** undefined: it cannot be told which volume it is. */
  readonly volumeId: string | undefined;
  readonly mounted: boolean;
}

interface NodeInDoubt {
  readonly row: NodeVolumes;
  readonly node: KubeNode | undefined;
  readonly ready: ConditionStatus | undefined;
  readonly outOfService: boolean;
  readonly instanceId: string | undefined;
  readonly unwanted: readonly Unwanted[];
}

/** What one volume comes to in this pass. */
interface Verdict {
  readonly of: Unwanted;
  readonly memory: VolumeMemory | undefined;
  readonly withheld: { readonly reason: WithheldReason; readonly why: string } | undefined;
  readonly detach: Extract<DetachDecision, { kind: 'detach' }> | undefined;
  /** The instance it is attached to; absent: to none any more. */
  readonly attachedTo: string | undefined;
  /** For the ledger: what the rule said, where it was asked. */
  readonly note: DecisionDraft | undefined;
}

export async function detachVolumes(
  dependencies: ControllerDependencies,
  rows: readonly NodeVolumes[],
  pass: Pass,
): Promise<DetachedVolumes> {
  if (rows.length === 0) return { detached: 0, faults: [] };
  const { objects, cloud } = dependencies;
  const first = rows.length > NODES_A_PASS_MAX ? (pass.slot * NODES_A_PASS_MAX) % rows.length : 0;
  const looked = [...rows.slice(first), ...rows.slice(0, first)].slice(0, NODES_A_PASS_MAX);
  const attachments = groupedBy((await listAttachments(objects)).filter(isHeld), (attachment) =>
    String(attachment.spec?.['nodeName'] ?? ''),
  );
  const inDoubt: NodeInDoubt[] = [];
  const looks = await workThrough(looked, { concurrencyMax: NODES_AT_ONCE_MAX, budget: pass.budget }, async (row) => {
    const found = await lookAt(dependencies, row, attachments.get(row.nodeName) ?? []);
    if (found !== undefined) inDoubt.push(found);
  });
  if (inDoubt.length === 0 || cloud === undefined) return { detached: 0, faults: looks.faults };

  const answers = await askCloud(cloud, inDoubt);
  const doubt = await doubtOf(dependencies, pass.nowMs);
  const withheld = new Map<WithheldReason, number>();
  let detached = 0;
  let asked = 0;
  const { faults } = await workThrough(
    inDoubt,
    { concurrencyMax: NODES_AT_ONCE_MAX, budget: pass.budget },
    async (node) => {
      const verdicts = node.unwanted.map((each) => judge(dependencies, node, each, { ...answers, doubt, ...pass }));
      // Stored before the first effect: what identifies a volume goes with it.
      const kept = await keepMemory(dependencies, node, verdicts);
      if (!kept) return;
      const changed = new Map<string, VolumeMemory>();
      for (const verdict of verdicts) {
        const name = verdict.of.attachment.metadata.name ?? '';
        let reason = verdict.withheld;
        if (verdict.detach !== undefined && asked < DETACHES_A_PASS_MAX && pass.budget.hasTime()) {
          asked += 1;
          const outcome = await detach(dependencies, cloud, node, verdict, pass.nowMs);
          if (outcome.kind === 'asked') {
            detached += 1;
            changed.set(name, outcome.memory);
          }
          if (outcome.kind === 'withheld') reason = outcome;
        }
        if (reason === undefined) continue;
        withheld.set(reason.reason, (withheld.get(reason.reason) ?? 0) + 1);
        await tellWithheld(dependencies, node, verdict, reason.why, pass.nowMs);
      }
      if (changed.size > 0) {
        const memory = { ...memoryOf(verdicts), ...Object.fromEntries(changed) };
        await dependencies.podGc.saveVolumes(node.row, { instanceId: node.instanceId, memory });
      }
    },
  );
  for (const [reason, count] of withheld) dependencies.meter.add(metric.WITHHELD_DETACHES, count, 'Count', { reason });
  return { detached, faults: [...looks.faults, ...faults] };
}

/** Of EBS, and not yet said to be off. */
const isHeld = ({ spec, status, metadata }: KubeObject): boolean =>
  spec?.['attacher'] === EBS_DRIVER && !(metadata.deletionTimestamp !== undefined && status?.['attached'] === false);

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const namesOf = (node: KubeNode | undefined, list: 'volumesInUse'): readonly string[] =>
  ((node?.status?.[list] as readonly unknown[] | undefined) ?? []).map(String);
const attachedNames = (node: KubeNode | undefined): readonly string[] =>
  ((node?.status?.['volumesAttached'] as readonly { readonly name?: string }[] | undefined) ?? []).map(({ name }) =>
    String(name),
  );

/** Pods that may still use a volume: all that are on the node, terminating ones too, but for those that have ended. */
const usersOf = (pods: readonly KubeObject[]): readonly (readonly NamedVolume[])[] =>
  pods.filter((pod) => !isTerminated(pod)).map(volumesOf);

function identify(
  dependencies: ControllerDependencies,
  attachment: KubeObject,
  { row, node }: Pick<NodeInDoubt, 'row' | 'node'>,
): string | undefined {
  const name = attachment.metadata.name ?? '';
  const source = attachment.spec?.['source'] as
    | { readonly inlineVolumeSpec?: { readonly csi?: { readonly volumeHandle?: string } } }
    | undefined;
  return (
    volumeIdOf(
      {
        name,
        nodeName: row.nodeName,
        annotation: attachment.metadata.annotations?.[VOLUME_ID_ANNOTATION],
        volumeHandle: source?.inlineVolumeSpec?.csi?.volumeHandle,
      },
      [...attachedNames(node), ...namesOf(node, 'volumesInUse')],
      dependencies.sha256,
    ) ?? row.memory[name]?.volumeId
  );
}

/** The node's unwanted volumes; undefined when there is nothing to be decided about them. */
async function lookAt(
  dependencies: ControllerDependencies,
  row: NodeVolumes,
  attachments: readonly KubeObject[],
): Promise<NodeInDoubt | undefined> {
  const { objects, podGc } = dependencies;
  const { nodeName } = row;
  if (attachments.length === 0) {
    await podGc.dropVolumes(row);
    return undefined;
  }
  const [node, pods] = await Promise.all([
    objects.get(nodeRef(nodeName)) as Promise<KubeNode | undefined>,
    objects.listByNode(nodeName),
  ]);
  const users = usersOf(pods);
  const inUse = namesOf(node, 'volumesInUse');
  const ready = readyStatusOf(node?.status?.conditions);
  const unwanted = attachments.flatMap((attachment): Unwanted[] => {
    const volumeId = identify(dependencies, attachment, { row, node });
    if (users.some((volumes) => wantsVolume(volumes, volumeId))) return [];
    // Who has not said what is mounted is taken to have it mounted: a Node that is gone, or never posted its status.
    const mounted = ready === undefined || (volumeId !== undefined && inUse.includes(uniqueVolumeName(volumeId)));
    return [{ attachment, volumeId, mounted }];
  });
  if (unwanted.length === 0) {
    // Of a Node that is gone the row alone knows which instance it was; a wait that ran is over all the same.
    if (node !== undefined) await podGc.dropVolumes(row);
    else if (Object.keys(row.memory).length > 0) {
      await podGc.saveVolumes(row, { instanceId: row.instanceId, memory: {} });
    }
    return undefined;
  }
  const provider = parseProviderId(node?.spec?.providerID);
  const instanceId = provider.kind === 'ec2' ? provider.instanceId : node === undefined ? row.instanceId : undefined;
  const outOfService = isOutOfService(node?.spec?.taints ?? []);
  if (ready === 'True' && !outOfService) {
    const isKept = instanceId === row.instanceId && Object.keys(row.memory).length === 0;
    if (!isKept) await podGc.saveVolumes(row, { instanceId, memory: {} });
    return undefined;
  }
  return { row, node, ready, outOfService, instanceId, unwanted };
}

interface Answers {
  readonly volumes: ReadonlyMap<string, VolumeAnswer>;
  readonly instances: ReadonlyMap<string, InstanceAnswer>;
}

async function askCloud(cloud: Cloud, nodes: readonly NodeInDoubt[]): Promise<Answers> {
  const volumeIds = new Set(nodes.flatMap(({ unwanted }) => unwanted.flatMap(({ volumeId }) => volumeId ?? [])));
  const instanceIds = new Set(nodes.flatMap(({ instanceId }) => instanceId ?? []));
  const [volumes, instances] = await Promise.all([
    volumeIds.size === 0 ? new Map<string, VolumeAnswer>() : cloud.describeVolumes([...volumeIds]),
    instanceIds.size === 0
      ? new Map<string, InstanceAnswer>()
      : // Volumes are attached within their region: no zone is needed to know that the instance is ours.
        cloud.describeInstances(
          [...instanceIds].map((instanceId) => ({ instanceId, zone: undefined, region: undefined })),
        ),
  ]);
  return { volumes, instances };
}

async function doubtOf({ fleet, policy }: ControllerDependencies, nowMs: number): Promise<string | undefined> {
  const { gate } = await fleet.readState();
  return gateVerdictFor(gate, { nowMs, policy }).kind === 'holding' ? 'our own view of nodes is in doubt' : undefined;
}

function stateOf(answer: InstanceAnswer | undefined): VolumeNode['instance'] {
  if (answer?.answer.kind === 'found') return answer.answer.state;
  return answer?.answer.kind === 'notFound' ? 'notFound' : 'unknown';
}

function judge(
  { policy }: ControllerDependencies,
  node: NodeInDoubt,
  of: Unwanted,
  at: Answers & { readonly doubt: string | undefined; readonly nowMs: number },
): Verdict {
  const { volumeId, mounted } = of;
  const { nowMs, doubt } = at;
  const name = of.attachment.metadata.name ?? '';
  const stored = node.row.memory[name];
  // A pod that came and went since then has wanted it again.
  const known =
    stored?.volumeId === volumeId && stored !== undefined && stored.requestedAtMs >= node.row.touchedAtMs
      ? stored
      : undefined;
  const nothing = { detach: undefined, attachedTo: undefined, note: undefined };
  if (volumeId === undefined) {
    const why = `it is not known which volume ${name} is; the annotation ${VOLUME_ID_ANNOTATION} says so`;
    return { of, memory: undefined, withheld: { reason: 'unknown-volume', why }, ...nothing };
  }
  const memory: VolumeMemory = known ?? { volumeId, requestedAtMs: nowMs };
  const withhold = (reason: WithheldReason, why: string): Verdict => ({
    of,
    memory,
    withheld: { reason, why },
    ...nothing,
  });
  const answer = at.volumes.get(volumeId);
  if (answer === undefined || answer.kind === 'failed') return withhold('no-answer', 'EC2 gave no answer about it');
  if (answer.kind === 'notFound') return withhold('refused', 'EC2 does not know it');
  if (node.instanceId === undefined) return withhold('refused', 'it is not known which instance the node is');
  const held = answer.attachments.filter(({ state }) => state !== 'detached');
  const attached = held.find(({ instanceId }) => instanceId === node.instanceId) ?? held[0];
  const instance = stateOf(at.instances.get(node.instanceId));
  const question = {
    volume: {
      volumeId,
      mounted,
      detachRequestedAtMs: memory.requestedAtMs,
      tagged: answer.tagged,
      isRootDevice: attached?.isRootDevice ?? false,
      managedByAws: attached?.managedByAws ?? false,
      attachedTo: attached?.instanceId ?? node.instanceId,
    },
    node: { ready: node.ready, outOfService: node.outOfService, instanceId: node.instanceId, instance },
    doubt,
  };
  const decision = decideVolumeDetach(question, nowMs, policy);
  const note = detachDraft({ ...nodeOf(node), nowMs, policy }, decision, question);
  if (decision.kind === 'refuse') return { ...withhold('refused', decision.reason), note };
  if (decision.kind !== 'detach') {
    const expired = nowMs - memory.requestedAtMs > policy.forceDetachTimeoutSeconds * 1_000;
    if (!expired) return { of, memory, withheld: undefined, ...nothing };
    const reason = policy.disableForceDetachOnTimeout ? 'switched-off' : doubt === undefined ? 'no-answer' : 'doubt';
    return { ...withhold(reason, decision.reason), note };
  }
  // EC2 is at it; only force is worth another request.
  const isUnderWay = attached?.state === 'detaching' || (attached?.state === 'busy' && memory.askedAtMs !== undefined);
  const isEnough = !decision.force || memory.forced === true;
  if (attached?.state === 'attaching' || (isUnderWay && isEnough)) {
    return { of, memory, withheld: undefined, ...nothing };
  }
  return { of, memory, withheld: undefined, detach: decision, attachedTo: attached?.instanceId, note };
}

const nodeOf = ({ row, node }: Pick<NodeInDoubt, 'row' | 'node'>) => ({
  nodeName: row.nodeName,
  uid: node?.metadata.uid ?? '',
});

const memoryOf = (verdicts: readonly Verdict[]): Record<string, VolumeMemory> =>
  Object.fromEntries(
    verdicts.flatMap(({ of, memory }) => (memory === undefined ? [] : [[of.attachment.metadata.name ?? '', memory]])),
  );

/** False when a pod left the node since it was looked at: the next pass looks again. */
async function keepMemory(
  { podGc }: ControllerDependencies,
  { row, instanceId }: NodeInDoubt,
  verdicts: readonly Verdict[],
): Promise<boolean> {
  const memory = memoryOf(verdicts);
  if (instanceId === row.instanceId && JSON.stringify(memory) === JSON.stringify(row.memory)) return true;
  return (await podGc.saveVolumes(row, { instanceId, memory })) === 'written';
}

type DetachOutcome =
  | { readonly kind: 'asked'; readonly memory: VolumeMemory }
  | { readonly kind: 'withheld'; readonly reason: WithheldReason; readonly why: string }
  /** It was off already and its attachment is closed, or it is to be looked at anew. */
  | { readonly kind: 'nothing' };

async function detach(
  dependencies: ControllerDependencies,
  cloud: Cloud,
  node: NodeInDoubt,
  verdict: Verdict,
  nowMs: number,
): Promise<DetachOutcome> {
  const { objects, log, meter, ledger } = dependencies;
  const { of, detach: decision, attachedTo } = verdict;
  const memory = verdict.memory!;
  const { volumeId } = memory;
  const { nodeName } = node.row;
  // A pod may have come since the node was looked at.
  const users = usersOf(await objects.listByNode(nodeName));
  if (users.some((volumes) => wantsVolume(volumes, volumeId))) return { kind: 'nothing' };
  if (!(await reportNotAttached(dependencies, node, volumeId, nowMs))) return { kind: 'nothing' };
  if (attachedTo === undefined) {
    await closeAttachment(dependencies, of.attachment, nowMs);
    return { kind: 'nothing' };
  }
  const force = decision!.force;
  // Before it is asked for: nobody can write a record with what happens at EC2. Asked again it is the same one.
  if (verdict.note !== undefined) {
    await ledger.tell(verdict.note, { atMs: memory.requestedAtMs, key: `${volumeId} ${force}` });
  }
  const outcome = await cloud.detachVolume({ volumeId, instanceId: attachedTo, force });
  switch (outcome.kind) {
    case 'notAttached':
      // The next pass hears it from the volume itself, and closes the attachment.
      return { kind: 'nothing' };
    case 'refused':
      return { kind: 'withheld', reason: 'refused', why: `EC2 refuses: ${outcome.code}` };
    case 'failed':
      return { kind: 'withheld', reason: 'no-answer', why: 'EC2 gave no answer to the request' };
    case 'detaching': {
      const reason = decision!.forcedReason;
      if (reason !== undefined && memory.askedAtMs === undefined) {
        meter.add(metric.FORCED_DETACHES, 1, 'Count', { reason });
      }
      log.warn('a volume is being detached', {
        volumeId,
        nodeName,
        instanceId: attachedTo,
        force,
        reason: decision!.reason,
        unwantedSeconds: (nowMs - memory.requestedAtMs) / 1_000,
      });
      return {
        kind: 'asked',
        memory: { ...memory, askedAtMs: nowMs, ...(force || memory.forced === true ? { forced: true } : {}) },
      };
    }
  }
}

/**
 * Before the detach, so that nobody mounts what is on its way out. Rests on the Node as it is at the commit: one that
 * has become healthy, or another instance, in the meantime keeps its volumes. Answers whether to go on.
 */
async function reportNotAttached(
  { objects }: ControllerDependencies,
  { row, node, outOfService, instanceId }: NodeInDoubt,
  volumeId: string,
  nowMs: number,
): Promise<boolean> {
  const name = node?.metadata.name ?? '';
  // A Node of that name that came since is not the one that was looked at.
  if (node === undefined) return (await objects.get(nodeRef(row.nodeName))) === undefined;
  let stands = true;
  const outcome = await changeNode(objects, { nodeName: name, uid: node.metadata.uid ?? '', nowMs }, (current) => {
    const provider = parseProviderId(current.spec?.providerID);
    const isSame = provider.kind === 'ec2' && provider.instanceId === instanceId;
    const isHealthy = readyStatusOf(current.status?.conditions) === 'True';
    const isOut = isOutOfService(current.spec?.taints ?? []);
    stands = isSame && (isOut || (!isHealthy && !outOfService));
    if (!stands) return undefined;
    const attached = (current.status?.['volumesAttached'] as { readonly name?: string }[] | undefined) ?? [];
    const left = attached.filter((each) => each.name !== uniqueVolumeName(volumeId));
    if (left.length === attached.length) return undefined;
    const { volumesAttached: _, ...status } = current.status ?? {};
    return { next: { ...current, status: left.length === 0 ? status : { ...status, volumesAttached: left } } };
  });
  return stands && (outcome.kind === 'written' || outcome.kind === 'nothing');
}

/** EC2 says that it is off: the VolumeAttachment says so and goes, as when the attach-detach controller deletes it. */
async function closeAttachment(
  { objects }: ControllerDependencies,
  attachment: KubeObject,
  nowMs: number,
): Promise<void> {
  const ref: ObjectRef = { resource: 'volumeattachments', namespace: '', name: attachment.metadata.name ?? '' };
  const isHeldBack = (attachment.metadata.finalizers ?? []).length > 0;
  const status = { ...attachment.status, attached: false };
  const outcome = await objects.commit({
    writes: [
      isHeldBack
        ? { kind: 'update', ref, object: { ...markDeleted(attachment, 0, nowMs), status }, previous: attachment }
        : { kind: 'delete', ref, previous: attachment },
    ],
  });
  if (outcome.kind === 'contended') {
    throw new StoreFault('throttled', 'a VolumeAttachment could not be closed for other commits', { retryable: true });
  }
}

/** Once for each volume and reason. */
async function tellWithheld(
  dependencies: ControllerDependencies,
  { row, node }: NodeInDoubt,
  { of, memory, withheld, note }: Verdict,
  why: string,
  nowMs: number,
): Promise<void> {
  // What EC2 refuses is not what the rule said.
  const withheldByRule = withheld === undefined ? undefined : note;
  const volume = of.volumeId ?? textOf(of.attachment.metadata.name) ?? '';
  const about: EventSubject =
    node === undefined ? subjectOf('VolumeAttachment', of.attachment) : subjectOf('Node', node);
  const event = { ...withheldEvent(volume, row.nodeName, why), about, once: `${of.attachment.metadata.uid} ${why}` };
  await recordEvents(dependencies, [event], nowMs);
  const { ledger, policy } = dependencies;
  const plain = volumeKeptDraft({ ...nodeOf({ row, node }), nowMs, policy }, volume, why);
  await ledger.tell(withheldByRule ?? plain, { atMs: memory?.requestedAtMs ?? row.touchedAtMs, key: event.once });
  dependencies.log.warn('a volume is not detached', { volume, nodeName: row.nodeName, why });
}
