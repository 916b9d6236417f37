#!/usr/bin/env node
/** The agent as a process: configuration, adapters, signals. `--help` lists the options. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { defined } from '../../shared/defined.ts';
import { gzip } from '../../shared/gzip.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { cgroupNode, openPodCgroups } from '../adapters/cgroup/open-pod-cgroups.ts';
import { loadConfig } from '../adapters/config/load-config.ts';
import { serveHealthz } from '../adapters/healthz/healthz-server.ts';
import { AGENT_METRICS } from '../adapters/healthz/metrics.ts';
import { MetricRegistry } from '../adapters/healthz/registry.ts';
import { createHttpKubeApi, type HttpKubeApi } from '../adapters/http/kube-api.ts';
import { presentMachineKey, UnfitKeyError } from '../adapters/identity/key-file.ts';
import { createNodeIdentity, type NodeIdentity, staticToken } from '../adapters/identity/node-identity.ts';
import { LinuxMachine } from '../adapters/linux-machine/linux-machine.ts';
import { logind } from '../adapters/logind/logind.ts';
import { readNuma } from '../adapters/numa/numa.ts';
import { probeClient } from '../adapters/probe/probe-client.ts';
import { readRelayCertificate } from '../adapters/relay/certificate-files.ts';
import { serveRelay } from '../adapters/relay/relay-server.ts';
import { mountMode } from '../adapters/runtime-exec/isolation.ts';
import { execRuntime } from '../adapters/runtime-exec/runtime-exec.ts';
import { noRuntime } from '../adapters/runtime-none/runtime-none.ts';
import { podmanRuntime } from '../adapters/runtime-podman/runtime-podman.ts';
import { staticPodFiles } from '../adapters/static-pods/static-pod-files.ts';
import { makeDirectory } from '../adapters/system/directory.ts';
import { jsonLog } from '../adapters/system/json-log.ts';
import { stateFile } from '../adapters/system/state-file.ts';
import { systemTime } from '../adapters/system/time.ts';
import { updateFiles } from '../adapters/updates/update-files.ts';
import { updateKeyOf, updateSource } from '../adapters/updates/update-source.ts';
import { memoryDirectory } from '../adapters/volumes/memory-directory.ts';
import { podVolumes } from '../adapters/volumes/pod-volumes.ts';
import { keepHealthServed } from '../app/health-listener.ts';
import { withHeartbeatDoor } from '../app/heartbeat-door.ts';
import { HeartbeatRelay } from '../app/relay.ts';
import { RelayListener } from '../app/relay-listener.ts';
import { withRelay } from '../app/relay-route.ts';
import { runAgent, type UpdateParts } from '../app/run-agent.ts';
import { AgentStartError } from '../app/start-checks.ts';
import { InstalledVersions } from '../app/updates/installed-versions.ts';
import type { AgentConfig, RelayConfig } from '../config.ts';
import type { Credentials } from '../ports/credentials.ts';
import type { HealthCheck } from '../ports/health-check.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import { SHUTDOWN_STATE_FILE } from '../rules/shutdown-state.ts';
import { doctor } from './doctor.ts';
import { plan } from './plan.ts';
import { relayInit } from './relay-init.ts';
import { promiseSilence, SLEEP_USAGE, type SleepCommand, sleepCommand } from './sleep.ts';

/** Set by the build. From source: that of package.json. */
declare const NODEKEEPER_AGENT_RELEASE: string | undefined;
const RELEASE = typeof NODEKEEPER_AGENT_RELEASE === 'string' ? NODEKEEPER_AGENT_RELEASE : '0.1.0';
/** Reported as the kubelet's version: clients derive the features of a node from it. */
const AGENT_VERSION = `${KUBERNETES_VERSION}-nodekeeper.${RELEASE}`;
/** Concurrent requests besides heartbeats. */
const CONNECTIONS_MAX = 4;
/** Concurrent batches of a relay. */
const RELAY_CONNECTIONS_MAX = 4;
/** Time for the promise of `sleep`. Milliseconds. */
const SLEEP_TIMEOUT_MS = 10_000;
const NO_NUMA = { nodes: [], distances: undefined };
/** Time for the loops to end after a stop. Milliseconds. */
const STOP_MS = 5_000;

