/**
 * Announces the silence of a machine that suspends (plannedSilenceOnSleepSeconds).
 *
 *   acquire the lock → watch → before a suspend: promise, release the lock → after it: heartbeat, acquire it again
 *
 * The lock delays the suspend until the promise is stored, for 4 s at most. After the resume nothing is removed: the
 * cluster ends the promise at the first heartbeat after more than one grace period, or at its time.
 */
import type { Log } from '../../shared/observability/log.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { ShutdownSignal } from '../ports/shutdown-signal.ts';
import type { AgentTime } from '../ports/time.ts';
import { answeredWith, describeAnswer } from '../rules/kube-answer.ts';
import { promiseOfSilence } from '../rules/planned-silence.ts';
import { SLEEP_PROMISE_ATTEMPTS, SLEEP_PROMISE_TIMEOUT_MS, SLEEP_REASON } from '../rules/sleep-start.ts';
import { describeError } from './describe-error.ts';

const RESTART_WAIT_MS = 1_000;

/** `true` before the machine suspends, `false` after the resume. */
export type SleepSignal = Pick<ShutdownSignal, 'hold' | 'watch'>;

export interface SleepWatchDependencies {
  readonly nodeName: string;
  /** How long the promised silence is; 0: the watch is off. */
  readonly plannedSilenceOnSleepSeconds: number;
  readonly sleepSignal: SleepSignal;
  readonly api: Pick<KubeApi, 'send'>;
  readonly time: Pick<AgentTime, 'nowMs' | 'sleep'>;
  readonly log: Log;
  /** Before a suspend, with the announced silence. Seconds. */
  readonly onSuspend: (forSeconds: number) => void;
  /** After a resume. */
  readonly onResume: () => void;
}

export class SleepWatch {
  readonly #dependencies: SleepWatchDependencies;
  #lock: { release(): Promise<void> } | undefined;
  #hasWatched = false;

  constructor(dependencies: SleepWatchDependencies) {
    this.#dependencies = dependencies;
  }

  /** Watches until stopped. Resolves at once if it is off or cannot start: the agent then runs without it. */
  async run(stop: AbortSignal): Promise<void> {
    const { plannedSilenceOnSleepSeconds, time, log } = this.#dependencies;
    if (plannedSilenceOnSleepSeconds === 0) return;
    while (!stop.aborted) {
      try {
        await this.#watchOnce(stop);
      } catch (error) {
        log.error('Unable to watch the machine for suspends', { error: describeError(error) });
        if (!this.#hasWatched) return;
      } finally {
        await this.#release();
      }
      await time.sleep(RESTART_WAIT_MS, stop);
    }
  }

  /** Resolves when the watch ends, and rejects if it or the lock fails. */
  async #watchOnce(stop: AbortSignal): Promise<void> {
    const { plannedSilenceOnSleepSeconds, sleepSignal, onSuspend, onResume } = this.#dependencies;
    this.#lock = await sleepSignal.hold();
    this.#hasWatched = true;
    for await (const isSuspending of sleepSignal.watch(stop)) {
      if (stop.aborted) break;
      if (isSuspending) {
        onSuspend(plannedSilenceOnSleepSeconds);
        await this.#promise();
        await this.#release();
      } else {
        onResume();
        this.#lock ??= await sleepSignal.hold();
      }
    }
  }

  async #promise(): Promise<void> {
    const { nodeName, plannedSilenceOnSleepSeconds: seconds, api, time, log } = this.#dependencies;
    for (let attempt = 1; attempt <= SLEEP_PROMISE_ATTEMPTS; attempt += 1) {
      const untilMs = time.nowMs() + seconds * 1_000;
      const request = promiseOfSilence(nodeName, untilMs, SLEEP_REASON);
      const answer = await api.send({ ...request, timeoutMs: SLEEP_PROMISE_TIMEOUT_MS });
      if (answeredWith(answer, 200)) {
        log.info('the machine suspends: silence announced', { seconds });
        return;
      }
      log.warn('the machine suspends: silence could not be announced', { attempt, answer: describeAnswer(answer) });
      if (answeredWith(answer, 422) || answeredWith(answer, 403)) return;
    }
  }

  async #release(): Promise<void> {
    const lock = this.#lock;
    this.#lock = undefined;
    await lock
      ?.release()
      .catch((error: unknown) =>
        this.#dependencies.log.error('Failed to release the lock on the suspend', { error: describeError(error) }),
      );
  }
}
