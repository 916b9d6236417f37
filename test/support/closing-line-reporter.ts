import type { Reporter, TestModule } from 'vitest/node';
import { type AllowedSkip, allowedSkips, reasonOf, type SkippedTest, unlistedSkips } from './allowed-skips.ts';

export interface ClosingLineOptions {
  /** Instead of the project's own list. */
  readonly allowedSkips?: readonly AllowedSkip[];
}

/** Files that a run lists as its slowest. */
const SLOWEST_FILES = 20;

/**
 * Lists the slowest files of a run, and ends it with one plain line, `N passed, N failed, N skipped`, for whoever reads
 * the log by machine. In CI (variable CI set) a skipped test that allowed-skips.ts does not list makes the run fail.
 */
export default class ClosingLineReporter implements Reporter {
  readonly #allowed: readonly AllowedSkip[];

  constructor(options: ClosingLineOptions = {}) {
    this.#allowed = options.allowedSkips ?? allowedSkips;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    const skipped: SkippedTest[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const result = test.result();
        const { state } = result;
        if (state === 'passed' || state === 'failed' || state === 'skipped') counts[state] += 1;
        if (result.state === 'skipped') {
          skipped.push({ file: module.relativeModuleId, name: test.fullName, note: result.note });
        }
      }
      if (module.state() === 'failed' && module.errors().length > 0) counts.failed += 1;
    }
    counts.failed += unhandledErrors.length;
    if (process.env['CI']) this.#refuse(unlistedSkips(skipped, this.#allowed));
    process.stdout.write(slowestFiles(modules));
    process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
  }

  #refuse(unlisted: readonly SkippedTest[]): void {
    if (unlisted.length === 0) return;
    process.exitCode = 1;
    const lines = unlisted.map((test) => `  ${test.file} > ${test.name}: ${reasonOf(test) || 'without a reason'}`);
    process.stdout.write(
      `\nThis run fails: tests were skipped that test/support/allowed-skips.ts does not list.\n${lines.join('\n')}\n`,
    );
  }
}

/** Where the time of a long run is. A short run is not listed. Each file: its tests and hooks, and its imports. */
function slowestFiles(modules: readonly TestModule[]): string {
  if (modules.length <= SLOWEST_FILES) return '';
  const seconds = modules.map((module) => {
    const { duration, collectDuration, setupDuration } = module.diagnostic();
    return { file: module.relativeModuleId, seconds: (duration + collectDuration + setupDuration) / 1_000 };
  });
  const slowest = seconds.toSorted((one, other) => other.seconds - one.seconds).slice(0, SLOWEST_FILES);
  const lines = slowest.map((one) => `${one.seconds.toFixed(1).padStart(7)} s  ${one.file}`);
  return `\nThe slowest of ${modules.length} files:\n${lines.join('\n')}\n`;
}
