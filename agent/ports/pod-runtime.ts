/**
 * What runs pods on this machine. Adapters: `none`, `exec` (child processes) and `podman`; all pass
 * test/contract/pod-runtime.ts.
 */
import type { KubeObject } from '../../shared/kube/types.ts';

export type ContainerState =
  | { readonly kind: 'waiting'; readonly reason: string; readonly message?: string }
  | { readonly kind: 'running'; readonly startedAtMs: number }
  | {
      readonly kind: 'terminated';
      readonly exitCode: number;
      /** Number of the signal that ended it, if one did. */
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
  /** How the start before this one ended. */
  readonly lastState?: Extract<ContainerState, { kind: 'terminated' }>;
  readonly restartCount: number;
  /** Such as exec://<uid>/<name>/<n>; absent before the first start. */
  readonly containerId?: string;
}

export interface RunningPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** In the order of the pod's spec; absent where the runtime does not tell them apart. */
  readonly initContainers?: readonly RunningContainer[];
  readonly containers: readonly RunningContainer[];
}

export interface PodRuntime {
  /** For status.nodeInfo.containerRuntimeVersion, such as exec://1.0.0. */
  readonly version: string;
  /** Set when this runtime never runs a pod: why, for the pod's status. */
  readonly refusal?: { readonly reason: string; readonly message: string };
  /** Whether pods can be run now; its words go into the Ready condition. */
  health(): Promise<{ readonly kind: 'ready' } | { readonly kind: 'notReady'; readonly reason: string }>;
  /** What keeps the runtime from keeping its own state, while pods go on; undefined while nothing does. */
  complaint?(): string | undefined;
  /** Starts the pod's containers. Again for a pod that runs: nothing happens. */
  start(pod: KubeObject): Promise<void>;
  /**
   * Asks all containers of the pod to end, and ends them when the grace period is over. Resolves when none runs. Seconds;
   * 0 ends them at once. Called again with less, the shorter counts.
   */
  stop(podUid: string, graceSeconds: number): Promise<void>;
  /** Forgets a pod that has stopped. */
  remove(podUid: string): Promise<void>;
  pods(): Promise<readonly RunningPod[]>;
  /** Called whenever a container changed its state. */
  onChange(listener: (podUid: string) => void): void;
  /** Ends without stopping pods, as far as the runtime can leave them running. */
  close(): Promise<void>;
}
