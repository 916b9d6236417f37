/**
 * nodekeeper-agent doctor [--json] [--config FILE] [--FLAG VALUE …]
 *
 * Checks this machine, changes nothing, and prints one line per check. Exit code 1 if a check failed.
 */
import { hostSystem } from '../adapters/config/host-system.ts';
import type { LoadedConfig } from '../adapters/config/load-config.ts';
import {
  readAgent,
  readCgroups,
  readDisk,
  readEndpoint,
  readKey,
  readRuntime,
  readShutdown,
  readToken,
} from '../adapters/doctor/measure.ts';
import { readOwnRelay, readUsedRelay } from '../adapters/doctor/measure-relay.ts';
import { LinuxMachine } from '../adapters/linux-machine/linux-machine.ts';
import { updateFiles } from '../adapters/updates/update-files.ts';
import { InstalledVersions } from '../app/updates/installed-versions.ts';
import type { AgentConfig } from '../config.ts';
import { describeConfigFault } from '../rules/config-settings.ts';
import { findingsOf, type Readings } from '../rules/doctor.ts';
import type { Finding } from '../rules/finding.ts';
import { swapStartFault } from '../rules/swap-detection.ts';

const CONFIG_FILE = hostSystem.configFile;
export const DOCTOR_USAGE = `Usage: nodekeeper-agent doctor [--json] [--config FILE] [--FLAG VALUE …]

  --config FILE   the agent's configuration (${CONFIG_FILE})
  --json          as JSON
`;

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
  const rest = args.filter((each) => each !== '--json');
  const hasConfig = rest.some((each) => each === '--config' || each.startsWith('--config='));
  const loaded = io.loadConfig(hasConfig ? rest : ['--config', CONFIG_FILE, ...rest]);
  if (loaded.kind === 'help') {
    io.print(DOCTOR_USAGE);
    return 0;
  }
  const findings = loaded.kind === 'ok' ? await examine(loaded.config, io) : [];
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

async function examine(
  config: AgentConfig,
  { environment, agentVersion, nowMs }: DoctorIo,
): Promise<readonly Finding[]> {
  const key = await readKey(config);
  const machine = new LinuxMachine({ rootDirectory: config.rootDirectory });
  // Before the others: it listens on the port for a moment.
  const ownRelay = await readOwnRelay(config, machine);
  const [endpoint, token, shutdown, disk, runtime, agent, updates, swaps, usedRelay] = await Promise.all([
    readEndpoint(config, environment),
    readToken(config, key, environment),
    readShutdown(environment['DBUS_SYSTEM_BUS_ADDRESS']),
    readDisk(config.rootDirectory),
    readRuntime(config.runtime),
    readAgent(config.healthzPort),
    readUpdates(environment['NODEKEEPER_AGENTS']),
    machine.swaps(),
    readUsedRelay(config),
  ]);
  const readings: Readings = {
    agentVersion,
    nodeVersion: process.version,
    endpoint,
    key,
    token,
    shutdown,
    cgroups: readCgroups(config.cgroupRoot),
    disk,
    runtime,
    agent,
    updates,
    usedRelay,
    ownRelay,
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
