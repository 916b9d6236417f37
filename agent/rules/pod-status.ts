/**
 * Status of a pod from its containers. Source: upstream pkg/kubelet/kubelet_pods.go (getPhase, generateAPIPodStatus)
 * and pkg/kubelet/status/generate.go. Without results of probes a container is ready when it runs.
 */
import { defined } from '../../shared/defined.ts';
import { mayRestartAll, restartsAfter } from '../../shared/kinds/pods/container-restarts.ts';
import type { KubeObject, KubePod, ResourceRequirements } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { ContainerState, RunningContainer, RunningPod } from '../ports/pod-runtime.ts';
import { type ResizeProgress, resourcesOf } from './pod-resize.ts';
import type { PodStatus } from './shutdown-status.ts';

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed';

interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  /** A sidecar: an init container that keeps running beside the others. */
  readonly sidecar: boolean;
  /** Whether it starts again after it has terminated. */
  readonly restarts: (exitCode: number) => boolean;
  /** Allocated by this node. */
  readonly resources: ResourceRequirements;
}

/** The spec of a container, and its actual state. */
interface PlacedContainer {
  readonly spec: ContainerSpec;
  readonly found: RunningContainer;
  readonly started: boolean;
  readonly ready: boolean;
  /** What it runs with, which a resize may not have changed yet. */
  readonly actual: ResourceRequirements;
}

/** Results of the probes of a container. */
export type ProbedReadiness = (container: RunningContainer) => { readonly started: boolean; readonly ready: boolean };

const readyWhileRunning: ProbedReadiness = ({ state }) => ({
  started: state.kind === 'running',
  ready: state.kind === 'running',
});

export const phaseOf = (pod: KubeObject): PodPhase => {
  const phase = pod.status?.['phase'];
  return phase === 'Running' || phase === 'Succeeded' || phase === 'Failed' ? phase : 'Pending';
};

/** Whether the stored phase is terminal: the pod is never started again. */
export const hasEnded = (pod: KubeObject): boolean => phaseOf(pod) === 'Succeeded' || phaseOf(pod) === 'Failed';

const specsOf = (
  { spec = {} }: KubePod,
  field: 'containers' | 'initContainers',
  restartsAlways: boolean | undefined,
): readonly ContainerSpec[] =>
  (spec[field] ?? []).map((each) => ({
    name: each.name ?? '',
    image: each.image ?? '',
    sidecar: field === 'initContainers' && each.restartPolicy === 'Always',
    restarts: (exitCode) => restartsAlways ?? restartsAfter(exitCode, each, spec.restartPolicy),
    resources: each.resources ?? {},
  }));

function place(
  specs: readonly ContainerSpec[],
  containers: readonly RunningContainer[],
  reason: 'ContainerCreating' | 'PodInitializing',
  { probed, running }: { readonly probed: ProbedReadiness; readonly running: RunningPod | undefined },
): PlacedContainer[] {
  const byName = new Map(containers.map((each) => [each.name, each]));
  return specs.map((spec) => {
    const found = byName.get(spec.name) ?? {
      name: spec.name,
      state: { kind: 'waiting', reason },
      restartCount: 0,
    };
    return { spec, found, actual: actualResources(running, found) ?? spec.resources, ...probed(found) };
  });
}

/** What a running container runs with; undefined: what is allocated, as far as the runtime says. */
export function actualResources(
  running: RunningPod | undefined,
  { name, state, resources }: RunningContainer,
): ResourceRequirements | undefined {
  if (state.kind !== 'running') return undefined;
  return resources ?? (running?.pod === undefined ? undefined : resourcesOf(running.pod, name));
}

const hasAny = ({ requests, limits }: ResourceRequirements): boolean =>
  Object.keys({ ...requests, ...limits }).length > 0;

/**
 * Nothing for a pod without any: it cannot be resized. Of the others every container has them, because the API asks the
 * first running one whether its node can resize.
 */
function resourcesJson({ spec: { resources }, actual }: PlacedContainer, isResizable: boolean): PodStatus {
  return isResizable ? { ...defined({ allocatedResources: resources.requests }), resources: actual } : {};
}

