/**
 * The last heartbeat that the cluster itself answered, with the time before it was sent. It is kept in a file for an
 * agent that starts again within the same boot, only while a pod needs it: otherwise nothing is written.
 */
import type { Log } from '../../shared/observability/log.ts';
import type { HeartbeatFile } from '../ports/heartbeat-file.ts';
import type { AgentTime } from '../ports/time.ts';
import { type ClockReading, clockReading, elapsedMs } from '../rules/offline-stop.ts';
import { describeError } from './describe-error.ts';
import { NewestInFile } from './newest-in-file.ts';

/** Without a known heartbeat, pods that run may wait this long for the first one. Milliseconds. */
export const FIRST_HEARTBEAT_MS = 10_000;

export interface AnsweredHeartbeatsDependencies {
  readonly time: Pick<AgentTime, 'nowMs' | 'uptimeMs'>;
  readonly file: HeartbeatFile;
  readonly log: Log;
}

export class AnsweredHeartbeats {
  readonly #dependencies: AnsweredHeartbeatsDependencies;
  readonly #startedAt: ClockReading;
  #newest: ClockReading | undefined;
  #longestSilenceMs = 0;
  readonly #kept: NewestInFile<ClockReading>;

  constructor(dependencies: AnsweredHeartbeatsDependencies) {
    this.#dependencies = dependencies;
    this.#startedAt = this.now();
    // Without it, the next agent stops the pods unless a heartbeat is answered at once.
    this.#kept = new NewestInFile({ ...dependencies, failure: 'the last answered heartbeat cannot be kept' });
  }

  /** Reads what the previous agent of this boot kept. Once, before the first heartbeat. */
  async read(): Promise<void> {
    const { file, time, log } = this.#dependencies;
    try {
      this.#newest = await file.read(time.uptimeMs());
    } catch (cause) {
      log.warn('the last answered heartbeat cannot be read', { why: describeError(cause) });
    }
  }

  now(): ClockReading {
    return clockReading(this.#dependencies.time);
  }

  newest(): ClockReading | undefined {
    return this.#newest;
  }

  /** Time without an answered heartbeat. Unknown: 0 for a moment, then Infinity. Milliseconds. */
  silentMs(): number {
    const now = this.now();
    if (this.#newest !== undefined) return elapsedMs(this.#newest, now);
    // A machine often sets its clock soon after its boot.
    return now.uptimeMs - this.#startedAt.uptimeMs < FIRST_HEARTBEAT_MS ? 0 : Number.POSITIVE_INFINITY;
  }

  /** The longest such time since the last heartbeat of the previous agent. Milliseconds. */
  longestSilenceMs(): number {
    return Math.max(this.#longestSilenceMs, this.silentMs());
  }

  /** @param sentAt read before the heartbeat was sent */
  answered(sentAt: ClockReading): void {
    this.#longestSilenceMs = this.longestSilenceMs();
    this.#newest = sentAt;
  }

  /** Keeps the newest one in the file. Resolves when it, or a newer one, was written, or cannot be. Never rejects. */
  async keep(): Promise<void> {
    if (this.#newest !== undefined) await this.#kept.keep(this.#newest);
  }
}
