/** The service control manager's record of a service: what is installed, and its preshutdown time-out. */
import { foreign, type Pointer, required, SERVICE_UNKNOWN, WindowsError, wide, windowsLibraries } from './foreign.ts';
import { registryTexts } from './registry.ts';

const MANAGER_CONNECT = 0x0001;
const MANAGER_CREATE = 0x0002;
const SERVICE_ALL = 0xf01ff;
const QUERY_CONFIG = 0x0001;
const CHANGE_CONFIG = 0x0002;
const OWN_PROCESS = 0x10;
const AUTO_START = 2;
const ERROR_NORMAL = 1;
const INFO_DESCRIPTION = 1;
const INFO_FAILURE_ACTIONS = 2;
const INFO_PRESHUTDOWN = 7;
const CONTROL_STOP = 1;
const CONFIG_BYTES = 8_192;
/** QUERY_SERVICE_CONFIGW: where the address of the command line is. */
const COMMAND_AT = 16;
const STATE_STOPPED = 1;
const STATES = ['unknown', 'stopped', 'starting', 'stopping', 'running'] as const;
const ACTION_RESTART = 1;
const SERVICE_NOT_ACTIVE = 1062;

type Handle = Pointer;

interface ManagerCalls {
  readonly openManager: (machine: null, database: null, access: number) => Handle | null;
  readonly open: (manager: Handle, name: Buffer, access: number) => Handle | null;
  readonly create: (
    manager: Handle,
    name: Buffer,
    display: Buffer,
    access: number,
    type: number,
    start: number,
    errorControl: number,
    command: Buffer,
    group: null,
    tag: null,
    dependencies: Buffer | null,
    user: null,
    password: null,
  ) => Handle | null;
  readonly remove: (service: Handle) => boolean;
  readonly close: (handle: Handle) => boolean;
  readonly start: (service: Handle, count: number, args: null) => boolean;
  readonly control: (service: Handle, control: number, status: Buffer) => boolean;
  readonly status: (service: Handle, status: Buffer) => boolean;
  readonly config: (service: Handle, bytes: Buffer, size: number, needed: Buffer) => boolean;
  readonly change: (service: Handle, level: number, info: unknown) => boolean;
  readonly query: (service: Handle, level: number, bytes: Buffer, size: number, needed: Buffer) => boolean;
}

let found: ManagerCalls | undefined;

function calls(): ManagerCalls {
  const { advapi32 } = windowsLibraries();
  found ??= {
    openManager: advapi32.func('void *__stdcall OpenSCManagerW(void *m, void *d, uint32 a)'),
    open: advapi32.func('void *__stdcall OpenServiceW(void *m, void *n, uint32 a)'),
    create: advapi32.func(
      'void *__stdcall CreateServiceW(void *m, void *n, void *d, uint32 a, uint32 t, uint32 s, uint32 e, void *c, void *g, void *i, void *p, void *u, void *w)',
    ),
    remove: advapi32.func('bool __stdcall DeleteService(void *s)'),
    close: advapi32.func('bool __stdcall CloseServiceHandle(void *h)'),
    start: advapi32.func('bool __stdcall StartServiceW(void *s, uint32 n, void *a)'),
    control: advapi32.func('bool __stdcall ControlService(void *s, uint32 c, void *o)'),
    status: advapi32.func('bool __stdcall QueryServiceStatus(void *s, void *o)'),
    config: advapi32.func('bool __stdcall QueryServiceConfigW(void *s, void *c, uint32 z, void *n)'),
    change: advapi32.func('bool __stdcall ChangeServiceConfig2W(void *s, uint32 l, void *i)'),
    query: advapi32.func('bool __stdcall QueryServiceConfig2W(void *s, uint32 l, void *b, uint32 z, void *n)'),
  };
  return found;
}

function withService<Result>(name: string, access: number, act: (service: Handle) => Result): Result {
  const manager = required('OpenSCManagerW', calls().openManager(null, null, MANAGER_CONNECT));
  try {
    const service = required(`service ${name}`, calls().open(manager, wide(name), access));
    try {
      return act(service);
    } finally {
      calls().close(service);
    }
  } finally {
    calls().close(manager);
  }
}

/** @throws WindowsError when this user may not create services */
export function checkMayInstall(): void {
  const access = MANAGER_CONNECT | MANAGER_CREATE;
  calls().close(required('OpenSCManagerW', calls().openManager(null, null, access)));
}

/** The command line of the service. @throws WindowsError */
export const serviceCommand = (name: string): string =>
  withService(name, QUERY_CONFIG, (service) => {
    const config = Buffer.alloc(CONFIG_BYTES);
    required('QueryServiceConfigW', calls().config(service, config, config.length, Buffer.alloc(4)));
    return String(foreign().decode(config, COMMAND_AT, 'str16'));
  });

/** @throws WindowsError */
export function serviceExists(name: string): boolean {
  try {
    return withService(name, QUERY_CONFIG, () => true);
  } catch (error) {
    if (error instanceof WindowsError && error.code === SERVICE_UNKNOWN) return false;
    throw error;
  }
}

