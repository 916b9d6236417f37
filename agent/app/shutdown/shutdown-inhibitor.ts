import type { Log } from '../../../shared/observability/log.ts';
import type { PriorityGrace } from '../../config.ts';
import type { ShutdownSignal } from '../../ports/shutdown-signal.ts';
import type { AgentTime } from '../../ports/time.ts';
import { requestedDelayMs } from '../../rules/shutdown-settings.ts';
import { delayDecision } from '../../rules/shutdown-start.ts';
import { describeError } from '../describe-error.ts';

/** The delay that the grace periods of all pods need, and the lock that makes the system wait for it. */
export class ShutdownInhibitor {
  readonly #shutdownSignal: ShutdownSignal;
  readonly #time: Pick<AgentTime, 'sleep'>;
  readonly #log: Log;
  #lock: { release(): Promise<void> } | undefined;

  constructor(shutdownSignal: ShutdownSignal, time: Pick<AgentTime, 'sleep'>, log: Log) {
    this.#shutdownSignal = shutdownSignal;
    this.#time = time;
    this.#log = log;
  }

  /** Raises the delay if the system grants less than the buckets need. Rejects if it still grants less after that. */
  async ensureDelay(buckets: readonly PriorityGrace[], stop: AbortSignal): Promise<void> {
    const requestedMs = requestedDelayMs(buckets);
    const { rereadWaitsMs, delayTooShort } = this.#shutdownSignal.rules;
    let grantedMs = await this.#shutdownSignal.delayMaxMs();
    const decision = delayDecision(requestedMs, grantedMs);
    if (decision.kind === 'enough') return;
    await this.#shutdownSignal.raiseDelayMax(decision.delayMs);
    for (const waitMs of [0, ...rereadWaitsMs]) {
      if (waitMs > 0) await this.#time.sleep(waitMs, stop);
      grantedMs = await this.#shutdownSignal.delayMaxMs();
      if (grantedMs >= requestedMs) return;
    }
    throw new Error(delayTooShort(requestedMs, grantedMs));
  }

  /** Acquires a new lock before it releases the previous one. */
  async acquire(): Promise<void> {
    const acquired = await this.#shutdownSignal.hold();
    await this.release();
    this.#lock = acquired;
  }

  async release(): Promise<void> {
    const lock = this.#lock;
    this.#lock = undefined;
    await lock
      ?.release()
      .catch((error: unknown) => this.#log.error('Failed to release the lock', { error: describeError(error) }));
  }
}
