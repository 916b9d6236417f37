/**
 * The calls of Windows, over maps. `memory-windows-native.ts` makes it what the agent loads in place of koffi, so it is
 * loaded by Node.js.
 */
import { processCalls, processState, resetProcesses } from './memory-windows-processes.ts';

export interface MemoryService {
  readonly settings: Readonly<Record<string, unknown>>;
  state: number;
  preshutdownMs: number;
  description: string;
  readonly restartWaitsMs: number[];
  failuresResetSeconds: number;
}

export interface MemoryValue {
  readonly type: number;
  readonly bytes: Buffer;
}

export { processState };

export const windows = {
  /** By path below HKEY_LOCAL_MACHINE, then by name. */
  keys: new Map<string, Map<string, MemoryValue>>(),
  services: new Map<string, MemoryService>(),
  processes: 0,
  threads: 0,
  /** By call: the code with which it fails. */
  failures: new Map<string, number>(),
  /** Handles that were not closed. */
  open: new Map<bigint, string>(),
  calls: [] as string[],
  /** Whether this user may create services. */
  mayInstall: true,
  stateAfterStart: 0,
  stateAfterStop: 0,
  /** Windows stores no more than this. */
  preshutdownMaxMs: 0,
};

export function resetWindows(): void {
  windows.keys.clear();
  windows.services.clear();
  windows.failures.clear();
  windows.open.clear();
  windows.calls.length = 0;
  resetProcesses();
  const states = { stateAfterStart: STATE_RUNNING, stateAfterStop: STATE_STOPPED };
  Object.assign(windows, {
    mayInstall: true,
    processes: 0,
    threads: 0,
    preshutdownMaxMs: Number.POSITIVE_INFINITY,
    ...states,
  });
}

const LOCAL_MACHINE = 0xffff_ffff_8000_0002n;
const READ = 0x20019;
const WRITE = 0x20006;
const INVALID_HANDLE = 6;
/** Other calls that fail return null. */
const NO_FILE = 0xffff_ffff_ffff_ffffn;
const STATE_STOPPED = 1;
const STATE_RUNNING = 4;

let lastError = 0;
let lastHandle = 0n;
const addresses = new Map<bigint, Buffer>();

const textOf = (bytes: Buffer): string => bytes.toString('utf16le').replace(/\0.*$/s, '');
const listOf = (bytes: Buffer): readonly string[] => bytes.toString('utf16le').split('\0').filter(Boolean);

function opened(what: string): bigint {
  lastHandle += 16n;
  windows.open.set(lastHandle, what);
  return lastHandle;
}

/** Undefined sets the last error. */
function refused(code: number): undefined {
  lastError = code;
}

function serviceOf(handle: bigint): MemoryService | undefined {
  const name = windows.open.get(handle)?.replace(/^service /, '');
  return windows.services.get(name ?? '') ?? refused(INVALID_HANDLE);
}

/** Registry: a result is an error code. */
const REGISTRY: Readonly<Record<string, (...args: never[]) => number>> = {
  RegOpenKeyExW(root: bigint, path: Buffer, _: number, access: number, key: Buffer) {
    if (root !== LOCAL_MACHINE) return INVALID_HANDLE;
    if (!windows.keys.has(textOf(path))) return 2;
    key.writeBigUInt64LE(opened(`${access === READ ? 'read' : access === WRITE ? 'write' : 'no'} ${textOf(path)}`));
    return 0;
  },
  RegQueryValueExW(key: bigint, name: Buffer, _: null, type: Buffer, bytes: Buffer, size: Buffer) {
    const [access, path = ''] = (windows.open.get(key) ?? '').split(/ (.*)/);
    const value = windows.keys.get(path)?.get(textOf(name));
    if (access !== 'read') return 5;
    if (value === undefined) return 2;
    type.writeUInt32LE(value.type);
    const hasRoom = value.bytes.length <= size.readUInt32LE();
    size.writeUInt32LE(value.bytes.length);
    if (!hasRoom) return 234;
    value.bytes.copy(bytes);
    return 0;
  },
  RegSetValueExW(key: bigint, name: Buffer, _: number, type: number, bytes: Buffer, size: number) {
    const [access, path = ''] = (windows.open.get(key) ?? '').split(/ (.*)/);
    if (access !== 'write') return 5;
    windows.keys.get(path)?.set(textOf(name), { type, bytes: Buffer.from(bytes.subarray(0, size)) });
    return 0;
  },
  RegDeleteValueW(key: bigint, name: Buffer) {
    const [access, path = ''] = (windows.open.get(key) ?? '').split(/ (.*)/);
    if (access !== 'write') return 5;
    return windows.keys.get(path)?.delete(textOf(name)) === true ? 0 : 2;
  },
  RegCloseKey(key: bigint) {
    return windows.open.delete(key) ? 0 : INVALID_HANDLE;
  },
};

