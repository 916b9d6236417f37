/**
 * The tests of one mutation run. Stryker starts vitest with it, in a copy of the tree.
 *
 * As in vitest.config.ts, the files of one run share their modules, which saves most imports. The run of the next
 * mutant loads them anew.
 */
import { relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ALONE } from '../../vitest.config.ts';

const chosen = JSON.parse(process.env['MUTANTS_TESTS'] ?? '[]') as string[];
const isAlone = (test: string): boolean => ALONE.includes(test);

/** The first test that fails ends the run of a mutant: mostly a near one, which needs milliseconds. */
class NearestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => chosen.indexOf(relative(this.ctx.config.root, moduleId));
    return files.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

export default defineConfig({
  test: {
    // A busy machine needs several times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    sequence: { sequencer: NearestFirst },
    projects: [
      { extends: true, test: { name: 'together', isolate: false, include: chosen.filter((test) => !isAlone(test)) } },
      { extends: true, test: { name: 'alone', include: chosen.filter(isAlone) } },
    ],
  },
});
