import { fileURLToPath } from 'node:url';

/** Role of a function: its folder under functions/, its POWERTOOLS_SERVICE_NAME and its `nodekeeper:function` tag. */
export type FunctionName =
  | 'heartbeat'
  | 'api'
  | 'watch'
  | 'health-stream'
  | 'object-stream'
  | 'node-monitor'
  | 'evictor'
  | 'cloud-node'
  | 'pod-gc';

/** Top of the repository: the lock file and the entry files are found from here, whatever the working directory. */
export const repositoryRoot = fileURLToPath(new URL('../..', import.meta.url));

/** Handlers are known to cdk/ by path only. */
export const handlerEntry = (functionName: FunctionName): string =>
  fileURLToPath(new URL(`../../functions/${functionName}/handler.ts`, import.meta.url));
