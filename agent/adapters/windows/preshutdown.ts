/**
 * The shutdown of Windows as the agent's ShutdownSignal: a service is told by the control PRESHUTDOWN, once, and has as long
 * as its preshutdown time-out says. There is no lock to hold and no cancellation.
 * Source: pkg/kubelet/nodeshutdown/nodeshutdown_manager_windows.go, pkg/windows/service/service.go.
 */
import type { ShutdownSignal } from '../../ports/shutdown-signal.ts';
import { preshutdownOrder } from '../../rules/preshutdown-order.ts';

/** What the service control manager and the registry have to say; only a process that runs as a service can ask. */
export interface WindowsService {
  preshutdownTimeoutMs(): Promise<number>;
  setPreshutdownTimeout(timeoutMs: number): Promise<void>;
  dependencies(): Promise<readonly string[]>;
  /** The value PreshutdownOrder under SYSTEM\CurrentControlSet\Control. */
  readPreshutdownOrder(): Promise<readonly string[]>;
  writePreshutdownOrder(order: readonly string[]): Promise<void>;
  /** Resolves when the control PRESHUTDOWN arrives, and has then told Windows that the stop is pending. */
  preshutdown(signal: AbortSignal): Promise<'preshutdown' | 'aborted'>;
}

export class PreshutdownError extends Error {
  override readonly name = 'PreshutdownError';
}

async function or<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new PreshutdownError(`Could not ${what}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

/** @param service undefined when this process is none: then the start fails */
export function windowsPreshutdown(service: WindowsService | undefined): ShutdownSignal {
  function running(): WindowsService {
    if (service === undefined) throw new PreshutdownError('kubelet is NOT running as a Windows service');
    return service;
  }
  return {
    async delayMaxMs() {
      return or('query the preshutdown time-out', running().preshutdownTimeoutMs());
    },
    async raiseDelayMax(delayMs) {
      await or('update the preshutdown time-out', running().setPreshutdownTimeout(delayMs));
    },
    /** Windows waits for the service as it is; what has to be right is the order. */
    async hold() {
      const here = running();
      const dependencies = await or('query the dependencies of the service', here.dependencies());
      const existing = await or('read PreshutdownOrder', here.readPreshutdownOrder());
      const order = preshutdownOrder(existing, dependencies);
      if (order !== existing) await or('write PreshutdownOrder', here.writePreshutdownOrder(order));
      return { release: async () => undefined };
    },
    async *watch(signal) {
      if ((await running().preshutdown(signal)) === 'preshutdown') yield true;
    },
  };
}
