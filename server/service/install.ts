/**
 * nodekeeper serve --install and --uninstall, of a cluster and of a hub. Everything is checked before the first change.
 * When a later step fails, the unit that was there before is put back, or none. Both can be repeated.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StartError } from '../../shared/host/start-error.ts';
import { readAuthorities, readCertificate } from '../certificate.ts';
import { clusterConnection } from '../hub/cluster-connection.ts';
import { requireProgram } from '../hub/permits/power-switch.ts';
import { policyOf, usersOf } from '../inputs.ts';
import type { ServeOptions } from '../options.ts';
import { StoreOpenError } from '../store/sqlite-store.ts';
import { lockStore } from '../store/store-lock.ts';
import { type Program, type Service, serviceOf, unitMark, unitText } from './unit.ts';

/** A start may check a database and read a long log. Milliseconds. */
const COMMAND_MS = 320_000;
const READ_BY_OTHERS = 0o004;
const ENTERED_BY_OTHERS = 0o001;
/** What the unit does not see (ProtectHome, PrivateTmp). */
const HIDDEN = ['/home/', '/root/', '/run/user/', '/tmp/', '/var/tmp/'];

export interface ServiceMachine {
  readonly uid: number | undefined;
  /** systemd runs this machine: sd_booted(3). */
  readonly isBooted: boolean;
  /** Where units of the administrator are. */
  readonly unitDirectory: string;
  /** Where units have their data. */
  readonly stateDirectory: string;
  systemctl(...args: readonly string[]): Promise<{ readonly exitCode: number; readonly output: string }>;
  print(line: string): void;
}

export const thisMachine = (print: (line: string) => void): ServiceMachine => ({
  uid: process.getuid?.(),
  isBooted: existsSync('/run/systemd/system'),
  unitDirectory: '/etc/systemd/system',
  stateDirectory: '/var/lib',
  systemctl: (...args) =>
    new Promise((done) => {
      execFile('systemctl', args, { timeout: COMMAND_MS }, (error, stdout, stderr) => {
        const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
        done({ exitCode, output: (stdout || stderr || (error?.message ?? '')).trim() });
      });
    }),
  print,
});

/** @throws StartError with one line; nothing is changed then */
export async function installService(options: ServeOptions, program: Program, machine: ServiceMachine): Promise<void> {
  requireSystemd(machine, '--install');
  const service = serviceOf(options);
  const { name, state } = service;
  const stateDirectory = join(machine.stateDirectory, state);
  if (options.dataDirectory === undefined || options.demo !== undefined) {
    throw new StartError('--install excludes --ephemeral and --demo');
  }
  if (options.isDataNamed) {
    throw new StartError(
      `--install excludes --data: a service keeps its data in ${stateDirectory}. To use a directory that ` +
        'exists, move it there before',
    );
  }
  policyOf(options.policyFile);
  usersOf(options);
  if (options.certificate !== undefined) readCertificate(options.certificate);
  if (options.clientCaFile !== undefined) readAuthorities(options.clientCaFile);
  if (options.upstream !== undefined) clusterConnection({ ...options.upstream, socketsMax: 1 }).stop();
  const { powerOff } = options.upstream ?? {};
  if (powerOff !== undefined) requireProgram(powerOff);
  for (const file of [program.node, program.main, ...(powerOff === undefined ? [] : [powerOff])]) requireVisible(file);
  const text = unitText(options, program);
  const file = join(machine.unitDirectory, name);
  await requireOurs(machine, file, service);
  await requireUnused(machine, service);

  const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  writeUnit(file, text);
  const failure = await firstFailure(machine, [['daemon-reload'], ['enable', name], ['restart', name]]);
  if (failure !== undefined) {
    await undo(machine, file, { name, before });
    throw new StartError(
      `${failure}. ${before === undefined ? 'Nothing is installed' : 'The previous unit is restored'}; ` +
        `journalctl -u ${name} says more`,
    );
  }
  machine.print(
    `${name} is installed and runs; its data is in ${stateDirectory}. systemctl status ${name} shows its address`,
  );
}

