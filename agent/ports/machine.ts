/** Facts about this machine: on Linux from /proc, statfs and cgroups, on Windows from its registry and counters. */
export interface InterfaceAddress {
  readonly interfaceName: string;
  readonly address: string;
  readonly family: 4 | 6;
}

export interface FileSystemUse {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  /** 0 if the file system does not count inodes. */
  readonly inodes: number;
  readonly inodesFree: number;
}

export interface MachineFacts {
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  /** Number of pages by page size in bytes. */
  readonly hugePages: Readonly<Record<string, number>>;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  /** Go's name: linux, windows. */
  readonly operatingSystem: string;
  /** Go's name: amd64, arm64. */
  readonly architecture: string;
  /** Labels of the Node that only this operating system has. */
  readonly osLabels?: Readonly<Record<string, string>>;
}

export interface MachineUse {
  /** Memory that pods can use without reclaim: capacity minus working set. */
  readonly memoryAvailableBytes: number;
  readonly nodeFs: FileSystemUse;
  readonly imageFs: FileSystemUse;
  /** CPU time of all processes since the machine started, without idle time and without waits for disks. */
  readonly cpuBusySeconds: number;
  readonly pidsMax: number;
  readonly pidsUsed: number;
}

export interface Machine {
  hostname(): string;
  facts(): Promise<MachineFacts>;
  use(): Promise<MachineUse>;
  addresses(): readonly InterfaceAddress[];
  /** Address of the interface that has the default route. */
  defaultAddress(family: 4 | 6): Promise<string | undefined>;
  /** Resolves the name; empty if it is unknown. */
  lookup(name: string): Promise<readonly { readonly address: string; readonly family: 4 | 6 }[]>;
}
