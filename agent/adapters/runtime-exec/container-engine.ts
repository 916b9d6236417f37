/**
 * How the containers of one pod are run: as processes of the machine, or by a container engine. `exec-pod.ts` decides
 * when they start and stop.
 */
import type {
  CommandResult,
  ContainerState,
  LogQuery,
  RunningCommand,
  StreamedCommand,
} from '../../ports/pod-runtime.ts';
import type { CommandContext, StartLine } from './container-commands.ts';
import type { LogReading } from './log-reader.ts';
import type { PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';
import type { SignalName } from './process-table.ts';

export type Terminated = Extract<ContainerState, { kind: 'terminated' }>;

export type ConfigFault = Extract<StartLine, { kind: 'notReady' }>;

export interface ExecuteOptions {
  /** The command is killed when this is false. */
  readonly mayWait: () => boolean;
  /** Whether the output of the command is written to the log of the container, or returned. */
  readonly output: 'log' | 'returned';
}

export interface ContainerEngine {
  /** Starts a container that does not run. The callbacks report the outcome. */
  start(container: ContainerRecord): void;
  /** Runs a further command in a running container. Never rejects. */
  execute(container: ContainerRecord, words: readonly string[], options: ExecuteOptions): Promise<CommandResult>;
  /** Runs a command that somebody follows. @throws Error */
  open(container: ContainerRecord, command: StreamedCommand): Promise<RunningCommand>;
  /** Signals the first process of a running container. */
  signal(container: ContainerRecord, name: SignalName): void;
  /** Reports the end of a container that is recorded as running, if its process no longer exists. */
  check(container: ContainerRecord): void;
  /** Ends the starts under way. A container may run afterwards all the same. */
  endStarts(): Promise<void>;
  /** Kills all that is left of the pod. @throws Error when something still runs after the time limit */
  killAll(): Promise<void>;
  /** Assigns the processors of a running container again. */
  place(container: ContainerRecord): void;
  /**
   * Changes the limits of these running containers to those of their spec, in this order.
   *
   * @throws Error when they cannot be changed while the containers run
   */
  resize(containers: readonly ContainerRecord[]): Promise<void>;
  /** Records when the output grew, if its lines have no times. */
  recordOutputTime(container: ContainerRecord): void;
  /** @param run restartCount of the run */
  readLog(container: ContainerRecord, run: number, query: LogQuery, reading: LogReading): AsyncIterable<Uint8Array>;
}

export interface EngineCallbacks {
  /** The container cannot be created now. */
  readonly onConfigFault: (container: ContainerRecord, fault: ConfigFault) => void;
  /** The container has started. `image`: with which, if that may have changed since the start began. */
  readonly onStart: (container: ContainerRecord, image?: string) => void;
  /** The container has terminated, or can never be started. */
  readonly onEnd: (container: ContainerRecord, state: Terminated) => void;
  /** The machine lacks a resource that the start needs. The state of the container has not changed. */
  readonly onShortage: (container: ContainerRecord, cause: Error) => void;
}

export type OpenEngine = (
  processes: PodProcesses,
  context: CommandContext,
  callbacks: EngineCallbacks,
) => ContainerEngine;
