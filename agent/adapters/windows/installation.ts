/**
 * Installs the agent as a service of Windows, and removes it. A step that fails reverts those before it, so nothing is
 * half installed.
 */
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CURRENT_LINK, TRIAL_RECORD } from '../../rules/update-record.ts';
import {
  authorityFileOf,
  configFileOf,
  configText,
  environmentFileOf,
  environmentText,
  type InstallPaths,
  type InstallSettings,
  logFileOf,
  orderWithout,
  SERVICE_NAME,
  SHUTDOWN_TIMEOUT_MS,
  serviceCommandLine,
  tokenFileOf,
  updateKeyFileOf,
} from '../../rules/windows-install.ts';
import { ADMINISTRATORS_SID, makePrivateDirectory, ownerOf, SYSTEM_SID } from './file-security.ts';
import { ACCESS_DENIED, WindowsError } from './foreign.ts';
import { PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER } from './preshutdown.ts';
import { RegistryTypeError, registryTexts, removeRegistryValue, writeRegistryTexts } from './registry.ts';
import {
  checkMayInstall,
  createService,
  preshutdownTimeoutMs,
  removeService,
  serviceCommand,
  serviceDependencies,
  serviceExists,
  serviceState,
  startService,
  stopService,
} from './service-database.ts';

const PROGRAM_FILES = ['nodekeeper-agent.mjs', 'start-agent.mjs', 'service-worker.mjs', 'koffi.node'];
const ORDER_FILE = 'preshutdown-order.json';
/** Versions that were installed by updates. */
const AGENTS_DIRECTORY = 'agents';
const STATE_POLL_MS = 250;
const STATE_POLLS_MAX = 160;
const REMOVALS_MAX = 20;
const LOG_CHARACTERS_SHOWN = 300;

type Undo = () => void | Promise<void>;

/** The installation is refused. The message is one line, for a person. */
export class InstallError extends Error {
  override readonly name = 'InstallError';
}

export interface InstallRequest extends Omit<InstallSettings, 'hasAuthority' | 'hasUpdateKey' | 'endpoint'> {
  /** Undefined: the configuration that the directory has. */
  readonly endpoint: string | undefined;
  readonly bootstrapTokenFile: string | undefined;
  readonly authorityFile: string | undefined;
  /** Public key of the releases that the agent installs. Undefined: no updates. */
  readonly updateKeyFile: string | undefined;
  readonly dependencies: readonly string[];
  /** Uses configuration and key that the directory has. */
  readonly keepsData: boolean;
  readonly start: boolean;
  /** What is wrong with a configuration; undefined if nothing is. */
  readonly faultOf: (configFile: string) => string | undefined;
}

export interface Installation extends InstallPaths {
  /** The program files that are installed. */
  readonly build: string;
}

export const installPaths = (environment: Readonly<Record<string, string | undefined>>): Installation => ({
  // The directory of this file, which the build makes one program of.
  build: dirname(fileURLToPath(import.meta.url)),
  node: process.execPath,
  program: join(environment['ProgramFiles'] ?? 'C:\\Program Files', 'nodekeeper'),
  data: join(environment['ProgramData'] ?? 'C:\\ProgramData', 'nodekeeper'),
});

/**
 * Installs and starts the service. Returns whether the configuration is an earlier one.
 *
 * @throws InstallError
 */
