/** Starts every benchmark once, as small as it can be: what runs here is its code, and no figure is compared. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBrowserInstalled, NO_BROWSER } from '../test/support/browser.ts';
import { type LocalForTest, startLocalForTest } from '../test/support/local.ts';
import type { Figures } from './benchmark.ts';
import { BENCHMARKS } from './benchmarks.ts';

/** Benchmarks that are not started here, with the reason. */
const NOT_STARTED: Readonly<Record<string, string>> = {
  advice: 'test/property/advice.test.ts makes the same comparison',
  soak: 'it kills and restarts a local mode of its own, which test/e2e does, and lasts for minutes to mean anything',
  walks: 'walks.test.ts starts it',
};

/** One for all that can do with a running cluster. */
let local: LocalForTest | undefined;

beforeAll(async () => {
  local = await startLocalForTest({ nodes: 0 });
});
afterAll(() => local?.stop());

describe('a benchmark, as small as it can be', { timeout: 120_000 }, () => {
  for (const { name, smallest, startsLocalMode = false, run } of BENCHMARKS) {
    if (name in NOT_STARTED) continue;
    it(`${name} prints its figures`, async (context) => {
      if (name === 'page' && !isBrowserInstalled) context.skip(NO_BROWSER);
      const lines: Figures[] = [];
      const target = startsLocalMode ? ['--kubeconfig', local!.kubeconfig] : [];
      await run((figures) => lines.push(figures), [...(smallest ?? []), ...target]);
      expect(lines).not.toEqual([]);
      for (const line of lines) {
        const values = Object.values(line).filter((value) => value !== undefined);
        expect(values.map((value) => typeof value)).not.toContain('object');
        expect(values.some((value) => typeof value === 'number')).toBe(true);
      }
    });
  }

  it('is not started only for a stated reason', () => {
    const names = BENCHMARKS.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(Object.keys(NOT_STARTED)));
    const tooLarge = BENCHMARKS.filter(({ name, smallest }) => smallest === undefined && !(name in NOT_STARTED));
    expect(tooLarge.map(({ name }) => name)).toEqual([]);
  });
});
