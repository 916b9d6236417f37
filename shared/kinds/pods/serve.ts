import { defined } from '../../defined.ts';
import { withDefaultTolerations, withProfileTolerations } from '../../fleet/taints/default-tolerations.ts';
import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, NONE, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import {
  freshMetadata,
  inheritMetadata,
  type Json,
  recordsOf,
  textOf,
  typed,
  withoutEmpty,
  withoutNulls,
} from '../../kubernetes/normal-form.ts';
import { canonicalTime, formatTime } from '../../kubernetes/time.ts';
import type { PrepareContext, ResourceDescriptor } from '../descriptor.ts';
import type { KubeObject, KubePod, PodCondition, PodSpec, PodStatus } from '../types.ts';
import { withLimitDefaults } from './limit-range.ts';
import { withAccount } from './pod-account.ts';
import { defaultPodSpec } from './pod-defaults.ts';
import { DEFAULT_PREEMPTION_POLICY } from './pod-priority.ts';
import { qosClassOf } from './qos-class.ts';
import { readinessGatesCell, summarisePod } from './row.ts';
import { withRuntimeClass } from './runtime-class.ts';
import { validatePod } from './validate.ts';

/** Default of the policy field podEvictionTimeoutSeconds. Seconds. */
const DEFAULT_TOLERATION_SECONDS = 300;

/** Adds the default tolerations of not-ready and unreachable nodes (admission plugin DefaultTolerationSeconds). */
function admitTolerations(spec: PodSpec, context: PrepareContext): PodSpec {
  const tolerations = withDefaultTolerations(
    spec.tolerations ?? [],
    context.defaultTolerationSeconds ?? DEFAULT_TOLERATION_SECONDS,
  );
  return { ...spec, tolerations: [...tolerations] };
}

function admitPriority(spec: PodSpec, context: PrepareContext): PodSpec {
  const resolved = context.priority ?? { priority: 0, preemptionPolicy: DEFAULT_PREEMPTION_POLICY };
  const name = resolved.priorityClassName ?? '';
  return {
    ...spec,
    priority: resolved.priority,
    preemptionPolicy: resolved.preemptionPolicy,
    ...(name === '' ? {} : { priorityClassName: name }),
  };
}

const timeOrNull = (value: unknown): string | null => (typeof value === 'string' ? canonicalTime(value) : null);

/** podIP is the first of podIPs, and hostIP the first of hostIPs. If they differ, the single field wins. */
function alignAddresses(status: Json, single: string, list: string): Json {
  const address = textOf(status[single]);
  const addresses = recordsOf(status[list]);
  const first = textOf(addresses[0]?.['ip']);
  const { [single]: _single, [list]: _list, ...rest } = status;
  if (address !== '' && address !== first) return { ...rest, [single]: address, [list]: [{ ip: address }] };
  return first === '' ? rest : { ...rest, [single]: first, [list]: addresses };
}

function storedStatus(given: PodStatus | undefined, qosClass: PodStatus['qosClass']): Json {
  const status = withoutNulls(given ?? {});
  const conditions = (status.conditions ?? []).map((condition) => ({
    ...withoutEmpty(condition, 'reason', 'message'),
    lastProbeTime: timeOrNull(condition.lastProbeTime),
    lastTransitionTime: timeOrNull(condition.lastTransitionTime),
  }));
  const aligned = alignAddresses(alignAddresses(status, 'podIP', 'podIPs'), 'hostIP', 'hostIPs');
  return withoutEmpty(
    { ...aligned, conditions, qosClass },
    'conditions',
    'phase',
    'reason',
    'message',
    'nominatedNodeName',
    'containerStatuses',
    'initContainerStatuses',
    'ephemeralContainerStatuses',
    'qosClass',
  );
}

export type BindOutcome =
  | { readonly kind: 'bound'; readonly pod: KubeObject }
  /** Answer 409: conflict(pods, name, why). */
  | { readonly kind: 'refused'; readonly why: string };

/**
 * The effect of a POST of pods/binding: the pod is bound to the node permanently. `timeout`: podEvictionTimeoutSeconds of
 * the policy, and of the node's profile.
 */
export function bindPod(
  pod: KubePod,
  nodeName: string,
  nowMs: number,
  timeout?: Parameters<typeof withProfileTolerations>[1],
): BindOutcome {
  if (pod.metadata.deletionTimestamp !== undefined) {
    return { kind: 'refused', why: `pod ${pod.metadata.name} is being deleted, cannot be assigned to a host` };
  }
  const bound = pod.spec?.nodeName ?? '';
  if (bound !== '') {
    return { kind: 'refused', why: `pod ${pod.metadata.name} is already assigned to node ${JSON.stringify(bound)}` };
  }
  if ((pod.spec?.schedulingGates ?? []).length > 0) {
    return { kind: 'refused', why: `pod ${pod.metadata.name} has non-empty .spec.schedulingGates` };
  }
  const { tolerations } = pod.spec ?? {};
  const ofProfile =
    timeout === undefined || tolerations === undefined ? tolerations : withProfileTolerations(tolerations, timeout);
  const { nominatedNodeName: _nominated, ...status } = pod.status ?? {};
  const conditions = (status.conditions ?? []).filter((each) => each.type !== 'PodScheduled');
  const scheduled: PodCondition = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: formatTime(nowMs),
  };
  return {
    kind: 'bound',
    pod: {
      ...pod,
      spec: { ...pod.spec, ...defined({ tolerations: ofProfile && [...ofProfile] }), nodeName },
      status: { ...status, conditions: [...conditions, scheduled] },
    },
  };
}

