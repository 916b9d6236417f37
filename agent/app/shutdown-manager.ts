/**
 * Ends the pods of this node in order before the machine goes down, as far as the system grants the time.
 * Source: pkg/kubelet/nodeshutdown.
 *
 * Where this leaves upstream: a lock that cannot be taken again after a cancellation is tried again every second, by
 * beginning the watch anew; and the state file is written beside the killing, so that a slow disk takes no pod's time.
 */
import type { KubeObject } from '../../shared/kube/types.ts';
import type { Log } from '../../shared/ports/log.ts';
import type { PriorityGrace } from '../config.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { ShutdownSignal } from '../ports/shutdown-signal.ts';
import type { AgentTime } from '../ports/time.ts';
import type { NodeEvent } from '../rules/node-event.ts';
import type { Admission } from '../rules/pod-admission.ts';
import { type ShutdownGroup, shutdownGraceSeconds, shutdownGroups } from '../rules/shutdown-groups.ts';
import { requestedDelayMs } from '../rules/shutdown-settings.ts';
import {
  DELAY_REREAD_WAITS_MS,
  delayDecision,
  delayTooShort,
  SHUTDOWN_CANCELLED,
  SHUTDOWN_DETECTED,
} from '../rules/shutdown-start.ts';
import {
  gaugeSeconds,
  readShutdownState,
  SHUTDOWN_END_METRIC,
  SHUTDOWN_START_METRIC,
  type ShutdownTimes,
  shutdownStateText,
} from '../rules/shutdown-state.ts';
import { NODE_SHUTDOWN_REASON, type PodStatus, SHUTDOWN_REFUSAL, terminatedStatus } from '../rules/shutdown-status.ts';

const RESTART_WAIT_MS = 1_000;
/** The end of the state file's writing is waited for no longer than this: the lock is due to be released. */
const STATE_WRITE_MAX_MS = 2_000;
/** When all pods have ended, the last status and events are waited for no longer than this. */
const LAST_REPORT_MAX_MS = 3_000;

export interface ShutdownDependencies {
  /** Of shutdownBuckets; empty: off. */
  readonly buckets: readonly PriorityGrace[];
  readonly shutdownSignal: ShutdownSignal;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: AgentMeter;
  /** Pods that run or are about to. */
  readonly activePods: () => readonly KubeObject[];
  /** Resolves when nothing of the pod runs. `change` turns its status into the one to be written. */
  readonly killPod: (pod: KubeObject, graceSeconds: number, change: (status: PodStatus) => PodStatus) => Promise<void>;
  /** Resolves when no volume of the pods is mounted; absent where the agent mounts none. */
  readonly volumesUnmounted?: (pods: readonly KubeObject[], signal: AbortSignal) => Promise<void>;
  /** On the Node. */
  readonly recordEvent: (event: NodeEvent) => void;
  /** One status pass. */
  readonly reportStatus: () => Promise<void>;
  /** Sends the events that wait. The machine goes down after it: what is not sent then never is. */
  readonly drainEvents?: () => Promise<void>;
  readonly stateFile: {
    /** Undefined when there is none. */
    read(): Promise<string | undefined>;
    write(text: string): Promise<void>;
  };
}

export interface ShutdownManager {
  /** Watches until stopped. Ends at once when shutdown handling is off or cannot start: the agent goes on without. */
  run(stop: AbortSignal): Promise<void>;
  shuttingDown(): boolean;
  admit(): Admission;
}

interface Lock {
  release(): Promise<void>;
}

class DelayTooShort extends Error {}

