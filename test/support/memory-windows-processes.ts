/** The calls of Windows about jobs, processes and files, over maps: a part of `memory-windows.ts`. */
import { existsSync, mkdirSync } from 'node:fs';

export interface MemoryJob {
  limits: { readonly flags: number; readonly memoryBytes: bigint; readonly processesMax: number } | undefined;
  /** Hundredths of a percent of the machine. */
  cpuRate: number | undefined;
  readonly pids: number[];
}

export interface MemoryProcess {
  readonly commandLine: string;
  readonly environment: readonly string[];
  readonly directory: string | undefined;
  readonly flags: number;
  /** Paths of stdin, stdout and stderr, with access and how they are opened. */
  readonly streams: readonly (string | undefined)[];
  isResumed: boolean;
  exitCode: number | undefined;
}

export const processState = {
  jobs: new Map<bigint, MemoryJob>(),
  processes: new Map<number, MemoryProcess>(),
  /** By path: how a directory was made. */
  directories: new Map<string, string>(),
  /** By path; others belong to administrators. */
  owners: new Map<string, string>(),
  attachedTo: undefined as number | undefined,
};

export function resetProcesses(): void {
  processState.jobs.clear();
  processState.processes.clear();
  processState.directories.clear();
  processState.owners.clear();
  processState.attachedTo = undefined;
}

/** A process that was not started by these calls. */
const ELSEWHERE: MemoryProcess = {
  commandLine: '',
  environment: [],
  directory: undefined,
  flags: 0,
  streams: [],
  isResumed: false,
  exitCode: undefined,
};

/** What these calls share with all others. */
export interface MemoryMachine {
  readonly handles: Map<bigint, string>;
  readonly calls: string[];
  readonly opened: (what: string) => bigint;
  /** Sets the last error. */
  readonly refused: (code: number) => undefined;
  /** Where bytes are; `addressed` finds them. */
  readonly address: (bytes: Buffer) => bigint;
  readonly addressed: (address: bigint) => Buffer;
}

/** No process of this machine has such an id. */
const FIRST_PID = 5_000_000;
const INVALID_HANDLE = 6;
const INVALID_PARAMETER = 87;
const WAIT_TIMEOUT = 258;
const EXIT_OF_CLOSED = 0;
const KILL_ON_CLOSE = 0x2000;
const STREAMS_AT = [80, 88, 96] as const;

const textOf = (bytes: Buffer): string => bytes.toString('utf16le').replace(/\0.*$/s, '');

