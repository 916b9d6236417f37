/**
 * Processes in Job objects of Windows. A process is created suspended and runs only when it is in its job, so no
 * instruction of it runs outside. When the last handle of a job is closed, at the latest with the agent itself, Windows
 * ends every process in it.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { cpus } from 'node:os';
import { type Pointer, required, WindowsError, wide, windowsLibraries } from './foreign.ts';

const KILL_ON_CLOSE = 0x2000;
const LIMIT_JOB_MEMORY = 0x200;
const LIMIT_PROCESSES = 0x8;
/** JOBOBJECT_EXTENDED_LIMIT_INFORMATION. */
const EXTENDED_LIMITS = 9;
const EXTENDED_BYTES = 144;
const FLAGS_AT = 16;
const PROCESSES_AT = 40;
const MEMORY_AT = 120;
/** JOBOBJECT_CPU_RATE_CONTROL_INFORMATION: a hard limit, in hundredths of a percent of the machine. */
const CPU_RATE = 15;
const CPU_ENABLED = 0x1;
const CPU_HARD_CAP = 0x4;
const CPU_WHOLE = 10_000;
/** JOBOBJECT_BASIC_PROCESS_ID_LIST. */
const PROCESS_IDS = 3;
const PROCESS_IDS_MAX = 4_096;

const CREATE_SUSPENDED = 0x4;
const NEW_PROCESS_GROUP = 0x200;
const UNICODE_ENVIRONMENT = 0x400;
const NO_WINDOW = 0x0800_0000;
const USE_HANDLES = 0x100;
/** STARTUPINFOW. */
const STARTUP_BYTES = 104;
const STARTUP_FLAGS_AT = 60;
const STARTUP_HANDLES_AT = 80;
/** PROCESS_INFORMATION. */
const PROCESS_BYTES = 24;
const THREAD_AT = 8;
const PID_AT = 16;

const APPEND_DATA = 0x4;
const READ_DATA = 0x8000_0000;
const SHARE_ALL = 0x7;
const OPEN_ALWAYS = 4;
const OPEN_EXISTING = 3;
/** To set its job, and to see whether it has ended. */
const PROCESS_ASSIGN = 0x10_0101;
const NO_SUCH_PROCESS = 87;
const WAIT_TIMEOUT = 258;
const KILLED = 137;
const CTRL_BREAK = 1;

interface ProcessCalls {
  readonly createJob: (security: null, name: null) => Pointer | null;
  readonly setJob: (job: Pointer, kind: number, info: Buffer, size: number) => boolean;
  readonly queryJob: (job: Pointer, kind: number, info: Buffer, size: number, used: null) => boolean;
  readonly assign: (job: Pointer, process: Pointer) => boolean;
  readonly endJob: (job: Pointer, exitCode: number) => boolean;
  readonly create: (
    file: null,
    line: Buffer,
    process: null,
    thread: null,
    inherit: number,
    flags: number,
    environment: Buffer,
    directory: Buffer | null,
    startup: Buffer,
    information: Buffer,
  ) => boolean;
  readonly resume: (thread: Pointer) => number;
  readonly wait: (handle: Pointer, milliseconds: number) => number;
  readonly endProcess: (process: Pointer, exitCode: number) => boolean;
  readonly exitCode: (process: Pointer, code: Buffer) => boolean;
  readonly open: (access: number, inherit: number, pid: number) => Pointer | null;
  readonly openFile: (
    path: Buffer,
    access: number,
    share: number,
    security: Buffer,
    creation: number,
    attributes: number,
    template: null,
  ) => Pointer | null;
  readonly close: (handle: Pointer) => boolean;
  readonly attachConsole: (pid: number) => boolean;
  readonly freeConsole: () => boolean;
  readonly controlEvent: (event: number, group: number) => boolean;
}

let found: ProcessCalls | undefined;

