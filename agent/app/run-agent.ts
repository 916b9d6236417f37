/**
 * The agent as a whole: start checks, then all loops side by side until stopped.
 *
 *   start checks → registration (which enrols) → lease · status · pods · events · shutdown · key
 *
 * The loops do not know each other; this file connects them. The lease loop has an API client of its own, so no other
 * request delays a heartbeat. Stopping ends the loops at once and leaves pods running: a restart of the agent must not
 * restart the workloads.
 */
import { recordsOf, textOf } from '../../shared/kube/normal-form.ts';
import type { KubeNode } from '../../shared/kube/types.ts';
import type { HealthCheck } from '../ports/health-check.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { MachineKeys } from '../ports/machine-keys.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import type { ShutdownSignal } from '../ports/shutdown-signal.ts';
import type { Fraction } from '../ports/time.ts';
import { answeredWith } from '../rules/kube-answer.ts';
import { leaseDurationSeconds, renewIntervalMs } from '../rules/lease.ts';
import { leaseLoopComplaint } from '../rules/lease-liveness.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { initialNode } from '../rules/node-registration.ts';
import { shutdownBuckets } from '../rules/shutdown-settings.ts';
import { NODE_SHUTTING_DOWN } from '../rules/shutdown-status.ts';
import { createEventRecorder } from './events.ts';
import { createKeyRotation } from './key-rotation.ts';
import { createLeaseLoop } from './lease-loop.ts';
import { NodeStatusComputation } from './node-status.ts';
import { createPodLoop } from './pod-loop.ts';
import { createRegistration } from './registration.ts';
import { RuntimeHealth } from './runtime-health.ts';
import { addressSetter } from './set-addresses.ts';
import { GracefulShutdown, type ShutdownDependencies } from './shutdown/graceful-shutdown.ts';
import { checkStart, type StartParts } from './start-checks.ts';
import { StatusLoop } from './status-loop.ts';

export interface AgentParts extends StartParts {
  readonly agentVersion: string;
  /** For heartbeats and node status alone. */
  readonly beatApi: KubeApi;
  readonly api: KubeApi;
  /** Labels the cluster wants the Node registered with; enrols where that is due. Rejects while it cannot. */
  readonly clusterLabels: () => Promise<Readonly<Record<string, string>>>;
  /** Absent where a token was given. */
  readonly keys?: MachineKeys | undefined;
  readonly runtime: PodRuntime;
  readonly shutdownSignal: ShutdownSignal;
  readonly shutdownState: ShutdownDependencies['stateFile'];
  readonly fraction: Fraction;
  /** Complaints about the machine that no loop knows of. */
  readonly checks?: readonly HealthCheck[];
  /** Serves the complaints of these checks; its end is the caller's. */
  readonly serveHealth: (checks: readonly HealthCheck[]) => Promise<void>;
}

