/** Facts about this machine, as /proc, statfs, cgroups and the interfaces tell them. */
export interface InterfaceAddress {
  readonly interfaceName: string;
  readonly address: string;
  readonly family: 4 | 6;
}

export interface FileSystemUse {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  /** 0 when the file system counts none. */
  readonly inodes: number;
  readonly inodesFree: number;
}

export interface MachineFacts {
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  /** Page size in bytes to the number of pages there are. */
  readonly hugePages: Readonly<Record<string, number>>;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  /** As Go names it: linux, windows. */
  readonly operatingSystem: string;
  /** As Go names it: amd64, arm64. */
  readonly architecture: string;
}

export interface MachineUse {
  /** What could be given to pods without reclaiming: capacity minus working set. */
  readonly memoryAvailableBytes: number;
  readonly nodeFs: FileSystemUse;
  readonly imageFs: FileSystemUse;
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
  /** Looks the name up; empty when it is unknown. */
  lookup(name: string): Promise<readonly { readonly address: string; readonly family: 4 | 6 }[]>;
}
