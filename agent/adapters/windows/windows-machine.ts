/** Facts about a machine with Windows: from Node, the registry, and the performance counters of the kernel. */
import { createSocket } from 'node:dgram';
import { cpus, freemem, hostname, networkInterfaces, release, totalmem } from 'node:os';
import type { FileSystemUse, InterfaceAddress, Machine, MachineFacts, MachineUse } from '../../ports/machine.ts';
import { addressesOf, addressesOfName } from '../system/addresses.ts';
import { statfs } from '../system/files.ts';
import { required, windowsLibraries } from './foreign.ts';
import { registryNumber, registryText } from './registry.ts';

const VERSION_KEY = 'SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion';
const BOOT_KEY = 'SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters';
/** Processes and threads share one table of the kernel, which has this many entries. */
const PIDS_MAX = 2 ** 24 - 2 ** 16;
/** PERFORMANCE_INFORMATION: its size, and where the numbers of processes and threads are. */
const PERFORMANCE_BYTES = 104;
const PROCESSES_AT = 96;
const THREADS_AT = 100;
/** Addresses that no machine has (RFC 5737, RFC 3849). The route to them is the default route; nothing is sent. */
const ELSEWHERE = { 4: '192.0.2.1', 6: '2001:db8::1' } as const;
const DISCARD_PORT = 9;

export interface WindowsMachineOptions {
  /** Directory on the disk that pods write to. */
  readonly rootDirectory: string;
}

export class WindowsMachine implements Machine {
  readonly #rootDirectory: string;

  constructor({ rootDirectory }: WindowsMachineOptions) {
    this.#rootDirectory = rootDirectory;
  }

  hostname(): string {
    return hostname();
  }

  /** Source of the ids: upstream pkg/kubelet/winstats/perfcounter_nodestats.go. */
  async facts(): Promise<MachineFacts> {
    const revision = registryNumber(VERSION_KEY, 'UBR');
    return {
      cpuCores: cpus().length,
      memoryBytes: totalmem(),
      swapBytes: 0,
      hugePages: {},
      machineId: hostname(),
      systemUuid: (registryText('SYSTEM\\HardwareConfig', 'LastConfig') ?? '').replace(/[{}]/g, ''),
      bootId: bootId(),
      kernelVersion: revision === undefined ? release() : `${release()}.${revision}`,
      osImage: registryText(VERSION_KEY, 'ProductName') ?? 'Windows',
      operatingSystem: 'windows',
      architecture: 'amd64',
      osLabels: { 'node.kubernetes.io/windows-build': release() },
    };
  }

  async use(): Promise<MachineUse> {
    const disk = await fileSystem(this.#rootDirectory);
    return {
      memoryAvailableBytes: freemem(),
      nodeFs: disk,
      imageFs: disk,
      cpuBusySeconds: cpus().reduce((sum, { times }) => sum + times.user + times.sys + times.irq, 0) / 1_000,
      pidsMax: PIDS_MAX,
      pidsUsed: processesAndThreads(),
    };
  }

  addresses(): readonly InterfaceAddress[] {
    return addressesOf(networkInterfaces());
  }

  /** The address that a packet to another network would be sent from. */
  async defaultAddress(family: 4 | 6): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const socket = createSocket(family === 4 ? 'udp4' : 'udp6');
    socket.once('error', () => resolve(undefined));
    socket.connect(DISCARD_PORT, ELSEWHERE[family], () => resolve(socket.address().address));
    try {
      return await promise;
    } finally {
      socket.close();
    }
  }

  lookup(name: string): ReturnType<Machine['lookup']> {
    return addressesOfName(name);
  }
}

/** Differs after each start of the machine. */
export const bootId = (): string => String(registryNumber(BOOT_KEY, 'BootId') ?? '');

async function fileSystem(path: string): Promise<FileSystemUse> {
  const { bsize, blocks, bavail } = await statfs(path);
  // Its file systems have no table of inodes.
  return { capacityBytes: bsize * blocks, availableBytes: bsize * bavail, inodes: 0, inodesFree: 0 };
}

function processesAndThreads(): number {
  const { kernel32 } = windowsLibraries();
  const performance = kernel32.func<(bytes: Buffer, size: number) => boolean>(
    'bool __stdcall K32GetPerformanceInfo(void *b, uint32 s)',
  );
  const bytes = Buffer.alloc(PERFORMANCE_BYTES);
  bytes.writeUInt32LE(bytes.length);
  required('GetPerformanceInfo', performance(bytes, bytes.length));
  return bytes.readUInt32LE(PROCESSES_AT) + bytes.readUInt32LE(THREADS_AT);
}
