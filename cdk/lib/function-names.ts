import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FunctionName } from '../../functions/function-list.ts';

/** Top of the repository: the lock file and the entry files are found from here, whatever the working directory. */
export const repositoryRoot = fileURLToPath(new URL('../..', import.meta.url));

/** Handlers are known to cdk/ by path only. */
export const handlerEntry = (functionName: FunctionName): string =>
  fileURLToPath(new URL(`../../functions/${functionName}/handler.ts`, import.meta.url));

export const handlersFolder = fileURLToPath(new URL('../../handlers', import.meta.url));

/** Folder of the bundle of a handler, where it exists: in the published package. */
export const prebuiltHandler = (functionName: FunctionName): string => join(handlersFolder, functionName);
