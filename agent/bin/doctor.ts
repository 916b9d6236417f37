/**
 * nodekeeper-agent doctor [--json] [--config FILE] [--FLAG VALUE …]
 *
 * Checks this machine, changes nothing, and prints one line per check. Exit code 1 if a check failed.
 */
import { hostSystem } from '../adapters/config/host-system.ts';
import { type LoadedConfig, withConfigFile } from '../adapters/config/load-config.ts';
import {
  readAgent,
  readCgroups,
  readDisk,
  readEndpoint,
  readKey,
  readRuntime,
  readShutdown,
  readToken,
  readVolumeLimits,
} from '../adapters/doctor/measure.ts';
import { readOffline } from '../adapters/doctor/measure-offline.ts';
import { readOwnRelay, readUsedRelay } from '../adapters/doctor/measure-relay.ts';
import { readServices } from '../adapters/doctor/measure-services.ts';
import { readWitness } from '../adapters/doctor/measure-witness.ts';
import { LinuxMachine } from '../adapters/linux-machine/linux-machine.ts';
import { updateFiles } from '../adapters/updates/update-files.ts';
import { InstalledVersions } from '../app/updates/installed-versions.ts';
import type { AgentConfig } from '../config.ts';
import type { Machine } from '../ports/machine.ts';
import { describeConfigFault } from '../rules/config-settings.ts';
import { findingsOf, type Readings } from '../rules/doctor.ts';
import { lastShutdown, preshutdownFindings } from '../rules/doctor-windows.ts';
import type { Finding } from '../rules/finding.ts';
import { swapStartFault } from '../rules/swap-detection.ts';

export const DOCTOR_USAGE = `Usage: nodekeeper-agent doctor [--json] [--windows-shutdown] [--config FILE] [--FLAG VALUE …]

  --config FILE   the agent's configuration (${hostSystem.configFile})
  --json          as JSON
  --windows-shutdown   only what concerns a shutdown of this machine with Windows, and how the last one went
`;

const SHUTDOWN_ONLY = '--windows-shutdown';

export interface DoctorIo {
  readonly print: (text: string) => void;
  readonly loadConfig: (args: readonly string[]) => LoadedConfig;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly agentVersion: string;
  readonly nowMs: () => number;
}

/** @param args the arguments after `doctor`. Returns the exit code: 0, or 1 if a check failed. */
export async function doctor(args: readonly string[], io: DoctorIo): Promise<number> {
  const isJson = args.includes('--json');
  const isShutdownOnly = args.includes(SHUTDOWN_ONLY);
  if (isShutdownOnly && process.platform !== 'win32') {
    io.print(`${SHUTDOWN_ONLY} is for Windows`);
    return 1;
  }
  const rest = args.filter((each) => each !== '--json' && each !== SHUTDOWN_ONLY);
  const loaded = io.loadConfig(withConfigFile(rest));
  if (loaded.kind === 'help') {
    io.print(DOCTOR_USAGE);
    return 0;
  }
  const look = isShutdownOnly ? examineShutdown : examine;
  const findings = loaded.kind === 'ok' ? await look(loaded.config, io) : [];
  const all = [...configurationFindings(loaded), ...findings];
  if (isJson) io.print(JSON.stringify({ checks: all }, undefined, 2));
  else for (const finding of all) io.print(lineOf(finding));
  return all.some(({ outcome }) => outcome === 'failed') ? 1 : 0;
}

function configurationFindings(loaded: Exclude<LoadedConfig, { kind: 'help' }>): Finding[] {
  const check = 'configuration';
  const todo = 'Correct this in the configuration.';
  const warnings = loaded.warnings.map((message): Finding => ({ check, outcome: 'warning', message, todo }));
  if (loaded.kind === 'ok') {
    const { nodeName, runtime } = loaded.config;
    return [{ check, outcome: 'ok', message: `node ${nodeName}, runtime ${runtime}` }, ...warnings];
  }
  const faults = loaded.faults.map((fault): Finding => {
    return { check, outcome: 'failed', message: describeConfigFault(fault), todo };
  });
  return [...faults, ...warnings];
}

const OUTCOME_WIDTH = 9;
const CHECK_WIDTH = 15;

