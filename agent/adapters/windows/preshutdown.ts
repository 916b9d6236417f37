/**
 * The ShutdownSignal of Windows. A service receives the preshutdown control once, and Windows waits for its end as long
 * as its preshutdown time-out says. There is no lock and no cancellation.
 * Source: pkg/kubelet/nodeshutdown/nodeshutdown_manager_windows.go, pkg/windows/service/service.go.
 */
import type { PreshutdownService } from '../../ports/preshutdown-service.ts';
import type { ShutdownSignal } from '../../ports/shutdown-signal.ts';
import { preshutdownOrder } from '../../rules/preshutdown-order.ts';
import { PRESHUTDOWN } from '../../rules/shutdown-start.ts';

/** Below HKEY_LOCAL_MACHINE. */
export const PRESHUTDOWN_KEY = 'SYSTEM\\CurrentControlSet\\Control';
export const PRESHUTDOWN_ORDER = 'PreshutdownOrder';

export class PreshutdownError extends Error {
  override readonly name = 'PreshutdownError';
}

export const NOT_A_SERVICE = 'kubelet is NOT running as a Windows service';

/** @param service undefined when this process is no service: graceful shutdown then does not start */
export function preshutdownSignal(service: PreshutdownService | undefined): ShutdownSignal {
  const running = (): PreshutdownService => {
    if (service === undefined) throw new PreshutdownError(NOT_A_SERVICE);
    return service;
  };
  let isShuttingDown = false;
  return {
    rules: PRESHUTDOWN,

    async delayMaxMs() {
      return orSay('query the preshutdown time-out', () => running().preshutdownTimeoutMs());
    },

    async raiseDelayMax(delayMs) {
      orSay('update the preshutdown time-out', () => running().setPreshutdownTimeout(delayMs));
    },

    async hold() {
      const here = running();
      const dependencies = orSay('query the dependencies of the service', () => here.dependencies());
      const existing = orSay('read PreshutdownOrder', () => here.readOrder());
      const order = preshutdownOrder(here.name, dependencies, existing);
      if (order !== existing) orSay('write PreshutdownOrder', () => here.writeOrder(order));
      here.allowPreshutdown(here.preshutdownTimeoutMs());
      return {
        async release() {
          // The agent may also stop while the machine runs.
          if (isShuttingDown) await here.end(0);
        },
      };
    },

    async *watch(signal) {
      const { preshutdown } = running();
      const { promise: stopped, resolve } = Promise.withResolvers<void>();
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
      isShuttingDown = await Promise.race([preshutdown.then(() => true), stopped.then(() => false)]);
      if (isShuttingDown) yield true;
    },
  };
}

function orSay<Result>(what: string, act: () => Result): Result {
  try {
    return act();
  } catch (cause) {
    if (cause instanceof PreshutdownError) throw cause;
    throw new PreshutdownError(`Could not ${what}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
}