const isGated = (spec: PodSpec): boolean => (spec.schedulingGates ?? []).length > 0;

/** The condition of a pod with scheduling gates (pkg/registry/core/pod/strategy.go, applySchedulingGatedCondition). */
const gatedCondition = (nowMs: number): PodCondition => ({
  type: 'PodScheduled',
  status: 'False',
  lastProbeTime: null,
  lastTransitionTime: formatTime(nowMs),
  reason: 'SchedulingGated',
  message: 'Scheduling is blocked due to non-empty scheduling gates',
});

export const pods: ResourceDescriptor = {
  group: '',
  version: 'v1',
  resource: 'pods',
  singular: 'pod',
  kind: 'Pod',
  listKind: 'PodList',
  shortNames: ['po'],
  categories: ['all'],
  namespaced: true,
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [
    { name: 'binding', kind: 'Binding', verbs: ['create'] },
    // drain evicts only when it finds exactly this entry.
    { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
    { name: 'log', verbs: ['get'] },
    { name: 'status', verbs: ['get', 'patch', 'update'] },
  ],
  shards: 8,
  columns: [
    nameColumn,
    textColumn('Ready', 'Containers that are ready, of how many.'),
    textColumn('Status', 'What the pod is doing, or what keeps it from it.'),
    textColumn('Restarts', 'Restarts of its containers, and when the last was.'),
    ageColumn,
    textColumn('IP', 'Address of the pod.', 1),
    textColumn('Node', 'Node the pod is bound to.', 1),
    textColumn('Nominated Node', 'Node that is being cleared for the pod.', 1),
    textColumn('Readiness Gates', 'Readiness gates that are open, of how many.', 1),
  ],
  row(object: KubePod, nowMs) {
    const summary = summarisePod(object, nowMs);
    return [
      object.metadata.name ?? '',
      summary.ready,
      summary.status,
      summary.restarts,
      ageSince(object.metadata.creationTimestamp, nowMs),
      object.status?.podIP || NONE,
      object.spec?.nodeName || NONE,
      object.status?.nominatedNodeName || NONE,
      readinessGatesCell(object),
    ];
  },
  selectableFields: {
    'metadata.name': (pod) => pod.metadata.name ?? '',
    'metadata.namespace': (pod) => pod.metadata.namespace ?? '',
    'spec.nodeName': (pod: KubePod) => pod.spec?.nodeName ?? '',
    'spec.restartPolicy': (pod: KubePod) => pod.spec?.restartPolicy ?? '',
    'spec.schedulerName': (pod: KubePod) => pod.spec?.schedulerName ?? '',
    'spec.serviceAccountName': (pod: KubePod) => pod.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': (pod) => String(pod.spec?.hostNetwork === true),
    'status.phase': (pod: KubePod) => pod.status?.phase ?? '',
    'status.podIP': (pod: KubePod) => pod.status?.podIP ?? '',
    'status.nominatedNodeName': (pod: KubePod) => pod.status?.nominatedNodeName ?? '',
  },
  unconditionalUpdate: true,
  createOnUpdate: false,
  hasGeneration: false,
  prepareForCreate(object: KubePod, context) {
    const given = context.account === undefined ? object : withAccount(object, context.account);
    const defaulted = withRuntimeClass({ ...given, spec: defaultPodSpec(given.spec) }, context.runtimeClass);
    const limited = withLimitDefaults(defaulted, context.limitRanges ?? []);
    const spec = admitPriority(admitTolerations(limited.spec ?? {}, context), context);
    return typed('', 'v1', 'Pod', {
      ...limited,
      metadata: freshMetadata(limited.metadata),
      spec,
      status: {
        phase: 'Pending',
        ...(isGated(spec) ? { conditions: [gatedCondition(context.nowMs)] } : {}),
        qosClass: qosClassOf(spec),
      },
    });
  },
  prepareForUpdate(next: KubePod, old: KubePod, context) {
    const metadata = inheritMetadata(next.metadata, old.metadata);
    const oldQos = old.status?.qosClass;
    if (context.subresource === 'status') {
      // A status update must not change the owners of the pod.
      const { ownerReferences: _ownerReferences, ...rest } = metadata;
      const owners = old.metadata.ownerReferences;
      return typed('', 'v1', 'Pod', {
        ...next,
        metadata: owners === undefined ? rest : { ...rest, ownerReferences: owners },
        spec: old.spec ?? {},
        status: storedStatus(next.status, next.status?.qosClass ?? oldQos),
      });
    }
    const spec = admitTolerations(defaultPodSpec(next.spec), context);
    const kept = defined({
      priority: spec.priority ?? old.spec?.priority,
      preemptionPolicy: spec.preemptionPolicy ?? old.spec?.preemptionPolicy,
      priorityClassName: spec.priorityClassName ?? old.spec?.priorityClassName,
    });
    return typed('', 'v1', 'Pod', { ...next, metadata, spec: { ...spec, ...kept }, status: old.status ?? {} });
  },
  validate: (object, { old, subresource }) => validatePod(object, old, subresource),
};