/** Keeps the data. @throws StartError */
export async function uninstallService(service: Service, machine: ServiceMachine): Promise<void> {
  requireSystemd(machine, '--uninstall');
  const { name, state } = service;
  const file = join(machine.unitDirectory, name);
  await requireOurs(machine, file, service);
  if (!existsSync(file)) {
    machine.print(`${name} is not installed`);
    return;
  }
  const failure = await firstFailure(machine, [['disable', '--now', name]]);
  if (failure !== undefined) throw new StartError(failure);
  rmSync(file);
  await machine.systemctl('daemon-reload');
  await machine.systemctl('reset-failed', name);
  machine.print(`${name} is removed; its data is kept in ${join(machine.stateDirectory, state)}`);
}

function requireSystemd({ uid, isBooted }: ServiceMachine, option: string): void {
  if (!isBooted) throw new StartError(`${option} needs systemd, which does not run this machine`);
  if (uid !== 0) throw new StartError(`${option} must be run by root`);
}

/** The unit has a user of its own, and sees no home directories. */
function requireVisible(file: string): void {
  const advice = 'install Node.js and Nodekeeper where every user can read them, for example below /opt';
  if (HIDDEN.some((prefix) => file.startsWith(prefix))) {
    throw new StartError(`${file} is in a directory that a service does not see: ${advice}`);
  }
  for (let path = file, wanted = READ_BY_OTHERS; ; path = dirname(path), wanted = ENTERED_BY_OTHERS) {
    if ((statSync(path).mode & wanted) === 0) throw new StartError(`${path} is closed to other users: ${advice}`);
    if (path === dirname(path)) return;
  }
}

/** @throws StartError for a unit of this name that another program installed, in whatever directory */
async function requireOurs(machine: ServiceMachine, file: string, service: Service): Promise<void> {
  const { output } = await machine.systemctl('show', '-P', 'FragmentPath', service.name);
  for (const path of new Set([output, file])) {
    if (path === '' || !existsSync(path) || readFileSync(path, 'utf8').startsWith(unitMark(service))) continue;
    throw new StartError(`${path} is a unit of another program: remove it first. Nothing was changed`);
  }
}

/** A process of the unit itself is restarted. @throws StartError */
async function requireUnused(machine: ServiceMachine, service: Service): Promise<void> {
  const database = join(machine.stateDirectory, service.state, 'data', service.database);
  // Looking must not create a lock of root: the user of the service could not open it.
  if (!existsSync(`${database}.lock`)) return;
  const own = Number((await machine.systemctl('show', '-P', 'MainPID', service.name)).output);
  try {
    lockStore(database).release();
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error;
    if (error.code === 'in-use' && own > 0 && error.pid === own) return;
    throw new StartError(error.message, { cause: error });
  }
}

/** Writes it as a whole: a power cut leaves the old unit or the new one. */
function writeUnit(file: string, text: string): void {
  try {
    writeFileSync(`${file}.new`, text, { mode: 0o644, flush: true });
    renameSync(`${file}.new`, file);
  } catch (cause) {
    rmSync(`${file}.new`, { force: true });
    throw new StartError(`${file} cannot be written: ${(cause as Error).message}`, { cause });
  }
}

async function firstFailure(
  machine: ServiceMachine,
  commands: readonly (readonly string[])[],
): Promise<string | undefined> {
  for (const command of commands) {
    const { exitCode, output } = await machine.systemctl(...command);
    if (exitCode !== 0)
      return `systemctl ${command.join(' ')} failed: ${output.split('\n')[0]?.replace(/\.$/, '') || `exit code ${exitCode}`}`;
  }
  return undefined;
}

async function undo(
  machine: ServiceMachine,
  file: string,
  { name, before }: { readonly name: string; readonly before: string | undefined },
): Promise<void> {
  if (before === undefined) {
    await machine.systemctl('disable', '--now', name);
    rmSync(file, { force: true });
  } else writeUnit(file, before);
  await machine.systemctl('daemon-reload');
  if (before !== undefined) await machine.systemctl('restart', name);
  else await machine.systemctl('reset-failed', name);
}
