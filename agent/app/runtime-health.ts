/** The newest health report of the container runtime, for conditions, events and /healthz. */
import type { PodRuntime } from '../ports/pod-runtime.ts';
import type { AgentTime } from '../ports/time.ts';
import type { NodeEvent } from '../rules/node-event.ts';

/** Interval of the requests to the runtime. Milliseconds. */
const POLL_INTERVAL_MS = 10_000;

export interface RuntimeHealthDependencies {
  readonly runtime: PodRuntime;
  readonly time: AgentTime;
  readonly recordEvent: (event: NodeEvent) => void;
}

export class RuntimeHealth {
  readonly #dependencies: RuntimeHealthDependencies;
  #notReady: string | undefined = 'the container runtime has not reported yet';
  #stateComplaint: string | undefined;

  constructor(dependencies: RuntimeHealthDependencies) {
    this.#dependencies = dependencies;
  }

  /** Why no pod can run; undefined while pods can. */
  notReady(): string | undefined {
    return this.#notReady;
  }

  /** Why the runtime cannot keep its state; undefined while it can. */
  stateComplaint(): string | undefined {
    return this.#stateComplaint;
  }

  /** Reads the health of the runtime once. */
  async poll(): Promise<void> {
    const { runtime, recordEvent } = this.#dependencies;
    const health = await runtime
      .health()
      .catch((cause: unknown) => ({ kind: 'notReady' as const, reason: String(cause) }));
    this.#notReady = health.kind === 'ready' ? undefined : health.reason;
    const complaint = runtime.complaint?.();
    if (complaint === this.#stateComplaint) return;
    this.#stateComplaint = complaint;
    recordEvent(
      complaint === undefined
        ? { type: 'Normal', reason: 'StateWritten', message: 'The state of pods is written to the disk again' }
        : { type: 'Warning', reason: 'StateNotWritten', message: complaint },
    );
  }

  /** Polls until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.#dependencies.time.sleep(POLL_INTERVAL_MS, stop);
      if (!stop.aborted) await this.poll();
    }
  }
}