if (process.argv[2] === '--version') {
  process.stdout.write(`${RELEASE}\n`);
  process.exit(0);
}

if (process.argv[2] === 'plan') {
  const print = (stream: NodeJS.WriteStream) => (line: string) => void stream.write(`${line}\n`);
  process.exit(
    await plan(process.argv.slice(3), {
      readText: (path) => readFileSync(path, 'utf8'),
      hostname,
      print: print(process.stdout),
      printError: print(process.stderr),
      mountMode,
    }),
  );
}

if (process.argv[2] === 'relay') {
  const { exitCode, text } = relayInit(process.argv.slice(3), Date.now());
  (exitCode === 0 ? process.stdout : process.stderr).write(text);
  process.exit(exitCode);
}

if (process.argv[2] === 'doctor') {
  const code = await doctor(process.argv.slice(3), {
    print: (text) => void process.stdout.write(`${text.trimEnd()}\n`),
    loadConfig,
    environment: process.env,
    agentVersion: RELEASE,
    nowMs: Date.now,
  });
  process.exit(code);
}

const sleeping = process.argv[2] === 'sleep' ? sleepCommand(process.argv.slice(3)) : undefined;
if (process.argv[2] === 'sleep' && sleeping === undefined) {
  process.stderr.write(SLEEP_USAGE);
  process.exit(2);
}

// If the log cannot be written, an unhandled error event would terminate the process.
process.stderr.on('error', () => undefined);
const log = jsonLog({
  write: (line) => process.stderr.write(line),
  nowMs: Date.now,
  priorities: process.env['JOURNAL_STREAM'] !== undefined,
  debug: process.env['NODEKEEPER_DEBUG'] === '1',
});

function readConfig(): AgentConfig {
  const loaded = loadConfig(sleeping?.rest ?? process.argv.slice(2));
  if (loaded.kind === 'help') {
    process.stdout.write(loaded.text);
    process.exit(0);
  }
  for (const warning of loaded.warnings) log.warn(warning);
  if (loaded.kind === 'ok') return loaded.config;
  for (const { message, at } of loaded.faults) {
    process.stderr.write(`nodekeeper-agent: ${at === undefined ? '' : `${JSON.stringify(at)}: `}${message}\n`);
  }
  process.exit(1);
}

const config = readConfig();
const probes = probeClient();
const metrics = new MetricRegistry(AGENT_METRICS);
const clients: HttpKubeApi[] = [];
const stop = new AbortController();

function client(credentials: Credentials, connectionsMax: number, endpoint = config.endpoint): HttpKubeApi {
  const made = createHttpKubeApi({
    endpoint,
    certificateAuthority: config.certificateAuthority,
    credentials,
    environment: process.env,
    connectionsMax,
  });
  clients.push(made);
  return made;
}

/** The way of heartbeats to the cluster, and of a relay's batches: through the URL of their function where there is one. */
const clusterDoor = (identity: Credentials, connectionsMax: number): KubeApi =>
  withHeartbeatDoor({
    // Another connection: a slow status request does not delay a heartbeat.
    api: client(identity, connectionsMax + 1),
    open: (url) => client(identity, connectionsMax, url),
    monotonicMs: () => systemTime.monotonicMs(),
  });

/** The way of our own heartbeats. */
function beatApi(identity: Credentials): KubeApi {
  const direct = clusterDoor(identity, 1);
  const { heartbeatEndpoint, heartbeatCertificateAuthority, nodeName } = config;
  if (heartbeatEndpoint === undefined) return direct;
  const relay = createHttpKubeApi({
    endpoint: heartbeatEndpoint,
    certificateAuthority: heartbeatCertificateAuthority,
    // What a relay answers proves nothing about our key or our clock.
    credentials: { bearer: (use) => identity.bearer(use), answered: () => false },
    isRelay: true,
  });
  clients.push(relay);
  return withRelay({ relay, direct, nodeName, monotonicMs: () => systemTime.monotonicMs(), log });
}

