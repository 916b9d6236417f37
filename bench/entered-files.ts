/**
 * The source files that a piece of work enters: V8's precise coverage of the functions that it calls. Code that runs
 * when a module loads does not count.
 */
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));
/** What is deployed. */
const DEPLOYED = /^(functions|shared)\//;
const IMPORT = /^(?:import|export)\s+(?!type\b)[^;]*?from\s+'(\.[^']+)'/gms;

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

/** `shared/kube` and `shared/adapters` are one folder each, and so are `functions` and each controller. */
export function folderOf(path: string): string {
  const folders = dirname(path).split('/');
  if (folders[0] === 'functions') return 'functions';
  return folders.slice(0, folders[1] === 'controllers' ? 3 : 2).join('/');
}

/** Each adapter is a folder of its own: it speaks to one thing outside. */
export const adapterOf = (path: string): string | undefined => /^shared\/adapters\/([^/]+)\//.exec(path)?.[1];

/** Pairs of folders that import each other, among these files; imports of types do not count. */
export function waysBack(paths: readonly string[]): readonly string[] {
  const entered = new Set(paths);
  const edges = new Set<string>();
  for (const path of paths) {
    for (const [, specifier = ''] of readFileSync(join(PROJECT, path), 'utf8').matchAll(IMPORT)) {
      const imported = relative(PROJECT, resolve(PROJECT, dirname(path), specifier));
      if (entered.has(imported)) edges.add(`${folderOf(path)} ${folderOf(imported)}`);
    }
  }
  return [...edges].filter((edge) => {
    const [from = '', to = ''] = edge.split(' ');
    return from < to && edges.has(`${to} ${from}`);
  });
}
