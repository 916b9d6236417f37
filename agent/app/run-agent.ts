/**
 * The agent as a whole: start checks, then all loops concurrently until stopped.
 *
 *   start checks → registration (which enrols) → lease · status · pods · events · shutdown · key
 *
 * The loops do not import each other; this file connects them. The lease loop has its own API client, so no other
 * request delays a heartbeat. When the agent stops, the loops stop at once and the pods keep running: a restart of the
 * agent must not restart the workloads.
 */

import { defined } from '../../shared/defined.ts';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { ClaimDirectories } from '../ports/claim-directories.ts';
import type { HealthCheck } from '../ports/health-check.ts';
import type { HeartbeatFile } from '../ports/heartbeat-file.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { MachineKeys } from '../ports/machine-keys.ts';
import type { PermitFile } from '../ports/permit-file.ts';
import type { ConnectPort } from '../ports/pod-port.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import type { PodVolumes } from '../ports/pod-volumes.ts';
import type { ProbeClient } from '../ports/probe-client.ts';
import type { SessionApi } from '../ports/session-api.ts';
import type { ShutdownSignal } from '../ports/shutdown-signal.ts';
import type { Fraction } from '../ports/time.ts';
import { answeredWith } from '../rules/kube-answer.ts';
import { leaseDurationSeconds, renewIntervalMs } from '../rules/lease.ts';
import { isMissedBeat } from '../rules/lease-answers.ts';
import { leaseLoopComplaint } from '../rules/lease-liveness.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import { initialNode } from '../rules/node-registration.ts';
import { offlineRunMs } from '../rules/offline-stop.ts';
import { apiServiceVariables } from '../rules/service-variables.ts';
import { podResolver, resolverText } from '../rules/services/pod-resolver.ts';
import { shutdownBuckets } from '../rules/shutdown-settings.ts';
import { NODE_SHUTTING_DOWN } from '../rules/shutdown-status.ts';
import { AnsweredHeartbeats } from './answered-heartbeats.ts';
import { createEventRecorder, type EventRecorder } from './events.ts';
import { Eviction } from './eviction.ts';
import { keepServed } from './keep-served.ts';
import { createKeyRotation, type KeyRotation } from './key-rotation.ts';
import { createLeaseLoop, type LeaseLoop } from './lease-loop.ts';
import { LogSender } from './log-sender.ts';
import { NodePressure } from './node-pressure.ts';
import { NodeStatusComputation } from './node-status.ts';
import { createPodLoop, type PodLoop } from './pod-loop.ts';
import { PodInputs, type PodInputsDependencies } from './pods/pod-inputs.ts';
import type { PodMemory, Remembered } from './pods/pod-memory.ts';
import { PodProbes } from './pods/pod-probes.ts';
import { VolumeLimits } from './pods/volume-limits.ts';
import { createRegistration, type Registration } from './registration.ts';
import { RuntimeHealth } from './runtime-health.ts';
import { readServiceObjects } from './services/read-service-objects.ts';
import type { ServiceParts } from './services/service-parts.ts';
import { ServiceRules, type ServiceRulesDependencies } from './services/service-rules.ts';
import { SessionLine } from './sessions/session-line.ts';
import { addressSetter } from './set-addresses.ts';
import { GracefulShutdown, type ShutdownDependencies } from './shutdown/graceful-shutdown.ts';
import { ShutdownPhase } from './shutdown/shutdown-phase.ts';
import type { SilenceReport } from './silence-report.ts';
import { SiteMember, type SiteMemberDependencies } from './site-member.ts';
import { SitePermits } from './site-permits.ts';
import { SiteStatuses } from './site-statuses.ts';
import { type SleepSignal, SleepWatch } from './sleep-watch.ts';
import { checkStart, type StartParts } from './start-checks.ts';
import { StatusLoop } from './status-loop.ts';
import { SelfUpdate, type SelfUpdateDependencies } from './updates/self-update.ts';
import { VolumeMaker } from './volumes/volume-maker.ts';

const DNS_PORT = 53;

