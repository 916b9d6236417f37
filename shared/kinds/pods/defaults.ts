/** A pod as the API stores it: with its defaults, and what admission adds to a new one. */

import { defined } from '../../defined.ts';
import { withDefaultTolerations } from '../../fleet/nodes/taint.ts';
import { sameJson } from '../../kubernetes/causes.ts';
import {
  freshMetadata,
  inheritMetadata,
  type Json,
  nextGeneration,
  recordsOf,
  textOf,
  typed,
  withoutEmpty,
  withoutNulls,
} from '../../kubernetes/normal-form.ts';
import { canonicalTime, formatTime } from '../../kubernetes/time.ts';
import type { PrepareContext } from '../descriptor.ts';
import type { Prepare } from '../served-kind.ts';
import type { KubeObject, KubePod, PodCondition, PodSpec, PodStatus } from '../types.ts';
import { withLimitDefaults } from './limit-range.ts';
import { DEFAULT_PREEMPTION_POLICY, withAccount, withRuntimeClass } from './pod-admission.ts';
import { qosClassOf } from './pod-needs.ts';
import { resizedSpec } from './resize.ts';
import { defaultPodSpec } from './spec-defaults.ts';

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

/** A writer that knows no observedGeneration does not remove it (preserveOldObservedGeneration of the same file). */
function storedStatus(given: PodStatus | undefined, old: PodStatus = {}): Json {
  const observed = { observedGeneration: old.observedGeneration };
  const status = { ...defined(observed), ...withoutEmpty(withoutNulls(given ?? {}), 'observedGeneration') };
  const qosClass = status.qosClass ?? old.qosClass;
  // Several conditions may have one type: the first keeps that of the first.
  const generations = Map.groupBy(old.conditions ?? [], ({ type }) => type);
  for (const former of generations.values()) former.reverse();
  const conditions = (status.conditions ?? []).map((condition) => ({
    ...defined({ observedGeneration: generations.get(condition.type)?.pop()?.observedGeneration }),
    ...withoutEmpty(condition, 'reason', 'message', 'observedGeneration'),
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

/** A change of the spec raises the generation. A binding does not: the kubelet reads the pod first after it. */
function nextOf(next: KubePod, old: KubePod): KubeObject {
  const isSame = sameJson(next.spec, old.spec);
  const { metadata } = next;
  return typed(
    '',
    'v1',
    'Pod',
    isSame ? next : { ...next, metadata: { ...metadata, generation: nextGeneration(next, old) } },
  );
}

export const preparePod: Prepare = {
  hasGeneration: true,
  prepareForCreate(object: KubePod, context) {
    if (context.defaultsOnly) return { ...object, spec: defaultPodSpec(object.spec) };
    const given = context.account === undefined ? object : withAccount(object, context.account);
    const defaulted = withRuntimeClass({ ...given, spec: defaultPodSpec(given.spec) }, context.runtimeClass);
    const limited = withLimitDefaults(defaulted, context.limitRanges ?? []);
    const spec = admitPriority(admitTolerations(limited.spec ?? {}, context), context);
    return typed('', 'v1', 'Pod', {
      ...limited,
      metadata: { ...freshMetadata(limited.metadata), generation: 1 },
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
    if (context.subresource === 'status') {
      // A status update must not change the owners of the pod.
      const { ownerReferences: _ownerReferences, ...rest } = metadata;
      const owners = old.metadata.ownerReferences;
      return typed('', 'v1', 'Pod', {
        ...next,
        metadata: owners === undefined ? rest : { ...rest, ownerReferences: owners },
        spec: old.spec ?? {},
        status: storedStatus(next.status, old.status),
      });
    }
    if (context.subresource === 'resize') {
      const limited = withLimitDefaults({ ...next, spec: defaultPodSpec(next.spec) }, context.limitRanges ?? []);
      // A client that names another uid means another pod: validation refuses it.
      const { managedFields, uid } = metadata;
      const spec = resizedSpec(limited.spec ?? {}, old.spec ?? {});
      return nextOf({ ...old, metadata: { ...old.metadata, ...defined({ managedFields, uid }) }, spec }, old);
    }
    const spec = admitTolerations(defaultPodSpec(next.spec), context);
    const kept = defined({
      priority: spec.priority ?? old.spec?.priority,
      preemptionPolicy: spec.preemptionPolicy ?? old.spec?.preemptionPolicy,
      priorityClassName: spec.priorityClassName ?? old.spec?.priorityClassName,
    });
    return nextOf({ ...next, metadata, spec: { ...spec, ...kept }, status: old.status ?? {} }, old);
  },
};
