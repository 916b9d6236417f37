/**
 * Runs under Wine, with Node.js for Windows and the adapters of this project: answers the calls of `wine.ts`. It stays
 * for the whole test, because Wine ends all services with the last program of the user.
 */
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { foreign, required, wide, windowsLibraries } from '../../../agent/adapters/windows/foreign.ts';
import { Job, type JobProcess } from '../../../agent/adapters/windows/jobs.ts';
import {
  registryNumber,
  registryText,
  registryTexts,
  removeRegistryValue,
  writeRegistryTexts,
} from '../../../agent/adapters/windows/registry.ts';
import {
  createService,
  preshutdownTimeoutMs,
  removeService,
  serviceDependencies,
  serviceExists,
  setPreshutdownTimeout,
} from '../../../agent/adapters/windows/service-database.ts';
import { WindowsMachine } from '../../../agent/adapters/windows/windows-machine.ts';

const SERVICE_ALL = 0xf01ff;
const STATUS_BYTES = 28;

const { advapi32 } = windowsLibraries();
const openManager = advapi32.func<(machine: null, database: null, access: number) => bigint | null>(
  'void *__stdcall OpenSCManagerW(void *m, void *d, uint32 a)',
);
const openService = advapi32.func<(manager: bigint, name: Buffer, access: number) => bigint | null>(
  'void *__stdcall OpenServiceW(void *m, void *n, uint32 a)',
);
const control = advapi32.func<(service: bigint, control: number, status: Buffer) => boolean>(
  'bool __stdcall ControlService(void *s, uint32 c, void *o)',
);
const query = advapi32.func<(service: bigint, status: Buffer) => boolean>(
  'bool __stdcall QueryServiceStatus(void *s, void *o)',
);

const close = advapi32.func<(handle: bigint) => boolean>('bool __stdcall CloseServiceHandle(void *h)');

function withService<Result>(name: string, act: (service: bigint) => Result): Result {
  const manager = required('OpenSCManagerW', openManager(null, null, 1));
  const service = required(name, openService(manager, wide(name), SERVICE_ALL));
  try {
    return act(service);
  } finally {
    close(service);
    close(manager);
  }
}

const statusOf = (bytes: Buffer) => ({
  state: bytes.readUInt32LE(4),
  accepted: bytes.readUInt32LE(8),
  checkPoint: bytes.readUInt32LE(20),
  waitHint: bytes.readUInt32LE(24),
});

const jobs: { readonly job: Job; readonly process: JobProcess }[] = [];

/** The calls by name. Arguments and results are JSON. */
const CALLS = {
  koffiVersion: () => (foreign() as unknown as { version: string }).version,
  control(name: string, code: number) {
    const began = performance.now();
    withService(name, (service) => required('ControlService', control(service, code, Buffer.alloc(STATUS_BYTES))));
    return performance.now() - began;
  },
  status(name: string) {
    const bytes = Buffer.alloc(STATUS_BYTES);
    withService(name, (service) => required('QueryServiceStatus', query(service, bytes)));
    return statusOf(bytes);
  },
  createService,
  removeService,
  serviceExists,
  serviceDependencies,
  preshutdownTimeoutMs,
  setPreshutdownTimeout,
  registryText,
  registryTexts,
  registryNumber,
  writeRegistryTexts,
  removeRegistryValue,
  async machine(rootDirectory: string) {
    const machine = new WindowsMachine({ rootDirectory });
    return { facts: await machine.facts(), use: await machine.use(), address: await machine.defaultAddress(4) };
  },
  startJob(
    limits: { memoryBytes?: number; cpus?: number; processesMax?: number },
    outputFile: string,
    words: string[],
  ) {
    const { memoryBytes, cpus, processesMax } = limits;
    const job = new Job({ memoryBytes, cpus, processesMax });
    const [file = '', ...args] = words;
    const env = { ...(process.env as Record<string, string>), GREETING: 'a "b" ü' };
    const started = job.start({ file, args, env, directory: 'C:\\', outputFile });
    return jobs.push({ job, process: started }) - 1;
  },
  jobState(index: number) {
    const { job, process: started } = jobs[index]!;
    return { pids: job.pids(), exitCode: started.exitCode() ?? null };
  },
  spawnInJob: (index: number, [file = '', ...args]: string[]) =>
    jobs[index]!.job.spawn(file, args, { stdio: 'ignore' }).pid ?? 0,
  closeJob: (index: number) => jobs[index]!.job.close(),
  processIds() {
    const list = windowsLibraries().kernel32.func<(ids: Buffer, size: number, used: Buffer) => boolean>(
      'bool __stdcall K32EnumProcesses(void *i, uint32 s, void *u)',
    );
    const ids = Buffer.alloc(4_096);
    const used = Buffer.alloc(4);
    required('EnumProcesses', list(ids, ids.length, used));
    return Array.from({ length: used.readUInt32LE() / 4 }, (_, index) => ids.readUInt32LE(index * 4));
  },
};

export type DriverCalls = typeof CALLS;

const socket = connect(Number(process.argv[2]), '127.0.0.1');
for await (const line of createInterface({ input: socket })) {
  const { name, args } = JSON.parse(line) as { name: keyof DriverCalls; args: unknown[] };
  try {
    const call = CALLS[name] as (...given: unknown[]) => unknown;
    socket.write(`${JSON.stringify({ result: (await call(...args)) ?? null })}\n`);
  } catch (error) {
    socket.write(`${JSON.stringify({ error: error instanceof Error ? `${error.name}: ${error.message}` : '' })}\n`);
  }
}
process.exit(0);
