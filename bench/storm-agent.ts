/**
 * One machine on virtual time: the agent's own loops for lease, registration and status, over an API that the benchmark
 * provides.
 */
import { createLeaseLoop } from '../agent/app/lease-loop.ts';
import { createRegistration } from '../agent/app/registration.ts';
import type { SilenceReport } from '../agent/app/silence-report.ts';
import { StatusLoop } from '../agent/app/status-loop.ts';
import type { KubeApi } from '../agent/ports/kube-api.ts';
import type { AgentTime, Fraction } from '../agent/ports/time.ts';
import type { KubeNode, NodeCondition } from '../shared/kinds/types.ts';
import { formatTime } from '../shared/kubernetes/time.ts';
import { silentLog } from '../test/support/agent-api.ts';

const LEASE_SECONDS = 40;
/** The agent's own defaults. */
const STATUS_UPDATE_MS = 10_000;
const STATUS_REPORT_MS = 300_000;

export interface StormAgent {
  /** Power cut: nothing more is sent. */
  stop(): void;
  /** When its first beat at this moment or later was acknowledged; Infinity when none was yet. Epoch milliseconds. */
  firstBeatSince(atMs: number): number;
}

const nobody = (): void => {};

/** Starts beating at once, as a process does that was just started. */
export function startAgent(options: {
  readonly nodeName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  /** What it reports about others of its site. Absent: nothing. */
  readonly silence?: SilenceReport;
}): StormAgent {
  const { nodeName, labels, api, time, fraction, silence } = options;
  const stopping = new AbortController();
  const stop = stopping.signal;
  const timeoutMs = STATUS_UPDATE_MS;
  const settings = {
    nodeName,
    registerNode: true,
    nodeLeaseDurationSeconds: LEASE_SECONDS,
    nodeStatusUpdateFrequencyMs: STATUS_UPDATE_MS,
    nodeStatusReportFrequencyMs: STATUS_REPORT_MS,
  };
  const withStatus = (node: KubeNode): KubeNode => ({
    ...node,
    status: { ...node.status, conditions: conditionsAt(time.nowMs(), node.status?.conditions) },
  });
  const registration = createRegistration(settings, {
    api,
    time,
    fraction,
    log: silentLog,
    stop,
    timeoutMs,
    buildNode: async () =>
      withStatus({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: {
          name: nodeName,
          labels: { 'kubernetes.io/hostname': nodeName, 'kubernetes.io/os': 'linux', ...labels },
        },
        status: { capacity: { cpu: '4', memory: '8Gi', pods: '110' }, addresses: [] },
      }),
  });
  const statusLoop = new StatusLoop({
    settings,
    api,
    time,
    fraction,
    log: silentLog,
    registration,
    compute: async (node) => ({ node: withStatus(node), events: [] }),
    recordEvent: nobody,
    onRepeatedFailure: nobody,
  });
  const leaseLoop = createLeaseLoop(settings, {
    api,
    time,
    fraction,
    log: silentLog,
    stop,
    timeoutMs,
    registerAgain: () => registration.again(),
    silence,
  });
  const beatsAtMs: number[] = [];
  leaseLoop.onBeat((atMs, silentMs) => {
    beatsAtMs.push(atMs);
    // As the agent does: it may have been marked meanwhile.
    if (silentMs >= LEASE_SECONDS * 1_000) statusLoop.invalidate();
  });
  void leaseLoop.run();
  void silence?.run(() => leaseLoop.beatNow(), stop);
  void registration.ensure().then(() => statusLoop.run(stop));
  return {
    stop: () => stopping.abort(),
    firstBeatSince: (atMs) => beatsAtMs.find((beatAtMs) => beatAtMs >= atMs) ?? Number.POSITIVE_INFINITY,
  };
}

const OWN_CONDITIONS = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'] as const;

/** Conditions of others, such as Flapping, stay. */
function conditionsAt(nowMs: number, found: readonly NodeCondition[] | undefined): NodeCondition[] {
  const now = formatTime(nowMs);
  const own = OWN_CONDITIONS.map((type): NodeCondition => {
    const status = type === 'Ready' ? 'True' : 'False';
    const before = found?.find((condition) => condition.type === type);
    return {
      type,
      status,
      reason: 'KubeletSaysSo',
      message: 'as the machine says',
      lastHeartbeatTime: now,
      lastTransitionTime: before?.status === status ? (before.lastTransitionTime ?? now) : now,
    };
  });
  return [...own, ...(found ?? []).filter(({ type }) => !OWN_CONDITIONS.some((each) => each === type))];
}
