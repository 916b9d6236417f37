/**
 * Detaches EBS volumes from nodes on which no pod uses them any more (rule.ts decides).
 *
 *   rows of the work list ── VolumeAttachments, Node and pods of each, read live
 *   no attachment, or every volume in use: the row is deleted
 *   healthy node without an out-of-service taint: nothing is started, and a running detach wait is cleared
 *   else ask EC2 about volumes and instances, decide, store the state; then, for each volume to detach:
 *     read the pods again ── remove it from the Node's volumesAttached ── DetachVolume
 *   in a later tick, when EC2 reports the volume as detached: delete the VolumeAttachment
 *
 * The next tick continues a tick that was killed: the state is stored before the first effect, and each effect checks
 * what is already done. Two concurrent ticks send the same request to EC2 twice.
 *
 * Volumes of healthy nodes are never detached, mounted or not: that is the task of the component that attaches volumes.
 * Nodekeeper has no CSI attacher.
 */

import type { DecisionDraft } from '../../../shared/decisions/decision-record.ts';
import type { EventText } from '../../../shared/events/event-text.ts';
import { type EventSubject, recordEvents, subjectOf } from '../../../shared/events/record-event.ts';
import { gateVerdictFor } from '../../../shared/fleet/gate.ts';
import type { Cloud, InstanceAnswer, VolumeAnswer } from '../../../shared/fleet/instances/cloud.ts';
import { parseProviderId } from '../../../shared/fleet/instances/provider-id.ts';
import {
  EBS_DRIVER,
  uniqueVolumeName,
  VOLUME_ID_ANNOTATION,
  volumeIdOf,
  wantsVolume,
} from '../../../shared/fleet/nodes/attached-volumes.rule.ts';
import { changeNode, nodeRef } from '../../../shared/fleet/nodes/change-node.ts';
import { readyStatusOf } from '../../../shared/fleet/nodes/conditions.ts';
import { isOutOfService } from '../../../shared/kinds/pods/collection.rule.ts';
import { volumesOf } from '../../../shared/kinds/pods/maintain-work-list.ts';
import { isTerminated } from '../../../shared/kinds/pods/resource.ts';
import type { NodeVolumes, VolumeMemory } from '../../../shared/kinds/pods/work-list-store.ts';
import type { KubeNode, KubePod, KubeVolumeAttachment, ObjectRef, Volume } from '../../../shared/kinds/types.ts';
import { markDeleted } from '../../../shared/kubernetes/deletion.ts';
import type { ConditionStatus } from '../../../shared/kubernetes/kubernetes.ts';
import { StoreFault } from '../../../shared/store/item-store.ts';
import { groupedBy, inTurn, type WorkBudget, workThrough } from '../../../shared/ticks/bounded-work.ts';
import type { PodGcDependencies } from '../dependencies.ts';
import { detachDraft, volumeKeptDraft } from './decisions.ts';
import { listAttachments } from './list-attachments.ts';
import * as metric from './metrics.ts';
import { type DetachDecision, decideVolumeDetach, type VolumeNode } from './rule.ts';

/** Nodes read in one tick; with more, ticks rotate through them. */
const NODES_PER_TICK_MAX = 200;
const NODES_CONCURRENCY_MAX = 8;
/** Detach requests to EC2 in one tick. */
const DETACHES_PER_TICK_MAX = 100;

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

/** An attachment of a volume that no pod on the node uses. */
interface Unwanted {
  readonly attachment: KubeVolumeAttachment;
  /** undefined: the volume of the attachment is not known. */
  readonly volumeId: string | undefined;
  readonly mounted: boolean;
}

/** A node that is unhealthy or out of service, with the volumes that no pod on it uses. */
interface NodeToDetach {
  readonly row: NodeVolumes;
  readonly node: KubeNode | undefined;
  readonly ready: ConditionStatus | undefined;
  readonly outOfService: boolean;
  readonly instanceId: string | undefined;
  readonly unwanted: readonly Unwanted[];
}