export interface AgentParts extends StartParts {
  readonly agentVersion: string;
  /** For heartbeats and node status alone. */
  readonly beatApi: KubeApi;
  readonly api: KubeApi;
  /** Absent: there is no exec, attach and port-forward. */
  readonly sessions?: { readonly sessionApi: SessionApi; readonly connectPort: ConnectPort };
  /** Labels of the node identity, for the registration. Enrols first if necessary, and rejects if that fails. */
  readonly clusterLabels: () => Promise<Readonly<Record<string, string>>>;
  /** Absent with a configured token. */
  readonly keys?: MachineKeys | undefined;
  readonly runtime: PodRuntime;
  readonly volumes: PodVolumes;
  /** Absent: this machine makes no volumes for claims. */
  readonly claimDirectories?: ClaimDirectories | undefined;
  /** Absent: Services are not routed on this machine. */
  readonly services?: ServiceParts | undefined;
  /** Reads the static pods of this machine. Absent: it has none. */
  readonly staticPods?: (() => readonly KubePod[]) | undefined;
  /** Absent: no pod of before runs without the API. */
  readonly memory?: PodMemory | undefined;
  /** Keeps the last answered heartbeat. */
  readonly heartbeatFile: HeartbeatFile;
  readonly permitFile: PermitFile;
  readonly probeClient: ProbeClient;
  readonly shutdownSignal: ShutdownSignal;
  /** Absent: suspends are not announced. */
  readonly sleepSignal?: SleepSignal | undefined;
  readonly shutdownState: ShutdownDependencies['stateFile'];
  readonly fraction: Fraction;
  /** Absent: the agent does not update itself. */
  readonly updates?: UpdateParts | undefined;
  /** What is reported about other machines of the site. Absent: nothing. */
  readonly silence?: SilenceReport | undefined;
  /** Absent: this machine is not watched by a relay of its site. */
  readonly site?: SiteParts | undefined;
  /** A client of the hub of the site. Absent: statuses are sent to the cluster alone. */
  readonly hub?: KubeApi | undefined;
  /** By gzip. */
  readonly compress: (bytes: Uint8Array) => Uint8Array;
  /** Further health checks of the machine. */
  readonly checks?: readonly HealthCheck[];
  /** Serves these checks, or tries to. The caller stops the server. */
  readonly serveHealth: (checks: readonly HealthCheck[]) => Promise<void>;
}

/** What updates need. */
export type UpdateParts = Pick<SelfUpdateDependencies, 'version' | 'versions' | 'source' | 'restart'>;

/** What the connection to the relay of the site needs. */
export type SiteParts = Pick<SiteMemberDependencies, 'join' | 'probe' | 'report' | 'witnessPort'>;

