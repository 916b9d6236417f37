/**
 * Keeps a server open on which neither heartbeats nor pods depend: /healthz with /metrics, and the answers to probes of
 * the site. Where its port is in use, the agent continues, and tries again as a kubelet does. Source:
 * cmd/kubelet/app/server.go, `wait.Until(…, 5*time.Second, …)`.
 */
import type { Log } from '../../shared/observability/log.ts';
import type { AgentTime } from '../ports/time.ts';
import { describeError } from './describe-error.ts';

const RETRY_MS = 5_000;

export interface ServedDependencies {
  /** What is served. */
  readonly name: string;
  readonly port: number;
  /** Rejects if the port is in use. */
  readonly open: () => Promise<{ close(): Promise<void> }>;
  readonly time: Pick<AgentTime, 'sleep'>;
  readonly log: Log;
}

/** Serves until stopped. */
export async function keepServed(dependencies: ServedDependencies, stop: AbortSignal): Promise<void> {
  const { name, port, open, time, log } = dependencies;
  let fault: string | undefined;
  while (!stop.aborted) {
    try {
      const server = await open();
      if (fault !== undefined) log.info(`${name} is served`, { port });
      await aborted(stop);
      await server.close();
      return;
    } catch (cause) {
      const why = describeError(cause);
      // Once per reason.
      if (why !== fault) log.error(`${name} cannot be served; it is tried again`, { port, why, waitMs: RETRY_MS });
      fault = why;
      await time.sleep(RETRY_MS, stop);
    }
  }
}

const aborted = (stop: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener('abort', () => resolve(), { once: true });
  });
