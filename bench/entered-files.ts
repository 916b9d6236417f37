/**
 * The source files that a piece of work enters: V8's precise coverage of the functions that it calls. Code that runs
 * when a module loads does not count.
 */
import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));
/** What is deployed. */
const DEPLOYED = /^(functions|shared)\//;

export interface EnteredFiles {
  /** Files that `work` entered, by path from the project's folder, in alphabetical order. */
  during(work: () => Promise<unknown>): Promise<readonly string[]>;
}

export async function startCoverage(): Promise<EnteredFiles> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return {
    async during(work) {
      // Reading the counts resets them to zero.
      await session.post('Profiler.takePreciseCoverage');
      await work();
      const { result } = await session.post('Profiler.takePreciseCoverage');
      const entered = result.filter(({ functions }) => functions.some(wasCalled)).map(({ url }) => pathOf(url));
      return entered.filter((path) => DEPLOYED.test(path)).sort();
    },
  };
}

/** The function without a name that begins at 0 is the module itself. */
const wasCalled = (each: {
  readonly functionName: string;
  readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
}): boolean => each.ranges.some(({ startOffset, count }) => count > 0 && (each.functionName !== '' || startOffset > 0));

const pathOf = (url: string): string => (url.startsWith('file:') ? relative(PROJECT, fileURLToPath(url)) : url);