export async function install(paths: Installation, request: InstallRequest): Promise<{ readonly isKept: boolean }> {
  refuseInstalledFiles(paths);
  refuseWithoutRights();
  refuseIfInstalled(paths);
  const isKept = existsSync(paths.data);
  // Every user may create a directory there, and the service would obey the configuration in it.
  if (isKept && !request.keepsData) {
    throw new InstallError(`${paths.data} exists: remove it, or look at what it has and install with --keep-data`);
  }
  const order = currentOrder();
  const settings = isKept && existsSync(configFileOf(paths)) ? undefined : newSettings(paths, request);
  const undo: Undo[] = [];
  try {
    // Of an installation that was removed by hand.
    await removeTree(paths.program);
    mkdirSync(paths.program);
    undo.push(() => removeTree(paths.program));
    if (isKept) refuseForeignFiles(paths);
    else {
      makePrivateDirectory(paths.data);
      undo.push(() => removeTree(paths.data));
    }
    for (const name of PROGRAM_FILES) cpSync(join(paths.build, name), join(paths.program, name));
    writeFileSync(join(paths.program, ORDER_FILE), JSON.stringify(order ?? null));
    if (!existsSync(environmentFileOf(paths))) writeFile(environmentFileOf(paths), environmentText(paths), undo);
    for (const [file, text] of settings ?? []) writeFile(file, text, undo);
    const fault = request.faultOf(configFileOf(paths));
    if (fault !== undefined) throw new InstallError(fault);
    // The version that is installed now starts, not the one of an earlier update.
    for (const name of [TRIAL_RECORD, CURRENT_LINK])
      await rm(join(paths.data, AGENTS_DIRECTORY, name), { force: true });
    createService({
      name: SERVICE_NAME,
      displayName: 'Nodekeeper agent',
      description: 'Heartbeats, status, pods and graceful shutdown of this node',
      commandLine: serviceCommandLine(paths),
      dependencies: request.dependencies,
      preshutdownTimeoutMs: SHUTDOWN_TIMEOUT_MS,
    });
    undo.push(() => removeService(SERVICE_NAME));
    const storedMs = preshutdownTimeoutMs(SERVICE_NAME);
    if (storedMs < SHUTDOWN_TIMEOUT_MS) {
      throw new InstallError(
        `Windows refuses a preshutdown time-out of ${SHUTDOWN_TIMEOUT_MS} ms: it stored ${storedMs} ms`,
      );
    }
    if (request.start) {
      undo.push(stopAndWait);
      await startAndWait(paths);
    }
    return { isKept: settings === undefined };
  } catch (cause) {
    const left = await revertAll(undo);
    const { message } = refusal(cause);
    throw new InstallError(left.length === 0 ? `${message}; nothing was installed` : `${message}; ${left.join('; ')}`, {
      cause,
    });
  }
}

/** A step that cannot be reverted keeps none of the others. Returns the reasons. */
async function revertAll(undo: readonly Undo[]): Promise<readonly string[]> {
  const reasons: string[] = [];
  for (const revert of undo.toReversed()) {
    try {
      await revert();
    } catch (error) {
      reasons.push(`not removed: ${(error as Error).message}`);
    }
  }
  return reasons;
}

/** The texts of a new configuration, by file. @throws InstallError */
function newSettings(paths: InstallPaths, request: InstallRequest): readonly (readonly [string, string])[] {
  const { endpoint, bootstrapTokenFile, authorityFile, updateKeyFile } = request;
  if (endpoint === undefined || bootstrapTokenFile === undefined) {
    const file = configFileOf(paths);
    throw new InstallError(`there is no ${file}: --endpoint and --bootstrap-token-file are needed`);
  }
  const hasUpdateKey = updateKeyFile !== undefined;
  const settings = { ...request, endpoint, hasAuthority: authorityFile !== undefined, hasUpdateKey };
  return [
    [configFileOf(paths), configText(paths, settings)],
    [tokenFileOf(paths), fileText(bootstrapTokenFile)],
    ...(authorityFile === undefined ? [] : [[authorityFileOf(paths), fileText(authorityFile)] as const]),
    ...(updateKeyFile === undefined ? [] : [[updateKeyFileOf(paths), fileText(updateKeyFile)] as const]),
  ];
}

/** Waits until the service runs: its process is there, and has answered Windows. @throws InstallError, WindowsError */
async function startAndWait(paths: InstallPaths): Promise<void> {
  const why = await startFault();
  if (why === undefined) return;
  const lines = existsSync(logFileOf(paths)) ? readFileSync(logFileOf(paths), 'utf8').trim().split('\n') : [];
  const last = lines.at(-1);
  throw new InstallError(last === undefined ? why : `${why}; its log: ${last.trim().slice(0, LOG_CHARACTERS_SHOWN)}`);
}

