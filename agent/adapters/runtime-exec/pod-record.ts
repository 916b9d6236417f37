/**
 * The state of a pod on disk: `<pods>/<uid>/record.json`, which each write replaces. With it the next agent finds the
 * processes of the pod.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { Container, KubePod, ResourceRequirements } from '../../../shared/kinds/types.ts';
import type { ContainerState } from '../../ports/pod-runtime.ts';
import type { ProcessIdentity } from './process-table.ts';

/** A time that a later agent can compare with its own clock until the machine boots. */
export interface Moment {
  readonly bootId: string;
  /** Milliseconds. */
  readonly monotonicMs: number;
}

export interface ContainerRecord {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'main';
  state: ContainerState;
  lastState?: Extract<ContainerState, { kind: 'terminated' }>;
  /** containerId of the run of `lastState`. */
  lastContainerId?: string;
  restartCount: number;
  /** Set from its first start on. */
  containerId?: string;
  /** Identity of the container's first process, while it runs. */
  process?: ProcessIdentity;
  /** Whether the current run has a mount namespace of its own. */
  hasMounts?: boolean;
  /** When it was last started. */
  started?: Moment;
  /** How long it ran the last time; absent if unknown. Milliseconds. */
  ranMs?: number;
  /** Wait that applied to the last restart. Milliseconds. */
  backOffMs?: number;
  /** When it is started again. */
  restart?: Moment;
  /** What the current run has, if that may be other than in the spec: a resize does not apply to it yet. */
  resources?: ResourceRequirements;
  /** It terminates for a resize or another image, and starts again whatever its restart policy is. */
  restartsForChange?: boolean;
}

export interface PodRecord {
  readonly version: 1;
  /** With the allocated resources. */
  pod: KubePod;
  /** All init containers have completed. */
  initialised: boolean;
  /** No container of the pod starts any more. */
  stopped: boolean;
  /** The exit of this container restarts all of them. Present until they have terminated. */
  restartsAllFor?: string;
  /** Address of the pod, if it has a network of its own; '' while it is unknown. */
  podIp?: string;
  readonly containers: ContainerRecord[];
}

export const RECORD_FILE = 'record.json';

/** The state of a container before the pod starts. */
export const firstState = (hasInit: boolean): ContainerState => ({
  kind: 'waiting',
  reason: hasInit ? 'PodInitializing' : 'ContainerCreating',
});

/** The record of a pod before its first container starts. */
export function newRecord(pod: KubePod): PodRecord {
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  const state = firstState(initContainers.length > 0);
  const waiting = ({ name = '' }: Container, kind: ContainerRecord['kind']): ContainerRecord => ({
    name,
    kind,
    state,
    restartCount: 0,
  });
  return {
    version: 1,
    pod,
    initialised: initContainers.length === 0,
    stopped: false,
    containers: [
      ...initContainers.map((each) => waiting(each, each.restartPolicy === 'Always' ? 'sidecar' : 'init')),
      ...containers.map((each) => waiting(each, 'main')),
    ],
  };
}

/** The spec of an init container or container of the pod. */
export function containerSpec(pod: KubePod, name: string): Container | undefined {
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  return [...initContainers, ...containers].find((each) => each.name === name);
}

/** @throws Error of the file system; the previous record stays. */
export function writeRecord(directory: string, record: PodRecord): void {
  makeDirectory(directory, 0o700);
  const file = join(directory, RECORD_FILE);
  const temporary = `${file}.tmp`;
  try {
    // The pod's environment may contain secrets.
    writeFileSync(temporary, JSON.stringify(record), { mode: 0o600 });
    renameSync(temporary, file);
  } catch (cause) {
    removeQuietly(temporary);
    throw cause;
  }
}

/** Removes a file or directory. A failure is ignored. */
export function removeQuietly(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The caller already reports an error of the disk.
  }
}

/** @throws Error when there is none, or it is not a record of this version */
export function readRecord(directory: string): PodRecord {
  const record = JSON.parse(readFileSync(join(directory, RECORD_FILE), 'utf8')) as Partial<PodRecord>;
  if (record.version !== 1 || !Array.isArray(record.containers) || typeof record.pod?.metadata?.uid !== 'string') {
    throw new Error(`${join(directory, RECORD_FILE)} is not a pod record of version 1`);
  }
  return record as PodRecord;
}
