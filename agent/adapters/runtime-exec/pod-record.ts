/**
 * What is known of a pod, on disk, so that its processes are found again by the agent's next start:
 * `<pods>/<uid>/record.json`, replaced as a whole.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../../shared/kube/types.ts';
import type { ContainerState } from '../../ports/pod-runtime.ts';
import type { ProcessIdentity } from './process-table.ts';

export interface ContainerRecord {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'main';
  state: ContainerState;
  lastState?: Extract<ContainerState, { kind: 'terminated' }>;
  restartCount: number;
  /** Set from its first start on. */
  containerId?: string;
  /** Of the container's first process, while it runs. */
  process?: ProcessIdentity;
  /** Wait that applied to the last restart. Milliseconds. */
  backOffMs?: number;
  /** When it is started again. Epoch milliseconds. */
  restartAtMs?: number;
}

export interface PodRecord {
  readonly version: 1;
  readonly pod: KubeObject;
  /** All init containers have done their work. */
  initialised: boolean;
  /** Nothing of it is started any more. */
  stopped: boolean;
  readonly containers: ContainerRecord[];
}

const RECORD_FILE = 'record.json';

export function writeRecord(directory: string, record: PodRecord): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, RECORD_FILE);
  // The pod's environment may hold secrets.
  writeFileSync(`${file}.tmp`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.tmp`, file);
}

/** @throws Error when there is none, or none that this version wrote. */
export function readRecord(directory: string): PodRecord {
  const record = JSON.parse(readFileSync(join(directory, RECORD_FILE), 'utf8')) as Partial<PodRecord>;
  if (record.version !== 1 || !Array.isArray(record.containers) || typeof record.pod?.metadata?.uid !== 'string') {
    throw new Error(`${join(directory, RECORD_FILE)} is no record of a pod`);
  }
  return record as PodRecord;
}
