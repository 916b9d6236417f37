/**
 * Facts about a Linux machine from /proc, /sys, /etc, cgroups (v2 and v1), statfs and the network interfaces.
 *
 * Available memory is capacity minus working set. The working set is the usage of the root cgroup minus its inactive
 * page cache, as in a kubelet's summary (google/cadvisor, container/libcontainer). The root of cgroup v2 does not
 * report its usage; there it is MemTotal minus MemFree.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { FileSystemUse, InterfaceAddress, Machine, MachineFacts, MachineUse } from '../../ports/machine.ts';
import { addressesOf, addressesOfName, type Lookup, systemLookup } from '../system/addresses.ts';
import { statfs } from '../system/files.ts';
import {
  bytesOfKibibytes,
  countCpuList,
  countProcessors,
  cpuBusySeconds,
  memoryFields,
  osName,
  taskCount,
} from './proc-text.ts';
import { defaultRouteInterfaces } from './routes.ts';

export interface LinuxMachineOptions {
  /** Directory on the file system that pods write to. */
  readonly rootDirectory: string;
  /** Directory of images. Default: the root directory. */
  readonly imageDirectory?: string;
  /** Prefix of /proc, /sys and /etc. For tests. */
  readonly fileRoot?: string;
  /** Replaces the system's. For tests. */
  readonly system?: Partial<LinuxSystem>;
}

export interface LinuxSystem {
  readonly hostname: () => string;
  readonly networkInterfaces: typeof networkInterfaces;
  readonly lookup: Lookup;
  readonly statfs: (path: string) => Promise<{
    readonly bsize: number;
    readonly blocks: number;
    readonly bavail: number;
    readonly files: number;
    readonly ffree: number;
  }>;
  /** The architecture by Node's name for it. */
  readonly architecture: string;
}

const SYSTEM: LinuxSystem = {
  hostname,
  networkInterfaces,
  lookup: systemLookup,
  statfs: (path) => statfs(path),
  architecture: process.arch,
};

/** A required fact about the machine is missing. */
export class MachineUnreadableError extends Error {
  override readonly name = 'MachineUnreadableError';
  readonly code = 'machine-unreadable';
}

/** Architectures with another name in Go than in Node. */
const GO_ARCHITECTURES: Readonly<Record<string, string>> = {
  x64: 'amd64',
  ia32: '386',
  ppc64: 'ppc64le',
  mipsel: 'mipsle',
};

/** Files that may contain the UUID of the system, best first (google/cadvisor, utils/sysfs). */
const SYSTEM_UUID_FILES = [
  'sys/class/dmi/id/product_uuid',
  'proc/device-tree/system-id',
  'proc/device-tree/vm,uuid',
  'etc/machine-id',
];
const MACHINE_ID_FILES = ['etc/machine-id', 'var/lib/dbus/machine-id'];
const OS_RELEASE_FILES = ['etc/os-release', 'usr/lib/os-release'];

export class LinuxMachine implements Machine {
  readonly #options: LinuxMachineOptions;
  readonly #system: LinuxSystem;

  constructor(options: LinuxMachineOptions) {
    this.#options = options;
    this.#system = { ...SYSTEM, ...options.system };
  }

  hostname(): string {
    return this.#system.hostname();
  }

