/** This process as a service of Windows: its controls, and the report of its end. */
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { PreshutdownService } from '../../ports/preshutdown-service.ts';
import { programDirectory } from './foreign.ts';
import { PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER } from './preshutdown.ts';
import { registryTexts, writeRegistryTexts } from './registry.ts';
import { preshutdownTimeoutMs, serviceDependencies, setPreshutdownTimeout } from './service-database.ts';
import type { FromService, ServiceOptions, ToService } from './service-messages.ts';

/** Longest wait for Windows to take note of the end. Milliseconds. */
const END_MS = 3_000;

export interface OwnService extends PreshutdownService {
  /** Aborted when Windows asks the service to stop, and when its end was reported. */
  readonly stopRequested: AbortSignal;
  /** Reports that the service has stopped. Without effect after the first call. Exit code of the service. */
  end(exitCode: number): Promise<void>;
}

export type ServiceStart =
  | { readonly kind: 'service'; readonly service: OwnService }
  /** The service control manager did not start this process. */
  | { readonly kind: 'notService' };

/** @throws Error when the service control manager cannot be answered */
export async function startOwnService(options: ServiceOptions): Promise<ServiceStart> {
  const worker = new Worker(workerFile(), { workerData: options });
  const stop = new AbortController();
  const preshutdown = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const started = Promise.withResolvers<ServiceStart>();
  const send = (message: ToService): void => worker.postMessage(message);
  let hasEnded = false;
  const serviceOf = (name: string): OwnService => ({
    name,
    preshutdownTimeoutMs: () => preshutdownTimeoutMs(name),
    setPreshutdownTimeout: (timeoutMs) => setPreshutdownTimeout(name, timeoutMs),
    dependencies: () => serviceDependencies(name),
    readOrder: () => registryTexts(PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER) ?? [],
    writeOrder: (order) => writeRegistryTexts(PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER, order),
    allowPreshutdown: (limitMs) => send({ kind: 'limit', limitMs }),
    preshutdown: preshutdown.promise,
    stopRequested: stop.signal,
    async end(exitCode) {
      if (hasEnded) return;
      hasEnded = true;
      send({ kind: 'stopped', exitCode });
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, END_MS);
      await Promise.race([ended.promise, promise]);
      clearTimeout(timer);
      stop.abort();
    },
  });
  worker.on('message', (message: FromService) => {
    switch (message.kind) {
      case 'started':
        process.once('exit', exitAtOnce);
        return started.resolve({ kind: 'service', service: serviceOf(message.name) });
      case 'notService':
        return started.resolve({ kind: 'notService' });
      case 'failed':
        return started.reject(new Error(message.message));
      case 'stop':
        return stop.abort();
      case 'preshutdown':
        return preshutdown.resolve();
      case 'ended':
        process.off('exit', exitAtOnce);
        return ended.resolve();
      default:
        return message satisfies never;
    }
  });
  worker.on('error', (error) => started.reject(error));
  try {
    return await started.promise;
  } finally {
    // It keeps no process alive.
    worker.unref();
  }
}

/**
 * Windows holds the thread as long as the service runs, and at its exit Node would wait for it for ever. To Windows
 * this end is a failure, so the service is started again.
 */
const exitAtOnce = (): void => void process.kill(process.pid, 'SIGKILL');

/** Beside the sources, or beside the bundle. */
const workerFile = (): string =>
  join(programDirectory(), import.meta.url.endsWith('.ts') ? 'service-worker.ts' : 'service-worker.mjs');