export function shutdownManager(dependencies: ShutdownDependencies): ShutdownManager {
  const { buckets, shutdownSignal, time, log, meter, recordEvent } = dependencies;
  let shuttingDown = false;
  let lock: Lock | undefined;
  let everHeld = false;
  let everWatched = false;

  const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error));

  async function releaseLock(): Promise<void> {
    const held = lock;
    lock = undefined;
    await held
      ?.release()
      .catch((error: unknown) => log.error('Failed to release the lock', { error: describe(error) }));
  }

  /** The earlier lock goes when the new one is there. */
  async function takeLock(): Promise<void> {
    const taken = await shutdownSignal.hold();
    await releaseLock();
    lock = taken;
  }

  async function ensureDelay(stop: AbortSignal): Promise<void> {
    const requestedMs = requestedDelayMs(buckets);
    let grantedMs = await shutdownSignal.delayMaxMs();
    const decision = delayDecision(requestedMs, grantedMs);
    if (decision.kind === 'enough') return;
    await shutdownSignal.raiseDelayMax(decision.delayMs);
    for (const waitMs of [0, ...DELAY_REREAD_WAITS_MS]) {
      if (waitMs > 0) await time.sleep(waitMs, stop);
      grantedMs = await shutdownSignal.delayMaxMs();
      if (grantedMs >= requestedMs) return;
    }
    throw new DelayTooShort(delayTooShort(requestedMs, grantedMs));
  }

  async function loadState(): Promise<void> {
    try {
      const text = await dependencies.stateFile.read();
      if (text === undefined) return;
      const times = readShutdownState(text);
      if (times === undefined) return log.error('The shutdown state file is malformed', { text: text.slice(0, 200) });
      if (times.startedAtMs !== undefined) meter.gauge(SHUTDOWN_START_METRIC, gaugeSeconds(times.startedAtMs));
      if (times.endedAtMs !== undefined) meter.gauge(SHUTDOWN_END_METRIC, gaugeSeconds(times.endedAtMs));
    } catch (error) {
      log.error('Failed to read the shutdown state file', { error: describe(error) });
    }
  }

  const writeState = (times: ShutdownTimes): Promise<void> =>
    dependencies.stateFile
      .write(shutdownStateText(times))
      .catch((error: unknown) => log.error('Failed to write the shutdown state file', { error: describe(error) }));

  async function kill(pod: KubeObject, periodSeconds: number): Promise<void> {
    try {
      const change = (status: PodStatus): PodStatus => terminatedStatus(status, time.nowMs());
      await dependencies.killPod(pod, shutdownGraceSeconds(pod, periodSeconds), change);
    } catch (error) {
      const { namespace, name } = pod.metadata;
      log.error('Shutdown manager failed killing pod', { namespace, name, error: describe(error) });
    }
  }

  /** Until all pods of the group are gone, or its time is up: then what still runs is left running. */
  async function killGroup({ pods, periodSeconds, priority }: ShutdownGroup, stop: AbortSignal): Promise<void> {
    const over = new AbortController();
    const work = async (): Promise<void> => {
      await Promise.all(pods.map((pod) => kill(pod, periodSeconds)));
      if (over.signal.aborted) return;
      try {
        await dependencies.volumesUnmounted?.(pods, over.signal);
      } catch (error) {
        log.error('Failed while waiting for all the volumes belonging to Pods in this group to unmount', {
          priority,
          error: describe(error),
        });
      }
    };
    const done = work().then((): 'done' => 'done');
    if (periodSeconds > 0) {
      const timeOut = time.sleep(periodSeconds * 1_000, AbortSignal.any([stop, over.signal]));
      const first = await Promise.race([done, timeOut.then((): 'timeOut' => 'timeOut')]);
      if (first === 'timeOut' && !stop.aborted)
        log.info('Shutdown manager pod killing time out', { periodSeconds, priority });
    }
    over.abort();
  }

  async function killPods(stop: AbortSignal): Promise<void> {
    const startedAtMs = time.nowMs();
    meter.gauge(SHUTDOWN_START_METRIC, gaugeSeconds(startedAtMs));
    meter.gauge(SHUTDOWN_END_METRIC, 0);
    const begun = writeState({ startedAtMs, endedAtMs: undefined });
    for (const group of shutdownGroups(buckets, dependencies.activePods())) {
      if (stop.aborted) break;
      if (group.pods.length > 0) await killGroup(group, stop);
    }
    const endedAtMs = time.nowMs();
    meter.gauge(SHUTDOWN_END_METRIC, gaugeSeconds(endedAtMs));
    const written = new AbortController();
    const ended = begun.then(() => writeState({ startedAtMs, endedAtMs }));
    await Promise.race([ended, time.sleep(STATE_WRITE_MAX_MS, AbortSignal.any([stop, written.signal]))]);
    written.abort();
  }

  async function onSignal(preparing: boolean, stop: AbortSignal): Promise<void> {
    const message = preparing ? SHUTDOWN_DETECTED : SHUTDOWN_CANCELLED;
    recordEvent({ type: 'Normal', reason: NODE_SHUTDOWN_REASON, message });
    shuttingDown = preparing;
    if (!preparing) return takeLock();
    const report = async (): Promise<void> => dependencies.reportStatus();
    const reported = report().catch((error: unknown) =>
      log.error('Failed to report the shutdown', { error: describe(error) }),
    );
    await killPods(stop);
    await lastReport(reported, stop);
    await releaseLock();
  }

  /** The report itself records an event, so events are sent after it. */
  async function lastReport(reported: Promise<void>, stop: AbortSignal): Promise<void> {
    const { drainEvents } = dependencies;
    if (drainEvents === undefined) return;
    const over = new AbortController();
    const done = reported
      .then(drainEvents)
      .catch((error: unknown) => log.error('Failed to send the last events', { error: describe(error) }));
    await Promise.race([done, time.sleep(LAST_REPORT_MAX_MS, AbortSignal.any([stop, over.signal]))]);
    over.abort();
  }

  /** From the delay to the end of the watch. What fails before the watch stands is a failed start. */
  async function watchOnce(stop: AbortSignal): Promise<void> {
    await ensureDelay(stop);
    await takeLock();
    if (!everHeld) {
      everHeld = true;
      await loadState();
    }
    let watching = false;
    try {
      for await (const preparing of shutdownSignal.watch(stop)) {
        watching = true;
        everWatched = true;
        if (stop.aborted) break;
        await onSignal(preparing, stop);
      }
      everWatched = true;
    } catch (error) {
      await releaseLock();
      throw watching ? error : new Error(`failed to monitor shutdown: ${describe(error)}`, { cause: error });
    }
  }

  async function run(stop: AbortSignal): Promise<void> {
    if (buckets.length === 0) return;
    try {
      await watchOnce(stop);
    } catch (error) {
      log.error('Failed to start node shutdown manager', { error: describe(error) });
      if (!everWatched) return;
    }
    while (!stop.aborted) {
      await time.sleep(RESTART_WAIT_MS, stop);
      if (stop.aborted) break;
      try {
        await watchOnce(stop);
      } catch (error) {
        log.error('Unable to watch the node for shutdown events', { error: describe(error) });
      }
    }
    await releaseLock();
  }

  return {
    run,
    shuttingDown: () => shuttingDown,
    admit: () => (shuttingDown ? { kind: 'refused', ...SHUTDOWN_REFUSAL } : { kind: 'admitted' }),
  };
}
