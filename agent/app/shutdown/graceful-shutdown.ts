/**
 * Graceful node shutdown: terminates the pods of this node in order before the machine shuts down, within the time that
 * the system grants. Source: pkg/kubelet/nodeshutdown.
 *
 *   ensure the delay → acquire the lock → watch → on a shutdown: event, status, pods, last events, release the lock
 *
 * Windows has no lock and no cancellation: to release means to report that the service has stopped.
 *
 * Differences from upstream:
 * - If the lock cannot be acquired again after a cancelled shutdown, the watch starts again every second.
 * - The state file is written while pods are killed, so a slow disk does not shorten their grace periods.
 */
import type { AgentMeter } from '../../ports/meter.ts';
import type { ShutdownSignal } from '../../ports/shutdown-signal.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import { SHUTDOWN_CANCELLED } from '../../rules/shutdown-start.ts';
import { NODE_SHUTDOWN_REASON } from '../../rules/shutdown-status.ts';
import { waitAtMost } from '../bounded-wait.ts';
import { describeError } from '../describe-error.ts';
import { type PodTerminationDependencies, terminatePods } from './pod-termination.ts';
import { ShutdownInhibitor } from './shutdown-inhibitor.ts';
import type { ShutdownPhase } from './shutdown-phase.ts';
import { ShutdownRecord, type ShutdownStateFile } from './shutdown-record.ts';

const RESTART_WAIT_MS = 1_000;
/** Longest wait for the write of the state file before the lock is released. Milliseconds. */
const STATE_WRITE_MAX_MS = 2_000;
/** Longest wait for the last status and events after all pods are terminated. Milliseconds. */
const LAST_REPORT_MAX_MS = 3_000;

export interface ShutdownDependencies extends PodTerminationDependencies {
  readonly shutdownSignal: ShutdownSignal;
  readonly meter: AgentMeter;
  /** Records an event about the Node. */
  readonly recordEvent: (event: NodeEvent) => void;
  /** One status pass. */
  readonly reportStatus: () => Promise<void>;
  /** Sends the queued events. The machine then shuts down: events that are not sent by then are lost. */
  readonly drainEvents: () => Promise<void>;
  readonly stateFile: ShutdownStateFile;
  readonly phase: ShutdownPhase;
}

export class GracefulShutdown {
  readonly phase: ShutdownPhase;
  readonly #dependencies: ShutdownDependencies;
  readonly #inhibitor: ShutdownInhibitor;
  readonly #record: ShutdownRecord;
  #isStateLoaded = false;
  #hasWatched = false;

  constructor(dependencies: ShutdownDependencies) {
    const { shutdownSignal, time, log, meter, stateFile } = dependencies;
    this.phase = dependencies.phase;
    this.#dependencies = dependencies;
    this.#inhibitor = new ShutdownInhibitor(shutdownSignal, time, log);
    this.#record = new ShutdownRecord(stateFile, meter, log);
  }

  /**
   * Watches until stopped. Resolves at once if graceful shutdown is off or cannot start: the agent then runs without
   * it.
   */
  async run(stop: AbortSignal): Promise<void> {
    const { buckets, time, log, shutdownSignal } = this.#dependencies;
    if (buckets.length === 0) return;
    try {
      await this.#watchOnce(stop);
    } catch (error) {
      log.error('Failed to start node shutdown manager', { error: describeError(error) });
      if (!this.#hasWatched) return;
    }
    while (!stop.aborted && shutdownSignal.rules.restarts) {
      await time.sleep(RESTART_WAIT_MS, stop);
      if (stop.aborted) break;
      try {
        await this.#watchOnce(stop);
      } catch (error) {
        log.error('Unable to watch the node for shutdown events', { error: describeError(error) });
      }
    }
    await this.#inhibitor.release();
  }

  /** Resolves when the watch ends. Rejects if it fails, or if a step before it fails. */
  async #watchOnce(stop: AbortSignal): Promise<void> {
    const { buckets, shutdownSignal } = this.#dependencies;
    await this.#inhibitor.ensureDelay(buckets, stop);
    await this.#inhibitor.acquire();
    if (!this.#isStateLoaded) {
      this.#isStateLoaded = true;
      await this.#record.load();
    }
    let isWatching = false;
    try {
      for await (const isPreparing of shutdownSignal.watch(stop)) {
        isWatching = true;
        this.#hasWatched = true;
        if (stop.aborted) break;
        if (isPreparing) await this.#onShutdown(stop);
        else await this.#onCancellation();
      }
      this.#hasWatched = true;
    } catch (error) {
      await this.#inhibitor.release();
      throw isWatching ? error : new Error(`failed to monitor shutdown: ${describeError(error)}`, { cause: error });
    }
  }

  async #onShutdown(stop: AbortSignal): Promise<void> {
    const { log, recordEvent, reportStatus, shutdownSignal } = this.#dependencies;
    recordEvent({ type: 'Normal', reason: NODE_SHUTDOWN_REASON, message: shutdownSignal.rules.detected });
    this.phase.isShuttingDown = true;
    const reported = startNow(reportStatus).catch((error: unknown) =>
      log.error('Failed to report the shutdown', { error: describeError(error) }),
    );
    await this.#terminatePods(stop);
    await this.#sendLastEvents(reported, stop);
    await this.#inhibitor.release();
  }

  async #onCancellation(): Promise<void> {
    const { recordEvent } = this.#dependencies;
    recordEvent({ type: 'Normal', reason: NODE_SHUTDOWN_REASON, message: SHUTDOWN_CANCELLED });
    this.phase.isShuttingDown = false;
    await this.#inhibitor.acquire();
  }

  async #terminatePods(stop: AbortSignal): Promise<void> {
    const { time } = this.#dependencies;
    this.#record.started(time.nowMs());
    await terminatePods(this.#dependencies, stop);
    await waitAtMost(time, STATE_WRITE_MAX_MS, this.#record.ended(time.nowMs()), stop);
  }

  /** The status report itself records an event, so events are sent after it. */
  async #sendLastEvents(reported: Promise<void>, stop: AbortSignal): Promise<void> {
    const { time, log, drainEvents } = this.#dependencies;
    const sent = reported
      .then(drainEvents)
      .catch((error: unknown) => log.error('Failed to send the last events', { error: describeError(error) }));
    await waitAtMost(time, LAST_REPORT_MAX_MS, sent, stop);
  }
}

/** Turns a synchronous error into a rejection. */
const startNow = async (work: () => Promise<void>): Promise<void> => work();