function calls(): ProcessCalls {
  const { kernel32 } = windowsLibraries();
  found ??= {
    createJob: kernel32.func('void *__stdcall CreateJobObjectW(void *s, void *n)'),
    setJob: kernel32.func('bool __stdcall SetInformationJobObject(void *j, int32 k, void *i, uint32 z)'),
    queryJob: kernel32.func('bool __stdcall QueryInformationJobObject(void *j, int32 k, void *i, uint32 z, void *u)'),
    assign: kernel32.func('bool __stdcall AssignProcessToJobObject(void *j, void *p)'),
    endJob: kernel32.func('bool __stdcall TerminateJobObject(void *j, uint32 c)'),
    create: kernel32.func(
      'bool __stdcall CreateProcessW(void *f, void *l, void *p, void *t, int32 i, uint32 g, void *e, void *d, void *s, void *o)',
    ),
    resume: kernel32.func('uint32 __stdcall ResumeThread(void *t)'),
    exitCode: kernel32.func('bool __stdcall GetExitCodeProcess(void *p, void *c)'),
    wait: kernel32.func('uint32 __stdcall WaitForSingleObject(void *h, uint32 m)'),
    endProcess: kernel32.func('bool __stdcall TerminateProcess(void *p, uint32 c)'),
    open: kernel32.func('void *__stdcall OpenProcess(uint32 a, int32 i, uint32 p)'),
    openFile: kernel32.func(
      'void *__stdcall CreateFileW(void *p, uint32 a, uint32 s, void *y, uint32 c, uint32 t, void *m)',
    ),
    close: kernel32.func('bool __stdcall CloseHandle(void *h)'),
    attachConsole: kernel32.func('bool __stdcall AttachConsole(uint32 p)'),
    freeConsole: kernel32.func('bool __stdcall FreeConsole()'),
    controlEvent: kernel32.func('bool __stdcall GenerateConsoleCtrlEvent(uint32 e, uint32 g)'),
  };
  return found;
}

export interface JobLimits {
  /** Of all processes together. Bytes. */
  readonly memoryBytes: number | undefined;
  /** Processors, such as 0.5. */
  readonly cpus: number | undefined;
  readonly processesMax: number | undefined;
}

export interface JobCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Undefined: that of the agent. */
  readonly directory: string | undefined;
  /** Output is appended. */
  readonly outputFile: string;
}

/** A group of processes with common limits. */
export class Job {
  readonly #handle: Pointer;
  #isClosed = false;

