import type { Log } from '../../../shared/observability/log.ts';
import type { AgentMeter } from '../../ports/meter.ts';
import {
  gaugeSeconds,
  readShutdownState,
  SHUTDOWN_END_METRIC,
  SHUTDOWN_START_METRIC,
  shutdownStateText,
} from '../../rules/shutdown-state.ts';
import { describeError } from '../describe-error.ts';

export interface ShutdownStateFile {
  /** Undefined if there is none. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

/** Start and end of the last shutdown, in metrics and in a file that the next start of the agent reads. */
export class ShutdownRecord {
  readonly #file: ShutdownStateFile;
  readonly #meter: AgentMeter;
  readonly #log: Log;
  /** The newest write. Writes are made in order. */
  #written: Promise<void> = Promise.resolve();
  #startedAtMs: number | undefined;

  constructor(file: ShutdownStateFile, meter: AgentMeter, log: Log) {
    this.#file = file;
    this.#meter = meter;
    this.#log = log;
  }

  /** Sets the metrics from the file. */
  async load(): Promise<void> {
    try {
      const text = await this.#file.read();
      if (text === undefined) return;
      const times = readShutdownState(text);
      if (times === undefined) {
        this.#log.error('The shutdown state file is malformed', { text: text.slice(0, 200) });
        return;
      }
      if (times.startedAtMs !== undefined) this.#meter.gauge(SHUTDOWN_START_METRIC, gaugeSeconds(times.startedAtMs));
      if (times.endedAtMs !== undefined) this.#meter.gauge(SHUTDOWN_END_METRIC, gaugeSeconds(times.endedAtMs));
    } catch (error) {
      this.#log.error('Failed to read the shutdown state file', { error: describeError(error) });
    }
  }

  /** Does not wait for the write: a slow disk must not shorten the grace periods of the pods. */
  started(atMs: number): void {
    this.#meter.gauge(SHUTDOWN_START_METRIC, gaugeSeconds(atMs));
    this.#meter.gauge(SHUTDOWN_END_METRIC, 0);
    this.#startedAtMs = atMs;
    this.#written = this.#write(undefined);
  }

  /** Resolves after the write. */
  async ended(atMs: number): Promise<void> {
    this.#meter.gauge(SHUTDOWN_END_METRIC, gaugeSeconds(atMs));
    this.#written = this.#written.then(() => this.#write(atMs));
    await this.#written;
  }

  #write(endedAtMs: number | undefined): Promise<void> {
    return this.#file
      .write(shutdownStateText({ startedAtMs: this.#startedAtMs, endedAtMs }))
      .catch((error: unknown) =>
        this.#log.error('Failed to write the shutdown state file', { error: describeError(error) }),
      );
  }
}
