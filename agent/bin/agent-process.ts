import { join } from 'node:path';
import { SITE_STATUS_HEADER } from '../../shared/agents/site-status.ts';
import { NODEKEEPER_VERSION } from '../../shared/config/version.ts';
import { gzip } from '../../shared/gzip.ts';
import { makeDirectory } from '../../shared/host/directory.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import type { Log } from '../../shared/observability/log.ts';
import { serveHealthz } from '../adapters/healthz/healthz-server.ts';
import { AGENT_METRICS } from '../adapters/healthz/metrics.ts';
import { MetricRegistry } from '../adapters/healthz/registry.ts';
import { createHttpKubeApi, type HttpKubeApi } from '../adapters/http/kube-api.ts';
import { createSessionClient } from '../adapters/http/session-client.ts';
import { EnrolmentError } from '../adapters/identity/enroller.ts';
import { presentMachineKey, UnfitKeyError } from '../adapters/identity/key-file.ts';
import { machineSealer } from '../adapters/identity/machine-sealer.ts';
import { createNodeIdentity, type NodeIdentity, staticToken } from '../adapters/identity/node-identity.ts';
import { probeClient } from '../adapters/probe/probe-client.ts';
import { readRelayCertificate } from '../adapters/relay/certificate-files.ts';
import { serveRelay } from '../adapters/relay/relay-server.ts';
import { joinSite } from '../adapters/site/join-site.ts';
import { probeWitness, serveWitness } from '../adapters/site/witness.ts';
import { staticPodFiles } from '../adapters/static-pods/static-pod-files.ts';
import { connectPort } from '../adapters/system/pod-port.ts';
import { stateFile } from '../adapters/system/state-file.ts';
import { stateGenerations } from '../adapters/system/state-generations.ts';
import { systemTime } from '../adapters/system/time.ts';
import { updateFiles } from '../adapters/updates/update-files.ts';
import { updateKeyOf, updateSource } from '../adapters/updates/update-source.ts';
import { MoveFollower } from '../app/follow-move.ts';
import { withHeartbeatDoor } from '../app/heartbeat-door.ts';
import { keepServed } from '../app/keep-served.ts';
import { PodMemory } from '../app/pods/pod-memory.ts';
import { HeartbeatRelay } from '../app/relay.ts';
import { RelayListener } from '../app/relay-listener.ts';
import { withRelay } from '../app/relay-route.ts';
import { runAgent, type SiteParts, type UpdateParts } from '../app/run-agent.ts';
import { SilenceReport } from '../app/silence-report.ts';
import { SiteHub } from '../app/site-hub.ts';
import { AgentStartError } from '../app/start-checks.ts';
import { InstalledVersions } from '../app/updates/installed-versions.ts';
import type { AgentConfig, RelayConfig } from '../config.ts';
import type { Credentials } from '../ports/credentials.ts';
import type { HealthCheck } from '../ports/health-check.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import { MOVED_FILE, movedText } from '../rules/moved.ts';
import { REMEMBERED_DIRECTORY } from '../rules/remembered-state.ts';
import { SHUTDOWN_STATE_FILE } from '../rules/shutdown-state.ts';
import { openPlatform } from './open-platform.ts';
import { promiseSilence, type SleepCommand } from './sleep.ts';

/** Set by the build. */
declare const NODEKEEPER_AGENT_RELEASE: string | undefined;
export const RELEASE = typeof NODEKEEPER_AGENT_RELEASE === 'string' ? NODEKEEPER_AGENT_RELEASE : NODEKEEPER_VERSION;
/** Reported as the kubelet's version: clients derive the features of a node from it. */
export const AGENT_VERSION = `${KUBERNETES_VERSION}-nodekeeper.${RELEASE}`;
/** Concurrent requests besides heartbeats. */
const CONNECTIONS_MAX = 4;
/** Concurrent batches of a relay. */
const RELAY_CONNECTIONS_MAX = 4;
/** Time for the promise of `sleep`. Milliseconds. */
const SLEEP_TIMEOUT_MS = 10_000;