function relayListener(identity: Credentials, relayConfig: RelayConfig): RelayListener {
  const { address, port } = relayConfig;
  const api = counted(clusterDoor(identity, RELAY_CONNECTIONS_MAX));
  const relay = new HeartbeatRelay({ api, time: systemTime, log, meter: metrics });
  return new RelayListener({
    address,
    port,
    readCertificate: () => readRelayCertificate(relayConfig),
    open: (certificate) => serveRelay({ address, port, certificate, relay: (item) => relay.relay(item) }),
    time: systemTime,
    log,
    meter: metrics,
  });
}

function checksOf(identity: NodeIdentity, relay: RelayListener | undefined): HealthCheck[] {
  const checks: HealthCheck[] = [{ name: 'identity', complaint: () => identity.complaint() }];
  if (relay !== undefined) checks.push({ name: 'relay', complaint: () => relay.complaint() });
  return checks;
}

let sentBytes = 0;
let receivedBytes = 0;

/** All metrics, with the traffic until now. */
function metricsText(): string {
  const traffic = clients.map((each) => each.traffic());
  const sentNow = traffic.reduce((sum, { bytesUp }) => sum + bytesUp, 0);
  const receivedNow = traffic.reduce((sum, { bytesDown }) => sum + bytesDown, 0);
  metrics.count('nodekeeper_agent_sent_bytes_total', {}, sentNow - sentBytes);
  metrics.count('nodekeeper_agent_received_bytes_total', {}, receivedNow - receivedBytes);
  sentBytes = sentNow;
  receivedBytes = receivedNow;
  return metrics.text();
}

const counted = (api: KubeApi): KubeApi => ({
  async send(request) {
    const answer = await api.send(request);
    const code = answer.kind === 'answered' ? String(answer.status) : '0';
    metrics.count('nodekeeper_agent_requests_total', { method: request.method, code });
    return answer;
  },
  reconnect: () => api.reconnect(),
});

/** Address of the pods of this machine: that of its default route. */
let hostIp: string | undefined;

async function runtimeOf(name: AgentConfig['runtime'], machine: LinuxMachine): Promise<PodRuntime> {
  switch (name) {
    case 'none':
      return noRuntime();
    case 'exec':
      return execRuntime({
        rootDirectory: config.rootDirectory,
        time: systemTime,
        log,
        hostIp: () => hostIp,
        ...(await podLimits(machine)),
        probeClient: probes,
      });
    case 'podman':
      return podmanRuntime({
        rootDirectory: config.rootDirectory,
        time: systemTime,
        log,
        hostIp: () => hostIp,
        limits: cgroupNode(config, await machine.facts(), true),
        probeClient: probes,
      });
  }
}

async function podLimits(machine: LinuxMachine) {
  const use = await machine.use().catch(() => undefined);
  const { cgroups, warning } = openPodCgroups(config, await machine.facts(), use?.pidsMax, log);
  if (warning !== undefined) log.warn(warning);
  return { cgroups, limitWarning: warning };
}

/** The start program sets the directory: without it there is no way back from a bad version. */
function updateParts(): UpdateParts | undefined {
  const { updatePublicKey } = config;
  if (updatePublicKey === undefined) return undefined;
  const directory = process.env['NODEKEEPER_AGENTS'];
  if (directory === undefined) {
    log.warn(
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
      certificateAuthority: config.certificateAuthority,
      apiHost: new URL(config.endpoint).hostname,
    }),
    restart: () => stop.abort(),
  };
}

/** @throws AgentStartError for a fault that only an administrator can repair */
async function checkRootDirectory(): Promise<void> {
  try {
    makeDirectory(config.rootDirectory, 0o700);
  } catch (cause) {
    throw new AgentStartError(`rootDirectory ${config.rootDirectory} cannot be made: ${(cause as Error).message}`);
  }
  if (config.token !== undefined) return;
  try {
    await presentMachineKey(config.rootDirectory);
  } catch (error) {
    // A file that cannot be read now may be readable later.
    if (error instanceof UnfitKeyError) throw new AgentStartError(error.message);
  }
}

