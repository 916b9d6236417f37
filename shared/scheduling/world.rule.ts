/** Nodes and pods as the scheduler reads them: what its rules need of the objects, parsed once. */

import { defined } from '../defined.ts';
import { conditionOf } from '../fleet/nodes/conditions.ts';
import { zoneKeyOf } from '../fleet/nodes/node-digest.ts';
import { hasTaint, TAINT_NOT_READY, TAINT_UNREACHABLE } from '../fleet/nodes/taint.ts';
import { featuresToRun } from '../kinds/pods/declared-features.ts';
import { claimNamesOf, type HostPort, hostPortsOf } from '../kinds/pods/pod-needs.ts';
import { isTerminated } from '../kinds/pods/resource.ts';
import { hubOfMachine } from '../kinds/pods/site-permit.ts';
import type { KubeNode, KubePod, NodeSelectorTerm, PodSpec, TopologySpreadConstraint } from '../kinds/types.ts';
import type { Taint, Toleration } from '../kubernetes/kubernetes.ts';
import { parseTimeMs } from '../kubernetes/time.ts';
import {
  type Amounts,
  amountOf,
  listedAmounts,
  requestsOf,
  type ScoredAmounts,
  scoredRequestsOf,
} from './requests.rule.ts';
import {
  type CompiledSelector,
  compiledSelector,
  compiledTerm,
  type Labels,
  type PodTerm,
  type WeightedPodTerm,
} from './terms.rule.ts';

/** `spec.schedulerName` of the pods that this scheduler binds. */
export const SCHEDULER_NAME = 'default-scheduler';

export interface SpreadConstraint {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly isHard: boolean;
  readonly selector: CompiledSelector;
  readonly honorsAffinity: boolean;
  readonly honorsTaints: boolean;
}

export interface SchedulablePod {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: number;
  readonly labels: Labels;
  readonly priority: number;
  readonly mayPreempt: boolean;
  /** '' while unbound. */
  readonly nodeName: string;
  /** '' without a nomination. */
  readonly nominatedNodeName: string;
  readonly isTerminating: boolean;
  /** Succeeded or Failed. */
  readonly isTerminated: boolean;
  readonly isGated: boolean;
  /** Our scheduler is responsible for the pod. */
  readonly isOurs: boolean;
  /** Its DisruptionTarget condition names a preemption. */
  readonly isPreempted: boolean;
  /** Epoch milliseconds; undefined before the kubelet has started it. */
  readonly startedAtMs: number | undefined;
  readonly createdAtMs: number;
  readonly requests: Amounts;
  readonly scored: ScoredAmounts;
  readonly hostPorts: readonly HostPort[];
  readonly tolerations: readonly Toleration[];
  readonly nodeSelector: Labels;
  /** Undefined: no required node affinity. */
  readonly nodeTerms: readonly NodeSelectorTerm[] | undefined;
  readonly preferredNodeTerms: readonly { readonly weight: number; readonly preference: NodeSelectorTerm }[];
  readonly affinity: readonly PodTerm[];
  readonly antiAffinity: readonly PodTerm[];
  readonly preferredAffinity: readonly WeightedPodTerm[];
  readonly preferredAntiAffinity: readonly WeightedPodTerm[];
  readonly spread: readonly SpreadConstraint[];
  readonly images: readonly string[];
  /** Containers and init containers. */
  readonly containers: number;
  /** uid of the controlling owner; '' without one. */
  readonly controllerUid: string;
  /** Names of the claims that its volumes need. */
  readonly claims: readonly string[];
  readonly usesResourceClaims: boolean;
  /** What its node must declare. */
  readonly neededFeatures: readonly string[];
  /** The PodScheduled condition, as stored. */
  readonly scheduledCondition:
    | { readonly status: string; readonly reason: string; readonly message: string }
    | undefined;
}

export interface SchedulableNode {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: number;
  readonly labels: Labels;
  readonly zone: string;
  readonly isUnschedulable: boolean;
  /** With the NoSchedule taint that a node that is not Ready is about to get. */
  readonly taints: readonly Readonly<Taint>[];
  readonly allocatable: Amounts;
  readonly podsMax: number;
  /** Bytes by normalised name. */
  readonly images: ReadonlyMap<string, number>;
  readonly declaredFeatures: readonly string[];
  /** The machine obeys the permits of this hub (site-permit.ts). Undefined: of none. */
  readonly siteHub?: string;
}

const EMPTY: readonly never[] = Object.freeze([]);
const NO_LABELS: Labels = Object.freeze({});

function spreadConstraint(constraint: TopologySpreadConstraint, labels: Labels): SpreadConstraint {
  return {
    topologyKey: constraint.topologyKey,
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains ?? 1,
    isHard: constraint.whenUnsatisfiable === 'DoNotSchedule',
    selector: compiledSelector(constraint.labelSelector, { labels, matchKeys: constraint.matchLabelKeys ?? [] }),
    honorsAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  };
}

/** Without a tag after the last slash: `:latest` (pkg/util/parsers). */
export const normalisedImage = (name: string): string =>
  name.lastIndexOf(':') <= name.lastIndexOf('/') ? `${name}:latest` : name;

