/**
 * Runs pods as plain processes, with the limits of control groups if there are any. No images and no isolation. For
 * machines that trust their pods and have no container engine, and for experiments. Linux only.
 */
import { accessSync, constants } from 'node:fs';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import { ProcessEngine } from './process-engine.ts';
import { type RecordedRuntimeOptions, recordedRuntime } from './recorded-runtime.ts';

export interface ExecRuntimeOptions extends Omit<RecordedRuntimeOptions, 'openEngine'> {
  /** Why limits are not enforced. */
  readonly limitWarning?: string | undefined;
  readonly version?: string;
}

/** Does not throw when the disk cannot be used: the runtime is then not ready, reports why, and retries. */
export function execRuntime(options: ExecRuntimeOptions): PodRuntime {
  const { time, cgroups } = options;
  const { recorded, podsDirectory, runtime } = recordedRuntime({
    ...options,
    openEngine: (processes, context, callbacks) => new ProcessEngine(processes, context, callbacks, { time, cgroups }),
  });
  return {
    ...runtime,
    version: `exec://${options.version ?? '1.0.0'}`,
    async health() {
      const why = recorded.readError() ?? accessError(podsDirectory);
      return why === undefined ? { kind: 'ready' } : { kind: 'notReady', reason: `processes cannot be run: ${why}` };
    },
    limitWarning: () => options.limitWarning,
  };
}

/** Why processes cannot be run; undefined if they can. */
function accessError(podsDirectory: string): string | undefined {
  try {
    accessSync(podsDirectory, constants.W_OK);
    accessSync('/proc/self/stat', constants.R_OK);
    return undefined;
  } catch (cause) {
    return (cause as Error).message;
  }
}