/** Exit code 1: the cluster refused the promise, or could not be reached. */
async function sleep({ seconds, reason }: SleepCommand): Promise<void> {
  const identity = createNodeIdentity(config, { time: systemTime, log, bootstrapApi: undefined });
  const at = { nowMs: Date.now(), timeoutMs: SLEEP_TIMEOUT_MS };
  const { nodeName } = config;
  const { accepted, line } = await promiseSilence(client(identity, 1), { nodeName, seconds, reason }, at);
  (accepted ? process.stdout : process.stderr).write(`${line}\n`);
  for (const each of clients) each.close();
  process.exitCode = accepted ? 0 : 1;
}

async function main(): Promise<void> {
  await checkRootDirectory();
  metrics.gauge('process_start_time_seconds', Math.floor(Date.now() / 1_000 - process.uptime()));
  const bootstrapApi = config.bootstrapToken === undefined ? undefined : client(staticToken(config.bootstrapToken), 1);
  const identity = createNodeIdentity(config, { time: systemTime, log, bootstrapApi });
  const machine = new LinuxMachine({ rootDirectory: config.rootDirectory });
  hostIp =
    config.nodeIp.split(',', 1)[0]?.trim() || ((await machine.defaultAddress(4)) ?? (await machine.defaultAddress(6)));
  const runtime = await runtimeOf(config.runtime, machine);
  const bus = { log, ...defined({ busAddress: process.env['DBUS_SYSTEM_BUS_ADDRESS'] }) };
  const shutdownSignal = logind(bus);
  const sleepSignal = logind({ ...bus, event: 'sleep' });
  const relay = config.relay === undefined ? undefined : relayListener(identity, config.relay);
  const stopServers = new AbortController();
  const relaying = relay?.run(stopServers.signal);
  let servingHealth: Promise<void> | undefined;
  try {
    await runAgent(
      {
        config,
        agentVersion: AGENT_VERSION,
        beatApi: counted(beatApi(identity)),
        api: counted(client(identity, CONNECTIONS_MAX)),
        clusterLabels: () => identity.nodeLabels(),
        keys: identity.keys,
        machine,
        // Only topology policies need the NUMA nodes. Without a policy they may be unreadable.
        numa: config.topologyManagerPolicy === 'none' ? NO_NUMA : await readNuma(),
        swaps: await machine.swaps(),
        runtime,
        staticPods:
          config.staticPodPath === ''
            ? undefined
            : staticPodFiles({
                directory: config.staticPodPath,
                nodeName: config.nodeName,
                log,
                nowMs: Date.now,
              }),
        probeClient: probes,
        volumes: podVolumes({ rootDirectory: config.rootDirectory, memoryDirectory: memoryDirectory() }),
        shutdownSignal,
        sleepSignal,
        shutdownState: stateFile(join(config.rootDirectory, SHUTDOWN_STATE_FILE), `.tmp-${SHUTDOWN_STATE_FILE}`),
        time: systemTime,
        updates: updateParts(),
        checks: checksOf(identity, relay),
        fraction: Math.random,
        compress: gzip,
        log,
        meter: metrics,
        async serveHealth(checks) {
          const { healthzPort: port } = config;
          if (port === 0) return;
          const open = () => serveHealthz({ port, checks, metrics: metricsText });
          servingHealth = keepHealthServed({ port, open, time: systemTime, log }, stopServers.signal);
        },
      },
      stop.signal,
    );
  } finally {
    stopServers.abort();
    await relaying;
    await servingHealth;
    await runtime.close();
    shutdownSignal.close();
    sleepSignal.close();
    for (const each of clients) each.close();
  }
}

for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.once(name, () => {
    log.info('stopping; pods stay', { signal: name });
    stop.abort();
    // Does not wait for a hanging request. Nothing is lost.
    setTimeout(() => process.exit(0), STOP_MS).unref();
  });
}

if (sleeping !== undefined) {
  await sleep(sleeping);
  process.exit();
}

log.info('starting', {
  node: config.nodeName,
  endpoint: config.endpoint,
  runtime: config.runtime,
  version: AGENT_VERSION,
});
try {
  await main();
  process.exit(0);
} catch (error) {
  if (error instanceof AgentStartError) process.stderr.write(`nodekeeper-agent: ${error.message}\n`);
  else log.error('the agent failed', { error });
  process.exit(1);
}
