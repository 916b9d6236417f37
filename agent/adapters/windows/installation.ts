/**
 * Installs the agent as a service of Windows, and removes it. A step that fails reverts those before it, so nothing is
 * half installed.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  authorityFileOf,
  configFileOf,
  configText,
  environmentFileOf,
  environmentText,
  type InstallPaths,
  type InstallSettings,
  orderWithout,
  SERVICE_NAME,
  SHUTDOWN_TIMEOUT_MS,
  serviceCommandLine,
  tokenFileOf,
} from '../../rules/windows-install.ts';
import { ACCESS_DENIED, WindowsError, wide, windowsLibraries } from './foreign.ts';
import { PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER } from './preshutdown.ts';
import { RegistryTypeError, registryTexts, removeRegistryValue, writeRegistryTexts } from './registry.ts';
import {
  createService,
  preshutdownTimeoutMs,
  removeService,
  serviceDependencies,
  serviceExists,
  serviceRuns,
  startService,
  stopService,
} from './service-database.ts';

/** Only administrators and the system itself: the directory has the key of the machine. In SDDL. */
const ADMINISTRATORS_ONLY = 'D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)';
const ACCESS_LIST = 4;
const SDDL_REVISION = 1;
const PROGRAM_FILES = ['nodekeeper-agent.mjs', 'start-agent.mjs', 'service-worker.mjs', 'koffi.node'];
const ORDER_FILE = 'preshutdown-order.json';
const STOP_POLL_MS = 250;
const STOP_POLLS_MAX = 160;

/** The installation is refused. The message is one line, for a person. */
export class InstallError extends Error {
  override readonly name = 'InstallError';
}

export interface InstallRequest extends Omit<InstallSettings, 'hasAuthority'> {
  readonly bootstrapTokenFile: string;
  readonly authorityFile: string | undefined;
  readonly dependencies: readonly string[];
  /** Uses configuration and key that the directory has. */
  readonly keepsData: boolean;
  readonly start: boolean;
}

export const installPaths = (environment: Readonly<Record<string, string | undefined>>): InstallPaths => ({
  node: process.execPath,
  program: join(environment['ProgramFiles'] ?? 'C:\\Program Files', 'nodekeeper'),
  data: join(environment['ProgramData'] ?? 'C:\\ProgramData', 'nodekeeper'),
});

/** @throws InstallError */
export function install(paths: InstallPaths, request: InstallRequest): void {
  refuseIfInstalled();
  // Every user may create a directory there, and the service would obey the configuration in it.
  if (existsSync(paths.data) && !request.keepsData) {
    throw new InstallError(`${paths.data} exists: remove it, or look at what it has and install with --keep-data`);
  }
  const order = currentOrder();
  const token = fileText(request.bootstrapTokenFile);
  const authority = request.authorityFile === undefined ? undefined : fileText(request.authorityFile);
  const undo: (() => void)[] = [];
  try {
    makeDirectory(paths.program, undo);
    makeDirectory(paths.data, undo);
    restrictAccess(paths.data);
    const here = dirname(fileURLToPath(import.meta.url));
    for (const name of PROGRAM_FILES) cpSync(join(here, name), join(paths.program, name));
    writeFileSync(join(paths.program, ORDER_FILE), JSON.stringify(order ?? null));
    writeFile(environmentFileOf(paths), environmentText(paths), undo);
    // An existing configuration is kept.
    if (!existsSync(configFileOf(paths))) {
      writeFile(configFileOf(paths), configText(paths, { ...request, hasAuthority: authority !== undefined }), undo);
      writeFile(tokenFileOf(paths), token, undo);
      if (authority !== undefined) writeFile(authorityFileOf(paths), authority, undo);
    }
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
    if (request.start) startService(SERVICE_NAME);
  } catch (cause) {
    const left = revertAll(undo);
    if (cause instanceof InstallError && left.length === 0) throw cause;
    const outcome = left.length === 0 ? 'nothing was installed' : `not removed: ${left.join('; ')}`;
    throw new InstallError(`${(cause as Error).message}; ${outcome}`, { cause });
  }
}

/** A step that cannot be reverted keeps none of the others. Returns the reasons. */
const revertAll = (undo: readonly (() => void)[]): readonly string[] =>
  undo.toReversed().flatMap((revert) => {
    try {
      revert();
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });

/** Removes the service and its program files. @throws InstallError */
export async function uninstall(paths: InstallPaths, { purge }: { readonly purge: boolean }): Promise<void> {
  if (dirname(fileURLToPath(import.meta.url)) === paths.program) {
    throw new InstallError('these files are in use: run uninstall from the directory that install was run from');
  }
  try {
    if (serviceExists(SERVICE_NAME)) {
      stopService(SERVICE_NAME);
      for (let polls = 0; serviceRuns(SERVICE_NAME); polls += 1) {
        if (polls >= STOP_POLLS_MAX) throw new InstallError(`service ${SERVICE_NAME} does not stop; stop it first`);
        await new Promise((resolve) => setTimeout(resolve, STOP_POLL_MS));
      }
      restoreOrder(paths);
      removeService(SERVICE_NAME);
    }
    rmSync(paths.program, { recursive: true, force: true });
    if (purge) rmSync(paths.data, { recursive: true, force: true });
  } catch (cause) {
    throw refusal(cause);
  }
}

function refuseIfInstalled(): void {
  let exists: boolean;
  try {
    exists = serviceExists(SERVICE_NAME);
  } catch (cause) {
    throw refusal(cause);
  }
  if (exists) {
    throw new InstallError(`service ${SERVICE_NAME} exists already; nodekeeper-agent uninstall removes it`);
  }
}

function refusal(cause: unknown): InstallError {
  if (cause instanceof InstallError) return cause;
  if (cause instanceof WindowsError && cause.code === ACCESS_DENIED) {
    return new InstallError('this needs an administrator: open the command prompt as administrator', { cause });
  }
  return new InstallError(cause instanceof Error ? cause.message : String(cause), { cause });
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

function makeDirectory(path: string, undo: (() => void)[]): void {
  if (existsSync(path)) return;
  mkdirSync(path);
  undo.push(() => rmSync(path, { recursive: true, force: true }));
}

function writeFile(path: string, text: string, undo: (() => void)[]): void {
  const before = existsSync(path) ? readFileSync(path) : undefined;
  writeFileSync(path, text);
  undo.push(() => (before === undefined ? rmSync(path, { force: true }) : writeFileSync(path, before)));
}

function restrictAccess(directory: string): void {
  const { advapi32, lastError } = windowsLibraries();
  const parse = advapi32.func<(text: Buffer, revision: number, descriptor: Buffer, size: null) => boolean>(
    'bool __stdcall ConvertStringSecurityDescriptorToSecurityDescriptorW(void *t, uint32 r, void *d, void *s)',
  );
  const apply = advapi32.func<(path: Buffer, what: number, descriptor: bigint) => boolean>(
    'bool __stdcall SetFileSecurityW(void *p, uint32 w, void *d)',
  );
  const descriptor = Buffer.alloc(8);
  if (
    !parse(wide(ADMINISTRATORS_ONLY), SDDL_REVISION, descriptor, null) ||
    !apply(wide(directory), ACCESS_LIST, descriptor.readBigUInt64LE())
  ) {
    throw new WindowsError(`access to ${directory}`, lastError());
  }
}
