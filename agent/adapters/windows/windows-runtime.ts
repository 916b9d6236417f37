/** Runs pods as processes of Windows. No images and no isolation: for machines that trust their pods. */
import { accessSync, constants } from 'node:fs';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import { type RecordedRuntimeOptions, recordedRuntime } from '../runtime-exec/recorded-runtime.ts';
import { WindowsEngine } from './windows-engine.ts';
import { type JobTable, windowsProcesses } from './windows-processes.ts';

export interface WindowsRuntimeOptions extends Omit<RecordedRuntimeOptions, 'openEngine' | 'processTable' | 'cgroups'> {
  /** Processes of one container; undefined: no limit. */
  readonly podPidsMax: number | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export function windowsRuntime({ podPidsMax, environment, ...options }: WindowsRuntimeOptions): PodRuntime {
  const { time, log } = options;
  const jobs: JobTable = new Map();
  const { recorded, podsDirectory, runtime } = recordedRuntime({
    ...options,
    processTable: windowsProcesses(jobs),
    openEngine: (processes, context, callbacks) =>
      new WindowsEngine(processes, context, callbacks, {
        time,
        podPidsMax,
        jobs,
        environment,
        warn: (message, fields) => log.warn(message, fields),
      }),
  });
  return {
    ...runtime,
    version: 'exec://1.0.0',
    async health() {
      const why = recorded.readError() ?? writeError(podsDirectory);
      return why === undefined ? { kind: 'ready' } : { kind: 'notReady', reason: `processes cannot be run: ${why}` };
    },
    /** Windows would kill what is left of the pods as soon as the agent has exited. */
    async close() {
      await runtime.close();
      for (const job of jobs.values()) job.close();
    },
  };
}

function writeError(podsDirectory: string): string | undefined {
  try {
    accessSync(podsDirectory, constants.W_OK);
    return undefined;
  } catch (cause) {
    return (cause as Error).message;
  }
}
