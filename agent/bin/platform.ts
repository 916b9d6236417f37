/** What differs between the operating systems of machines. It is chosen once, in `open-platform.ts`. */
import type { Log } from '../../shared/observability/log.ts';
import type { ServiceParts } from '../app/services/service-parts.ts';
import type { SleepSignal } from '../app/sleep-watch.ts';
import type { StartParts } from '../app/start-checks.ts';
import type { AgentConfig } from '../config.ts';
import type { ClaimDirectories } from '../ports/claim-directories.ts';
import type { HeartbeatFile } from '../ports/heartbeat-file.ts';
import type { Machine } from '../ports/machine.ts';
import type { PermitFile } from '../ports/permit-file.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import type { PodVolumes } from '../ports/pod-volumes.ts';
import type { ProbeClient } from '../ports/probe-client.ts';
import type { ShutdownSignal } from '../ports/shutdown-signal.ts';

export interface PlatformOptions {
  readonly config: AgentConfig;
  readonly log: Log;
  readonly probeClient: ProbeClient;
  /** Address of this machine, for pods. */
  readonly hostIp: () => string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface Platform {
  readonly machine: Machine;
  /** The runtime of the configuration. */
  openRuntime(): Promise<PodRuntime>;
  volumes(): PodVolumes;
  /** Absent: no volumes are made for claims. */
  readonly claimDirectories?: () => ClaimDirectories;
  /** Undefined: Services are not routed. What was there for them is removed. */
  services(): Promise<ServiceParts | undefined>;
  numa(): Promise<StartParts['numa']>;
  swaps(): Promise<string | undefined>;
  readonly heartbeatFile: HeartbeatFile;
  readonly permitFile: PermitFile;
  readonly shutdownSignal: ShutdownSignal;
  /** Absent: suspends are not announced. */
  readonly sleepSignal: SleepSignal | undefined;
  /** Aborted when the operating system asks the agent to stop other than by a signal. */
  readonly stopRequested: AbortSignal | undefined;
  /** After all loops have ended. */
  close(): Promise<void>;
}

export const NO_NUMA: StartParts['numa'] = { nodes: [], distances: undefined };
