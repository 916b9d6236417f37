import { noRuntime } from '../adapters/runtime-none/runtime-none.ts';
import { podVolumes } from '../adapters/volumes/pod-volumes.ts';
import { type OwnService, startOwnService } from '../adapters/windows/own-service.ts';
import { preshutdownSignal } from '../adapters/windows/preshutdown.ts';
import type { ServiceOptions } from '../adapters/windows/service-messages.ts';
import { WindowsMachine } from '../adapters/windows/windows-machine.ts';
import { NO_NUMA, type Platform, type PlatformOptions } from './platform.ts';

/** A control of its own (128 to 255) for a preshutdown, which no program can send. For tests. */
const PRESHUTDOWN_CONTROL = 'NODEKEEPER_PRESHUTDOWN_CONTROL';

export async function openWindows({ config, log, environment }: PlatformOptions): Promise<Platform> {
  const { rootDirectory } = config;
  const service = await openService(environment[PRESHUTDOWN_CONTROL], log);
  return {
    machine: new WindowsMachine({ rootDirectory }),
    openRuntime: async () => noRuntime(),
    volumes: () => podVolumes({ rootDirectory, memoryDirectory: undefined }),
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

/** Undefined if this process is no service. The graceful shutdown then logs that it cannot start. */
async function openService(control: string | undefined, log: PlatformOptions['log']): Promise<OwnService | undefined> {
  const options: ServiceOptions = control === undefined ? {} : { preshutdownControl: Number(control) };
  const started = await startOwnService(options).catch((error: unknown) => {
    log.error('the service control manager cannot be answered', { error });
    return undefined;
  });
  return started?.kind === 'service' ? started.service : undefined;
}
