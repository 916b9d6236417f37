/** Which updates of a stack the emulation can make while it runs. */
import { StartError } from '../shared/host/start-error.ts';
import type { LocalPlan } from './assembly/plan.ts';

/** Of a plan, what must not change: all but code and settings of functions, and filters and batches of streams. */
const FIXED: Readonly<Record<string, (plan: LocalPlan) => unknown>> = {
  tables: ({ tables }) => tables,
  functions: ({ functions }) =>
    functions.map(({ logicalId, functionName, reservedConcurrency }) => [logicalId, functionName, reservedConcurrency]),
  routes: ({ api }) => api,
  'function URLs': ({ functionUrls }) => functionUrls,
  queues: ({ queues, queueSources }) => [queues, queueSources],
  streams: ({ streamSources }) =>
    streamSources.map(({ logicalId, streamArn, functionId, failureQueueId }) => [
      logicalId,
      streamArn,
      functionId,
      failureQueueId,
    ]),
  schedules: ({ schedules }) => schedules,
  rules: ({ eventRules }) => eventRules,
};

/** @throws StartError that names what differs */
export function requireSameResources(running: LocalPlan, next: LocalPlan): void {
  const differing = Object.entries(FIXED)
    .filter(([, of]) => JSON.stringify(of(running)) !== JSON.stringify(of(next)))
    .map(([name]) => name);
  if (differing.length === 0) return;
  throw new StartError(
    `the assembly cannot be deployed while the emulation runs: it has other ${differing.join(', ')}; ` +
      'stop it, and start it with this assembly',
  );
}
