import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that need more than half a minute, from the project's root, the longest first. A full run lists its slowest files. */
export const LONGEST: readonly string[] = [
  'test/simulation/laws.test.ts',
  'test/simulation/planted.test.ts',
  'test/e2e/workloads.test.ts',
  'test/e2e/first-path.test.ts',
  'test/e2e/kubectl-logs.test.ts',
  'test/console/page.test.ts',
  'test/e2e/move.test.ts',
  'test/property/linear-work.test.ts',
  'test/cdk/table-actions.test.ts',
  'test/e2e/console.test.ts',
  'test/e2e/iam-proof.test.ts',
  'test/simulation/relays.test.ts',
  'test/e2e/observability.test.ts',
  'test/systemd/agent.test.ts',
  'test/cdk/synth.test.ts',
  'test/e2e/serve.test.ts',
  'bench/benches.test.ts',
  'test/e2e/held-chunks.test.ts',
  'test/scenario/shipped.test.ts',
  'test/e2e/relay.test.ts',
];

/**
 * Starts the longest files first. The workers are then busy until the end. Without results of an earlier run, as in CI,
 * vitest starts the largest files first.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const rank = LONGEST.indexOf(relative(this.ctx.config.root, moduleId));
      return rank < 0 ? LONGEST.length : rank;
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
