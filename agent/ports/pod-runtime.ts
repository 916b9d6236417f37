/**
 * Runs pods on this machine. Adapters: `none`, `exec` (child processes) and `podman`; all pass
 * test/contract/pod-runtime.ts.
 */
import type { KubeObject, KubePod, ResourceRequirements } from '../../shared/kinds/types.ts';
import type { TerminalSize } from '../../shared/sessions/channels.ts';
import type { ContainerInputSource } from './container-inputs.ts';

export type ContainerState =
  | { readonly kind: 'waiting'; readonly reason: string; readonly message?: string }
  | { readonly kind: 'running'; readonly startedAtMs: number }
  | {
      readonly kind: 'terminated';
      readonly exitCode: number;
      /** Number of the signal that terminated it, if one did. */
      readonly signal?: number;
      /** Completed, Error, OOMKilled, ContainerCannotRun … */
      readonly reason: string;
      readonly message?: string;
      readonly startedAtMs: number;
      readonly finishedAtMs: number;
    };

export interface RunningContainer {
  readonly name: string;
  readonly state: ContainerState;
  /** The end of the previous run. */
  readonly lastState?: Extract<ContainerState, { kind: 'terminated' }>;
  /** containerId of the previous run; absent if it is unknown. */
  readonly lastContainerId?: string;
  readonly restartCount: number;
  /** Such as exec://<uid>/<name>/<n>; absent before the first start. */
  readonly containerId?: string;
  /** What it runs with; absent: the resources in `pod` of the RunningPod. */
  readonly resources?: ResourceRequirements;
}

export interface RunningPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** As it was started first, with the resources of the last resize; absent if the runtime does not keep it. */
  readonly pod?: KubePod;
  /** Address of the pod: '' while it has none yet; absent if it is that of the machine. */
  readonly ip?: string;
  /** In the order of the pod's spec; absent if the runtime does not distinguish init containers. */
  readonly initContainers?: readonly RunningContainer[];
  readonly containers: readonly RunningContainer[];
  /** A rule restarts all of them, and some have not terminated yet. */
  readonly restartsAll?: boolean;
}

/** What `kubectl logs` requests of one container. */
export interface LogQuery {
  readonly podUid: string;
  readonly container: string;
  /** The run before the current one. */
  readonly previous: boolean;
  /** Continue until the container terminates. */
  readonly follow: boolean;
  /** Each line begins with its time. */
  readonly timestamps: boolean;
  /** Only lines from this time of the machine's clock on. Milliseconds since the Unix epoch. */
  readonly sinceMs?: number;
  readonly tailLines?: number;
  readonly limitBytes?: number;
}

/** There is no such output. The message is shown to the user. */
export class LogUnavailableError extends Error {
  override readonly name = 'LogUnavailableError';
}

/** Processors and NUMA nodes of a container. Empty: those of its pod. */
export interface CpuPlacement {
  readonly cpus: readonly number[];
  readonly memoryNodes: readonly number[];
  /** Whether no other container may use these processors. */
  readonly exclusive: boolean;
}

export interface StorageUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** What a pod uses now. An amount that cannot be measured is absent. */
export interface PodUsage {
  /** Working set. Bytes. */
  readonly memoryBytes?: number;
  readonly processes?: number;
  readonly containers: readonly {
    readonly name: string;
    readonly memoryBytes?: number;
    /** Output of its runs, and its writable files if it has any of its own. */
    readonly storage: StorageUsage;
  }[];
  /** Volumes on a disk of this machine that are removed with the pod, by name. */
  readonly volumes: ReadonlyMap<string, StorageUsage>;
}

export type CommandResult =
  | { readonly kind: 'exited'; readonly exitCode: number; readonly output: string }
  | { readonly kind: 'timedOut' }
  | { readonly kind: 'failed'; readonly message: string };

export interface StreamedCommand {
  readonly container: string;
  readonly command: readonly string[];
  readonly stdin: boolean;
  /** Its input and output are a terminal. */
  readonly tty: boolean;
}

/** A command that somebody follows. Its output is read only as fast as its follower reads. */
export interface RunningCommand {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Resolves when more may be written, or the command reads nothing any more. */
  write(bytes: Uint8Array): Promise<void>;
  endInput(): void;
  resize(size: TerminalSize): void;
  /** The exit code of its first process. Output may follow. Rejects if it could not be started. */
  readonly exitCode: Promise<number>;
  /** Ends it, with all that it started. Without effect on what has ended. */
  kill(): void;
}