async function startFault(): Promise<string | undefined> {
  try {
    startService(SERVICE_NAME);
    for (let polls = 0; polls < STATE_POLLS_MAX; polls += 1) {
      const state = serviceState(SERVICE_NAME);
      if (state === 'running') return undefined;
      if (state === 'stopped') return `service ${SERVICE_NAME} stopped at its start`;
      await new Promise((resolve) => setTimeout(resolve, STATE_POLL_MS));
    }
    return `service ${SERVICE_NAME} does not run ${(STATE_POLL_MS * STATE_POLLS_MAX) / 1_000} s after its start`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** @throws InstallError, WindowsError */
async function stopAndWait(): Promise<void> {
  stopService(SERVICE_NAME);
  for (let polls = 0; serviceState(SERVICE_NAME) !== 'stopped'; polls += 1) {
    if (polls >= STATE_POLLS_MAX) throw new InstallError(`service ${SERVICE_NAME} does not stop; stop it first`);
    await new Promise((resolve) => setTimeout(resolve, STATE_POLL_MS));
  }
}

/** Removes the service and its program files. @throws InstallError */
export async function uninstall(paths: Installation, { purge }: { readonly purge: boolean }): Promise<void> {
  refuseInstalledFiles(paths);
  refuseWithoutRights();
  try {
    if (serviceExists(SERVICE_NAME)) {
      if (!isOurs(paths)) throw new InstallError(anotherProgram());
      await stopAndWait();
      restoreOrder(paths);
      removeService(SERVICE_NAME);
    }
    await removeTree(paths.program);
    if (purge) await removeTree(paths.data);
  } catch (cause) {
    throw refusal(cause);
  }
}

/** A process that has just stopped still has its files open. */
const removeTree = (path: string): Promise<void> =>
  rm(path, { recursive: true, force: true, maxRetries: REMOVALS_MAX, retryDelay: STATE_POLL_MS });

/** @throws InstallError */
function refuseInstalledFiles({ program, build }: Installation): void {
  if (build.toLowerCase() === program.toLowerCase()) {
    throw new InstallError('these files are the installed ones: run this from the directory that install was run from');
  }
}

/** @throws InstallError */
function refuseWithoutRights(): void {
  try {
    checkMayInstall();
  } catch (cause) {
    throw refusal(cause);
  }
}

/** @throws InstallError */
function refuseIfInstalled(paths: InstallPaths): void {
  let message: string | undefined;
  try {
    if (!serviceExists(SERVICE_NAME)) return;
    message = isOurs(paths)
      ? `service ${SERVICE_NAME} exists already; nodekeeper-agent uninstall removes it`
      : anotherProgram();
  } catch (cause) {
    throw refusal(cause);
  }
  throw new InstallError(message);
}

const isOurs = ({ program }: InstallPaths): boolean =>
  serviceCommand(SERVICE_NAME).toLowerCase().includes(`${program.toLowerCase()}\\`);

const anotherProgram = (): string =>
  `service ${SERVICE_NAME} exists already, and is another program: ${serviceCommand(SERVICE_NAME)}`;

function refusal(cause: unknown): InstallError {
  if (cause instanceof InstallError) return cause;
  if (cause instanceof WindowsError && cause.code === ACCESS_DENIED) {
    return new InstallError('this needs an administrator: open the command prompt as administrator', { cause });
  }
  return new InstallError(cause instanceof Error ? cause.message : String(cause), { cause });
}

/**
 * What the service obeys has to belong to administrators or to the system: the owner of a file can always change it.
 *
 * @throws InstallError
 */
function refuseForeignFiles({ program, data }: InstallPaths): void {
  if (lstatSync(data).isSymbolicLink()) throw new InstallError(`${data} leads elsewhere: remove it`);
  const agents = join(data, AGENTS_DIRECTORY);
  const within = (directory: string): string[] => readdirSync(directory).map((name) => join(directory, name));
  const trusted = [SYSTEM_SID, ADMINISTRATORS_SID, ownerOf(program)];
  for (const path of [data, ...within(data), ...(existsSync(agents) ? within(agents) : [])]) {
    const owner = ownerOf(path);
    if (trusted.includes(owner)) continue;
    throw new InstallError(`${path} belongs to ${owner}, not to administrators: remove it`);
  }
}

/** @throws InstallError when the agent could not add itself later */
function currentOrder(): readonly string[] | undefined {
  try {
    return registryTexts(PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER);
  } catch (cause) {
    if (!(cause instanceof RegistryTypeError)) throw refusal(cause);
    throw new InstallError(`${cause.message}: correct or remove this value of the registry`, { cause });
  }
}

function restoreOrder(paths: InstallPaths): void {
  const current = registryTexts(PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER);
  const file = join(paths.program, ORDER_FILE);
  if (current === undefined || !existsSync(file)) return;
  const before = (JSON.parse(readFileSync(file, 'utf8')) as readonly string[] | null) ?? undefined;
  const left = orderWithout(SERVICE_NAME, serviceDependencies(SERVICE_NAME), current, before);
  if (left === undefined) removeRegistryValue(PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER);
  else writeRegistryTexts(PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER, left);
}

function fileText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new InstallError(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

function writeFile(path: string, text: string, undo: Undo[]): void {
  writeFileSync(path, text, { flag: 'wx' });
  undo.push(() => rm(path, { force: true }));
}
