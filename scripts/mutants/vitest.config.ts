/**
 * The tests of one mutation run. Stryker starts vitest with it, in a copy of the tree.
 *
 * As in vitest.config.ts, the files of one run share their modules, which saves most imports. The run of the next
 * mutant loads them anew.
 */
import { defineConfig } from 'vitest/config';
import { ALONE } from '../../vitest.config.ts';

const chosen = JSON.parse(process.env['MUTANTS_TESTS'] ?? '[]') as string[];
const isAlone = (test: string): boolean => ALONE.includes(test);

export default defineConfig({
  test: {
    testTimeout: 30_000,
    projects: [
      { extends: true, test: { name: 'together', isolate: false, include: chosen.filter((test) => !isAlone(test)) } },
      { extends: true, test: { name: 'alone', include: chosen.filter(isAlone) } },
    ],
  },
});
