import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

/**
 * They replace modules or programs that other tests use. Every other file shares its worker, which saves most imports.
 */
export const ALONE = [
  'agent/adapters/windows/installation.test.ts',
  'agent/adapters/windows/native-calls.test.ts',
  'agent/adapters/windows/own-service.test.ts',
  'agent/adapters/windows/service-worker.test.ts',
  'agent/adapters/windows/windows-runtime.test.ts',
  'agent/app/pods/remembered-power-cuts.test.ts',
  'shared/store/object-record.test.ts',
  'test/agent/disk-faults.test.ts',
  'test/agent/kept-files.test.ts',
  'test/agent/key-rotation.test.ts',
  'test/property/linear-work.test.ts',
  'test/simulation/long-run-fleet.test.ts',
];

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Two more than the cores of CI: two files wait for processes of their own while two compute.
    maxWorkers: 4,
    // A young generation of 16 MiB is collected so often that a simulation needs 8 % more CPU.
    execArgv: ['--max-semi-space-size=32'],
    sequence: { sequencer: LongestFirst },
    env: {
      // Tests start programs of ours some hundred times: without compiling them again, a start needs half of the CPU.
      NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/nodekeeper/compiled', import.meta.url)),
      // Those of the handlers, for each assembly that a test needs.
      NODEKEEPER_BUNDLES: fileURLToPath(new URL('node_modules/.cache/nodekeeper/bundles', import.meta.url)),
      // esbuild is a Go program that ends before its memory is a matter: a third of its CPU is for garbage.
      GOGC: 'off',
      GOMEMLIMIT: '1536MiB',
    },
    reporters: ['default', './test/support/closing-line-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          isolate: false,
          // Node.js imports the sources itself, which it compiles faster than vitest transforms them.
          experimental: { viteModuleRunner: false },
          include: [
            '{shared,functions,server,cdk,cli,console,demo,aws-local,agent,bench,scripts}/**/*.test.ts',
            'test/**/*.test.ts',
          ],
          exclude: [...configDefaults.exclude, 'test/fixtures/**', ...ALONE],
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE } },
    ],
  },
});