  async facts(): Promise<MachineFacts> {
    const memory = memoryFields(await this.#required('proc/meminfo'));
    const [machineId, systemUuid, bootId, kernelVersion, osRelease, cpuCores, hugePages] = await Promise.all([
      this.#first(MACHINE_ID_FILES),
      this.#first(SYSTEM_UUID_FILES),
      this.#first(['proc/sys/kernel/random/boot_id']),
      this.#first(['proc/sys/kernel/osrelease']),
      this.#first(OS_RELEASE_FILES),
      this.#cpuCores(),
      this.#hugePages(),
    ]);
    return {
      cpuCores,
      memoryBytes: this.#memoryTotal(memory),
      swapBytes: bytesOfKibibytes(memory['SwapTotal'] ?? 0),
      hugePages,
      machineId,
      systemUuid,
      bootId,
      kernelVersion,
      osImage: osName(osRelease),
      operatingSystem: 'linux',
      architecture: GO_ARCHITECTURES[this.#system.architecture] ?? this.#system.architecture,
    };
  }

  async use(): Promise<MachineUse> {
    const { rootDirectory, imageDirectory } = this.#options;
    const [memoryAvailableBytes, nodeFs, imageFs, pids, stat] = await Promise.all([
      this.#memoryAvailable(),
      this.#fileSystem(rootDirectory),
      this.#fileSystem(imageDirectory ?? rootDirectory),
      this.#pids(),
      this.#required('proc/stat'),
    ]);
    return { memoryAvailableBytes, nodeFs, imageFs, cpuBusySeconds: cpuBusySeconds(stat), ...pids };
  }

  addresses(): readonly InterfaceAddress[] {
    return addressesOf(this.#system.networkInterfaces());
  }

  /** The first address, reachable from other hosts, of the interface with the best default route. */
  async defaultAddress(family: 4 | 6): Promise<string | undefined> {
    const table = await this.#optional(family === 4 ? 'proc/net/route' : 'proc/net/ipv6_route');
    if (table === undefined) return undefined;
    const addresses = this.addresses().filter((each) => each.family === family && !isLocalOnly(each.address));
    for (const name of defaultRouteInterfaces(table, family)) {
      const found = addresses.find(({ interfaceName }) => interfaceName === name);
      if (found !== undefined) return found.address;
    }
    return undefined;
  }

  lookup(name: string): ReturnType<Machine['lookup']> {
    return addressesOfName(name, this.#system.lookup);
  }

  /** Text of /proc/swaps; undefined if there is no such file. */
  swaps(): Promise<string | undefined> {
    return this.#optional('proc/swaps');
  }

  #memoryTotal(memory: Readonly<Record<string, number>>): number {
    const total = memory['MemTotal'];
    if (total === undefined) throw new MachineUnreadableError('/proc/meminfo has no MemTotal');
    return bytesOfKibibytes(total);
  }

  async #memoryAvailable(): Promise<number> {
    const memory = memoryFields(await this.#required('proc/meminfo'));
    const total = this.#memoryTotal(memory);
    const unified = await this.#optional('sys/fs/cgroup/memory.stat');
    const legacyStat = unified === undefined ? await this.#optional('sys/fs/cgroup/memory/memory.stat') : undefined;
    const legacyUse =
      legacyStat === undefined ? undefined : await this.#optional('sys/fs/cgroup/memory/memory.usage_in_bytes');
    const text = unified ?? legacyStat;
    const stat = text === undefined ? {} : memoryFields(text);
    const inactiveFile =
      stat[unified === undefined ? 'total_inactive_file' : 'inactive_file'] ??
      bytesOfKibibytes(memory['Inactive(file)'] ?? 0);
    const used = legacyUse === undefined ? total - bytesOfKibibytes(memory['MemFree'] ?? 0) : Number(legacyUse);
    return Math.max(0, total - Math.max(0, used - inactiveFile));
  }

  async #fileSystem(path: string): Promise<FileSystemUse> {
    const { bsize, blocks, bavail, files, ffree } = await this.#system.statfs(path);
    return { capacityBytes: bsize * blocks, availableBytes: bsize * bavail, inodes: files, inodesFree: ffree };
  }

  /** Includes threads, which use process ids too (pkg/kubelet/stats/pidlimit). */
  async #pids(): Promise<Pick<MachineUse, 'pidsMax' | 'pidsUsed'>> {
    const [pidMax, threadsMax, load] = await Promise.all([
      this.#required('proc/sys/kernel/pid_max'),
      this.#required('proc/sys/kernel/threads-max'),
      this.#required('proc/loadavg'),
    ]);
    return { pidsMax: Math.min(Number(pidMax), Number(threadsMax)), pidsUsed: taskCount(load) };
  }

  async #cpuCores(): Promise<number> {
    const online = await this.#optional('sys/devices/system/cpu/online');
    const cores =
      online === undefined ? countProcessors(await this.#required('proc/cpuinfo')) : countCpuList(online.trim());
    if (cores === 0) throw new MachineUnreadableError('/proc/cpuinfo lists no processor');
    return cores;
  }

  async #hugePages(): Promise<Record<string, number>> {
    const folder = 'sys/kernel/mm/hugepages';
    const pages: Record<string, number> = {};
    for (const name of this.#names(folder)) {
      const kibibytes = /^hugepages-(\d+)kB$/.exec(name)?.[1];
      const count = kibibytes === undefined ? undefined : await this.#optional(`${folder}/${name}/nr_hugepages`);
      if (count !== undefined) pages[String(bytesOfKibibytes(Number(kibibytes)))] = Number(count);
    }
    return pages;
  }

  #at(path: string): string {
    return join(this.#options.fileRoot ?? '/', path);
  }

  #names(path: string): readonly string[] {
    try {
      return readdirSync(this.#at(path));
    } catch {
      // Stryker disable next-line ArrayDeclaration: the caller leaves out names that are no size
      return [];
    }
  }

  async #optional(path: string): Promise<string | undefined> {
    try {
      return readSmallFile(this.#at(path));
    } catch {
      // Absent, or not readable, as the UUID without privileges.
      return undefined;
    }
  }

  async #required(path: string): Promise<string> {
    try {
      return readSmallFile(this.#at(path));
    } catch (cause) {
      throw new MachineUnreadableError(`/${path} cannot be read`, { cause });
    }
  }

  /** Text of the first file that is not empty. Texts of device trees end with a null. */
  async #first(paths: readonly string[]): Promise<string> {
    for (const path of paths) {
      const text = (await this.#optional(path))?.replaceAll('\0', '').trim() ?? '';
      if (text !== '') return text;
    }
    return '';
  }
}

const fileBuffer = Buffer.alloc(16 * 1_024);

/**
 * Reads synchronously, because the kernel answers from memory, and into one buffer: readFile would allocate 64 KiB for
 * each of about twenty files per pass.
 */
function readSmallFile(path: string): string {
  const file = openSync(path, 'r');
  try {
    // Stryker disable ConditionalExpression,EqualityOperator,BlockStatement: without it, readFileSync has the same text
    let length = 0;
    while (length < fileBuffer.length) {
      const read = readSync(file, fileBuffer, length, fileBuffer.length - length, null);
      if (read === 0) return fileBuffer.toString('utf8', 0, length);
      length += read;
    }
    // Stryker restore all
  } finally {
    closeSync(file);
  }
  return readFileSync(path, 'utf8');
}

/** Loopback and link-local addresses, in the system's format. */
const isLocalOnly = (address: string): boolean => /^127\.|^169\.254\.|^::1$|^fe[89ab][0-9a-f]:/i.test(address);