function affinityOf(spec: PodSpec, pod: { readonly namespace: string; readonly labels: Labels }) {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {};
  const requiredOf = (affinity: typeof podAffinity) =>
    (affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? EMPTY).map((term) => compiledTerm(term, pod));
  const preferredOf = (affinity: typeof podAffinity) =>
    (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? EMPTY).map(({ weight, podAffinityTerm }) => ({
      weight,
      term: compiledTerm(podAffinityTerm, pod),
    }));
  return {
    affinity: podAffinity === undefined ? EMPTY : requiredOf(podAffinity),
    antiAffinity: podAntiAffinity === undefined ? EMPTY : requiredOf(podAntiAffinity),
    preferredAffinity: podAffinity === undefined ? EMPTY : preferredOf(podAffinity),
    preferredAntiAffinity: podAntiAffinity === undefined ? EMPTY : preferredOf(podAntiAffinity),
  };
}

function imagesOf(spec: PodSpec): readonly string[] {
  const names = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].map(({ image = '' }) => image);
  for (const { image } of spec.volumes ?? []) {
    const { reference } = (image ?? {}) as { readonly reference?: unknown };
    if (typeof reference === 'string') names.push(reference);
  }
  return names.map(normalisedImage);
}

/** Few pods need any: the others are not looked at closer. */
const mayNeedFeatures = ({ hostUsers, initContainers = [], containers = [] }: PodSpec): boolean =>
  hostUsers === false || [...initContainers, ...containers].some((each) => each.restartPolicyRules !== undefined);

/** @throws TypeError when the stored object does not have the shape of its kind */
export function schedulablePod(pod: KubePod): SchedulablePod {
  const { metadata, spec = {}, status = {} } = pod;
  const { namespace = '', name = '', uid = '' } = metadata;
  const labels = metadata.labels ?? NO_LABELS;
  const nodeAffinity = spec.affinity?.nodeAffinity;
  const conditions = status.conditions ?? [];
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    uid,
    resourceVersion: Number(metadata.resourceVersion ?? 0),
    labels,
    priority: spec.priority ?? 0,
    mayPreempt: spec.preemptionPolicy !== 'Never',
    nodeName: spec.nodeName ?? '',
    nominatedNodeName: status.nominatedNodeName ?? '',
    isTerminating: metadata.deletionTimestamp !== undefined,
    isTerminated: isTerminated(pod),
    isGated: (spec.schedulingGates ?? EMPTY).length > 0,
    isOurs: (spec.schedulerName ?? SCHEDULER_NAME) === SCHEDULER_NAME,
    isPreempted: conditions.some(
      ({ type, status: is, reason }) =>
        type === 'DisruptionTarget' && is === 'True' && reason === 'PreemptionByScheduler',
    ),
    startedAtMs: parseTimeMs(status.startTime),
    createdAtMs: parseTimeMs(metadata.creationTimestamp) ?? 0,
    requests: requestsOf(pod),
    scored: scoredRequestsOf(pod),
    hostPorts: hostPortsOf(spec),
    tolerations: spec.tolerations ?? EMPTY,
    nodeSelector: spec.nodeSelector ?? NO_LABELS,
    nodeTerms: nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms,
    preferredNodeTerms: nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? EMPTY,
    ...affinityOf(spec, { namespace, labels }),
    spread: (spec.topologySpreadConstraints ?? EMPTY).map((each) => spreadConstraint(each, labels)),
    images: imagesOf(spec),
    containers: (spec.containers ?? EMPTY).length + (spec.initContainers ?? EMPTY).length,
    controllerUid: metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? '',
    claims: claimNamesOf(pod),
    usesResourceClaims: (spec.resourceClaims ?? EMPTY).length > 0,
    neededFeatures: mayNeedFeatures(spec) ? featuresToRun(spec) : EMPTY,
    scheduledCondition:
      scheduled === undefined
        ? undefined
        : { status: scheduled.status, reason: scheduled.reason ?? '', message: scheduled.message ?? '' },
  };
}

/**
 * A node that is not Ready counts as tainted, even before the taint is stored: nothing may be bound to a node after its
 * mark.
 */
function schedulingTaints(node: KubeNode): readonly Readonly<Taint>[] {
  const taints = node.spec?.taints ?? EMPTY;
  const ready = conditionOf(node.status?.conditions, 'Ready')?.status;
  if (ready === 'True') return taints;
  const key = ready === 'Unknown' ? TAINT_UNREACHABLE : TAINT_NOT_READY;
  const twin: Taint = { key, effect: 'NoSchedule' };
  return hasTaint(taints, twin) ? taints : [...taints, twin];
}

/** @throws TypeError as above */
export function schedulableNode(node: KubeNode): SchedulableNode {
  const { metadata, spec = {}, status = {} } = node;
  const images = new Map<string, number>();
  for (const { names = [], sizeBytes = 0 } of status.images ?? [])
    for (const name of names) images.set(name, sizeBytes);
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    resourceVersion: Number(metadata.resourceVersion ?? 0),
    labels: metadata.labels ?? NO_LABELS,
    zone: zoneKeyOf(metadata.labels),
    isUnschedulable: spec.unschedulable === true,
    taints: schedulingTaints(node),
    allocatable: listedAmounts(status.allocatable),
    podsMax: amountOf('pods', status.allocatable?.['pods'] ?? 0),
    images,
    declaredFeatures: status.declaredFeatures ?? EMPTY,
    ...defined({ siteHub: hubOfMachine(node) }),
  };
}

/** The pod counts on its node: it is bound and has not ended. */
export const countsOnNode = (pod: SchedulablePod): boolean => pod.nodeName !== '' && !pod.isTerminated;

/** The pod waits for this scheduler, gated or not. */
export const isPending = (pod: SchedulablePod): boolean =>
  pod.nodeName === '' && pod.isOurs && !pod.isTerminating && !pod.isTerminated;
