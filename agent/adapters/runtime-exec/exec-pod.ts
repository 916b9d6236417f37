/**
 * One pod as processes of this machine.
 *
 * Life: init containers one after the other, then all others together; each is restarted by the pod's policy with a
 * growing wait; a stop ends them all, and nothing starts after it. Everything happens on one thread: a change (an end, a
 * wait that is over) calls `advance`, which starts what is due.
 *
 * A container is a process in a session of its own. When its first process ends, every process that carries its mark in
 * the environment is killed, as a container ends with its first process. The agent may go: processes stay, and the next
 * agent finds them by their record but is not their parent. It sees that they end, not how.
 *
 * The record on disk serves the next agent alone. A record that cannot be written changes nothing about what runs: it is
 * written again later, and the failure is a complaint of the pod.
 *
 * Durations and deadlines are monotonic. The wall clock gives the times that are shown in the pod's status.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { numberOf, recordOf, recordsOf, textOf } from '../../../shared/kube/normal-form.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { ContainerState, RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { formatGoDuration } from '../../rules/go-duration.ts';
import { restartPolicyOf } from '../../rules/pod-status.ts';
import { nextBackOff, type RestartPolicy, restarts } from '../../rules/restart-back-off.ts';
import { type CommandLine, commandLine } from './command-line.ts';
import { boundLog, openLog } from './log-file.ts';
import { type ContainerRecord, type Moment, type PodRecord, writeRecord } from './pod-record.ts';
import { identify, isAlive, isShortage, MARK, type MarkedProcess, markedProcesses, signal } from './process-table.ts';

type Terminated = Extract<ContainerState, { kind: 'terminated' }>;

/** Time for killed processes to go; one that stays longer hangs in the kernel. Milliseconds. */
const KILLED_WAIT_MS = 10_000;
/** How often the end of a process is looked for that is not our child. Milliseconds. */
const LOOK_AGAIN_MS = 250;
/** First wait for killed processes to go; it doubles up to LOOK_AGAIN_MS. Milliseconds. */
const KILLED_LOOK_MS = 10;
/** Between two tries to write a record that could not be written. Milliseconds. */
const SAVE_AGAIN_MS = 10_000;
/** Between two tries to start a container for which the machine lacked something. Milliseconds. */
const START_AGAIN_MS = 10_000;
/** Exit codes of shells and container runtimes for what could not be started. */
const EXIT_NOT_FOUND = 127;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_STARTED = 128;
/** What kubelets say of a container whose end nobody saw. */
const EXIT_UNKNOWN = 137;

export interface ExecPodDependencies {
  readonly time: AgentTime;
  readonly log: Log;
  readonly bootId: string;
  readonly directory: string;
  readonly logBytesMax: number;
  hostIp(): string | undefined;
  onChange(): void;
}

export interface ExecPod {
  view(): RunningPod;
  /** Starts what is due. */
  advance(): void;
  /** Takes over what an agent before this one left, of all processes with a mark. */
  adopt(marked: readonly MarkedProcess[]): void;
  /** Looks after processes that are not our children, and after a record that could not be written. */
  look(): void;
  /** Why the record on disk is older than the pod; undefined while it is not. */
  complaint(): string | undefined;
  boundLogs(): void;
  isStopped(): boolean;
  /** A stopped pod may start again. */
  revive(): void;
  stop(graceSeconds: number): Promise<void>;
  /** Lets go of the processes, and does nothing any more. */
  detach(): void;
}

const containerSpecs = (pod: KubeObject) => [
  ...recordsOf(recordOf(pod.spec)['initContainers']),
  ...recordsOf(recordOf(pod.spec)['containers']),
];

export function newRecord(pod: KubeObject): PodRecord {
  const spec = recordOf(pod.spec);
  const inits = recordsOf(spec['initContainers']);
  const begin = (
    container: Record<string, unknown>,
    kind: ContainerRecord['kind'],
    reason: string,
  ): ContainerRecord => ({
    name: textOf(container['name']),
    kind,
    state: { kind: 'waiting', reason },
    restartCount: 0,
  });
  return {
    version: 1,
    pod,
    initialised: inits.length === 0,
    stopped: false,
    containers: [
      ...inits.map((each) => begin(each, each['restartPolicy'] === 'Always' ? 'sidecar' : 'init', 'PodInitializing')),
      ...recordsOf(spec['containers']).map((each) =>
        begin(each, 'main', inits.length === 0 ? 'ContainerCreating' : 'PodInitializing'),
      ),
    ],
  };
}