/** Time that Windows waits for the service after the preshutdown control. Milliseconds. @throws WindowsError */
export const preshutdownTimeoutMs = (name: string): number =>
  withService(name, QUERY_CONFIG, (service) => {
    const info = Buffer.alloc(4);
    required('QueryServiceConfig2W', calls().query(service, INFO_PRESHUTDOWN, info, info.length, Buffer.alloc(4)));
    return info.readUInt32LE();
  });

/** Windows may store another value: read it again. @throws WindowsError */
export function setPreshutdownTimeout(name: string, timeoutMs: number): void {
  const info = Buffer.alloc(4);
  info.writeUInt32LE(timeoutMs);
  withService(name, CHANGE_CONFIG, (service) =>
    required('ChangeServiceConfig2W', calls().change(service, INFO_PRESHUTDOWN, info)),
  );
}

/** Names of the services that this one depends on. @throws WindowsError, RegistryTypeError */
export const serviceDependencies = (name: string): readonly string[] =>
  (registryTexts(`SYSTEM\\CurrentControlSet\\Services\\${name}`, 'DependOnService') ?? []).filter(
    // Groups of services.
    (each) => !each.startsWith('+'),
  );

export interface ServiceDefinition {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  /** Program and arguments, with quotes. */
  readonly commandLine: string;
  readonly dependencies: readonly string[];
  readonly preshutdownTimeoutMs: number;
}

/** Waits between restarts after failures. Milliseconds. */
const RESTART_WAITS_MS: readonly number[] = [5_000, 5_000, 30_000];
/** After this long without a failure, the count of failures starts again. Seconds. */
const FAILURES_RESET_SECONDS = 3_600;

/** Creates a service that starts with the machine. Nothing is left of it if a step fails. @throws WindowsError */
export function createService(definition: ServiceDefinition): void {
  const { name, displayName, commandLine, dependencies } = definition;
  const manager = required('OpenSCManagerW', calls().openManager(null, null, MANAGER_CONNECT | MANAGER_CREATE));
  try {
    const list = dependencies.length === 0 ? null : wide(dependencies.map((each) => `${each}\0`).join(''));
    const created = calls().create(
      manager,
      wide(name),
      wide(displayName),
      SERVICE_ALL,
      OWN_PROCESS,
      AUTO_START,
      ERROR_NORMAL,
      wide(commandLine),
      null,
      null,
      list,
      null,
      null,
    );
    const service = required(`service ${name}`, created);
    try {
      describeService(service, definition);
    } catch (error) {
      calls().remove(service);
      throw error;
    } finally {
      calls().close(service);
    }
  } finally {
    calls().close(manager);
  }
}

function describeService(service: Handle, { description, preshutdownTimeoutMs: timeoutMs }: ServiceDefinition): void {
  const text = wide(description);
  const texts = Buffer.alloc(8);
  texts.writeBigUInt64LE(foreign().address(text));
  required('ChangeServiceConfig2W', calls().change(service, INFO_DESCRIPTION, texts));
  const actions = Buffer.alloc(RESTART_WAITS_MS.length * 8);
  for (const [index, waitMs] of RESTART_WAITS_MS.entries()) {
    actions.writeUInt32LE(ACTION_RESTART, index * 8);
    actions.writeUInt32LE(waitMs, index * 8 + 4);
  }
  // SERVICE_FAILURE_ACTIONSW: without a message and without a command.
  const failure = Buffer.alloc(40);
  failure.writeUInt32LE(FAILURES_RESET_SECONDS, 0);
  failure.writeUInt32LE(RESTART_WAITS_MS.length, 24);
  failure.writeBigUInt64LE(foreign().address(actions), 32);
  required('ChangeServiceConfig2W', calls().change(service, INFO_FAILURE_ACTIONS, failure));
  const timeout = Buffer.alloc(4);
  timeout.writeUInt32LE(timeoutMs);
  required('ChangeServiceConfig2W', calls().change(service, INFO_PRESHUTDOWN, timeout));
}

/** Does nothing when it runs. @throws WindowsError */
export const startService = (name: string): void =>
  withService(name, SERVICE_ALL, (service) => {
    if (stateOf(service) === STATE_STOPPED) required(`service ${name}`, calls().start(service, 0, null));
  });

/** @throws WindowsError */
export const serviceState = (name: string): (typeof STATES)[number] =>
  withService(name, SERVICE_ALL, (service) => STATES[stateOf(service)] ?? 'unknown');

/** Asks the service to stop, and does not wait. @throws WindowsError */
export const stopService = (name: string): void =>
  withService(name, SERVICE_ALL, (service) => {
    const isSent = calls().control(service, CONTROL_STOP, Buffer.alloc(28));
    if (!isSent && windowsLibraries().lastError() !== SERVICE_NOT_ACTIVE) required(`service ${name}`, isSent);
  });

/** A running service is removed when it has stopped. @throws WindowsError */
export const removeService = (name: string): void =>
  withService(name, SERVICE_ALL, (service) => {
    required(`service ${name}`, calls().remove(service));
  });

function stateOf(service: Handle): number {
  const status = Buffer.alloc(28);
  required('QueryServiceStatus', calls().status(service, status));
  return status.readUInt32LE(4);
}