/** Runs until stopped. @throws AgentStartError before anything was sent */
export async function runAgent(parts: AgentParts, stop: AbortSignal): Promise<void> {
  const started = await checkStart(parts);
  const remembered = await parts.memory?.read();
  const heartbeats = new AnsweredHeartbeats({ ...parts, file: parts.heartbeatFile });
  await heartbeats.read();
  const permits = parts.hub && new SitePermits({ ...parts, hub: parts.hub, file: parts.permitFile });
  await permits?.read();
  const loops = createLoops(parts, started, { remembered, heartbeats, permits }, stop);
  connectLoops(parts, loops);
  placeContainers(parts, started);
  parts.meter.gauge('kubelet_node_name', 1, { node: parts.config.nodeName });
  await loops.runtimeHealth.poll();
  await parts.serveHealth(healthChecks(parts, loops));
  loops.events.aboutNode({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' });
  // Pods that are known start without the API.
  const hasKnownPods =
    parts.staticPods !== undefined || (remembered?.pods.length ?? 0) > 0 || (await mayHaveToStop(parts.runtime));
  await Promise.all([
    runLoops(loops, hasKnownPods, stop),
    runNames(parts, loops, stop),
    parts.silence?.run(() => loops.leaseLoop.beatNow(), stop),
  ]);
}

/** Whether a pod runs that may have to stop without the API. If that is unknown, it may. */
async function mayHaveToStop(runtime: PodRuntime): Promise<boolean> {
  const pods = await runtime.pods().catch(() => undefined);
  return pods?.some(({ pod }) => pod !== undefined && offlineRunMs(pod) !== undefined) ?? true;
}

/** Results of the start checks. */
type Started = Awaited<ReturnType<typeof checkStart>>;

interface Loops {
  readonly events: EventRecorder;
  readonly beats: ObservedBeats;
  readonly leaseLoop: LeaseLoop;
  readonly keyRotation: KeyRotation | undefined;
  readonly runtimeHealth: RuntimeHealth;
  readonly nodeBuilder: NodeBuilder;
  readonly registration: Registration;
  readonly statusLoop: StatusLoop;
  readonly podInputs: PodInputs;
  readonly volumeLimits: VolumeLimits;
  readonly podLoop: PodLoop;
  readonly logSender: LogSender;
  readonly volumeMaker: VolumeMaker | undefined;
  readonly sessionLine: SessionLine | undefined;
  readonly serviceRules: ServiceRules | undefined;
  readonly shutdown: GracefulShutdown;
  readonly sleepWatch: SleepWatch | undefined;
  readonly siteMember: SiteMember | undefined;
  readonly siteStatuses: SiteStatuses | undefined;
  readonly permits: SitePermits | undefined;
  readonly eviction: Eviction;
  readonly selfUpdate: SelfUpdate | undefined;
}

function createLoops(
  parts: AgentParts,
  started: Started,
  {
    remembered,
    heartbeats,
    permits,
  }: { remembered: Remembered | undefined; heartbeats: AnsweredHeartbeats; permits: SitePermits | undefined },
  stop: AbortSignal,
): Loops {
  const { config, api, beatApi, memory, runtime, time, fraction, log, meter } = parts;
  const { nodeName } = config;
  const siteStatuses = parts.hub && new SiteStatuses({ hub: parts.hub, nodeName, time, log, stop });
  const keys = parts.keys && keysWithMemory(parts.keys, memory);
  const common = { time, fraction, log, meter, stop };
  const timeoutMs = Math.min(config.nodeStatusUpdateFrequencyMs, leaseSecondsOf(parts) * 1_000);
  const phase = new ShutdownPhase();
  const events = createEventRecorder({ ...common, nodeName, api });
  const keyRotation = keys === undefined ? undefined : createKeyRotation(config, { ...common, keys, api });
  const selfUpdate =
    parts.updates === undefined
      ? undefined
      : new SelfUpdate({
          ...common,
          ...parts.updates,
          nodeName,
          architecture: started.architecture,
          periodMs: config.updateCheckPeriodMs,
          api,
          isShuttingDown: () => phase.isShuttingDown,
          recordEvent: events.aboutNode,
        });
  const beats = observedBeats(parts, {
    onAnswer: (keyId) => keyRotation?.beatAnswered(keyId),
    onMissed: () => {
      if (!stop.aborted) selfUpdate?.missed();
    },
  });
  const runtimeHealth = new RuntimeHealth({ runtime, time, recordEvent: events.aboutNode });
  const pressure = new NodePressure(config, () => runtime.podsMemory?.());
  const serviceRules = rulesOfServices(parts, {
    node: () => statusLoop.node(),
    recordEvent: events.aboutNode,
  });
  const computation = statusComputation(parts, started, {
    runtimeHealth,
    pressure,
    phase,
    serviceComplaint: () => serviceRules?.complaint(),
    permits,
  });
  const nodeBuilder = new NodeBuilder(parts, started, computation);
  const registration = createRegistration(config, {
    ...common,
    api: beatApi,
    timeoutMs,
    buildNode: () => nodeBuilder.build(),
  });
  const statusLoop = new StatusLoop({
    ...common,
    settings: config,
    api: beatApi,
    registration,
    compute: (node) => computation.compute(node),
    recordEvent: events.aboutNode,
    onRepeatedFailure: () => beatApi.reconnect(),
    siteStatuses,
    isBlocked: () => runtimeHealth.notReady() !== undefined || phase.isShuttingDown,
  });
  const leaseLoop = createLeaseLoop(config, {
    ...common,
    api: beats.api,
    timeoutMs,
    registerAgain: () => registration.again(),
    usage: () => computation.usage(),
    silence: parts.silence,
  });
  const hostIp = () => internalAddressOf(statusLoop.node()) ?? remembered?.hostIp;
  const allocatable = () => statusLoop.node()?.status?.allocatable ?? remembered?.allocatable;
  const podInputs = new PodInputs({
    ...common,
    api,
    volumes: parts.volumes,
    hostIp,
    allocatable,
    recordEvent: events.aboutPod,
    services: apiServiceVariables(config.endpoint),
    resolverOf: resolverOf(parts),
    remembered,
  });
  const probes = new PodProbes({
    ...common,
    runtime,
    probeClient: parts.probeClient,
    hostIp,
    recordEvent: events.aboutPod,
  });
  const podLoop = createPodLoop({
    ...common,
    nodeName,
    api: siteStatuses?.watching(api) ?? api,
    permits,
    runtime,
    probes,
    heartbeats,
    staticPods: parts.staticPods,
    memory: memory && {
      remembered: remembered?.pods ?? [],
      save(pods) {
        const machine = defined({ hostIp: hostIp(), allocatable: allocatable() });
        return memory.save({ pods, ...podInputs.inUse(pods), ...machine });
      },
    },
    nodeUid: () => statusLoop.node()?.metadata.uid,
    inputs: podInputs,
    operatingSystem: started.operatingSystem,
    topology: started.topology,
    maySwap: config.swapBehavior === 'LimitedSwap',
    hostIp,
    recordEvent: events.aboutPod,
    gate: (pod) => {
      const admission = phase.admit();
      return admission.kind === 'refused' ? admission : pressure.admit(pod, time.monotonicMs());
    },
  });
  const volumeLimits = new VolumeLimits({
    ...common,
    inputs: podInputs,
    activePods: () => podLoop.activePods(),
    killPod: (...args) => podLoop.killPod(...args),
    recordEvent: events.aboutPod,
  });
  const { claimDirectories: directories } = parts;
  const volumeMaker =
    directories && new VolumeMaker({ ...common, nodeName, api, directories, recordEvent: events.about });
  const logSender = new LogSender({ ...common, nodeName, api, runtime, compress: parts.compress });
  const sessionLine = parts.sessions && new SessionLine({ ...common, ...parts.sessions, nodeName, runtime });
  const shutdown = new GracefulShutdown({
    ...common,
    buckets: shutdownBuckets(config),
    shutdownSignal: parts.shutdownSignal,
    stateFile: parts.shutdownState,
    phase,
    activePods: () => podLoop.unfinishedPods(),
    killPod: (...args) => podLoop.killPod(...args),
    recordEvent: events.aboutNode,
    reportStatus: async () => {
      await statusLoop.pass(stop);
    },
    drainEvents: events.drain,
  });
  const eviction = new Eviction({
    ...common,
    pressure,
    maxPodGracePeriodSeconds: config.evictionMaxPodGracePeriodSeconds,
    machine: parts.machine,
    runtime,
    activePods: () => podLoop.activePods(),
    killPod: (...args) => podLoop.killPod(...args),
    recordNodeEvent: events.aboutNode,
    recordPodEvent: events.aboutPod,
  });
  const siteMember =
    parts.site && new SiteMember({ ...common, ...parts.site, nodeName, isShuttingDown: () => phase.isShuttingDown });
  const sleepWatch =
    parts.sleepSignal === undefined
      ? undefined
      : new SleepWatch({
          ...common,
          ...config,
          api: beatApi,
          sleepSignal: parts.sleepSignal,
          // The cluster decides by its own clock whether the promise holds.
          time: { nowMs: () => parts.keys?.serverNowMs() ?? time.nowMs(), sleep: (...args) => time.sleep(...args) },
          onSuspend: (seconds) => siteMember?.leave(seconds),
          onResume() {
            siteMember?.rejoin();
            // Connections from before the suspend may be dead, and the controller may have marked the node and its
            // pods.
            beatApi.reconnect();
            leaseLoop.beatNow();
            statusLoop.invalidate();
            podLoop.podsChanged();
          },
        });
  return {
    events,
    beats,
    leaseLoop,
    keyRotation,
    runtimeHealth,
    nodeBuilder,
    registration,
    statusLoop,
    podInputs,
    volumeLimits,
    podLoop,
    logSender,
    volumeMaker,
    sessionLine,
    serviceRules,
    shutdown,
    sleepWatch,
    siteMember,
    siteStatuses,
    permits,
    eviction,
    selfUpdate,
  };
}

function rulesOfServices(
  { config, services, api, time, fraction, log, meter }: AgentParts,
  others: Pick<ServiceRulesDependencies, 'node' | 'recordEvent'>,
): ServiceRules | undefined {
  if (services === undefined || config.services === undefined) return undefined;
  const { endpoints, clusterDomain: domain } = config.services;
  return new ServiceRules({
    ...others,
    ...services,
    nodeName: config.nodeName,
    endpoints,
    domain,
    read: (known, stop) => readServiceObjects(api, known, stop),
    time,
    fraction,
    log,
    meter,
  });
}

/** The resolv.conf of a pod that uses names of the cluster; undefined: it has that of the runtime. */
function resolverOf({ config, services }: AgentParts): PodInputsDependencies['resolverOf'] {
  if (services === undefined || config.services === undefined) return undefined;
  const { dnsAddress: address, clusterDomain: domain } = config.services;
  return (pod) => {
    const resolver = podResolver(pod, { address, domain }, services.machineResolver());
    return resolver && resolverText(resolver);
  };
}

const leaseSecondsOf = ({ config }: AgentParts): number => leaseDurationSeconds(config.nodeLeaseDurationSeconds);

function statusComputation(
  parts: AgentParts,
  { nodeIps }: Started,
  {
    runtimeHealth,
    pressure,
    phase,
    serviceComplaint,
    permits,
  }: {
    readonly permits: SitePermits | undefined;
    readonly runtimeHealth: RuntimeHealth;
    readonly pressure: NodePressure;
    readonly phase: ShutdownPhase;
    readonly serviceComplaint: () => string | undefined;
  },
): NodeStatusComputation {
  const { config, machine, runtime, time, log, agentVersion } = parts;
  return new NodeStatusComputation({
    settings: config,
    machine,
    pressure,
    nowMs: () => time.nowMs(),
    monotonicMs: () => time.monotonicMs(),
    log,
    agentVersion,
    setAddresses: addressSetter(machine, config, nodeIps),
    readyErrors: () => ({
      runtime: runtimeHealth.notReady(),
      shutdown: phase.isShuttingDown ? NODE_SHUTTING_DOWN : undefined,
    }),
    readyWarning: () =>
      warningOf([
        runtimeHealth.stateComplaint(),
        runtime.limitWarning?.(),
        parts.memory?.complaint(),
        serviceComplaint(),
      ]),
    runtimeVersion: () => (runtimeHealth.notReady() === undefined ? runtime.version : undefined),
    volumesInUse: () => [],
    declaredFeatures: runtime.declaredFeatures ?? [],
    updatingVersion: parts.updates?.version,
    routesServices: config.services !== undefined,
    siteHub: permits && (() => permits.hubName()),
  });
}

const warningOf = (texts: readonly (string | undefined)[]): string | undefined =>
  texts.filter((text) => text !== undefined).join('; ') || undefined;

/** Builds the Node for the registration, and keeps the events of its computation until the Node is registered. */
class NodeBuilder {
  readonly #parts: AgentParts;
  readonly #started: Started;
  readonly #computation: NodeStatusComputation;
  #events: readonly NodeEvent[] = [];

  constructor(parts: AgentParts, started: Started, computation: NodeStatusComputation) {
    this.#parts = parts;
    this.#started = started;
    this.#computation = computation;
  }

  async build(): Promise<KubeNode> {
    const { config, clusterLabels } = this.#parts;
    const { operatingSystem, architecture, osLabels } = this.#started;
    const nodeLabels = { ...(await clusterLabels()), ...config.nodeLabels };
    const platform = { hostname: config.nodeName, operatingSystem, architecture, others: osLabels };
    const { node, events } = await this.#computation.compute(initialNode({ ...config, nodeLabels }, platform));
    this.#events = events;
    return node;
  }

  /** Events of the last build. Each is returned once. */
  takeEvents(): readonly NodeEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}

function connectLoops(parts: AgentParts, loops: Loops): void {
  const { meter } = parts;
  const {
    leaseLoop,
    registration,
    statusLoop,
    podLoop,
    nodeBuilder,
    events,
    logSender,
    selfUpdate,
    volumeMaker,
    serviceRules,
  } = loops;
  const leaseMs = leaseSecondsOf(parts) * 1_000;
  leaseLoop.onDirectBeat((sentAt) => podLoop.heartbeatAnswered(sentAt));
  leaseLoop.onPodsChange(() => podLoop.podsChanged());
  parts.runtime.useInputs?.(loops.podInputs);
  parts.runtime.onEvent?.((pod, event) => events.aboutPod(pod, event));
  leaseLoop.onLogRequest(() => logSender.requested());
  leaseLoop.onVolumeWork(() => volumeMaker?.requested());
  leaseLoop.onServicesChange(() => serviceRules?.changed());
  leaseLoop.onBeat((atMs, silentMs) => {
    meter.count('nodekeeper_agent_lease_renewals_total');
    meter.gauge('nodekeeper_agent_lease_renewed_time_seconds', Math.floor(atMs / 1_000));
    selfUpdate?.beat();
    // After an interval this long the controller may have marked the node and its pods.
    if (silentMs < leaseMs) return;
    statusLoop.invalidate();
    podLoop.podsChanged();
  });
  registration.onRegistered(() => {
    // A kubelet also records them at each start, for new and existing Nodes.
    for (const event of nodeBuilder.takeEvents()) events.aboutNode(event);
    podLoop.podsChanged();
  });
}

/** Containers run where the topology manager placed them, from their start on and after each change. */
function placeContainers({ runtime }: AgentParts, { topology }: Started): void {
  const place = (): void => runtime.usePlacement?.((podUid, container) => topology.placementOf(podUid, container));
  topology.onChange(place);
  place();
}

function healthChecks(parts: AgentParts, { beats }: Loops): readonly HealthCheck[] {
  const { runtime, time, checks = [] } = parts;
  const intervalMs = renewIntervalMs(leaseSecondsOf(parts));
  return [
    { name: 'ping', complaint: () => undefined },
    { name: 'runtime', complaint: () => runtime.complaint?.() },
    ...checks,
    { name: 'lease', complaint: () => leaseLoopComplaint(beats.answeredAtMs(), time.monotonicMs(), intervalMs) },
  ];
}

/** The lease loop starts at once. The loops that need the Node start after its registration. */
async function runLoops(loops: Loops, hasKnownPods: boolean, stop: AbortSignal): Promise<void> {
  const registered = loops.registration.ensure();
  const podsMayStart = hasKnownPods ? Promise.resolve() : registered;
  await Promise.all([
    loops.leaseLoop.run(),
    registered.then(() => loops.statusLoop.run(stop)),
    podsMayStart.then(() => loops.podLoop.run(stop)),
    podsMayStart.then(() => loops.eviction.run(stop)),
    registered.then(() => loops.podInputs.run(stop)),
    podsMayStart.then(() => loops.volumeLimits.run(stop)),
    registered.then(() => loops.events.run(stop)),
    registered.then(() => loops.sessionLine?.run()),
    loops.serviceRules?.run(registered, stop),
    loops.shutdown.run(stop),
    loops.sleepWatch?.run(stop),
    loops.siteMember?.run(stop),
    registered.then(() => loops.siteStatuses?.run(stop)),
    loops.permits?.run(stop),
    registered.then(() => loops.keyRotation?.run(stop)),
    registered.then(() => loops.selfUpdate?.run(stop)),
    loops.runtimeHealth.run(stop),
  ]);
}

/** Pods run on without names: a port that is in use is tried again. */
async function runNames(
  { services, time, log, meter }: AgentParts,
  { serviceRules }: Loops,
  stop: AbortSignal,
): Promise<void> {
  if (services === undefined || serviceRules === undefined) return;
  const open = () =>
    services.serveNames(
      (name, type) => serviceRules.answer(name, type),
      (outcome) => meter.count('nodekeeper_agent_service_questions_total', { outcome }),
    );
  await keepServed({ name: 'the names of Services', port: DNS_PORT, open, time, log }, stop);
}

/** What is sealed with the old key is sealed again before that key is removed. */
const keysWithMemory = (keys: MachineKeys, memory: PodMemory | undefined): MachineKeys => ({
  ...keys,
  async adoptNext() {
    await memory?.reseal();
    await keys.adoptNext();
  },
});

interface BeatObserver {
  /** A heartbeat was answered, accepted with a request that this key signed. */
  readonly onAnswer: (acceptedKeyId: string | undefined) => void;
  /** The Lease could be neither read nor written. */
  readonly onMissed: () => void;
}

interface ObservedBeats {
  readonly api: KubeApi;
  /** When the last answer was received. Monotonic milliseconds. */
  readonly answeredAtMs: () => number;
}

/**
 * The API for heartbeats. It records when an answer was received, and reports which key signed an accepted heartbeat.
 */
function observedBeats({ beatApi, keys, time }: AgentParts, { onAnswer, onMissed }: BeatObserver): ObservedBeats {
  let answeredAtMs = time.monotonicMs();
  const api: KubeApi = {
    async send(request) {
      const signedBy = keys?.signingKeyId();
      const answer = await beatApi.send(request);
      answeredAtMs = time.monotonicMs();
      if (isMissedBeat(answer)) onMissed();
      if (request.method === 'PUT') {
        // A key that signs before and after the request also signed the request. What a relay says proves nothing.
        const isRelayed = answer.kind === 'answered' && answer.isRelayed === true;
        const isCertain = answeredWith(answer, 200) && !isRelayed && keys?.signingKeyId() === signedBy;
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