export function execPod(record: PodRecord, dependencies: ExecPodDependencies): ExecPod {
  const { time, log, bootId, directory } = dependencies;
  const { pod } = record;
  const uid = pod.metadata.uid ?? '';
  const policy = restartPolicyOf(pod);
  const children = new Map<ContainerRecord, ChildProcess>();
  const detached = new AbortController();
  /** Aborted, and replaced, whenever something changed that a stop waits for. */
  let change = new AbortController();
  let stopping: { deadlineMs: number; readonly over: Promise<void> } | undefined;
  let unsaved: { readonly why: string; readonly triedAtMs: number } | undefined;

  const logPath = (container: ContainerRecord): string => join(directory, `${container.name}.log`);
  /** Another one for each start: what is left of the start before is killed while the next one runs. */
  const markOf = (container: ContainerRecord): string => `${uid}/${container.name}/${container.restartCount}`;
  const inMs = (milliseconds: number): Moment => ({ bootId, monotonicMs: time.monotonicMs() + milliseconds });

  /** For what is called back: nobody is there to catch what it throws. */
  function guarded(act: () => void): void {
    try {
      act();
    } catch (cause) {
      log.error('a pod could not be looked after', { podUid: uid, cause: String(cause) });
    }
  }

  function save(): void {
    if (detached.signal.aborted) return;
    try {
      writeRecord(directory, record);
      if (unsaved !== undefined) log.info('the record of a pod is written again', { podUid: uid });
      unsaved = undefined;
    } catch (cause) {
      const why = (cause as Error).message;
      if (unsaved === undefined) log.error('the record of a pod cannot be written', { podUid: uid, why });
      unsaved = { why, triedAtMs: time.monotonicMs() };
    }
  }

  function wake(): void {
    const before = change;
    change = new AbortController();
    before.abort();
  }

  function changed(): void {
    save();
    wake();
    dependencies.onChange();
  }

  /** Until something changes, and no longer than this. */
  const pause = (milliseconds: number): Promise<void> =>
    time.sleep(milliseconds, AbortSignal.any([change.signal, detached.signal]));

  function advance(): void {
    if (detached.signal.aborted || record.stopped) return;
    for (const container of record.containers) {
      if (container.kind === 'main') {
        record.initialised = true;
        keepRunning(container, policy);
      } else if (container.kind === 'sidecar') {
        keepRunning(container, 'Always');
        if (!record.initialised && container.state.kind !== 'running') return;
      } else if (!record.initialised && !hasSucceeded(container)) {
        keepRunning(container, policy === 'Always' ? 'OnFailure' : policy);
        return;
      }
    }
  }

  function keepRunning(container: ContainerRecord, restartPolicy: RestartPolicy): void {
    const { state } = container;
    if (state.kind === 'running') return;
    if (state.kind === 'waiting' && container.restart === undefined) {
      if (container.containerId === undefined && state.reason !== 'CreateContainerConfigError') launch(container);
      return;
    }
    if (state.kind === 'terminated') {
      if (!restarts(restartPolicy, state.exitCode)) return;
      const waitMs = nextBackOff(container.backOffMs, container.ranMs ?? 0);
      container.backOffMs = waitMs;
      container.restart = inMs(waitMs);
      container.lastState = state;
      if (waitMs > 0) {
        const where = `${container.name} pod=${pod.metadata.name}_${pod.metadata.namespace}(${uid})`;
        container.state = {
          kind: 'waiting',
          reason: 'CrashLoopBackOff',
          message: `back-off ${formatGoDuration(waitMs)} restarting failed container=${where}`,
        };
        changed();
      }
    }
    const leftMs = (container.restart?.monotonicMs ?? 0) - time.monotonicMs();
    if (leftMs > 0) {
      void time.sleep(leftMs, detached.signal).then(() => guarded(advance));
      return;
    }
    delete container.restart;
    launch(container);
  }

  /** Nothing is wrong with the container, so its restart policy has no say: the machine lacks something. */
  function launchLater(container: ContainerRecord, cause: Error): void {
    container.state = { kind: 'waiting', reason: 'CreateContainerError', message: cause.message };
    container.restart = inMs(START_AGAIN_MS);
    changed();
    void time.sleep(START_AGAIN_MS, detached.signal).then(() => guarded(advance));
  }

  function launch(container: ContainerRecord): void {
    const spec = containerSpecs(pod).find((each) => each['name'] === container.name) ?? {};
    const line = commandLine(pod, spec, dependencies.hostIp());
    if (line.kind === 'unsupported') {
      container.state = { kind: 'waiting', reason: 'CreateContainerConfigError', message: line.message };
      changed();
      return;
    }
    const before = { restartCount: container.restartCount, containerId: container.containerId };
    if (container.containerId !== undefined) container.restartCount += 1;
    container.containerId = `exec://${uid}/${container.name}/${container.restartCount}`;
    const startedAtMs = time.nowMs();
    container.started = inMs(0);
    const lacking = (cause: NodeJS.ErrnoException): void => {
      container.restartCount = before.restartCount;
      if (before.containerId === undefined) delete container.containerId;
      else container.containerId = before.containerId;
      launchLater(container, cause);
    };
    const cannotRun = (cause: NodeJS.ErrnoException): void => {
      if (detached.signal.aborted) return;
      if (isShortage(cause) && !record.stopped) {
        lacking(cause);
        return;
      }
      end(container, {
        kind: 'terminated',
        exitCode:
          cause.code === 'ENOENT' ? EXIT_NOT_FOUND : cause.code === 'EACCES' ? EXIT_NOT_EXECUTABLE : EXIT_NOT_STARTED,
        reason: 'ContainerCannotRun',
        message: cause.message,
        startedAtMs,
        finishedAtMs: time.nowMs(),
      });
    };
    let output: number;
    try {
      output = openLog(logPath(container));
    } catch (cause) {
      lacking(cause as NodeJS.ErrnoException);
      return;
    }
    let child: ChildProcess;
    try {
      child = startProcess(container, line, output);
    } catch (cause) {
      // Not from within `advance`, which would be entered again.
      queueMicrotask(() => guarded(() => cannotRun(cause as NodeJS.ErrnoException)));
      return;
    }
    child.once('error', (cause) => {
      if (child.pid === undefined) guarded(() => cannotRun(cause));
    });
    if (child.pid === undefined) return;
    container.state = { kind: 'running', startedAtMs };
    children.set(container, child);
    learnIdentity(container, child);
    const exited = (code: number | null, signalName: NodeJS.Signals | null): void => {
      if (detached.signal.aborted || children.get(container) !== child) return;
      const signalNumber = signalName === null ? undefined : constants.signals[signalName];
      const exitCode = code ?? EXIT_NOT_STARTED + (signalNumber ?? 0);
      end(container, {
        kind: 'terminated',
        exitCode,
        ...(signalNumber === undefined ? {} : { signal: signalNumber }),
        reason: exitCode === 0 ? 'Completed' : 'Error',
        startedAtMs,
        finishedAtMs: time.nowMs(),
      });
    };
    child.once('exit', (code, signalName) => guarded(() => exited(code, signalName)));
    child.unref();
    changed();
  }

  /** False when /proc cannot be read now. */
  function learnIdentity(container: ContainerRecord, { pid = 0 }: ChildProcess): boolean {
    try {
      const process = identify(pid, bootId);
      if (process !== undefined) container.process = process;
      return true;
    } catch {
      return false;
    }
  }

  /** Closes `output`. */
  function startProcess(container: ContainerRecord, line: CommandLine, output: number): ChildProcess {
    try {
      return spawn(line.file, line.args, {
        cwd: line.directory,
        env: { ...line.env, [MARK]: markOf(container) },
        detached: true,
        stdio: ['ignore', output, output],
        ...(line.userId === undefined ? {} : { uid: line.userId }),
        ...(line.groupId === undefined ? {} : { gid: line.groupId }),
      });
    } finally {
      closeSync(output);
    }
  }

  function end(container: ContainerRecord, state: Terminated): void {
    const mark = markOf(container);
    const ranMs = elapsedMs(container.started);
    if (ranMs === undefined) {
      // The machine booted meanwhile. A kubelet forgets its back-off then, too.
      delete container.ranMs;
      delete container.backOffMs;
    } else container.ranMs = ranMs;
    delete container.process;
    children.delete(container);
    container.state = state;
    killMarked((each) => each === mark || each === `${uid}/${container.name}`).catch((cause: unknown) =>
      log.warn('processes of an ended container are left', {
        podUid: uid,
        container: container.name,
        cause: String(cause),
      }),
    );
    changed();
    advance();
  }

  /** Undefined across a boot. */
  function elapsedMs(since: Moment | undefined): number | undefined {
    const milliseconds = since?.bootId === bootId ? time.monotonicMs() - since.monotonicMs : -1;
    return milliseconds < 0 ? undefined : milliseconds;
  }

  /**
   * Kills until none is left: a process may start others while we look. The first look is made before this returns.
   *
   * @throws Error when some are left after KILLED_WAIT_MS
   */
  async function killMarked(isMeant: (mark: string) => boolean): Promise<void> {
    const untilMs = time.monotonicMs() + KILLED_WAIT_MS;
    for (let waitMs = KILLED_LOOK_MS; !detached.signal.aborted; waitMs = Math.min(2 * waitMs, LOOK_AGAIN_MS)) {
      let why: string | undefined;
      try {
        const left = markedProcesses().filter(({ mark }) => isMeant(mark));
        if (left.length === 0) return;
        why = `${left.length} processes of pod ${uid} did not end in ${KILLED_WAIT_MS} ms after they were killed`;
        for (const { pid } of left) {
          const refusal = signal(pid, 'SIGKILL');
          if (refusal !== undefined) why = `process ${pid} of pod ${uid} cannot be killed: ${refusal}`;
        }
      } catch (cause) {
        why = `processes of pod ${uid} cannot be looked for: ${(cause as Error).message}`;
      }
      if (time.monotonicMs() >= untilMs) throw new Error(why);
      await time.sleep(waitMs, detached.signal);
    }
  }

  const killAllMarked = (): Promise<void> => killMarked((mark) => mark.startsWith(`${uid}/`));

  /** Where it cannot be said, it lives: to end what runs is worse than to wait. */
  function mayLive(container: ContainerRecord): boolean {
    try {
      return container.process !== undefined && isAlive(container.process, bootId);
    } catch {
      return true;
    }
  }

  function adopt(marked: readonly MarkedProcess[]): void {
    for (const container of record.containers) {
      if (container.state.kind !== 'waiting') continue;
      if (!['CrashLoopBackOff', 'CreateContainerError'].includes(container.state.reason)) continue;
      const longestMs = container.state.reason === 'CrashLoopBackOff' ? (container.backOffMs ?? 0) : START_AGAIN_MS;
      const leftMs = container.restart?.bootId === bootId ? container.restart.monotonicMs - time.monotonicMs() : 0;
      container.restart = inMs(Math.min(Math.max(0, leftMs), longestMs));
    }
    // Of starts that the record does not know, because it could not be written. They must not run beside the next start.
    const live = running().filter(mayLive);
    const isKnown = (mark: string): boolean =>
      live.some((container) => mark === markOf(container) || mark === `${uid}/${container.name}`);
    for (const { pid, mark } of marked) {
      if (mark.startsWith(`${uid}/`) && !isKnown(mark)) signal(pid, 'SIGKILL');
    }
    look();
  }

  function look(): void {
    if (unsaved !== undefined && time.monotonicMs() - unsaved.triedAtMs >= SAVE_AGAIN_MS) save();
    for (const container of record.containers) {
      const { state } = container;
      if (state.kind !== 'running') continue;
      const child = children.get(container);
      if (child !== undefined) {
        if (container.process === undefined && learnIdentity(container, child)) save();
        continue;
      }
      if (mayLive(container)) continue;
      end(container, {
        kind: 'terminated',
        exitCode: EXIT_UNKNOWN,
        reason: 'ContainerStatusUnknown',
        message: 'The container ended while no agent was its parent; nobody saw how',
        startedAtMs: state.startedAtMs,
        finishedAtMs: time.nowMs(),
      });
    }
  }

  const running = (): ContainerRecord[] => record.containers.filter(({ state }) => state.kind === 'running');

  /** Only a process that is certainly the container's: ids are used again. Our child's is not, before we know its end. */
  function signalGroup(container: ContainerRecord, name: 'SIGTERM' | 'SIGKILL'): void {
    const pid = children.get(container)?.pid ?? adoptedPid(container);
    const refusal = pid === undefined ? undefined : signal(-pid, name);
    if (refusal !== undefined) log.warn('a process cannot be signalled', { podUid: uid, pid, signal: name, refusal });
  }

  function adoptedPid({ process }: ContainerRecord): number | undefined {
    try {
      return process !== undefined && isAlive(process, bootId) ? process.pid : undefined;
    } catch {
      // Asked again by the next look.
      return undefined;
    }
  }

  function stop(graceSeconds: number): Promise<void> {
    const deadlineMs = time.monotonicMs() + graceSeconds * 1_000;
    if (stopping !== undefined) {
      if (deadlineMs < stopping.deadlineMs) {
        stopping.deadlineMs = deadlineMs;
        wake();
      }
      return stopping.over;
    }
    if (record.stopped && running().length === 0) return killAllMarked();
    record.stopped = true;
    for (const container of record.containers) {
      // What waits for its restart has ended.
      if (container.state.kind === 'waiting' && container.restart !== undefined && container.lastState !== undefined) {
        container.state = container.lastState;
        delete container.lastState;
      }
      delete container.restart;
    }
    const { promise: over, resolve, reject } = Promise.withResolvers<void>();
    stopping = { deadlineMs, over };
    changed();
    endAll(stopping).then(resolve, reject);
    const forget = (): void => {
      stopping = undefined;
    };
    over.then(forget, forget);
    return over;
  }

  async function endAll(until: { readonly deadlineMs: number }): Promise<void> {
    const leftMs = (): number => until.deadlineMs - time.monotonicMs();
    if (leftMs() > 0) await Promise.all(running().map((container) => askToEnd(container, leftMs)));
    while (running().length > 0 && leftMs() > 0 && !detached.signal.aborted) {
      await pause(Math.min(leftMs(), LOOK_AGAIN_MS));
      look();
    }
    const killedAtMs = time.monotonicMs();
    while (running().length > 0 && !detached.signal.aborted) {
      if (time.monotonicMs() - killedAtMs >= KILLED_WAIT_MS) {
        throw new Error(`processes of pod ${uid} did not end in ${KILLED_WAIT_MS} ms after they were killed`);
      }
      for (const container of running()) signalGroup(container, 'SIGKILL');
      await pause(LOOK_AGAIN_MS);
      look();
    }
    if (running().length > 0) throw new Error(`pod ${uid} was let go before it ended`);
    await killAllMarked();
  }

  /** The container's hook first; its time is part of the grace period. */
  async function askToEnd(container: ContainerRecord, leftMs: () => number): Promise<void> {
    const spec = containerSpecs(pod).find((each) => each['name'] === container.name);
    const hook = recordOf(recordOf(spec?.['lifecycle'])['preStop']);
    const command = recordOf(hook['exec'])['command'];
    const line = commandLine(pod, { ...spec, command, args: [] }, dependencies.hostIp());
    if (hook['exec'] !== undefined && line.kind === 'command') await runHook(container, line, leftMs);
    const sleepSeconds = numberOf(recordOf(hook['sleep'])['seconds']) ?? 0;
    const wokenAtMs = time.monotonicMs() + sleepSeconds * 1_000;
    while (time.monotonicMs() < wokenAtMs && container.state.kind === 'running' && goesOn(leftMs)) {
      await pause(Math.min(wokenAtMs - time.monotonicMs(), leftMs()));
    }
    if (!detached.signal.aborted) signalGroup(container, 'SIGTERM');
  }

  const goesOn = (leftMs: () => number): boolean => leftMs() > 0 && !detached.signal.aborted;

  async function runHook(container: ContainerRecord, line: CommandLine, leftMs: () => number): Promise<void> {
    let over = false;
    let hook: ChildProcess;
    const finished = (fields: Record<string, unknown>): void => {
      over = true;
      if (fields['code'] !== 0)
        log.warn('a preStop hook failed', { podUid: uid, container: container.name, ...fields });
      wake();
    };
    try {
      hook = startProcess(container, line, openLog(logPath(container)));
    } catch (cause) {
      finished({ cause: String(cause) });
      return;
    }
    hook.once('error', (cause) => finished({ cause: cause.message }));
    hook.once('exit', (code, signalName) => finished({ code, signal: signalName }));
    while (!over && goesOn(leftMs)) await pause(leftMs());
    if (!over && hook.pid !== undefined) signal(-hook.pid, 'SIGKILL');
  }

  return {
    view: () => ({
      uid,
      namespace: pod.metadata.namespace ?? '',
      name: pod.metadata.name ?? '',
      initContainers: record.containers.filter(({ kind }) => kind !== 'main').map(viewOf),
      containers: record.containers.filter(({ kind }) => kind === 'main').map(viewOf),
    }),
    advance,
    adopt,
    look,
    complaint: () => unsaved?.why,
    boundLogs() {
      for (const container of record.containers) boundLog(logPath(container), dependencies.logBytesMax);
    },
    isStopped: () => record.stopped && stopping === undefined && running().length === 0,
    revive() {
      record.stopped = false;
      changed();
      advance();
    },
    stop,
    detach() {
      detached.abort();
    },
  };
}

const hasSucceeded = ({ state }: ContainerRecord): boolean => state.kind === 'terminated' && state.exitCode === 0;

const viewOf = (container: ContainerRecord): RunningContainer => ({
  name: container.name,
  state: container.state,
  restartCount: container.restartCount,
  ...(container.lastState === undefined ? {} : { lastState: container.lastState }),
  ...(container.containerId === undefined ? {} : { containerId: container.containerId }),
});
