/**
 * Synchronizes pods concurrently, with at most one step per pod at a time. A request during a step causes one more step
 * afterwards. From outside, only a stop under way can be shortened.
 */
import { type Backoff, backoffMs } from '../../../shared/backoff.ts';
import { describeError } from '../describe-error.ts';
import { logFields, type PodEntry } from './pod-entry.ts';
import { PodSync, type PodSyncDependencies, stopGraceSeconds } from './pod-sync.ts';

const RETRY_WAITS: Backoff = { firstMs: 1_000, limitMs: 300_000 };
/** Failed steps in a row before a pod waits for the next list or change. */
const FAILURES_MAX = 10;

export interface PodWorkersDependencies extends PodSyncDependencies {
  /** Called when `retryAtMs` of a pod was set. */
  readonly onRetry: () => void;
  /** Called after each step. */
  readonly onStep: () => void;
}

export class PodWorkers {
  readonly #dependencies: PodWorkersDependencies;
  readonly #sync: PodSync;

  constructor(dependencies: PodWorkersDependencies) {
    this.#dependencies = dependencies;
    this.#sync = new PodSync(dependencies);
  }

  request(entry: PodEntry): void {
    if (entry.sync !== undefined) {
      entry.syncAgain = true;
      this.#shortenStop(entry);
      return;
    }
    delete entry.retryAtMs;
    entry.sync = this.#run(entry).finally(() => {
      delete entry.sync;
    });
  }

  /** Resolves when no step is under way. */
  async settled(): Promise<void> {
    await Promise.all([...this.#dependencies.entries.values()].map(({ sync }) => sync));
  }

  /** Never rejects. */
  async #run(entry: PodEntry): Promise<void> {
    do {
      entry.syncAgain = false;
      try {
        await this.#sync.step(entry);
        entry.failures = 0;
      } catch (cause) {
        this.#retryLater(entry, cause);
      }
      // A pod may have been removed.
      void this.#dependencies.remember();
      this.#dependencies.onStep();
    } while (entry.syncAgain && !this.#dependencies.isStopping());
  }

  #retryLater(entry: PodEntry, cause: unknown): void {
    const { log, time, onRetry } = this.#dependencies;
    entry.failures += 1;
    log.warn('a pod could not be synchronized', {
      ...logFields(entry),
      why: describeError(cause),
      attempt: entry.failures,
    });
    if (entry.failures < FAILURES_MAX) {
      entry.retryAtMs = time.monotonicMs() + backoffMs(RETRY_WAITS, entry.failures - 1);
      onRetry();
    } else entry.failures = 0;
  }

  #shortenStop(entry: PodEntry): void {
    const graceSeconds = stopGraceSeconds(entry);
    if (entry.stoppingSeconds === undefined || graceSeconds === undefined) return;
    if (graceSeconds >= entry.stoppingSeconds) return;
    entry.stoppingSeconds = graceSeconds;
    // The stop under way resolves with this one, or rejects for both.
    this.#dependencies.runtime.stop(entry.uid, graceSeconds).catch(() => undefined);
  }
}
