import { noRuntime } from '../adapters/runtime-none/runtime-none.ts';
import { heartbeatFile, permitFile } from '../adapters/system/heartbeat-file.ts';
import { systemTime } from '../adapters/system/time.ts';
import { type OwnService, startOwnService } from '../adapters/windows/own-service.ts';
import { plainVolumes } from '../adapters/windows/plain-volumes.ts';
import { preshutdownSignal } from '../adapters/windows/preshutdown.ts';
import type { ServiceOptions } from '../adapters/windows/service-messages.ts';
import { bootId, WindowsMachine } from '../adapters/windows/windows-machine.ts';
import { windowsRuntime } from '../adapters/windows/windows-runtime.ts';
import type { PodRuntime } from '../ports/pod-runtime.ts';
import { NO_NUMA, type Platform, type PlatformOptions } from './platform.ts';

/** A control of its own (128 to 255) for a preshutdown, which no program can send. For tests. */
const PRESHUTDOWN_CONTROL = 'NODEKEEPER_PRESHUTDOWN_CONTROL';

export async function openWindows(options: PlatformOptions): Promise<Platform> {
  const { config, log, environment } = options;
  const { rootDirectory } = config;
  const service = await openService(environment[PRESHUTDOWN_CONTROL], log);
  return {
    machine: new WindowsMachine({ rootDirectory }),
    openRuntime: async () => openRuntime(options),
    volumes: () => plainVolumes(rootDirectory),
    heartbeatFile: heartbeatFile(rootDirectory, config, bootId),
    permitFile: permitFile(rootDirectory, config, bootId),
    services: async () => undefined,
    numa: async () => NO_NUMA,
    swaps: async () => undefined,
    shutdownSignal: preshutdownSignal(service),
    sleepSignal: undefined,
    stopRequested: service?.stopRequested,
    async close() {
      // Another end is a failure to Windows: the service is started again, after an update too.
      if (service?.stopRequested.aborted) await service.end(0);
    },
  };
}

function openRuntime({ config, log, hostIp, probeClient, environment }: PlatformOptions): PodRuntime {
  if (config.runtime === 'none') return noRuntime();
  const { rootDirectory, podPidsMax } = config;
  return windowsRuntime({ rootDirectory, time: systemTime, log, hostIp, probeClient, podPidsMax, environment });
}

/** Undefined if this process is no service. The graceful shutdown then logs that it cannot start. */
async function openService(control: string | undefined, log: PlatformOptions['log']): Promise<OwnService | undefined> {
  const options: ServiceOptions = control === undefined ? {} : { preshutdownControl: Number(control) };
  const started = await startOwnService(options).catch((error: unknown) => {
    log.error('the service control manager cannot be answered', { error });
    return undefined;
  });
  return started?.kind === 'service' ? started.service : undefined;
}
