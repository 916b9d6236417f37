/** `nodekeeper-agent doctor`: what each measurement of the machine means, and what to do. */
import type { AgentConfig } from '../config.ts';
import { type OfflineReadings, offlineFindings } from './doctor-offline.ts';
import { type RelayReadings, relayFindings } from './doctor-relay.ts';
import { type ServicesReading, servicesFindings } from './doctor-services.ts';
import { type VolumeLimitReading, volumeFindings } from './doctor-volumes.ts';
import { type PreshutdownReading, preshutdownFindings } from './doctor-windows.ts';
import { type WitnessReading, witnessFindings } from './doctor-witness.ts';
import { type Finding, failed, isCertificateFault, ok, warning } from './finding.ts';

/** One HTTPS request to the endpoint, without a token. */
export type EndpointReading =
  | {
      readonly kind: 'answered';
      readonly tookMs: number;
      readonly serverVersion: string;
      /** End of the certificate. Milliseconds since the Unix epoch; undefined if unknown. */
      readonly certificateEndsMs: number | undefined;
      /** The server's clock minus that of the machine. Milliseconds; undefined without a Date in the answer. */
      readonly clockAheadMs: number | undefined;
    }
  /** `code` as Node names it: ENOTFOUND, ECONNREFUSED, CERT_HAS_EXPIRED … */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

export type KeyReading =
  | { readonly kind: 'token' }
  | { readonly kind: 'key'; readonly isEnrolled: boolean }
  | { readonly kind: 'none'; readonly hasBootstrapToken: boolean }
  | { readonly kind: 'unusable'; readonly message: string };

/** The read of the own Node with the credentials of the machine; undefined if it has none yet. */
export type TokenReading =
  | {
      readonly status: number;
      readonly message: string;
      /** Of the Ready condition; absent without a Node. */
      readonly readyMessage?: string;
    }
  | undefined;

export type ShutdownReading =
  | { readonly kind: 'logind'; readonly delayMaxMs: number }
  /** On Windows. */
  | { readonly kind: 'preshutdown'; readonly preshutdown: PreshutdownReading }
  | { readonly kind: 'failed'; readonly message: string };

export type CgroupReading =
  | { readonly kind: 'missing'; readonly why: string }
  | {
      readonly kind: 'found';
      readonly directory: string;
      readonly missing: readonly string[];
      readonly fault?: string;
    };

export type DiskReading =
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'measured'; readonly availableBytes: number; readonly capacityBytes: number };

export type RuntimeReading =
  | { readonly kind: 'none' }
  | { readonly kind: 'exec'; readonly mounts: 'mounts' | 'links' }
  /** `exec` on Windows. */
  | { readonly kind: 'jobs' }
  | { readonly kind: 'podman'; readonly version: string | undefined; readonly message: string };

export type AgentReading =
  | { readonly kind: 'healthy' }
  | { readonly kind: 'unhealthy'; readonly message: string }
  | { readonly kind: 'absent'; readonly message: string }
  | { readonly kind: 'unknown' };

export interface UpdatesReading {
  readonly isOnTrial: boolean;
  /** The newest version that this machine does not try again. */
  readonly failed: { readonly version: string; readonly message: string } | undefined;
}

export interface Readings extends RelayReadings, OfflineReadings {
  readonly agentVersion: string;
  readonly nodeVersion: string;
  readonly endpoint: EndpointReading;
  readonly key: KeyReading;
  readonly token: TokenReading;
  readonly shutdown: ShutdownReading;
  readonly cgroups: CgroupReading;
  readonly disk: DiskReading;
  /** Undefined: this machine makes no volumes for claims. */
  readonly volumeLimits: VolumeLimitReading | undefined;
  readonly runtime: RuntimeReading;
  readonly agent: AgentReading;
  readonly updates: UpdatesReading;
  /** Undefined: the site does not watch this machine. */
  readonly witness: WitnessReading | undefined;
  /** Undefined: Services are not routed. */
  readonly services: ServicesReading | undefined;
  /** Why the agent would not start with the swap of this machine; undefined: it would. */
  readonly swapFault: string | undefined;
}

