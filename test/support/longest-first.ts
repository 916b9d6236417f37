import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that need long, from the project's root, the longest first. A full run lists its slowest files. */
export const LONGEST: readonly string[] = [
  'test/property/linear-work.test.ts',
  'test/simulation/laws.test.ts',
  'test/simulation/offline-stop.test.ts',
  'scripts/drill/drill.test.ts',
  'test/simulation/hub.test.ts',
  'test/console/page.test.ts',
  'test/simulation/planted.test.ts',
  'test/release/packages.test.ts',
  'test/e2e/workloads.test.ts',
  'test/e2e/pages.test.ts',
  'test/e2e/first-path.test.ts',
  'test/simulation/failed-seeds.test.ts',
  'test/e2e/hub-machines.test.ts',
  'test/e2e/iam-proof.test.ts',
  'bench/benches.test.ts',
  'test/scenario/shipped.test.ts',
  'test/e2e/hub.test.ts',
  'test/e2e/observability.test.ts',
  'test/systemd/deb.test.ts',
  'test/e2e/held-chunks.test.ts',
  'test/e2e/readme.test.ts',
  'test/e2e/move.test.ts',
  'test/agent/windows.test.ts',
  'test/e2e/console.test.ts',
  'test/systemd/agent.test.ts',
  'test/simulation/false-marks.test.ts',
  'test/cdk/synth.test.ts',
  'test/e2e/serve.test.ts',
  'test/simulation/long-run-fleet.test.ts',
  'test/e2e/kubectl-suite.test.ts',
  'test/e2e/relay.test.ts',
  'test/e2e/clients.test.ts',
  'test/e2e/crds.test.ts',
  'test/simulation/long-run.test.ts',
  'test/contract/item-store.test.ts',
  'test/simulation/relays.test.ts',
  'test/e2e/agent-fleet.test.ts',
  'test/e2e/kubectl-exec.test.ts',
  'test/release/image.test.ts',
  'test/agent/offline-month.test.ts',
  'test/cdk/options.test.ts',
];
/** Files that mostly wait for programs that they start. */
const WAITING = /^test\/(e2e|systemd)\//;

/**
 * Starts the longest files first, so the workers are busy until the end; and in turn a file that waits and a file that
 * computes, so the cores are busy. Without results of an earlier run, as in CI, vitest starts the largest files first.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const pathOf = ({ moduleId }: TestSpecification): string => relative(this.ctx.config.root, moduleId);
    const rankOf = (file: TestSpecification): number => {
      const rank = LONGEST.indexOf(pathOf(file));
      return rank < 0 ? LONGEST.length : rank;
    };
    const sorted = (await super.sort(files)).toSorted((one, other) => rankOf(one) - rankOf(other));
    const isWaiting = (file: TestSpecification): boolean => WAITING.test(pathOf(file));
    const [waiting, computing] = [sorted.filter(isWaiting), sorted.filter((file) => !isWaiting(file))];
    return Array.from({ length: files.length }, (_, turn) => [computing[turn], waiting[turn]])
      .flat()
      .filter((file) => file !== undefined);
  }
}