/** Something that a runtime did with a container, as an event of its pod. */
export interface RuntimeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export type ResizeOutcome =
  /** The limits have changed, or a container restarts with the new ones. */
  | { readonly kind: 'applied' }
  /** They cannot be changed now. */
  | { readonly kind: 'failed'; readonly message: string };

export interface PodRuntime {
  /** For status.nodeInfo.containerRuntimeVersion, such as exec://1.0.0. */
  readonly version: string;
  /** For status.declaredFeatures. Sorted. Absent: none. */
  readonly declaredFeatures?: readonly string[];
  /** Reason and message for the pod's status if this runtime never runs pods. */
  readonly refusal?: { readonly reason: string; readonly message: string };
  /** Whether pods can be run now. The reason is part of the Ready condition. */
  health(): Promise<{ readonly kind: 'ready' } | { readonly kind: 'notReady'; readonly reason: string }>;
  /** Why the runtime cannot write its own state while pods keep running; undefined if it can. */
  complaint?(): string | undefined;
  /** Starts the pod's containers. Does nothing for a running pod. */
  start(pod: KubeObject): Promise<void>;
  /**
   * Terminates all containers of the pod: gracefully, and by force when the grace period is over. Resolves when none
   * runs. Seconds; 0 terminates them at once. After a second call the shorter period counts.
   */
  stop(podUid: string, graceSeconds: number): Promise<void>;
  /** Removes a stopped pod. */
  remove(podUid: string): Promise<void>;
  pods(): Promise<readonly RunningPod[]>;
  /**
   * The output of a container, stdout and stderr together, in pieces. Ends at the end of the log, with `follow` when
   * the container has terminated, and when `stop` is aborted. Absent if this runtime never runs pods.
   *
   * @throws LogUnavailableError from the first piece
   */
  readLog?(query: LogQuery, stop: AbortSignal): AsyncIterable<Uint8Array>;
  /** Limits of pods that this machine cannot enforce, for the Ready condition; undefined: all are enforced. */
  limitWarning?(): string | undefined;
  /** From now on, containers run where `placementOf` says. Called again whenever its results changed. */
  usePlacement?(placementOf: (podUid: string, container: string) => CpuPlacement): void;
  /** Undefined for an unknown pod; absent if this runtime measures nothing. `withStorage`: also what is on the disk. */
  usage?(podUid: string, withStorage: boolean): Promise<PodUsage | undefined>;
  /** Memory of all pods together, if they have a common limit. */
  podsMemory?(): { readonly limitBytes: number; readonly workingSetBytes: number } | undefined;
  /** Removes what no running pod needs: output of terminated pods, unused images. */
  reclaimStorage?(): Promise<void>;
  /** From now on, containers start with these inputs. Absent if this runtime has no use for them. */
  useInputs?(source: ContainerInputSource): void;
  /**
   * From now on, the containers after a sidecar with a startup probe wait until this is true for it. Absent: probes are
   * the runtime's.
   */
  useStarted?(isStarted: (podUid: string, container: string) => boolean): void;
  /** Runs a command in a running container. Output of up to 10 KiB. Absent: probes are the runtime's. */
  execute?(podUid: string, container: string, command: readonly string[], timeoutMs: number): Promise<CommandResult>;
  /** Runs a command that somebody follows in a running container. Absent: this runtime runs no pods. @throws Error */
  open?(podUid: string, command: StreamedCommand): Promise<RunningCommand>;
  /**
   * Terminates a running container, after an event with this message. Its restart policy then applies. Resolves when
   * it has terminated.
   */
  restartContainer?(podUid: string, container: string, graceSeconds: number, message: string): Promise<void>;
  /**
   * Allocates the resources in the spec of a known pod to its containers, also for the next agent. Running containers
   * get them at once, or by a restart if their resizePolicy says so. Repeated, it continues. Absent: this runtime runs
   * no pods.
   */
  resize?(pod: KubePod): Promise<ResizeOutcome>;
  /**
   * The containers of a known pod have the images of this spec from their next start on. Those that run with others
   * restart. Absent: this runtime runs no pods.
   */
  useImages?(pod: KubePod): Promise<void>;
  /** Called for each event of a container that the runtime alone knows. */
  onEvent?(listener: (pod: KubePod, event: RuntimeEvent) => void): void;
  /** Called whenever the state of a container changed. */
  onChange(listener: (podUid: string) => void): void;
  /** Closes the runtime without stopping pods, as far as it can leave them running. */
  close(): Promise<void>;
}