/** The decision about one volume in this tick. */
interface Verdict {
  readonly of: Unwanted;
  readonly memory: VolumeMemory | undefined;
  readonly withheld: { readonly reason: WithheldReason; readonly why: string } | undefined;
  readonly detach: Extract<DetachDecision, { kind: 'detach' }> | undefined;
  /** The instance that the volume is attached to. Absent: none. */
  readonly attachedTo: string | undefined;
  /** Draft of the decision record, when the rule was evaluated. */
  readonly note: DecisionDraft | undefined;
}

export async function detachVolumes(
  dependencies: PodGcDependencies,
  rows: readonly NodeVolumes[],
  pass: Pass,
): Promise<DetachedVolumes> {
  if (rows.length === 0) return { detached: 0, faults: [] };
  const { objects, cloud } = dependencies;
  const selected = inTurn(rows, NODES_PER_TICK_MAX, pass.slot);
  const attachments = groupedBy((await listAttachments(objects)).filter(isEbsAttached), (attachment) =>
    String(attachment.spec?.nodeName ?? ''),
  );
  const nodesToDetach: NodeToDetach[] = [];
  const reads = await workThrough(
    selected,
    { concurrencyMax: NODES_CONCURRENCY_MAX, budget: pass.budget },
    async (row) => {
      const found = await readNode(dependencies, row, attachments.get(row.nodeName) ?? []);
      if (found !== undefined) nodesToDetach.push(found);
    },
  );
  if (nodesToDetach.length === 0 || cloud === undefined) return { detached: 0, faults: reads.faults };

  const answers = await askCloud(cloud, nodesToDetach);
  const doubt = await gateDoubt(dependencies, pass.nowMs);
  const withheld = new Map<WithheldReason, number>();
  let detached = 0;
  let asked = 0;
  const { faults } = await workThrough(
    nodesToDetach,
    { concurrencyMax: NODES_CONCURRENCY_MAX, budget: pass.budget },
    async (node) => {
      const verdicts = node.unwanted.map((each) => evaluate(dependencies, node, each, { ...answers, doubt, ...pass }));
      // Stored before the first effect: it identifies the volume after the Node's status no longer lists it.
      const kept = await keepMemory(dependencies, node, verdicts);
      if (!kept) return;
      const changed = new Map<string, VolumeMemory>();
      for (const verdict of verdicts) {
        const name = verdict.of.attachment.metadata.name ?? '';
        let reason = verdict.withheld;
        if (verdict.detach !== undefined && asked < DETACHES_PER_TICK_MAX && pass.budget.hasTime()) {
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
        await reportWithheld(dependencies, node, verdict, reason.why, pass.nowMs);
      }
      if (changed.size > 0) {
        const memory = { ...memoryOf(verdicts), ...Object.fromEntries(changed) };
        await dependencies.podGc.saveVolumes(node.row, { instanceId: node.instanceId, memory });
      }
    },
  );
  for (const [reason, count] of withheld) dependencies.meter.add(metric.WITHHELD_DETACHES, count, 'Count', { reason });
  return { detached, faults: [...reads.faults, ...faults] };
}

/** True for an attachment of the EBS driver that is not reported as detached. */
const isEbsAttached = ({ spec, status, metadata }: KubeVolumeAttachment): boolean =>
  spec?.attacher === EBS_DRIVER && !(metadata.deletionTimestamp !== undefined && status?.attached === false);

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const volumesInUse = (node: KubeNode | undefined): readonly string[] => (node?.status?.volumesInUse ?? []).map(String);
const attachedNames = (node: KubeNode | undefined): readonly string[] =>
  (node?.status?.volumesAttached ?? []).map(({ name }) => String(name));

/** The volumes of pods that may still use them: all pods on the node except terminated ones. */
const usersOf = (pods: readonly KubePod[]): readonly (readonly Volume[])[] =>
  pods.filter((pod) => !isTerminated(pod)).map(volumesOf);

/** The volume id of an attachment, undefined if it is not certain (attached-volumes.rule.ts). */
function identify(
  dependencies: PodGcDependencies,
  attachment: KubeVolumeAttachment,
  { row, node }: Pick<NodeToDetach, 'row' | 'node'>,
): string | undefined {
  const name = attachment.metadata.name ?? '';
  return (
    volumeIdOf(
      {
        name,
        nodeName: row.nodeName,
        annotation: attachment.metadata.annotations?.[VOLUME_ID_ANNOTATION],
        volumeHandle: attachment.spec?.source?.inlineVolumeSpec?.csi?.volumeHandle,
      },
      [...attachedNames(node), ...volumesInUse(node)],
      dependencies.sha256,
    ) ?? row.memory[name]?.volumeId
  );
}

/** Reads the node and its unused volumes. undefined: nothing to decide about them. */
async function readNode(
  dependencies: PodGcDependencies,
  row: NodeVolumes,
  attachments: readonly KubeVolumeAttachment[],
): Promise<NodeToDetach | undefined> {
  const { objects, podGc } = dependencies;
  const { nodeName } = row;
  if (attachments.length === 0) {
    await podGc.dropVolumes(row);
    return undefined;
  }
  const [node, pods]: [KubeNode | undefined, readonly KubePod[]] = await Promise.all([
    objects.get(nodeRef(nodeName)),
    objects.listByNode(nodeName),
  ]);
  const users = usersOf(pods);
  const inUse = volumesInUse(node);
  const ready = readyStatusOf(node?.status?.conditions);
  const unwanted = attachments.flatMap((attachment): Unwanted[] => {
    const volumeId = identify(dependencies, attachment, { row, node });
    if (users.some((volumes) => wantsVolume(volumes, volumeId))) return [];
    // A Node that is deleted, or never posted its status, counts as having the volume mounted.
    const mounted = ready === undefined || (volumeId !== undefined && inUse.includes(uniqueVolumeName(volumeId)));
    return [{ attachment, volumeId, mounted }];
  });
  if (unwanted.length === 0) {
    // The row of a deleted Node stays, because only the row knows its instance. The detach wait is cleared.
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

async function askCloud(cloud: Cloud, nodes: readonly NodeToDetach[]): Promise<Answers> {
  const volumeIds = new Set(nodes.flatMap(({ unwanted }) => unwanted.flatMap(({ volumeId }) => volumeId ?? [])));
  const instanceIds = new Set(nodes.flatMap(({ instanceId }) => instanceId ?? []));
  const [volumes, instances] = await Promise.all([
    volumeIds.size === 0 ? new Map<string, VolumeAnswer>() : cloud.describeVolumes([...volumeIds]),
    instanceIds.size === 0
      ? new Map<string, InstanceAnswer>()
      : // Volumes are attached within their region: the zone is not needed to check that the instance is ours.
        cloud.describeInstances(
          [...instanceIds].map((instanceId) => ({ instanceId, zone: undefined, region: undefined })),
        ),
  ]);
  return { volumes, instances };
}

/** Why a volume must not be detached by the timeout alone. Undefined while the safety gate is open (D9). */
async function gateDoubt({ fleet, policy }: PodGcDependencies, nowMs: number): Promise<string | undefined> {
  const { gate } = await fleet.readState();
  return gateVerdictFor(gate, { nowMs, policy }).kind === 'holding' ? 'the safety gate is closed' : undefined;
}

function stateOf(answer: InstanceAnswer | undefined): VolumeNode['instance'] {
  if (answer?.answer.kind === 'found') return answer.answer.state;
  return answer?.answer.kind === 'notFound' ? 'notFound' : 'unknown';
}

function evaluate(
  { policy }: PodGcDependencies,
  node: NodeToDetach,
  of: Unwanted,
  at: Answers & { readonly doubt: string | undefined; readonly nowMs: number },
): Verdict {
  const { volumeId, mounted } = of;
  const { nowMs, doubt } = at;
  const name = of.attachment.metadata.name ?? '';
  const stored = node.row.memory[name];
  // A pod that used the volume since then restarts the detach wait.
  const known =
    stored?.volumeId === volumeId && stored !== undefined && stored.requestedAtMs >= node.row.touchedAtMs
      ? stored
      : undefined;
  const nothing = { detach: undefined, attachedTo: undefined, note: undefined };
  if (volumeId === undefined) {
    const why = `the volume of attachment ${name} is not known; set the annotation ${VOLUME_ID_ANNOTATION}`;
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
  if (answer === undefined || answer.kind === 'failed') return withhold('no-answer', 'EC2 request about it failed');
  if (answer.kind === 'notFound') return withhold('refused', 'EC2 does not know it');
  if (node.instanceId === undefined) return withhold('refused', 'the instance of the node is not known');
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
  // EC2 is already detaching the volume. A second request is only sent if it adds Force.
  const isUnderWay = attached?.state === 'detaching' || (attached?.state === 'busy' && memory.askedAtMs !== undefined);
  const isEnough = !decision.force || memory.forced === true;
  if (attached?.state === 'attaching' || (isUnderWay && isEnough)) {
    return { of, memory, withheld: undefined, ...nothing };
  }
  return { of, memory, withheld: undefined, detach: decision, attachedTo: attached?.instanceId, note };
}

const nodeOf = ({ row, node }: Pick<NodeToDetach, 'row' | 'node'>) => ({
  nodeName: row.nodeName,
  uid: node?.metadata.uid ?? '',
});

const memoryOf = (verdicts: readonly Verdict[]): Record<string, VolumeMemory> =>
  Object.fromEntries(
    verdicts.flatMap(({ of, memory }) => (memory === undefined ? [] : [[of.attachment.metadata.name ?? '', memory]])),
  );

/** Stores the state of the volumes. False when a pod left the node since the read: the next tick reads again. */
async function keepMemory(
  { podGc }: PodGcDependencies,
  { row, instanceId }: NodeToDetach,
  verdicts: readonly Verdict[],
): Promise<boolean> {
  const memory = memoryOf(verdicts);
  if (instanceId === row.instanceId && JSON.stringify(memory) === JSON.stringify(row.memory)) return true;
  return (await podGc.saveVolumes(row, { instanceId, memory })) === 'written';
}

type DetachOutcome =
  | { readonly kind: 'asked'; readonly memory: VolumeMemory }
  | { readonly kind: 'withheld'; readonly reason: WithheldReason; readonly why: string }
  /** Nothing was requested: the volume was detached already, or the state changed since the read. */
  | { readonly kind: 'nothing' };

async function detach(
  dependencies: PodGcDependencies,
  cloud: Cloud,
  node: NodeToDetach,
  verdict: Verdict,
  nowMs: number,
): Promise<DetachOutcome> {
  const { objects, log, meter, ledger } = dependencies;
  const { of, detach: decision, attachedTo } = verdict;
  const memory = verdict.memory!;
  const { volumeId } = memory;
  const { nodeName } = node.row;
  // A pod may have been bound since the node was read.
  const users = usersOf(await objects.listByNode(nodeName));
  if (users.some((volumes) => wantsVolume(volumes, volumeId))) return { kind: 'nothing' };
  if (!(await reportNotAttached(dependencies, node, volumeId, nowMs))) return { kind: 'nothing' };
  if (attachedTo === undefined) {
    await closeAttachment(dependencies, of.attachment, nowMs);
    return { kind: 'nothing' };
  }
  const force = decision!.force;
  // Recorded before the request: a record and a call to EC2 cannot be one commit. A repetition has the same key.
  if (verdict.note !== undefined) {
    await ledger.recordOnce(verdict.note, { atMs: memory.requestedAtMs, key: `${volumeId} ${force}` });
  }
  const outcome = await cloud.detachVolume({ volumeId, instanceId: attachedTo, force });
  switch (outcome.kind) {
    case 'notAttached':
      // The next tick reads this from the volume itself, and closes the attachment.
      return { kind: 'nothing' };
    case 'refused':
      return { kind: 'withheld', reason: 'refused', why: `EC2 refuses: ${outcome.code}` };
    case 'failed':
      return { kind: 'withheld', reason: 'no-answer', why: 'the request to EC2 failed' };
    case 'detaching': {
      const reason = decision!.forcedReason;
      if (reason !== undefined && memory.askedAtMs === undefined) {
        meter.add(metric.FORCED_DETACHES, 1, 'Count', { reason });
      }
      log.warn('detaching volume', {
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
 * Removes the volume from the Node's volumesAttached before the detach: the kubelet then does not mount it. Conditional
 * on the current Node: one that became healthy, or is another instance, keeps its volumes. Returns whether to continue.
 */
async function reportNotAttached(
  { objects }: PodGcDependencies,
  { row, node, outOfService, instanceId }: NodeToDetach,
  volumeId: string,
  nowMs: number,
): Promise<boolean> {
  const name = node?.metadata.name ?? '';
  // A Node that was created since is not the one that was read.
  if (node === undefined) return (await objects.get(nodeRef(row.nodeName))) === undefined;
  let stands = true;
  const outcome = await changeNode(objects, { nodeName: name, uid: node.metadata.uid ?? '', nowMs }, (current) => {
    const provider = parseProviderId(current.spec?.providerID);
    const isSame = provider.kind === 'ec2' && provider.instanceId === instanceId;
    const isHealthy = readyStatusOf(current.status?.conditions) === 'True';
    const isOut = isOutOfService(current.spec?.taints ?? []);
    stands = isSame && (isOut || (!isHealthy && !outOfService));
    if (!stands) return undefined;
    const attached = current.status?.volumesAttached ?? [];
    const left = attached.filter((each) => each.name !== uniqueVolumeName(volumeId));
    if (left.length === attached.length) return undefined;
    const { volumesAttached: _, ...status } = current.status ?? {};
    return { next: { ...current, status: left.length === 0 ? status : { ...status, volumesAttached: left } } };
  });
  return stands && (outcome.kind === 'written' || outcome.kind === 'nothing');
}

/**
 * EC2 reports the volume as detached: marks the VolumeAttachment so and deletes it, as the attach-detach controller
 * does.
 */
async function closeAttachment(
  { objects }: PodGcDependencies,
  attachment: KubeVolumeAttachment,
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
    throw new StoreFault('throttled', 'the VolumeAttachment changed too often to be closed', { retryable: true });
  }
}

/** Reports a withheld detach, once per volume and reason. */
async function reportWithheld(
  dependencies: PodGcDependencies,
  { row, node }: NodeToDetach,
  { of, memory, withheld, note }: Verdict,
  why: string,
  nowMs: number,
): Promise<void> {
  // A refusal by EC2 is not a decision of the rule.
  const withheldByRule = withheld === undefined ? undefined : note;
  const volume = of.volumeId ?? textOf(of.attachment.metadata.name) ?? '';
  const about: EventSubject =
    node === undefined ? subjectOf('VolumeAttachment', of.attachment) : subjectOf('Node', node);
  const event = { ...withheldEvent(volume, row.nodeName, why), about, once: `${of.attachment.metadata.uid} ${why}` };
  await recordEvents(dependencies, [event], nowMs);
  const { ledger, policy } = dependencies;
  const plain = volumeKeptDraft({ ...nodeOf({ row, node }), nowMs, policy }, volume, why);
  await ledger.recordOnce(withheldByRule ?? plain, { atMs: memory?.requestedAtMs ?? row.touchedAtMs, key: event.once });
  dependencies.log.warn('volume is not detached', { volume, nodeName: row.nodeName, why });
}