export type DoctorConfig = Pick<
  AgentConfig,
  | 'endpoint'
  | 'nodeName'
  | 'rootDirectory'
  | 'runtime'
  | 'shutdownGracePeriodMs'
  | 'shutdownGracePeriodCriticalPodsMs'
  | 'shutdownGracePeriodByPodPriority'
  | 'updatePublicKey'
  | 'heartbeatEndpoint'
  | 'relay'
  | 'witness'
  | 'services'
>;

const DAY_MS = 86_400_000;
const CERTIFICATE_DAYS_MIN = 14;
/** Tokens are dated by the server's clock, so only the times that are shown are wrong. Milliseconds. */
const CLOCK_AHEAD_MAX_MS = 30_000;
const DISK_SHARE_MIN = 0.1;
const GIGABYTE = 1_024 ** 3;

export function findingsOf(config: DoctorConfig, readings: Readings, nowMs: number): readonly Finding[] {
  return [
    versions(readings),
    ...endpoint(config, readings.endpoint, nowMs),
    key(config, readings.key, commandsOf(readings)),
    token(config, readings.token),
    ...relayFindings(config, readings, { isRunning: isRunning(readings.agent), nowMs }),
    ...witnessFindings(config, readings.witness, isRunning(readings.agent)),
    ...servicesFindings(config, readings.services, isRunning(readings.agent)),
    runtime(readings.runtime),
    ...(readings.runtime.kind === 'exec' ? [cgroups(readings.cgroups)] : []),
    ...shutdown(config, readings.shutdown),
    disk(config, readings.disk),
    ...volumeFindings(readings.volumeLimits),
    swap(readings.swapFault),
    ...offlineFindings(config, readings),
    updates(config, readings.updates),
    agent(readings.agent, commandsOf(readings)),
  ];
}

/** What a person types on this machine. */
interface Commands {
  readonly start: string;
  readonly readLog: string;
}

const SYSTEMD: Commands = {
  start: 'systemctl start nodekeeper-agent',
  readLog: 'journalctl -u nodekeeper-agent',
};
const WINDOWS: Commands = {
  start: 'sc start nodekeeper-agent',
  readLog: 'type %ProgramData%\\nodekeeper\\agent.log',
};

const commandsOf = ({ shutdown: { kind } }: Readings): Commands => (kind === 'preshutdown' ? WINDOWS : SYSTEMD);

function versions({ agentVersion, nodeVersion, endpoint: read }: Readings): Finding {
  const server = read.kind === 'answered' ? `, API ${read.serverVersion}` : '';
  return ok('versions', `agent ${agentVersion}, Node.js ${nodeVersion}${server}`);
}

const ENDPOINT_TODO: Readonly<Record<string, string>> = {
  ENOTFOUND: 'Check the name in `endpoint`, and the DNS of this machine.',
  EAI_AGAIN: 'Check the DNS of this machine.',
  ECONNREFUSED: 'Check host and port in `endpoint`, and firewalls.',
  ETIMEDOUT: 'Check routes and firewalls: this machine must open connections to the endpoint. Or set HTTPS_PROXY.',
};
const NETWORK_TODO = 'Check `endpoint`, routes, firewalls, and HTTPS_PROXY.';
const CERTIFICATE_TODO: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'Renew the certificate of the server, and check the clock of this machine.',
  CERT_NOT_YET_VALID: 'Check the clock of this machine.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'Use the host name of the certificate in `endpoint`.',
};
const AUTHORITY_TODO = 'Set `certificateAuthorityFile` to the certificate of the authority that signed the server.';

function endpoint({ endpoint: url }: DoctorConfig, read: EndpointReading, nowMs: number): Finding[] {
  if (read.kind === 'failed') {
    const { code, message } = read;
    if (isCertificateFault(code)) {
      return [failed('certificate', `${url}: ${message}`, CERTIFICATE_TODO[code] ?? AUTHORITY_TODO)];
    }
    return [failed('endpoint', `${url}: ${message}`, ENDPOINT_TODO[code] ?? NETWORK_TODO)];
  }
  return [
    ok('endpoint', `${url} answered in ${Math.round(read.tookMs)} ms`),
    certificate(read.certificateEndsMs, nowMs),
    clock(read.clockAheadMs),
  ];
}

