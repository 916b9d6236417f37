/**
 * The agent as a whole: checks what must hold before anything is said, then runs all loops side by side until stopped.
 *
 *   swap, topology, node IPs → registration (which enrols) → lease · status · pods · events · shutdown · key
 *
 * The loops know nothing of each other; what one has to tell another goes through here. The lease loop has an API client
 * of its own, so that nothing stands before a beat. Stopping ends the loops at once and leaves pods running: whoever
 * restarts the agent does not want their workloads restarted.
 */
import { recordsOf, textOf } from '../../shared/kube/normal-form.ts';
import type { KubeNode } from '../../shared/kube/types.ts';
import type { Log } from '../../shared/ports/log.ts';
import type { AgentConfig } from '../config.ts';
import type { HealthCheck } from '../ports/health-check.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { Machine } from '../ports/machine.ts';
import type { MachineKeys } from '../ports/machine-keys.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import type { ShutdownSignal } from '../ports/shutdown-signal.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { answeredWith } from '../rules/kube-answer.ts';
import { leaseDurationSeconds, renewIntervalMs } from '../rules/lease.ts';
import { leaseLoopComplaint } from '../rules/lease-liveness.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { parseNodeIpArgument } from '../rules/node-ip.ts';
import { initialNode } from '../rules/node-registration.ts';
import { nodeResources, reservationFault } from '../rules/node-resources.ts';
import { shutdownBuckets } from '../rules/shutdown-settings.ts';
import { NODE_SHUTTING_DOWN } from '../rules/shutdown-status.ts';
import { swapStartFault } from '../rules/swap-detection.ts';
import type { NumaNode } from '../rules/topology/ledger.ts';
import type { Distances } from '../rules/topology/mask.ts';
import { startTopology } from '../rules/topology/options.ts';
import { createEventRecorder } from './events.ts';
import { createKeyRotation } from './key-rotation.ts';
import { createLeaseLoop } from './lease-loop.ts';
import { NodeStatusComputation } from './node-status.ts';
import { createPodLoop } from './pod-loop.ts';
import { createRegistration } from './registration.ts';
import { addressSetter } from './set-addresses.ts';
import { type ShutdownDependencies, shutdownManager } from './shutdown-manager.ts';
import { StatusLoop } from './status-loop.ts';
import { topologyManager } from './topology-admission.ts';

/** How often the runtime is asked whether it can run pods. Milliseconds. */
const RUNTIME_HEALTH_MS = 10_000;

export interface AgentParts {
  readonly config: AgentConfig;
  readonly agentVersion: string;
  /** For heartbeats and node status alone. */
  readonly beatApi: KubeApi;
  readonly api: KubeApi;
  /** Labels the cluster wants the Node registered with; enrols where that is due. Rejects while it cannot. */
  readonly clusterLabels: () => Promise<Readonly<Record<string, string>>>;
  /** Absent where a token was given. */
  readonly keys?: MachineKeys | undefined;
  readonly machine: Machine;
  readonly numa: { readonly nodes: readonly NumaNode[]; readonly distances: Distances | undefined };
  /** Text of /proc/swaps; undefined when there is none. */
  readonly swaps: string | undefined;
  readonly runtime: PodRuntime;
  readonly shutdownSignal: ShutdownSignal;
  readonly shutdownState: ShutdownDependencies['stateFile'];
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter: AgentMeter;
  /** Complaints about the machine that no loop knows of. */
  readonly checks?: readonly HealthCheck[];
  /** Serves the complaints of these checks; its end is the caller's. */
  readonly serveHealth: (checks: readonly HealthCheck[]) => Promise<void>;
}

/** The agent may not run as it is told, on this machine. */
export class AgentStartError extends Error {
  override readonly name = 'AgentStartError';
}

