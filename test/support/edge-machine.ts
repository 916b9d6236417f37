/** A machine in memory, with room for everything. */
import type { Machine } from '../../agent/ports/machine.ts';

const GIB = 2 ** 30;
const fileSystem = { capacityBytes: 100 * GIB, availableBytes: 90 * GIB, inodes: 1_000, inodesFree: 900 };
export const edgeMachine: Machine = {
  hostname: () => 'edge-1',
  facts: async () => ({
    cpuCores: 4,
    memoryBytes: 8 * GIB,
    swapBytes: 0,
    hugePages: {},
    machineId: 'm',
    systemUuid: 's',
    bootId: 'b',
    kernelVersion: '6.1',
    osImage: 'Linux',
    operatingSystem: 'linux',
    architecture: 'arm64',
  }),
  use: async () => ({
    memoryAvailableBytes: 6 * GIB,
    nodeFs: fileSystem,
    imageFs: fileSystem,
    pidsMax: 1_000,
    pidsUsed: 10,
    cpuBusySeconds: 100,
  }),
  addresses: () => [{ interfaceName: 'eth0', address: '192.0.2.7', family: 4 }],
  defaultAddress: async () => '192.0.2.7',
  lookup: async () => [],
};