export interface AgentProcessOptions {
  /** Ends the start when the cluster refuses the bootstrap token: a person reads the reason. A service tries again. */
  readonly endsWhenRefused?: boolean;
}

/** @throws AgentStartError */
async function refuseWithoutEnrolment(identity: NodeIdentity): Promise<void> {
  try {
    await identity.nodeLabels();
  } catch (error) {
    if (!(error instanceof EnrolmentError) || !error.isRefused) return;
    throw new AgentStartError(`${error.message}. \`nodekeeper join-command\` prints a new line`, { cause: error });
  }
}

/** A relay, and its watch of the site. */
interface Hub {
  readonly relayConfig: RelayConfig;
  readonly relay: HeartbeatRelay;
  readonly site: SiteHub;
}

/** The agent with its adapters: its connections, its metrics and its identity. */
export class AgentProcess {
  readonly #config: AgentConfig;
  readonly #log: Log;
  readonly #options: AgentProcessOptions;
  readonly #probes = probeClient();
  readonly #metrics = new MetricRegistry(AGENT_METRICS);
  readonly #clients: HttpKubeApi[] = [];
  readonly #stop = new AbortController();
  #sentBytes = 0;
  #receivedBytes = 0;
  /** Address of the pods of this machine: that of its default route. */
  #hostIp: string | undefined;

  constructor(config: AgentConfig, log: Log, options: AgentProcessOptions = {}) {
    this.#config = config;
    this.#log = log;
    this.#options = options;
  }