const lineOf = ({ check, outcome, message, todo }: Finding): string =>
  `${outcome.padEnd(OUTCOME_WIDTH)}${check.padEnd(CHECK_WIDTH)}${message}${todo === undefined ? '' : `. ${todo}`}`;

/** The measurements that differ between operating systems. */
interface MachineParts {
  readonly machine: Pick<Machine, 'addresses' | 'lookup'>;
  readonly shutdown: () => Promise<Readings['shutdown']>;
  readonly runtime: () => Promise<Readings['runtime']>;
  readonly swaps: () => Promise<string | undefined>;
  readonly volumeLimits: () => Promise<Readings['volumeLimits']>;
}

function linuxParts({ rootDirectory, runtime }: AgentConfig, environment: DoctorIo['environment']): MachineParts {
  const machine = new LinuxMachine({ rootDirectory });
  return {
    machine,
    shutdown: () => readShutdown(environment['DBUS_SYSTEM_BUS_ADDRESS']),
    runtime: () => readRuntime(runtime),
    swaps: () => machine.swaps(),
    volumeLimits: () => readVolumeLimits({ rootDirectory, runtime }),
  };
}

async function windowsParts({ rootDirectory, runtime }: AgentConfig): Promise<MachineParts> {
  const { readPreshutdown } = await import('../adapters/doctor/measure-windows.ts');
  const { WindowsMachine } = await import('../adapters/windows/windows-machine.ts');
  return {
    machine: new WindowsMachine({ rootDirectory }),
    shutdown: async () => ({ kind: 'preshutdown', preshutdown: readPreshutdown() }),
    runtime: async () => ({ kind: runtime === 'none' ? 'none' : 'jobs' }),
    swaps: async () => undefined,
    volumeLimits: async () => undefined,
  };
}

async function examineShutdown(config: AgentConfig, { nowMs }: DoctorIo): Promise<readonly Finding[]> {
  const { readPreshutdown, readShutdownHistory } = await import('../adapters/doctor/measure-windows.ts');
  return [
    ...preshutdownFindings(config, readPreshutdown()),
    lastShutdown(await readShutdownHistory(config.rootDirectory, nowMs())),
  ];
}

async function examine(
  config: AgentConfig,
  { environment, agentVersion, nowMs }: DoctorIo,
): Promise<readonly Finding[]> {
  const key = await readKey(config);
  const local = process.platform === 'win32' ? await windowsParts(config) : linuxParts(config, environment);
  const { machine } = local;
  // Before the others: they listen on their ports for a moment.
  const ownRelay = await readOwnRelay(config, machine);
  const witness = await readWitness(config);
  const [endpoint, token, shutdown, disk, runtime, agent, updates, swaps, usedRelay, offline, services, volumeLimits] =
    await Promise.all([
      readEndpoint(config, environment),
      readToken(config, key, environment),
      local.shutdown(),
      readDisk(config.rootDirectory),
      local.runtime(),
      readAgent(config.healthzPort),
      readUpdates(environment['NODEKEEPER_AGENTS']),
      local.swaps(),
      readUsedRelay(config),
      readOffline(config),
      readServices(config.services),
      local.volumeLimits(),
    ]);
  const readings: Readings = {
    agentVersion,
    nodeVersion: process.version,
    endpoint,
    key,
    token,
    shutdown,
    cgroups: readCgroups({ fileRoot: '/', cgroupRoot: config.cgroupRoot }),
    disk,
    volumeLimits,
    runtime,
    agent,
    updates,
    usedRelay,
    ownRelay,
    witness,
    services,
    offline,
    readyMessage: agent.kind === 'absent' ? undefined : token?.readyMessage,
    swapFault: swapStartFault(config.failSwapOn, swaps),
  };
  return findingsOf(config, readings, nowMs());
}

/** @param directory of the start program; undefined: the agent was started without it */
async function readUpdates(directory: string | undefined): Promise<Readings['updates']> {
  if (directory === undefined) return { isOnTrial: false, failed: undefined };
  const versions = new InstalledVersions(updateFiles(directory));
  const isOnTrial = await versions.trial().then(
    (trial) => trial !== undefined,
    () => false,
  );
  const failures = await versions.failed().catch(() => []);
  return { isOnTrial, failed: failures.at(-1) };
}
