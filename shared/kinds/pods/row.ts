/** READY, STATUS and RESTARTS, as kubectl prints them (pkg/printers/internalversion/printers.go: printPod). */
import { formatAge } from '../../kubernetes/age.ts';
import { NONE } from '../../kubernetes/columns.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type { ContainerState, ContainerStatus, KubePod } from '../types.ts';

/** Sum of the restarts of several containers, and the time of the latest one. */
interface Restarts {
  count: number;
  lastMs: number | undefined;
}

function countRestart(restarts: Restarts, status: ContainerStatus): void {
  restarts.count += status.restartCount ?? 0;
  const ended = parseTimeMs(status.lastState?.terminated?.finishedAt ?? '');
  if (ended !== undefined && (restarts.lastMs === undefined || ended > restarts.lastMs)) restarts.lastMs = ended;
}

const conditionIsTrue = (pod: KubePod, type: string): boolean =>
  (pod.status?.conditions ?? []).some((each) => each.type === type && each.status === 'True');

/** Why a container terminated: the reason in its status, or else the signal or exit code. */
function endReason({ reason = '', signal = 0, exitCode = 0 }: NonNullable<ContainerState['terminated']>): string {
  if (reason !== '') return reason;
  return signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`;
}

interface InitView {
  /** Set while an init container blocks the pod. */
  readonly holding: string | undefined;
  readonly all: Restarts;
  /** Restarts of the sidecars. */
  readonly sidecars: Restarts;
  readonly sidecarsReady: number;
}

function viewInit(pod: KubePod, sidecarNames: ReadonlySet<string>, initCount: number): InitView {
  const all: Restarts = { count: 0, lastMs: undefined };
  const sidecars: Restarts = { count: 0, lastMs: undefined };
  let sidecarsReady = 0;
  for (const [index, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    countRestart(all, status);
    const isSidecar = sidecarNames.has(status.name ?? '');
    if (isSidecar) countRestart(sidecars, status);
    const { terminated, waiting } = status.state ?? {};
    const waitingReason = waiting?.reason ?? '';
    if (terminated !== undefined && (terminated.exitCode ?? 0) === 0) continue;
    if (isSidecar && status.started === true) {
      if (status.ready === true) sidecarsReady += 1;
      continue;
    }
    let holding = `Init:${index}/${initCount}`;
    if (terminated !== undefined) holding = `Init:${endReason(terminated)}`;
    else if (waitingReason !== '' && waitingReason !== 'PodInitializing') holding = `Init:${waitingReason}`;
    return { holding, all, sidecars, sidecarsReady };
  }
  return { holding: undefined, all, sidecars, sidecarsReady };
}

const restartsText = (restarts: Restarts, nowMs: number): string =>
  restarts.count === 0 || restarts.lastMs === undefined
    ? String(restarts.count)
    : `${restarts.count} (${formatAge(nowMs - restarts.lastMs)} ago)`;

export interface PodSummary {
  readonly ready: string;
  readonly status: string;
  readonly restarts: string;
}

export function summarisePod(pod: KubePod, nowMs: number): PodSummary {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  const sidecarNames = new Set(
    initContainers.filter((each) => each.restartPolicy === 'Always').map((each) => each.name ?? ''),
  );
  const { phase = '', reason: statusReason = '', conditions = [], containerStatuses = [] } = pod.status ?? {};
  let status: string = statusReason || phase;
  const gated = conditions.some((each) => each.type === 'PodScheduled' && each.reason === 'SchedulingGated');
  if (gated) status = 'SchedulingGated';

  const init = viewInit(pod, sidecarNames, initContainers.length);
  let ready = init.sidecarsReady;
  let restarts = init.all;
  if (init.holding !== undefined) status = init.holding;
  if (init.holding === undefined || conditionIsTrue(pod, 'Initialized')) {
    restarts = { ...init.sidecars };
    let running = false;
    // From the last to the first: the state of the first container decides.
    for (const each of containerStatuses.toReversed()) {
      countRestart(restarts, each);
      const { waiting, terminated, running: runningState } = each.state ?? {};
      const waitingReason = waiting?.reason ?? '';
      if (waitingReason !== '') status = waitingReason;
      else if (terminated !== undefined) status = endReason(terminated);
      else if (each.ready === true && runningState !== undefined) {
        running = true;
        ready += 1;
      }
    }
    if (status === 'Completed' && running) status = conditionIsTrue(pod, 'Ready') ? 'Running' : 'NotReady';
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (statusReason === 'NodeLost') status = 'Unknown';
    else if (phase !== 'Succeeded' && phase !== 'Failed') status = 'Terminating';
  }
  const total = containers.length + sidecarNames.size;
  return { ready: `${ready}/${total}`, status, restarts: restartsText(restarts, nowMs) };
}

/** How many readiness gates are open, of how many. */
export function readinessGatesCell(pod: KubePod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return NONE;
  const open = gates.filter((gate) => conditionIsTrue(pod, gate.conditionType ?? ''));
  return `${open.length}/${gates.length}`;
}