/** Until stopped. @throws AgentStartError before anything was sent. */
export async function runAgent(parts: AgentParts, stop: AbortSignal): Promise<void> {
  const { config, api, machine, runtime, time, fraction, log, meter } = parts;
  const { topology, nodeIps, operatingSystem, architecture } = await checkStart(parts);
  const events = createEventRecorder({ nodeName: config.nodeName, api, time, log, meter });
  const leaseSeconds = leaseDurationSeconds(config.nodeLeaseDurationSeconds);
  const timeoutMs = Math.min(config.nodeStatusUpdateFrequencyMs, leaseSeconds * 1_000);
  const beats = observedBeats(parts, (keyId) => keyRotation?.beatAnswered(keyId));
  const keyRotation =
    parts.keys === undefined
      ? undefined
      : createKeyRotation(config, { keys: parts.keys, api, time, fraction, log, meter });

  const runtimeHealth = new RuntimeHealth({ runtime, time, recordEvent: events.aboutNode });
  const computation = new NodeStatusComputation({
    settings: config,
    machine,
    nowMs: () => time.nowMs(),
    monotonicMs: () => time.monotonicMs(),
    log,
    agentVersion: parts.agentVersion,
    setAddresses: addressSetter(machine, config, nodeIps),
    readyErrors: () => ({
      runtime: runtimeHealth.notReady(),
      shutdown: shutdown.shuttingDown() ? NODE_SHUTTING_DOWN : undefined,
    }),
    readyWarning: () => runtimeHealth.stateComplaint(),
    runtimeVersion: () => (runtimeHealth.notReady() === undefined ? runtime.version : undefined),
    volumesInUse: () => [],
  });
  let firstEvents: readonly NodeEvent[] = [];
  const buildNode = async (): Promise<KubeNode> => {
    const nodeLabels = { ...(await parts.clusterLabels()), ...config.nodeLabels };
    const initial = initialNode(
      { ...config, nodeLabels },
      { hostname: config.nodeName, operatingSystem, architecture },
    );
    const computed = await computation.compute(initial);
    firstEvents = computed.events;
    return computed.node;
  };
  const registration = createRegistration(config, {
    api: parts.beatApi,
    time,
    fraction,
    log,
    buildNode,
    stop,
    timeoutMs,
  });
  const statusLoop = new StatusLoop({
    settings: config,
    api: parts.beatApi,
    time,
    fraction,
    log,
    meter,
    compute: (node) => computation.compute(node),
    registration,
    recordEvent: events.aboutNode,
    onRepeatedFailure: () => parts.beatApi.reconnect(),
    isBlocked: () => runtimeHealth.notReady() !== undefined || shutdown.shuttingDown(),
  });
  const leaseLoop = createLeaseLoop(config, {
    api: beats.api,
    time,
    fraction,
    log,
    stop,
    timeoutMs,
    registerAgain: () => registration.again(),
  });
  const podLoop = createPodLoop({
    nodeName: config.nodeName,
    api,
    runtime,
    time,
    fraction,
    log,
    meter,
    operatingSystem,
    hostIp: () => internalAddressOf(statusLoop.node()),
    recordEvent: events.aboutPod,
    gate: () => shutdown.admit(),
    topology,
  });
  const shutdown = new GracefulShutdown({
    buckets: shutdownBuckets(config),
    shutdownSignal: parts.shutdownSignal,
    time,
    log,
    meter,
    activePods: () => podLoop.activePods(),
    killPod: (...args) => podLoop.killPod(...args),
    recordEvent: events.aboutNode,
    reportStatus: async () => {
      await statusLoop.pass(stop);
    },
    drainEvents: events.drain,
    stateFile: parts.shutdownState,
  });

  leaseLoop.onPodsChange(() => podLoop.podsChanged());
  leaseLoop.onBeat((atMs, silentMs) => {
    meter.count('nodekeeper_agent_lease_renewals_total');
    meter.gauge('nodekeeper_agent_lease_renewed_time_seconds', Math.floor(atMs / 1_000));
    // After such a silence the node may have been marked, and its pods with it.
    if (silentMs < leaseSeconds * 1_000) return;
    statusLoop.invalidate();
    podLoop.podsChanged();
  });
  registration.onRegistered(() => {
    // As a kubelet, which records them at each start, whether or not the Node was there before.
    for (const event of firstEvents) events.aboutNode(event);
    firstEvents = [];
    podLoop.podsChanged();
  });
  meter.gauge('kubelet_node_name', 1, { node: config.nodeName });

  await runtimeHealth.ask();
  await parts.serveHealth([
    { name: 'ping', complaint: () => undefined },
    { name: 'runtime', complaint: () => runtime.complaint?.() },
    ...(parts.checks ?? []),
    {
      name: 'lease',
      complaint: () => leaseLoopComplaint(beats.answeredAtMs(), time.monotonicMs(), renewIntervalMs(leaseSeconds)),
    },
  ]);
  events.aboutNode({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' });

  // The Node first: what the other loops say is about it. The lease loop waits for nobody.
  const registered = registration.ensure();
  await Promise.all([
    leaseLoop.run(),
    registered.then(() => statusLoop.run(stop)),
    registered.then(() => podLoop.run(stop)),
    registered.then(() => events.run(stop)),
    shutdown.run(stop),
    registered.then(() => keyRotation?.run(stop)),
    runtimeHealth.run(stop),
  ]);
}

/** The API for heartbeats. It notes when an answer came, and reports which key signed an accepted heartbeat. */
function observedBeats(
  { beatApi, keys, time }: AgentParts,
  onAnswer: (acceptedKeyId: string | undefined) => void,
): { readonly api: KubeApi; readonly answeredAtMs: () => number } {
  let answeredAtMs = time.monotonicMs();
  const api: KubeApi = {
    async send(request) {
      const signedBy = keys?.signingKeyId();
      const answer = await beatApi.send(request);
      answeredAtMs = time.monotonicMs();
      if (request.method === 'PUT') {
        // A key that signs before and after the request also signed the request.
        const isCertain = answeredWith(answer, 200) && keys?.signingKeyId() === signedBy;
        onAnswer(isCertain ? signedBy : undefined);
      }
      return answer;
    },
    reconnect: () => beatApi.reconnect(),
  };
  return { api, answeredAtMs: () => answeredAtMs };
}

const internalAddressOf = (node: KubeNode | undefined): string | undefined =>
  recordsOf(node?.status?.addresses)
    .filter(({ type }) => type === 'InternalIP')
    .map(({ address }) => textOf(address))[0];
