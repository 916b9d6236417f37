import { defined } from '../../shared/defined.ts';
import { cgroupNode, openPodCgroups } from '../adapters/cgroup/open-pod-cgroups.ts';
import { LinuxMachine } from '../adapters/linux-machine/linux-machine.ts';
import { logind } from '../adapters/logind/logind.ts';
import { readNuma } from '../adapters/numa/numa.ts';
import { readBootId } from '../adapters/runtime-exec/process-table.ts';
import { execRuntime } from '../adapters/runtime-exec/runtime-exec.ts';
import { noRuntime } from '../adapters/runtime-none/runtime-none.ts';
import { podmanRuntime } from '../adapters/runtime-podman/runtime-podman.ts';
import { heartbeatFile, permitFile } from '../adapters/system/heartbeat-file.ts';
import { systemTime } from '../adapters/system/time.ts';
import { claimDirectories } from '../adapters/volumes/claim-directories.ts';
import { memoryDirectory } from '../adapters/volumes/memory-directory.ts';
import { podVolumes } from '../adapters/volumes/pod-volumes.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import { NO_NUMA, type Platform, type PlatformOptions } from './platform.ts';

export function openLinux(options: PlatformOptions): Platform {
  const { config, log, environment } = options;
  const { rootDirectory } = config;
  const machine = new LinuxMachine({ rootDirectory });
  const bus = { log, ...defined({ busAddress: environment['DBUS_SYSTEM_BUS_ADDRESS'] }) };
  const shutdownSignal = logind(bus);
  const sleepSignal = logind({ ...bus, event: 'sleep' });
  return {
    machine,
    openRuntime: () => openRuntime(options, machine),
    claimDirectories: () => claimDirectories(rootDirectory),
    volumes: () => podVolumes({ rootDirectory, memoryDirectory: memoryDirectory('volumes') }),
    // Most machines do not need this code.
    async services() {
      const { services } = config;
      if (services !== undefined) {
        const { openServices } = await import('../adapters/services/open-services.ts');
        return openServices(config, services, log);
      }
      const { closeServices } = await import('../adapters/services/close-services.ts');
      await closeServices(config, log);
      return undefined;
    },
    heartbeatFile: heartbeatFile(memoryDirectory('heartbeat') ?? rootDirectory, config, readBootId),
    permitFile: permitFile(memoryDirectory('heartbeat') ?? rootDirectory, config, readBootId),
    // Only topology policies need the NUMA nodes. Without a policy they may be unreadable.
    numa: async () => (config.topologyManagerPolicy === 'none' ? NO_NUMA : readNuma()),
    swaps: () => machine.swaps(),
    shutdownSignal,
    sleepSignal,
    stopRequested: undefined,
    async close() {
      shutdownSignal.close();
      sleepSignal.close();
    },
  };
}

async function openRuntime(options: PlatformOptions, machine: LinuxMachine): Promise<PodRuntime> {
  const { config, log, hostIp, probeClient } = options;
  const common = { rootDirectory: config.rootDirectory, time: systemTime, log, hostIp, probeClient };
  switch (config.runtime) {
    case 'none':
      return noRuntime();
    case 'exec':
      return execRuntime({ ...common, ...(await podLimits(options, machine)) });
    case 'podman':
      return podmanRuntime({ ...common, limits: cgroupNode(config, await machine.facts(), true) });
    default:
      return config.runtime satisfies never;
  }
}

async function podLimits({ config, log }: PlatformOptions, machine: LinuxMachine) {
  const use = await machine.use().catch(() => undefined);
  const { cgroups, warning } = openPodCgroups(config, await machine.facts(), use?.pidsMax, log);
  if (warning !== undefined) log.warn(warning);
  return { cgroups, limitWarning: warning };
}