  /** @throws WindowsError */
  constructor(limits: JobLimits) {
    this.#handle = required('CreateJobObjectW', calls().createJob(null, null));
    try {
      this.#limit(limits);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #limit({ memoryBytes, cpus: share, processesMax }: JobLimits): void {
    const info = Buffer.alloc(EXTENDED_BYTES);
    let flags = KILL_ON_CLOSE;
    if (memoryBytes !== undefined) {
      flags |= LIMIT_JOB_MEMORY;
      info.writeBigUInt64LE(BigInt(memoryBytes), MEMORY_AT);
    }
    if (processesMax !== undefined) {
      flags |= LIMIT_PROCESSES;
      info.writeUInt32LE(processesMax, PROCESSES_AT);
    }
    info.writeUInt32LE(flags, FLAGS_AT);
    required('SetInformationJobObject', calls().setJob(this.#handle, EXTENDED_LIMITS, info, info.length));
    if (share === undefined) return;
    const rate = Buffer.alloc(8);
    rate.writeUInt32LE(CPU_ENABLED | CPU_HARD_CAP);
    rate.writeUInt32LE(Math.min(CPU_WHOLE, Math.max(1, Math.round((share / cpus().length) * CPU_WHOLE))), 4);
    required('the CPU rate of a job', calls().setJob(this.#handle, CPU_RATE, rate, rate.length));
  }

  /** @throws WindowsError, with the code of CreateProcessW */
  start(command: JobCommand): JobProcess {
    const inheritable = Buffer.alloc(24);
    inheritable.writeUInt32LE(inheritable.length);
    inheritable.writeUInt32LE(1, 16);
    const opened: Pointer[] = [];
    const open = (path: string, access: number, creation: number): Pointer => {
      const file = calls().openFile(wide(path), access, SHARE_ALL, inheritable, creation, 0, null);
      const handle = required(path, file);
      opened.push(handle);
      return handle;
    };
    try {
      const output = open(command.outputFile, APPEND_DATA, OPEN_ALWAYS);
      const startup = Buffer.alloc(STARTUP_BYTES);
      startup.writeUInt32LE(STARTUP_BYTES);
      startup.writeUInt32LE(USE_HANDLES, STARTUP_FLAGS_AT);
      startup.writeBigUInt64LE(open('NUL', READ_DATA, OPEN_EXISTING), STARTUP_HANDLES_AT);
      startup.writeBigUInt64LE(output, STARTUP_HANDLES_AT + 8);
      startup.writeBigUInt64LE(output, STARTUP_HANDLES_AT + 16);
      return this.#create(command, startup);
    } finally {
      for (const handle of opened) calls().close(handle);
    }
  }

  #create({ file, args, env, directory }: JobCommand, startup: Buffer): JobProcess {
    const information = Buffer.alloc(PROCESS_BYTES);
    const isCreated = calls().create(
      null,
      wide([file, ...args].map(quotedArgument).join(' ')),
      null,
      null,
      1,
      CREATE_SUSPENDED | NEW_PROCESS_GROUP | NO_WINDOW | UNICODE_ENVIRONMENT,
      wide(`${environmentBlock(env)}\0`),
      directory === undefined ? null : wide(directory),
      startup,
      information,
    );
    required(`spawn ${file}`, isCreated);
    const handle = information.readBigUInt64LE();
    const thread = information.readBigUInt64LE(THREAD_AT);
    try {
      required('AssignProcessToJobObject', calls().assign(this.#handle, handle));
      calls().resume(thread);
      return new JobProcess(handle, information.readUInt32LE(PID_AT));
    } catch (error) {
      // Outside of its job nothing else would end it.
      calls().endProcess(handle, KILLED);
      calls().close(handle);
      throw error;
    } finally {
      calls().close(thread);
    }
  }

  /**
   * Starts a further process with streams. It is in the job from a moment after its start. Node adds a process that is
   * not detached to a job of its own, and Windows then refuses this one.
   *
   * @throws WindowsError when it cannot be put into the job: it is ended, because no limit would apply to it
   */
  spawn(file: string, args: readonly string[], options: Omit<SpawnOptions, 'detached'>): ChildProcess {
    const child = spawn(file, args, { ...options, windowsHide: true, detached: true });
    if (child.pid === undefined) return child;
    try {
      this.#add(child.pid);
    } catch (cause) {
      child.on('error', () => undefined);
      child.kill('SIGKILL');
      throw cause;
    }
    return child;
  }

  /** A terminated process needs no job. @throws WindowsError */
  #add(pid: number): void {
    const handle = calls().open(PROCESS_ASSIGN, 0, pid);
    if (handle === null) {
      const code = windowsLibraries().lastError();
      if (code === NO_SUCH_PROCESS) return;
      throw new WindowsError('OpenProcess', code);
    }
    try {
      if (calls().assign(this.#handle, handle)) return;
      const code = windowsLibraries().lastError();
      if (calls().wait(handle, 0) === WAIT_TIMEOUT) throw new WindowsError('AssignProcessToJobObject', code);
    } finally {
      calls().close(handle);
    }
  }

  /** Ids of the processes. @throws WindowsError */
  pids(): number[] {
    if (this.#isClosed) return [];
    const info = Buffer.alloc(8 + PROCESS_IDS_MAX * 8);
    required('QueryInformationJobObject', calls().queryJob(this.#handle, PROCESS_IDS, info, info.length, null));
    return Array.from({ length: info.readUInt32LE(4) }, (_, index) => Number(info.readBigUInt64LE(8 + index * 8)));
  }

  /** Ends every process of the job. */
  end(): void {
    if (!this.#isClosed) calls().endJob(this.#handle, KILLED);
  }

  /** Ends every process of the job, and the job. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    calls().close(this.#handle);
  }
}

/** A process that this agent has started. */
export class JobProcess {
  readonly pid: number;
  readonly #handle: Pointer;
  #exitCode: number | undefined;

  constructor(handle: Pointer, pid: number) {
    this.#handle = handle;
    this.pid = pid;
  }

  /** Undefined while it runs. */
  exitCode(): number | undefined {
    if (this.#exitCode !== undefined) return this.#exitCode;
    // Not by the exit code of a process that runs, 259: a program may end with it.
    if (calls().wait(this.#handle, 0) === WAIT_TIMEOUT) return undefined;
    const code = Buffer.alloc(4);
    required('GetExitCodeProcess', calls().exitCode(this.#handle, code));
    this.#exitCode = code.readInt32LE();
    calls().close(this.#handle);
    return this.#exitCode;
  }

  /**
   * Sends Ctrl+Break to the process and what it started: the nearest that Windows has to SIGTERM. Only a process that
   * has no console can do this, such as a service.
   *
   * @returns why it was not sent
   */
  interrupt(): string | undefined {
    if (!calls().attachConsole(this.pid)) {
      return `Ctrl+Break cannot be sent: error ${windowsLibraries().lastError()} of AttachConsole`;
    }
    try {
      if (calls().controlEvent(CTRL_BREAK, this.pid)) return undefined;
      return `Ctrl+Break cannot be sent: error ${windowsLibraries().lastError()}`;
    } finally {
      calls().freeConsole();
    }
  }
}

/** One argument, as the C library of Windows reads it. */
function quotedArgument(text: string): string {
  if (text !== '' && !/[\s"]/.test(text)) return text;
  // Backslashes are literal, except before a quote. A run of them is read once: pods choose the text.
  const quoted = text.replace(/(\\+)("?)|"/g, (run, slashes = '', quote = run, at: number) => {
    if (quote === '"') return `${slashes}${slashes}\\"`;
    return at + run.length === text.length ? run + run : run;
  });
  return `"${quoted}"`;
}

/** Names are sorted without regard to case, as Windows requires. */
const environmentBlock = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .sort(([one], [other]) => (one.toUpperCase() < other.toUpperCase() ? -1 : 1))
    .map(([name, value]) => `${name}=${value}\0`)
    .join('');
