/**
 * One pod as processes of this machine.
 *
 * Life: init containers one after the other, then all others together; each is restarted by the pod's policy with a
 * growing wait; a stop ends them all, and nothing starts after it. Everything happens on one thread: a change (an end, a
 * wait that is over) calls `advance`, which starts what is due.
 *
 * A container is a process in a session of its own. When its first process ends, what is left of the session is killed, as
 * a container ends with its first process. The agent may go: processes stay, and the next agent finds them by their record
 * but is not their parent. It sees that they end, not how.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { numberOf, recordOf, recordsOf, textOf } from '../../../shared/kube/resources/normal-form.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';
import type { Log } from '../../../shared/ports/log.ts';
import type { ContainerState, RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { formatGoDuration } from '../../rules/go-duration.ts';
import { restartPolicyOf } from '../../rules/pod-status.ts';
import { nextBackOff, type RestartPolicy, restarts } from '../../rules/restart-back-off.ts';
import { type CommandLine, commandLine } from './command-line.ts';
import { boundLog, openLog } from './log-file.ts';
import { type ContainerRecord, type PodRecord, writeRecord } from './pod-record.ts';
import { identify, isAlive, sessionMembers, signal } from './process-table.ts';

type Terminated = Extract<ContainerState, { kind: 'terminated' }>;

/** Time for killed processes to go; one that stays longer hangs in the kernel. Milliseconds. */
const KILLED_WAIT_MS = 10_000;
/** How often the end of a process is looked for that is not our child. Milliseconds. */
const LOOK_AGAIN_MS = 250;
/** Exit codes of shells and container runtimes for what could not be started. */
const EXIT_NOT_FOUND = 127;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_STARTED = 128;
/** What kubelets say of a container whose end nobody saw. */
const EXIT_UNKNOWN = 137;