function stateJson(state: ContainerState, containerId: string | undefined): PodStatus {
  switch (state.kind) {
    case 'waiting':
      return {
        waiting: { reason: state.reason, ...defined({ message: state.message }) },
      };
    case 'running':
      return { running: { startedAt: formatTime(state.startedAtMs) } };
    case 'terminated':
      return {
        terminated: {
          exitCode: state.exitCode,
          ...defined({ signal: state.signal }),
          reason: state.reason,
          ...defined({ message: state.message }),
          startedAt: formatTime(state.startedAtMs),
          finishedAt: formatTime(state.finishedAtMs),
          ...defined({ containerID: containerId }),
        },
      };
  }
}

const ended = (placed: PlacedContainer): boolean => placed.found.state.kind === 'terminated';
const succeeded = ({ found: { state } }: PlacedContainer): boolean =>
  state.kind === 'terminated' && state.exitCode === 0;
const runs = (placed: PlacedContainer): boolean => placed.found.state.kind === 'running';
/** Whether the containers after it may start. */
const initDone = (placed: PlacedContainer): boolean => succeeded(placed) || (placed.spec.sidecar && placed.started);

function containerStatus(placed: PlacedContainer, ready: boolean, isResizable: boolean): PodStatus {
  const { spec, found } = placed;
  return {
    name: spec.name,
    image: spec.image,
    imageID: '',
    ready,
    started: placed.started,
    restartCount: found.restartCount,
    state: stateJson(found.state, found.containerId),
    lastState: found.lastState === undefined ? {} : stateJson(found.lastState, found.lastContainerId),
    ...defined({ containerID: found.containerId }),
    ...resourcesJson(placed, isResizable),
  };
}

const restarts = ({ spec, found: { state } }: PlacedContainer): boolean =>
  state.kind === 'terminated' && spec.restarts(state.exitCode);

function phaseFrom(init: readonly PlacedContainer[], main: readonly PlacedContainer[]): PodPhase {
  const hasFailed = (each: PlacedContainer): boolean => ended(each) && !succeeded(each) && !restarts(each);
  if (init.some((each) => !each.spec.sidecar && hasFailed(each))) return 'Failed';
  if (!init.every(initDone) && !main.some((each) => runs(each) || ended(each))) return 'Pending';
  // A container that waits for its restart has run, and counts as running.
  const started = main.filter((each) => runs(each) || ended(each) || each.found.lastState !== undefined);
  if (started.length < main.length) return 'Pending';
  if (main.some((each) => !ended(each) || restarts(each))) return 'Running';
  return main.every(succeeded) ? 'Succeeded' : 'Failed';
}

interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason?: string;
  readonly message?: string;
  readonly observedGeneration?: number;
}

/** Present only while they are True, and not in a terminal phase. */
const RESIZE_CONDITIONS: readonly string[] = ['PodResizePending', 'PodResizeInProgress'];

function resizeConditions({ pending, inProgress }: ResizeProgress): readonly Condition[] {
  const conditions: Condition[] = [];
  if (pending !== undefined) {
    const { reason, message, generation } = pending;
    const type = 'PodResizePending';
    conditions.push({ type, status: 'True', reason, message, ...defined({ observedGeneration: generation }) });
  }
  if (inProgress !== undefined) {
    const { error, generation } = inProgress;
    const why = error === undefined ? {} : { reason: 'Error', message: error };
    const type = 'PodResizeInProgress';
    conditions.push({ type, status: 'True', ...why, ...defined({ observedGeneration: generation }) });
  }
  return conditions;
}

const named = (words: string, names: readonly string[]): string =>
  `containers with ${words} status: [${names.join(' ')}]`;