function certificate(endsMs: number | undefined, nowMs: number): Finding {
  if (endsMs === undefined) return ok('certificate', 'trusted');
  const days = Math.floor((endsMs - nowMs) / DAY_MS);
  const message = `trusted, ends in ${days} days`;
  return days >= CERTIFICATE_DAYS_MIN
    ? ok('certificate', message)
    : warning('certificate', message, 'Renew the certificate of the server.');
}

function clock(aheadMs: number | undefined): Finding {
  if (aheadMs === undefined) return ok('clock', 'the server did not send its time');
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  if (Math.abs(aheadMs) <= CLOCK_AHEAD_MAX_MS) return ok('clock', `within ${seconds} s of the server`);
  const message = `${seconds} s ${aheadMs > 0 ? 'behind' : 'ahead of'} the server`;
  return warning('clock', message, 'Synchronise the clock (systemd-timesyncd or chrony). Heartbeats work without it.');
}

function key({ rootDirectory, nodeName }: DoctorConfig, read: KeyReading, { start }: Commands): Finding {
  switch (read.kind) {
    case 'token':
      return ok('key', 'a token is configured, the machine needs no key');
    case 'key':
      if (read.isEnrolled) return ok('key', `${rootDirectory}/node-key.pem, readable by its owner only, is enrolled`);
      return warning('key', 'the key is not enrolled yet', `Start the agent: ${start}`);
    case 'none':
      if (read.hasBootstrapToken) {
        return warning('key', 'there is no key yet', 'Start the agent: it creates a key and enrols it.');
      }
      return failed(
        'key',
        'there is neither a key nor a bootstrap token',
        `Create a token for ${nodeName} (npm run bootstrap-token -- create), and set bootstrapTokenFile.`,
      );
    case 'unusable':
      return failed('key', read.message, `Correct the file, or remove it and enrol again with a bootstrap token.`);
    default:
      return read satisfies never;
  }
}

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const NOT_FOUND = 404;

function token({ nodeName }: DoctorConfig, read: TokenReading): Finding {
  if (read === undefined) return warning('token', 'not checked: the machine is not enrolled', 'Start the agent first.');
  const { status, message } = read;
  if (status === 200) return ok('token', `accepted, Node ${nodeName} exists`);
  if (status === NOT_FOUND) {
    return warning('token', `accepted, Node ${nodeName} does not exist`, 'Start the agent: it registers the Node.');
  }
  if (status === UNAUTHORIZED) {
    const todo = `The identity was deleted or replaced: enrol with a bootstrap token made with --reissue. Check clusterId.`;
    return failed('token', `refused: ${message}`, todo);
  }
  if (status === FORBIDDEN) {
    return failed(
      'token',
      `accepted, but not for Node ${nodeName}`,
      'Check hostnameOverride: it is the enrolled name.',
    );
  }
  return warning('token', `not checked: ${message}`, 'Repeat this when the endpoint answers.');
}

function runtime(read: RuntimeReading): Finding {
  switch (read.kind) {
    case 'none':
      return warning('runtime', 'none: a pod on this node fails (NoRuntime)', 'Set `runtime` to podman or exec.');
    case 'exec': {
      if (read.mounts === 'mounts') return ok('runtime', 'exec, volumes by mounts');
      const message = 'exec, volumes by links: this process may not create mount namespaces';
      return warning('runtime', message, 'Run as root; the unit needs RestrictNamespaces=mnt (install.sh sets it).');
    }
    case 'jobs':
      return ok('runtime', 'exec, processes in Job objects');
    case 'podman':
      if (read.version !== undefined) return ok('runtime', `podman ${read.version}`);
      return failed('runtime', `podman: ${read.message}`, 'Install podman, or set `runtime` to exec.');
    default:
      return read satisfies never;
  }
}

