/** The tests of one mutation run. Stryker starts vitest with it, in a copy of the tree. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: JSON.parse(process.env['MUTANTS_TESTS'] ?? '[]') as string[],
    testTimeout: 30_000,
  },
});
