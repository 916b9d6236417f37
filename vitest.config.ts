import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      '{shared,functions,server,cdk,cli,console,demo,aws-local,agent,bench,scripts}/**/*.test.ts',
      'test/**/*.test.ts',
    ],
    exclude: ['**/node_modules/**', 'test/fixtures/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // One more than the cores of CI: half of the time of a run is waits of tests with processes of their own.
    maxWorkers: 3,
    reporters: ['default', './test/support/closing-line-reporter.ts'],
  },
});