function cgroups(read: CgroupReading): Finding {
  const todo = 'Boot with cgroup v2, and start nodekeeper-pods.service, which delegates its controllers.';
  if (read.kind === 'missing') return warning('cgroups', `${read.why}: limits of pods are not enforced`, todo);
  const { directory, missing, fault } = read;
  if (fault !== undefined) return warning('cgroups', `${directory}: ${fault}`, 'Run as root, or set `cgroupRoot`.');
  if (missing.length === 0) return ok('cgroups', directory);
  return warning('cgroups', `${directory} has no controller ${missing.join(', ')}`, todo);
}

function shutdown(config: DoctorConfig, read: ShutdownReading): Finding[] {
  if (read.kind === 'preshutdown') return preshutdownFindings(config, read.preshutdown);
  return [inhibitedShutdown(config, read)];
}

function inhibitedShutdown(
  { shutdownGracePeriodMs }: DoctorConfig,
  read: Exclude<ShutdownReading, { kind: 'preshutdown' }>,
): Finding {
  if (shutdownGracePeriodMs === 0) {
    const todo = 'Set shutdownGracePeriod, such as 40s, in KubeletConfiguration.';
    return warning('shutdown', 'a shutdown of the machine kills pods without their grace period', todo);
  }
  const seconds = shutdownGracePeriodMs / 1_000;
  if (read.kind === 'failed') {
    const todo = 'Install and start dbus and systemd-logind, or set shutdownGracePeriod to 0s.';
    return failed('shutdown', `${seconds} s are configured, but logind does not answer: ${read.message}`, todo);
  }
  const { delayMaxMs } = read;
  if (delayMaxMs >= shutdownGracePeriodMs) return ok('shutdown', `logind waits ${delayMaxMs / 1_000} s for pods`);
  const message = `logind waits ${delayMaxMs / 1_000} s, ${seconds} s are configured`;
  return warning('shutdown', message, 'Start the agent: it writes logind.conf.d/99-kubelet.conf.');
}

function disk({ rootDirectory }: DoctorConfig, read: DiskReading): Finding {
  if (read.kind === 'failed') {
    return failed('disk', `${rootDirectory}: ${read.message}`, 'The agent must be able to write there: run as root.');
  }
  const { availableBytes, capacityBytes } = read;
  const share = capacityBytes === 0 ? 0 : availableBytes / capacityBytes;
  const message = `${rootDirectory}: ${(availableBytes / GIGABYTE).toFixed(1)} GiB free (${Math.round(share * 100)} %)`;
  return share >= DISK_SHARE_MIN
    ? ok('disk', message)
    : warning('disk', message, 'Free some space: below 10 % the node has DiskPressure and evicts pods.');
}

const swap = (fault: string | undefined): Finding =>
  fault === undefined
    ? ok('swap', 'fits the configuration')
    : failed('swap', fault, 'Turn swap off (swapoff -a), or set failSwapOn: false.');

function updates({ updatePublicKey }: DoctorConfig, { isOnTrial, failed: bad }: UpdatesReading): Finding {
  if (updatePublicKey === undefined) return ok('updates', 'off: no updatePublicKey');
  if (isOnTrial) return warning('updates', 'the running version is on trial', 'Wait for two heartbeats.');
  if (bad === undefined) return ok('updates', 'on');
  const todo = 'Release another file, or remove agents/failed.json and restart the agent.';
  return warning('updates', `${bad.version} was not kept: ${bad.message}`, todo);
}

/** Undefined: unknown. */
const isRunning = ({ kind }: AgentReading): boolean | undefined => (kind === 'unknown' ? undefined : kind !== 'absent');

function agent(read: AgentReading, { start, readLog }: Commands): Finding {
  switch (read.kind) {
    case 'healthy':
      return ok('agent', 'runs and is healthy');
    case 'unknown':
      return ok('agent', 'not checked: healthzPort is 0');
    case 'unhealthy':
      return failed('agent', read.message, `Read its log: ${readLog}`);
    case 'absent':
      return warning('agent', `does not run: ${read.message}`, `Start it: ${start}`);
    default:
      return read satisfies never;
  }
}