function readyCondition(type: 'Ready' | 'ContainersReady', phase: PodPhase, unready: readonly string[]): Condition {
  if (phase === 'Succeeded') return { type, status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' };
  if (unready.length === 0) return { type, status: 'True' };
  return { type, status: 'False', reason: 'ContainersNotReady', message: named('unready', unready) };
}

/** Source: upstream pkg/kubelet/status/generate.go (GeneratePodReadyToStartContainersCondition). */
const mayStartCondition = (mayStart: boolean): Condition => ({
  type: 'PodReadyToStartContainers',
  status: mayStart ? 'True' : 'False',
});

/** Source: the same (GenerateAllContainersRestartingCondition). */
function restartingCondition(phase: PodPhase, restartsAll: boolean): Condition {
  const type = 'AllContainersRestarting';
  if (phase === 'Succeeded') return { type, status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' };
  if (!restartsAll) return { type, status: 'False' };
  const message = 'container exited with restart policy rule';
  return { type, status: 'True', reason: 'RestartAllContainersStarted', message };
}

/** A pod is ready only when the conditions of its readiness gates are True. Other clients write them. */
function withReadinessGates(pod: KubeObject, ready: Condition): Condition {
  if (ready.status === 'False') return ready;
  const stored = recordsOf(recordOf(pod.status)['conditions']);
  const faults = recordsOf(recordOf(pod.spec)['readinessGates']).flatMap(({ conditionType }) => {
    const gate = JSON.stringify(textOf(conditionType));
    const status = stored.find(({ type }) => type === conditionType)?.['status'];
    if (status === undefined) return `corresponding condition of pod readiness gate ${gate} does not exist.`;
    return status === 'True' ? [] : `the status of pod readiness gate ${gate} is not "True", but ${textOf(status)}`;
  });
  if (faults.length === 0) return ready;
  return { type: 'Ready', status: 'False', reason: 'ReadinessGatesNotReady', message: faults.join(', ') };
}

function withTransitions(
  wanted: readonly Condition[],
  before: readonly Readonly<Record<string, unknown>>[],
  nowMs: number,
): PodStatus[] {
  return wanted.map((condition) => {
    const old = before.find((each) => each['type'] === condition.type);
    const since = old?.['status'] === condition.status ? textOf(old['lastTransitionTime']) : '';
    return { ...condition, lastProbeTime: null, lastTransitionTime: since === '' ? formatTime(nowMs) : since };
  });
}

export interface StatusFacts {
  readonly pod: KubeObject;
  /** Absent before the runtime knows the pod. */
  readonly running: RunningPod | undefined;
  /** The newest status, for transition times; the one of `pod` if this agent computed none. */
  readonly before: PodStatus;
  readonly nowMs: number;
  readonly hostIp: string | undefined;
  /** Absent: this node makes no probes. */
  readonly probed?: ProbedReadiness | undefined;
  /** Whether the pod may start containers: its volumes are set up. Absent: not reported. */
  readonly mayStart?: boolean | undefined;
  /** No container starts again: the phase is terminal when they have terminated. */
  readonly isLast?: boolean;
  readonly resize?: ResizeProgress | undefined;
}

/**
 * The status of an admitted pod, to be merged with the stored one: conditions of other types belong to other clients. A
 * terminal phase stays.
 */
export function podStatusOf(facts: StatusFacts): PodStatus {
  const { pod, running, before, nowMs, hostIp, mayStart, isLast = false, probed = readyWhileRunning } = facts;
  const observed = { probed, running };
  const podIp = running?.ip ?? hostIp ?? '';
  const restartsAll = running?.restartsAll === true;
  const restartsAlways = isLast ? false : restartsAll || undefined;
  const initSpecs = specsOf(pod, 'initContainers', restartsAlways);
  const init = place(initSpecs, running?.initContainers ?? [], 'PodInitializing', observed);
  const main = place(
    specsOf(pod, 'containers', restartsAlways),
    running?.containers ?? [],
    initSpecs.length === 0 ? 'ContainerCreating' : 'PodInitializing',
    observed,
  );
  const was = textOf(before['phase']);
  const phase = was === 'Failed' || was === 'Succeeded' ? was : phaseFrom(init, main);
  const over = phase === 'Failed' || phase === 'Succeeded';
  const initialized = init.every(initDone) || phase === 'Succeeded';
  const uninitialised = init.filter((each) => !initDone(each)).map(({ spec }) => spec.name);
  const unready = [...init.filter(({ spec }) => spec.sidecar), ...main]
    .filter((each) => !each.ready)
    .map(({ spec }) => spec.name);
  const readiness = { unready: initialized || over ? unready : main.map(({ spec }) => spec.name) };
  const oldConditions = recordsOf(before['conditions']);
  // Once initialised, a pod stays so, also while its init containers run again.
  const wasInitialised = oldConditions.some(({ type, status }) => type === 'Initialized' && status === 'True');
  const generation = defined({ observedGeneration: pod.metadata.generation });
  const conditions = withTransitions(
    [
      ...(mayStart === undefined ? [] : [mayStartCondition(mayStart && !over)]),
      initialized || wasInitialised
        ? { type: 'Initialized', status: 'True', ...(phase === 'Succeeded' ? { reason: 'PodCompleted' } : {}) }
        : {
            type: 'Initialized',
            status: 'False',
            reason: 'ContainersNotInitialized',
            message: named('incomplete', uninitialised),
          },
      withReadinessGates(pod, readyCondition('Ready', phase, readiness.unready)),
      readyCondition('ContainersReady', phase, readiness.unready),
      { type: 'PodScheduled', status: 'True' },
      ...(over ? [] : resizeConditions(facts.resize ?? {})),
      ...(mayRestartAll((pod as KubePod).spec ?? {}) ? [restartingCondition(phase, restartsAll)] : []),
    ],
    oldConditions,
    nowMs,
  ).map((condition) => ({ ...generation, ...condition }));
  const isResizable = [...init, ...main].some(({ spec, actual }) => hasAny(spec.resources) || hasAny(actual));
  return {
    ...generation,
    phase,
    ...(textOf(before['reason']) === '' ? {} : { reason: before['reason'] }),
    ...(textOf(before['message']) === '' ? {} : { message: before['message'] }),
    conditions,
    startTime: textOf(before['startTime']) || formatTime(nowMs),
    ...(hostIp === undefined ? {} : { hostIP: hostIp, hostIPs: [{ ip: hostIp }] }),
    ...(podIp === '' ? {} : { podIP: podIp, podIPs: [{ ip: podIp }] }),
    ...(init.length === 0
      ? {}
      : {
          initContainerStatuses: init.map((each) =>
            containerStatus(each, each.spec.sidecar ? each.ready : initDone(each), isResizable),
          ),
        }),
    containerStatuses: main.map((each) => containerStatus(each, each.ready && !over, isResizable)),
  };
}

/** The status of a pod that this node rejected. Source: upstream pkg/kubelet/kubelet.go (rejectPod). */
export function rejectedStatus(
  before: PodStatus,
  refusal: { readonly reason: string; readonly message: string },
  nowMs: number,
): PodStatus {
  return {
    ...before,
    phase: 'Failed',
    reason: refusal.reason,
    message: `Pod was rejected: ${refusal.message}`,
    startTime: textOf(before['startTime']) || formatTime(nowMs),
  };
}

/** Whether another client changed the phase or readiness that this agent reported, as the node controller does. */
export function isContradicted(reported: PodStatus | undefined, stored: PodStatus | undefined): boolean {
  if (reported === undefined || stored === undefined) return false;
  if (reported['phase'] !== stored['phase']) return true;
  const conditions = recordsOf(stored['conditions']);
  return recordsOf(reported['conditions']).some(
    (own) => conditions.find((each) => each['type'] === own['type'])?.['status'] !== own['status'],
  );
}

/** The conditions of resizes in one status that the next one does not have. */
export const endedResizes = (before: PodStatus | undefined, next: PodStatus): readonly string[] =>
  recordsOf(before?.['conditions'])
    .map(({ type }) => textOf(type))
    .filter((type) => RESIZE_CONDITIONS.includes(type))
    .filter((type) => !recordsOf(next['conditions']).some((each) => each['type'] === type));