/** Services and the kernel: a result of undefined or false sets the last error. */
const SERVICES: Readonly<Record<string, (...args: never[]) => unknown>> = {
  OpenSCManagerW(_machine: null, _database: null, access: number) {
    if ((access & 2) !== 0 && !windows.mayInstall) return refused(5);
    return opened(`manager ${access}`);
  },
  OpenServiceW(manager: bigint, name: Buffer, access: number) {
    if (!windows.open.has(manager)) return refused(INVALID_HANDLE);
    if (!windows.services.has(textOf(name))) return refused(1060);
    windows.calls.push(`open ${textOf(name)} ${access}`);
    return opened(`service ${textOf(name)}`);
  },
  CreateServiceW(manager: bigint, name: Buffer, display: Buffer, ...rest: unknown[]) {
    const [access, type, start, errorControl, command, group, tag, dependencies, user, password] = rest;
    if ((Number(windows.open.get(manager)?.split(' ')[1]) & 2) === 0) return refused(5);
    if (windows.services.has(textOf(name))) return refused(1073);
    windows.services.set(textOf(name), {
      settings: {
        display: textOf(display),
        ...{ access, type, start, errorControl, group, tag, user, password },
        command: textOf(command as Buffer),
        dependencies: dependencies === null ? null : listOf(dependencies as Buffer),
      },
      state: STATE_STOPPED,
      preshutdownMs: 180_000,
      description: '',
      restartWaitsMs: [],
      failuresResetSeconds: 0,
    });
    return opened(`service ${textOf(name)}`);
  },
  DeleteService(handle: bigint) {
    return windows.services.delete(windows.open.get(handle)?.replace(/^service /, '') ?? '');
  },
  CloseServiceHandle(handle: bigint) {
    return windows.open.delete(handle);
  },
  StartServiceW(handle: bigint) {
    const service = serviceOf(handle);
    if (service === undefined) return false;
    windows.calls.push('start');
    service.state = windows.stateAfterStart;
    return true;
  },
  ControlService(handle: bigint, control: number) {
    const service = serviceOf(handle);
    if (service === undefined) return false;
    windows.calls.push(`control ${control}`);
    if (service.state === STATE_STOPPED) {
      lastError = 1062;
      return false;
    }
    service.state = windows.stateAfterStop;
    return true;
  },
  QueryServiceStatus(handle: bigint, status: Buffer) {
    const service = serviceOf(handle);
    if (service !== undefined) status.writeUInt32LE(service.state, 4);
    return service !== undefined;
  },
  QueryServiceConfigW(handle: bigint, bytes: Buffer, size: number) {
    const service = serviceOf(handle);
    if (service === undefined || size < 64) return false;
    bytes.writeBigUInt64LE(koffi.address(Buffer.from(`${service.settings['command']}\0`, 'utf16le')), 16);
    return true;
  },
  ChangeServiceConfig2W(handle: bigint, level: number, info: Buffer) {
    const service = serviceOf(handle);
    if (service === undefined) return false;
    if (level === 1) service.description = textOf(addressed(info.readBigUInt64LE()));
    if (level === 7) service.preshutdownMs = Math.min(windows.preshutdownMaxMs, info.readUInt32LE());
    if (level === 2) {
      service.failuresResetSeconds = info.readUInt32LE(0);
      const actions = addressed(info.readBigUInt64LE(32));
      service.restartWaitsMs.length = 0;
      for (let index = 0; index < info.readUInt32LE(24); index += 1) {
        if (actions.readUInt32LE(index * 8) === 1) service.restartWaitsMs.push(actions.readUInt32LE(index * 8 + 4));
      }
    }
    return true;
  },
  QueryServiceConfig2W(handle: bigint, level: number, bytes: Buffer, size: number) {
    const service = serviceOf(handle);
    if (service === undefined || level !== 7 || size < 4) return false;
    bytes.writeUInt32LE(service.preshutdownMs);
    return true;
  },
  K32GetPerformanceInfo(bytes: Buffer, size: number) {
    if (size !== 104 || bytes.readUInt32LE() !== 104) return false;
    bytes.writeUInt32LE(windows.processes, 96);
    bytes.writeUInt32LE(windows.threads, 100);
    return true;
  },
  GetLastError: () => lastError,
};

const PROCESSES = processCalls({
  handles: windows.open,
  calls: windows.calls,
  opened,
  refused,
  address: (bytes) => koffi.address(bytes),
  addressed: (address) => addressed(address),
});

const addressed = (address: bigint): Buffer => addresses.get(address) ?? Buffer.alloc(0);

/** A call by its declaration. */
function func(declaration: string): (...args: never[]) => unknown {
  const name = /__stdcall (\w+)\(/.exec(declaration)?.[1] ?? '';
  return (...args) => {
    const code = windows.failures.get(name);
    const isRegistry = Object.hasOwn(REGISTRY, name);
    if (code !== undefined) {
      lastError = code;
      if (name === 'CreateFileW') return NO_FILE;
      return isRegistry ? code : declaration.startsWith('bool') ? false : null;
    }
    if (isRegistry) return REGISTRY[name]!(...args);
    return (SERVICES[name] ?? PROCESSES[name])!(...args) ?? null;
  };
}

/** As koffi: libraries, and addresses of buffers. */
export const koffi = {
  load: () => ({ func }),
  address(value: Buffer): bigint {
    const address = BigInt(2 ** 32 + addresses.size * 16);
    addresses.set(address, value);
    return address;
  },
  decode(value: Buffer, offset: number, _type: 'str16'): string {
    return textOf(addressed(value.readBigUInt64LE(offset)));
  },
};