export function processCalls(machine: MemoryMachine): Readonly<Record<string, (...args: never[]) => unknown>> {
  const { handles, opened, refused } = machine;
  const jobOf = (handle: bigint): MemoryJob | undefined =>
    handles.has(handle) ? processState.jobs.get(handle) : undefined;
  const pidOf = (handle: bigint): number => Number(/^process (\d+)$/.exec(handles.get(handle) ?? '')?.[1]);
  const processOf = (handle: bigint): MemoryProcess | undefined => processState.processes.get(pidOf(handle));
  const endAll = ({ pids }: MemoryJob, exitCode: number): void => {
    for (const pid of pids.splice(0)) {
      const process = processState.processes.get(pid);
      if (process !== undefined) process.exitCode ??= exitCode;
    }
  };
  return {
    CreateJobObjectW(_security: null, _name: null) {
      const handle = opened('job');
      processState.jobs.set(handle, { limits: undefined, cpuRate: undefined, pids: [] });
      return handle;
    },
    SetInformationJobObject(handle: bigint, kind: number, info: Buffer, size: number) {
      const job = jobOf(handle);
      if (job === undefined) return refused(INVALID_HANDLE);
      if (kind === 9 && size === 144) {
        const [flags, processesMax] = [info.readUInt32LE(16), info.readUInt32LE(40)];
        job.limits = { flags, memoryBytes: info.readBigUInt64LE(120), processesMax };
      } else if (kind === 15 && size === 8 && info.readUInt32LE() === 5) job.cpuRate = info.readUInt32LE(4);
      else return refused(INVALID_PARAMETER);
      return true;
    },
    QueryInformationJobObject(handle: bigint, kind: number, info: Buffer, size: number, _used: null) {
      const job = jobOf(handle);
      if (job === undefined) return refused(INVALID_HANDLE);
      if (kind !== 3 || size < 8 + 8 * job.pids.length) return refused(INVALID_PARAMETER);
      const living = job.pids.filter((pid) => processState.processes.get(pid)?.exitCode === undefined);
      info.writeUInt32LE(job.pids.length, 0);
      info.writeUInt32LE(living.length, 4);
      for (const [index, pid] of living.entries()) info.writeBigUInt64LE(BigInt(pid), 8 + 8 * index);
      return true;
    },
    AssignProcessToJobObject(handle: bigint, process: bigint) {
      const job = jobOf(handle);
      if (job === undefined || Number.isNaN(pidOf(process))) return refused(INVALID_HANDLE);
      if (processOf(process)?.isResumed === true) return refused(5);
      job.pids.push(pidOf(process));
      return true;
    },
    TerminateJobObject(handle: bigint, exitCode: number) {
      if (!handles.has(handle)) machine.calls.push('end of a closed job');
      const job = jobOf(handle);
      if (job !== undefined) endAll(job, exitCode);
      return job !== undefined;
    },
    CreateProcessW(_file: null, line: Buffer, _process: null, _thread: null, inherit: number, ...rest: unknown[]) {
      const [flags, environment, directory, startup, information] = rest as [number, Buffer, Buffer, Buffer, Buffer];
      const usesHandles = inherit === 1 && startup.readUInt32LE() === 104 && startup.readUInt32LE(60) === 0x100;
      if (!usesHandles || information.length !== 24) return refused(INVALID_PARAMETER);
      const pid = FIRST_PID + processState.processes.size;
      processState.processes.set(pid, {
        commandLine: textOf(line),
        environment: environment
          .toString('utf16le')
          .replace(/\0\0.*$/s, '')
          .split('\0'),
        directory: directory === null ? undefined : textOf(directory),
        flags,
        streams: STREAMS_AT.map((at) => handles.get(startup.readBigUInt64LE(at))),
        isResumed: false,
        exitCode: undefined,
      });
      information.writeBigUInt64LE(opened(`process ${pid}`), 0);
      information.writeBigUInt64LE(opened(`thread ${pid}`), 8);
      information.writeUInt32LE(pid, 16);
      return true;
    },
    ResumeThread(thread: bigint) {
      const process = processState.processes.get(Number(handles.get(thread)?.replace(/^thread /, '')));
      if (process !== undefined) process.isResumed = true;
      return 1;
    },
    WaitForSingleObject(handle: bigint, _milliseconds: number) {
      const process = processOf(handle);
      return process !== undefined && process.exitCode === undefined ? WAIT_TIMEOUT : 0;
    },
    TerminateProcess(handle: bigint, exitCode: number) {
      const process = processOf(handle);
      if (process !== undefined) process.exitCode = exitCode;
      return process !== undefined;
    },
    GetExitCodeProcess(handle: bigint, code: Buffer) {
      const exitCode = processOf(handle)?.exitCode;
      if (exitCode !== undefined) code.writeUInt32LE(exitCode);
      return exitCode !== undefined;
    },
    OpenProcess(access: number, inherit: number, pid: number) {
      machine.calls.push(`open process ${access} ${inherit}`);
      if (!processState.processes.has(pid)) processState.processes.set(pid, { ...ELSEWHERE });
      return opened(`process ${pid}`);
    },
    CreateFileW(path: Buffer, access: number, share: number, security: Buffer, creation: number, ..._: unknown[]) {
      const isInheritable = security.readUInt32LE() === 24 && security.readUInt32LE(16) === 1;
      return opened(`${textOf(path)} ${access} ${share} ${creation}${isInheritable ? '' : ' private'}`);
    },
    CloseHandle(handle: bigint) {
      if (!handles.has(handle)) machine.calls.push('closed twice');
      const job = jobOf(handle);
      if (job !== undefined && ((job.limits?.flags ?? 0) & KILL_ON_CLOSE) !== 0) endAll(job, EXIT_OF_CLOSED);
      return handles.delete(handle);
    },
    AttachConsole(pid: number) {
      processState.attachedTo = pid;
      return true;
    },
    FreeConsole() {
      processState.attachedTo = undefined;
      return true;
    },
    GenerateConsoleCtrlEvent(event: number, group: number) {
      if (processState.attachedTo !== group) return refused(INVALID_HANDLE);
      machine.calls.push(`event ${event} to ${group}`);
      return true;
    },
    ...securityCalls(machine),
  };
}

/** Owners and access lists of files. A descriptor is the text of its owner. */
function securityCalls({ handles, refused, address, addressed }: MemoryMachine) {
  const allocated = (text: string): bigint => {
    const at = address(Buffer.from(`${text}\0`, 'utf16le'));
    handles.set(at, 'memory');
    return at;
  };
  return {
    ConvertStringSecurityDescriptorToSecurityDescriptorW(text: Buffer, revision: number, descriptor: Buffer, _: null) {
      if (revision !== 1) return refused(INVALID_PARAMETER);
      descriptor.writeBigUInt64LE(allocated(textOf(text)));
      return true;
    },
    CreateDirectoryW(path: Buffer, attributes: Buffer) {
      if (attributes.readUInt32LE() !== 24) return refused(INVALID_PARAMETER);
      if (existsSync(textOf(path))) return refused(183);
      mkdirSync(textOf(path));
      processState.directories.set(textOf(path), textOf(addressed(attributes.readBigUInt64LE(8))));
      return true;
    },
    GetFileSecurityW(path: Buffer, what: number, descriptor: Buffer, size: number, _needed: Buffer) {
      if (what !== 1 || size !== descriptor.length) return refused(INVALID_PARAMETER);
      if (!processState.owners.has(textOf(path)) && !existsSync(textOf(path))) return refused(2);
      descriptor.write(`${processState.owners.get(textOf(path)) ?? 'S-1-5-32-544'}\0`, 'utf16le');
      return true;
    },
    GetSecurityDescriptorOwner(descriptor: Buffer, owner: Buffer, _isDefault: Buffer) {
      owner.writeBigUInt64LE(address(descriptor));
      return true;
    },
    ConvertSidToStringSidW(sid: bigint, text: Buffer) {
      text.writeBigUInt64LE(allocated(textOf(addressed(sid))));
      return true;
    },
    lstrlenW: (text: bigint) => textOf(addressed(text)).length,
    lstrcpynW(to: Buffer, from: bigint, characters: number) {
      const text = textOf(addressed(from)).slice(0, characters - 1);
      to.write(`${text}\0`, 'utf16le');
      return 1n;
    },
    LocalFree(memory: bigint) {
      return handles.delete(memory) ? null : memory;
    },
  };
}