/** Until stopped. @throws AgentStartError before anything was sent. */
export async function runAgent(parts: AgentParts, stop: AbortSignal): Promise<void> {
  const { config, api, machine, runtime, time, fraction, log, meter } = parts;
  const swapFault = swapStartFault(config.failSwapOn, parts.swaps);
  if (swapFault !== undefined) throw new AgentStartError(swapFault);
  const topology = startedTopology(parts);
  const nodeIps = givenNodeIps(parts);
  const facts = await machine.facts();
  const { operatingSystem, architecture } = facts;
  const use = await machine.use().catch((error: unknown) => {
    log.error('the use of the machine could not be read', { error });
    return undefined;
  });
  const { capacity } = nodeResources(undefined, { ...config, machine: facts, rootFsBytes: use?.nodeFs.capacityBytes });
  const pid = use === undefined ? {} : { pid: String(use.pidsMax) };
  const reservation = reservationFault({ ...capacity, ...pid }, config);
  if (reservation !== undefined) throw new AgentStartError(reservation);

  const events = createEventRecorder({ nodeName: config.nodeName, api, time, log, meter });
  const leaseSeconds = leaseDurationSeconds(config.nodeLeaseDurationSeconds);
  const timeoutMs = Math.min(config.nodeStatusUpdateFrequencyMs, leaseSeconds * 1_000);
  let triedAtMs = time.monotonicMs();
  const beatApi: KubeApi = {
    async send(request) {
      const signedBy = parts.keys?.signingKeyId();
      const answer = await parts.beatApi.send(request);
      triedAtMs = time.monotonicMs();
      if (request.method === 'PUT') {
        // A key that signs before and after signed what was sent between.
        const certain = answeredWith(answer, 200) && parts.keys?.signingKeyId() === signedBy;
        keyRotation?.beatAnswered(certain ? signedBy : undefined);
      }
      return answer;
    },
    reconnect: () => parts.beatApi.reconnect(),
  };
  const keyRotation =
    parts.keys === undefined
      ? undefined
      : createKeyRotation(config, { keys: parts.keys, api, time, fraction, log, meter });

  let runtimeComplaint: string | undefined = 'the container runtime has not been asked yet';
  let stateComplaint: string | undefined;
  const askRuntime = async (): Promise<void> => {
    const health = await runtime
      .health()
      .catch((cause: unknown) => ({ kind: 'notReady' as const, reason: String(cause) }));
    runtimeComplaint = health.kind === 'ready' ? undefined : health.reason;
    const complaint = runtime.complaint?.();
    if (complaint === stateComplaint) return;
    stateComplaint = complaint;
    events.aboutNode(
      complaint === undefined
        ? { type: 'Normal', reason: 'StateWritten', message: 'The state of pods is written to the disk again' }
        : { type: 'Warning', reason: 'StateNotWritten', message: complaint },
    );
  };

  const computation = new NodeStatusComputation({
    settings: config,
    machine,
    nowMs: () => time.nowMs(),
    monotonicMs: () => time.monotonicMs(),
    log,
    agentVersion: parts.agentVersion,
    setAddresses: addressSetter(machine, config, nodeIps),
    readyErrors: () => ({
      runtime: runtimeComplaint,
      shutdown: shutdown.shuttingDown() ? NODE_SHUTTING_DOWN : undefined,
    }),
    readyWarning: () => stateComplaint,
    runtimeVersion: () => (runtimeComplaint === undefined ? runtime.version : undefined),
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
    isBlocked: () => runtimeComplaint !== undefined || shutdown.shuttingDown(),
  });
  const leaseLoop = createLeaseLoop(config, {
    api: beatApi,
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
  const shutdown = shutdownManager({
    buckets: shutdownBuckets(config),
    shutdownSignal: parts.shutdownSignal,
    time,
    log,
    meter,
    activePods: podLoop.activePods,
    killPod: podLoop.killPod,
    recordEvent: events.aboutNode,
    reportStatus: async () => {
      await statusLoop.pass(stop);
    },
    drainEvents: events.drain,
    stateFile: parts.shutdownState,
  });

  leaseLoop.onPodsChange(podLoop.podsChanged);
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

  await askRuntime();
  await parts.serveHealth([
    { name: 'ping', complaint: () => undefined },
    { name: 'runtime', complaint: () => runtime.complaint?.() },
    ...(parts.checks ?? []),
    {
      name: 'lease',
      complaint: () => leaseLoopComplaint(triedAtMs, time.monotonicMs(), renewIntervalMs(leaseSeconds)),
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
    everyWhile(stop, time, askRuntime),
  ]);
}

async function everyWhile(stop: AbortSignal, time: AgentTime, act: () => Promise<void>): Promise<void> {
  while (!stop.aborted) {
    await time.sleep(RUNTIME_HEALTH_MS, stop);
    if (!stop.aborted) await act();
  }
}

function startedTopology({ config, numa, meter, time, log }: AgentParts) {
  const started = startTopology({
    policy: config.topologyManagerPolicy,
    scope: config.topologyManagerScope,
    options: config.topologyManagerPolicyOptions,
    nodeIds: numa.nodes.map(({ id }) => id),
    distances: numa.distances,
  });
  if (started.kind === 'refused') throw new AgentStartError(started.message);
  for (const warning of started.kind === 'on' ? started.warnings : []) log.warn(warning);
  const settings = started.kind === 'on' ? started.settings : undefined;
  return topologyManager({ settings, nodes: numa.nodes, meter, time });
}

function givenNodeIps({ config, log }: AgentParts) {
  const parsed = parseNodeIpArgument(config.nodeIp, true);
  if (parsed.kind === 'refused') throw new AgentStartError(`nodeIp ${config.nodeIp}: ${parsed.message}`);
  if (parsed.ignored.length > 0) log.warn('parts of the node IP are no addresses', { ignored: parsed.ignored });
  return parsed.addresses;
}

const internalAddressOf = (node: KubeNode | undefined): string | undefined =>
  recordsOf(node?.status?.addresses)
    .filter(({ type }) => type === 'InternalIP')
    .map(({ address }) => textOf(address))[0];