const MARK = 'NODEKEEPER_CONTAINER';

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
  /** Looks after processes that are not our children. */
  look(): void;
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

  const logPath = (container: ContainerRecord): string => join(directory, `${container.name}.log`);
  const markOf = (container: ContainerRecord): string => `${uid}/${container.name}`;

  function wake(): void {
    const told = change;
    change = new AbortController();
    told.abort();
  }

  function changed(): void {
    writeRecord(directory, record);
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
    if (state.kind === 'waiting' && container.restartAtMs === undefined) {
      if (container.containerId === undefined && state.reason !== 'CreateContainerConfigError') launch(container);
      return;
    }
    if (state.kind === 'terminated') {
      if (!restarts(restartPolicy, state.exitCode)) return;
      const waitMs = nextBackOff(container.backOffMs, state.finishedAtMs - state.startedAtMs);
      container.backOffMs = waitMs;
      container.restartAtMs = state.finishedAtMs + waitMs;
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
    const leftMs = (container.restartAtMs ?? 0) - time.nowMs();
    if (leftMs > 0) {
      void time.sleep(leftMs, detached.signal).then(advance);
      return;
    }
    delete container.restartAtMs;
    launch(container);
  }

  function launch(container: ContainerRecord): void {
    const spec = containerSpecs(pod).find((each) => each['name'] === container.name) ?? {};
    const line = commandLine(pod, spec, dependencies.hostIp());
    if (line.kind === 'unsupported') {
      container.state = { kind: 'waiting', reason: 'CreateContainerConfigError', message: line.message };
      changed();
      return;
    }
    if (container.containerId !== undefined) container.restartCount += 1;
    container.containerId = `exec://${uid}/${container.name}/${container.restartCount}`;
    const startedAtMs = time.nowMs();
    const cannotRun = (cause: NodeJS.ErrnoException): void => {
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
    let child: ChildProcess;
    try {
      child = startProcess(container, line);
    } catch (cause) {
      // Not from within `advance`, which would be entered again.
      queueMicrotask(() => cannotRun(cause as NodeJS.ErrnoException));
      return;
    }
    child.once('error', (cause) => {
      if (child.pid === undefined) cannotRun(cause);
    });
    if (child.pid === undefined) return;
    const process = identify(child.pid, bootId);
    if (process !== undefined) container.process = process;
    container.state = { kind: 'running', startedAtMs };
    children.set(container, child);
    child.once('exit', (code, signalName) => {
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
    });
    child.unref();
    changed();
  }

  function startProcess(container: ContainerRecord, line: CommandLine): ChildProcess {
    const output = openLog(logPath(container));
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
    const sessionId = container.process?.pid;
    delete container.process;
    children.delete(container);
    container.state = state;
    if (sessionId !== undefined) killSession(container, sessionId);
    changed();
    advance();
  }

  function killSession(container: ContainerRecord, sessionId: number): void {
    for (const pid of sessionMembers(sessionId, `${MARK}=${markOf(container)}`)) signal(pid, 'SIGKILL');
  }

  function look(): void {
    for (const container of record.containers) {
      const { state, process } = container;
      if (state.kind !== 'running' || children.has(container)) continue;
      if (process !== undefined && isAlive(process, bootId)) continue;
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

  /** Only a process that is certainly the container's: ids are used again. */
  function signalGroup(container: ContainerRecord, name: 'SIGTERM' | 'SIGKILL'): void {
    const { process } = container;
    if (process !== undefined && isAlive(process, bootId)) signal(-process.pid, name);
  }

  function stop(graceSeconds: number): Promise<void> {
    const deadlineMs = time.nowMs() + graceSeconds * 1_000;
    if (stopping !== undefined) {
      if (deadlineMs < stopping.deadlineMs) {
        stopping.deadlineMs = deadlineMs;
        wake();
      }
      return stopping.over;
    }
    if (record.stopped && running().length === 0) return Promise.resolve();
    record.stopped = true;
    for (const container of record.containers) {
      // What waits for its restart has ended.
      if (
        container.state.kind === 'waiting' &&
        container.restartAtMs !== undefined &&
        container.lastState !== undefined
      ) {
        container.state = container.lastState;
        delete container.lastState;
      }
      delete container.restartAtMs;
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
    const leftMs = (): number => until.deadlineMs - time.nowMs();
    if (leftMs() > 0) await Promise.all(running().map((container) => askToEnd(container, leftMs)));
    while (running().length > 0 && leftMs() > 0 && !detached.signal.aborted) {
      await pause(Math.min(leftMs(), LOOK_AGAIN_MS));
      look();
    }
    if (!detached.signal.aborted) for (const container of running()) signalGroup(container, 'SIGKILL');
    const killedAtMs = time.nowMs();
    while (running().length > 0 && !detached.signal.aborted) {
      if (time.nowMs() - killedAtMs >= KILLED_WAIT_MS) {
        throw new Error(`processes of pod ${uid} did not end in ${KILLED_WAIT_MS} ms after they were killed`);
      }
      await pause(LOOK_AGAIN_MS);
      look();
    }
    if (running().length > 0) throw new Error(`pod ${uid} was let go before it ended`);
  }

  /** The container's hook first; its time is part of the grace period. */
  async function askToEnd(container: ContainerRecord, leftMs: () => number): Promise<void> {
    const spec = containerSpecs(pod).find((each) => each['name'] === container.name);
    const hook = recordOf(recordOf(spec?.['lifecycle'])['preStop']);
    const command = recordOf(hook['exec'])['command'];
    const line = commandLine(pod, { ...spec, command, args: [] }, dependencies.hostIp());
    if (hook['exec'] !== undefined && line.kind === 'command') await runHook(container, line, leftMs);
    const sleepSeconds = numberOf(recordOf(hook['sleep'])['seconds']) ?? 0;
    const wokenAtMs = time.nowMs() + sleepSeconds * 1_000;
    while (time.nowMs() < wokenAtMs && container.state.kind === 'running' && goesOn(leftMs)) {
      await pause(Math.min(wokenAtMs - time.nowMs(), leftMs()));
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
      hook = startProcess(container, line);
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
    look,
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
