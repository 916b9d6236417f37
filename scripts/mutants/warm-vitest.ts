/**
 * A vitest that stays up: runs one test file after the other, with one module's text replaced. Started by test-process.ts,
 * which ends it when a mutant hangs. A file costs 0.15 to 0.5 s here, against 1.3 to 2.8 s by `npx vitest run`.
 */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createVitest } from 'vitest/node';
import { withProbes } from './probes.ts';
import type { Answer, Request } from './test-process.ts';

const root = process.cwd();
/** Files with probes, paths from the root: all files of an area in a reach run, none otherwise. */
const probed = new Set<string>(JSON.parse(process.env['MUTANTS_PROBED'] ?? '[]') as string[]);
let changed: { readonly file: string; readonly text: string } | undefined;

const vitest = await createVitest(
  'test',
  {
    config: false,
    root,
    watch: false,
    reporters: [{}],
    // The cache on disk is keyed by the file as it is, and would answer with the text that is not changed.
    fsModuleCache: false,
    maxWorkers: 1,
    fileParallelism: false,
    bail: probed.size > 0 ? 0 : 1,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    setupFiles: probed.size > 0 ? [join(import.meta.dirname, 'note-reached.ts')] : [],
    include: ['**/*.test.ts'],
    exclude: ['**/node_modules/**'],
  },
  {
    plugins: [
      {
        name: 'mutants',
        enforce: 'pre',
        transform(_code: string, id: string) {
          const file = relative(root, id.split('?')[0] ?? id);
          if (changed?.file === file) return { code: changed.text, map: null };
          return probed.has(file)
            ? { code: withProbes(file, readFileSync(join(root, file), 'utf8')), map: null }
            : null;
        },
      },
    ],
  },
);
await vitest.standalone();

async function run({ test, change }: Request): Promise<Answer> {
  for (const file of [changed?.file, change?.file]) if (file !== undefined) vitest.invalidateFile(join(root, file));
  changed = change;
  // Results of former runs would count: as failures of this one, and against `bail`.
  vitest.state.filesMap.clear();
  vitest.state.idMap.clear();
  const startedMs = performance.now();
  const specification = vitest.getRootProject().createSpecification(join(root, test));
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications([specification]);
  const failures = testModules.flatMap((module) => [
    ...module.errors().map(({ message }) => message),
    ...[...module.children.allTests('failed')].map(({ fullName }) => fullName),
    ...[...module.children.allSuites()].flatMap((suite) => suite.errors().map(({ message }) => message)),
  ]);
  failures.push(...unhandledErrors.map(String));
  const ran = testModules.some((module) => module.state() !== 'queued' && module.state() !== 'pending');
  return { passed: ran && failures.length === 0, failures, tookMs: performance.now() - startedMs };
}

// The parent asks no more: end this process group, hanging workers included.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'));
process.on('message', (request: Request) => {
  run(request).then(
    (answer) => process.send?.(answer),
    (cause: unknown) => process.send?.({ passed: false, failures: [String(cause)], tookMs: 0 } satisfies Answer),
  );
});
process.send?.({ passed: true, failures: [], tookMs: 0 } satisfies Answer);
