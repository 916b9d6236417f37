/** The processes of pods on Windows: those of the jobs that this agent has open. None of them outlives the agent. */
import { type ProcessTable, signal } from '../runtime-exec/process-table.ts';
import type { Job } from './jobs.ts';
import { bootId } from './windows-machine.ts';

/** The open jobs by the mark of their container. */
export type JobTable = Map<string, Job>;

export const windowsProcesses = (jobs: JobTable): ProcessTable => ({
  bootId,
  identify: () => undefined,
  isAlive: () => false,
  marked: () => [...jobs].flatMap(([mark, job]) => job.pids().map((pid) => ({ pid, mark }))),
  signal,
  residentBytes: () => 0,
});