  /** Runs until it is stopped. @throws AgentStartError for a fault that only an administrator can repair */
  async run(): Promise<void> {
    await this.#checkRootDirectory();
    this.#metrics.gauge('process_start_time_seconds', Math.floor(Date.now() / 1_000 - process.uptime()));
    const bootstrapApi =
      this.#config.bootstrapToken === undefined ? undefined : this.#client(staticToken(this.#config.bootstrapToken), 1);
    const identity = createNodeIdentity(this.#config, { time: systemTime, log: this.#log, bootstrapApi });
    if (this.#options.endsWhenRefused === true) await refuseWithoutEnrolment(identity);
    const platform = await openPlatform({
      config: this.#config,
      log: this.#log,
      probeClient: this.#probes,
      hostIp: () => this.#hostIp,
      environment: process.env,
    });
    platform.stopRequested?.addEventListener('abort', () => this.stop());
    const { machine } = platform;
    this.#hostIp =
      this.#config.nodeIp.split(',', 1)[0]?.trim() ||
      ((await machine.defaultAddress(4)) ?? (await machine.defaultAddress(6)));
    const runtime = await platform.openRuntime();
    const silence = this.#silence();
    const hub = this.#siteHub(identity, silence);
    const relay = hub && this.#relayListener(hub);
    const moves = this.#moves(identity);
    const stopServers = new AbortController();
    const serving: (Promise<void> | undefined)[] = [relay?.run(stopServers.signal), hub?.site.run(stopServers.signal)];
    try {
      await runAgent(
        {
          config: this.#config,
          agentVersion: AGENT_VERSION,
          beatApi: this.#counted(this.#beatApi(identity, moves)),
          api: this.#counted(moves.watching(this.#client(identity, CONNECTIONS_MAX))),
          hub: this.#hub(identity),
          sessions: {
            sessionApi: createSessionClient({
              endpoint: this.#config.endpoint,
              certificateAuthority: this.#config.certificateAuthority,
              credentials: identity,
              environment: process.env,
            }),
            connectPort,
          },
          clusterLabels: () => identity.nodeLabels(),
          keys: identity.keys,
          machine,
          numa: await platform.numa(),
          swaps: await platform.swaps(),
          runtime,
          staticPods:
            this.#config.staticPodPath === ''
              ? undefined
              : staticPodFiles({
                  directory: this.#config.staticPodPath,
                  nodeName: this.#config.nodeName,
                  log: this.#log,
                  nowMs: Date.now,
                }),
          memory: await this.#podMemory(),
          heartbeatFile: platform.heartbeatFile,
          permitFile: platform.permitFile,
          probeClient: this.#probes,
          services: await platform.services(),
          volumes: platform.volumes(),
          claimDirectories: platform.claimDirectories?.(),
          shutdownSignal: platform.shutdownSignal,
          sleepSignal: platform.sleepSignal,
          shutdownState: stateFile(
            join(this.#config.rootDirectory, SHUTDOWN_STATE_FILE),
            `.tmp-${SHUTDOWN_STATE_FILE}`,
          ),
          time: systemTime,
          updates: this.#updateParts(),
          silence,
          site: this.#siteParts(silence, (served) => serving.push(served), stopServers.signal),
          checks: this.#checksOf(identity, relay),
          fraction: Math.random,
          compress: gzip,
          log: this.#log,
          meter: this.#metrics,
          serveHealth: async (checks) => {
            const { healthzPort: port } = this.#config;
            if (port === 0) return;
            const open = () => serveHealthz({ port, checks, metrics: () => this.#metricsText() });
            serving.push(
              keepServed({ name: '/healthz', port, open, time: systemTime, log: this.#log }, stopServers.signal),
            );
          },
        },
        this.#stop.signal,
      );
    } finally {
      stopServers.abort();
      await Promise.all(serving);
      await runtime.close();
      await platform.close();
      for (const each of this.#clients) each.close();
    }
  }

  /** Ends the loops. Pods stay. */
  stop(): void {
    this.#stop.abort();
  }

  /** Sends the promise of a silence once. */
  async sleep({ seconds, reason }: SleepCommand): Promise<{ readonly accepted: boolean; readonly line: string }> {
    const identity = createNodeIdentity(this.#config, { time: systemTime, log: this.#log, bootstrapApi: undefined });
    const at = { nowMs: Date.now(), timeoutMs: SLEEP_TIMEOUT_MS };
    const { nodeName } = this.#config;
    try {
      return await promiseSilence(this.#client(identity, 1), { nodeName, seconds, reason }, at);
    } finally {
      for (const each of this.#clients) each.close();
    }
  }

  #client(credentials: Credentials, connectionsMax: number, endpoint = this.#config.endpoint): HttpKubeApi {
    const made = createHttpKubeApi({
      endpoint,
      certificateAuthority: this.#config.certificateAuthority,
      credentials,
      environment: process.env,
      connectionsMax,
    });
    this.#clients.push(made);
    return made;
  }

  /**
   * The way of heartbeats to the cluster, and of a relay's batches: through the URL of their function where there is
   * one.
   */
  #clusterDoor(identity: Credentials, connectionsMax: number): KubeApi {
    return withHeartbeatDoor({
      // Another connection: a slow status request does not delay a heartbeat.
      api: this.#client(identity, connectionsMax + 1),
      open: (url) => this.#client(identity, connectionsMax, url),
      monotonicMs: () => systemTime.monotonicMs(),
    });
  }

  /** The way of our own heartbeats. */
  #beatApi(identity: Credentials, moves: MoveFollower): KubeApi {
    const direct = moves.watching(this.#clusterDoor(identity, 1));
    const { heartbeatEndpoint, heartbeatCertificateAuthority, nodeName } = this.#config;
    if (heartbeatEndpoint === undefined) return direct;
    const relay = createHttpKubeApi({
      endpoint: heartbeatEndpoint,
      certificateAuthority: heartbeatCertificateAuthority,
      // What a relay answers proves nothing about our key or our clock.
      credentials: { bearer: (use) => identity.bearer(use), answered: () => false },
      isRelay: true,
    });
    this.#clients.push(relay);
    return withRelay({ relay, direct, nodeName, monotonicMs: () => systemTime.monotonicMs(), log: this.#log });
  }

  /** A client of the hub of the site, for statuses. */
  #hub(identity: Credentials): KubeApi | undefined {
    const { hubEndpoint: endpoint, hubCertificateAuthority: certificateAuthority } = this.#config;
    if (endpoint === undefined) return undefined;
    const hub = createHttpKubeApi({
      endpoint,
      certificateAuthority,
      // What a hub answers proves nothing about our key or our clock.
      credentials: { bearer: (use) => identity.bearer(use), answered: () => false },
      headers: { [SITE_STATUS_HEADER]: 'true' },
    });
    this.#clients.push(hub);
    return hub;
  }

  #moves(identity: Credentials): MoveFollower {
    const { endpoint, configuredEndpoint = endpoint, nodeName, rootDirectory } = this.#config;
    const file = stateFile(join(rootDirectory, MOVED_FILE), `.tmp-${MOVED_FILE}`);
    return new MoveFollower({
      nodeName,
      open: (address) =>
        createHttpKubeApi({
          ...address,
          // What another address answers proves nothing about our key or our clock.
          credentials: { bearer: (use) => identity.bearer(use), answered: () => false },
          environment: process.env,
        }),
      remember: (address) => file.write(movedText(configuredEndpoint, address)),
      restart: () => this.stop(),
      monotonicMs: () => systemTime.monotonicMs(),
      log: this.#log,
    });
  }

  /** What this machine reports about others of its site: only one with a relay, or that is one, finds out. */
  #silence(): SilenceReport | undefined {
    const { relay, heartbeatEndpoint } = this.#config;
    if (relay === undefined && heartbeatEndpoint === undefined) return undefined;
    return new SilenceReport({ role: relay === undefined ? 'machine' : 'hub', time: systemTime });
  }

  #siteHub(identity: Credentials, report: SilenceReport | undefined): Hub | undefined {
    const { relay: relayConfig } = this.#config;
    if (relayConfig === undefined || report === undefined) return undefined;
    const common = { time: systemTime, log: this.#log, meter: this.#metrics };
    const api = this.#counted(this.#clusterDoor(identity, RELAY_CONNECTIONS_MAX));
    const relay = new HeartbeatRelay({ ...common, api });
    const withhold = (nodeName: string): boolean => relay.withhold(nodeName);
    return { relayConfig, relay, site: new SiteHub({ ...common, probe: probeWitness, report, withhold }) };
  }

  #siteParts(
    report: SilenceReport | undefined,
    serving: (served: Promise<void>) => void,
    stop: AbortSignal,
  ): SiteParts | undefined {
    const {
      heartbeatEndpoint: endpoint,
      heartbeatCertificateAuthority: certificateAuthority,
      nodeName,
      relay,
      witness,
    } = this.#config;
    if (endpoint === undefined || report === undefined) return undefined;
    let witnessPort = 0;
    if (witness !== undefined) {
      const { port } = witness;
      const open = async () => {
        const listener = await serveWitness({ ...witness, nodeName });
        witnessPort = listener.port;
        return listener;
      };
      const name = 'the answer to probes of the site';
      serving(keepServed({ name, port, open, time: systemTime, log: this.#log }, stop));
    }
    return {
      join: joinSite({ endpoint, certificateAuthority }),
      probe: probeWitness,
      // A relay of another site, or a second one of this site, reports as a relay only.
      report: relay === undefined ? report : { update() {}, answer: () => report.answer() },
      witnessPort: () => witnessPort,
    };
  }

  #relayListener({ relayConfig, relay, site }: Hub): RelayListener {
    const { address, port } = relayConfig;
    return new RelayListener({
      address,
      port,
      readCertificate: () => readRelayCertificate(relayConfig),
      open: (certificate) =>
        serveRelay({
          address,
          port,
          certificate,
          relay: (item, collectMs) => relay.relay(item, collectMs),
          site: (line) => site.accept(line),
        }),
      time: systemTime,
      log: this.#log,
      meter: this.#metrics,
    });
  }

  #checksOf(identity: NodeIdentity, relay: RelayListener | undefined): HealthCheck[] {
    const checks: HealthCheck[] = [{ name: 'identity', complaint: () => identity.complaint() }];
    if (relay !== undefined) checks.push({ name: 'relay', complaint: () => relay.complaint() });
    return checks;
  }

  /** All metrics, with the traffic until now. */
  #metricsText(): string {
    const traffic = this.#clients.map((each) => each.traffic());
    const sentNow = traffic.reduce((sum, { bytesUp }) => sum + bytesUp, 0);
    const receivedNow = traffic.reduce((sum, { bytesDown }) => sum + bytesDown, 0);
    this.#metrics.count('nodekeeper_agent_sent_bytes_total', {}, sentNow - this.#sentBytes);
    this.#metrics.count('nodekeeper_agent_received_bytes_total', {}, receivedNow - this.#receivedBytes);
    this.#sentBytes = sentNow;
    this.#receivedBytes = receivedNow;
    return this.#metrics.text();
  }

  #counted(api: KubeApi): KubeApi {
    return {
      send: async (request) => {
        const answer = await api.send(request);
        const code = answer.kind === 'answered' ? String(answer.status) : '0';
        this.#metrics.count('nodekeeper_agent_requests_total', { method: request.method, code });
        return answer;
      },
      reconnect: () => api.reconnect(),
    };
  }

  async #podMemory(): Promise<PodMemory | undefined> {
    const { rememberPods, runtime, rootDirectory, nodeName, clusterId } = this.#config;
    const generations = stateGenerations(join(rootDirectory, REMEMBERED_DIRECTORY));
    if (rememberPods === 'none' || runtime === 'none') {
      await generations.remove().catch((error: unknown) => {
        this.#log.warn('the remembered pods of an earlier configuration cannot be removed', { error });
      });
      return undefined;
    }
    return new PodMemory({
      owner: { nodeName, clusterId },
      generations,
      sealer: rememberPods === 'all' ? machineSealer(this.#config) : undefined,
      log: this.#log,
    });
  }

  /** The start program sets the directory: without it there is no way back from a bad version. */
  #updateParts(): UpdateParts | undefined {
    const { updatePublicKey } = this.#config;
    if (updatePublicKey === undefined) return undefined;
    const directory = process.env['NODEKEEPER_AGENTS'];
    if (directory === undefined) {
      this.#log.warn(
        'the agent does not update itself: it was not started by start-agent.mjs, which returns from a bad version',
      );
      return undefined;
    }
    return {
      version: RELEASE,
      versions: new InstalledVersions(updateFiles(directory)),
      source: updateSource({
        directory,
        publicKey: updateKeyOf(updatePublicKey),
        environment: process.env,
        certificateAuthority: this.#config.certificateAuthority,
        apiHost: new URL(this.#config.endpoint).hostname,
      }),
      restart: () => this.stop(),
    };
  }

  /** @throws AgentStartError for a fault that only an administrator can repair */
  async #checkRootDirectory(): Promise<void> {
    try {
      makeDirectory(this.#config.rootDirectory, 0o700);
    } catch (cause) {
      throw new AgentStartError(
        `rootDirectory ${this.#config.rootDirectory} cannot be made: ${(cause as Error).message}`,
      );
    }
    if (this.#config.token !== undefined) return;
    try {
      await presentMachineKey(this.#config.rootDirectory);
    } catch (error) {
      // A file that cannot be read now may be readable later.
      if (error instanceof UnfitKeyError) throw new AgentStartError(error.message);
    }
  }
}
