/** Runs of vitest over test/fixtures/skips, with the reporter as every run of the project has it. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import config from '../../vitest.config.ts';
import { allowedSkips } from './allowed-skips.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
const NOT_LISTED = 'This run fails: tests were skipped that test/support/allowed-skips.ts does not list.';

function runFixture(file: string, environment: Readonly<Record<string, string>>) {
  const { CI: _ci, ...inherited } = process.env;
  const { status, stdout } = spawnSync(process.execPath, [VITEST, 'run', file], {
    cwd: join(ROOT, 'test/fixtures/skips'),
    env: { ...inherited, NO_COLOR: '1', ...environment },
    encoding: 'utf8',
  });
  const lines = stdout.trimEnd().split('\n');
  return { status, last: lines.at(-1), unlisted: lines.filter((line) => line === NOT_LISTED || line.startsWith('  ')) };
}

describe('a run in CI', () => {
  it.each([
    ['title', 'no engine here'],
    ['title', 'no engine (of any kind)'],
    ['note', 'no engine'],
  ])('passes with a skip that the list allows, its reason in the %s: %s', (way, reason) => {
    const run = runFixture('skipping.test.ts', { CI: 'true', SKIP_BY: way, SKIP_REASON: reason });
    expect(run).toEqual({ status: 0, last: '3 passed, 0 failed, 1 skipped', unlisted: [] });
  });

  it.each([
    [
      'another reason',
      'skipping.test.ts',
      'title',
      'too slow',
      'a suite (skipped: too slow) > is in a suite: too slow',
    ],
    ['another reason', 'skipping.test.ts', 'note', 'too slow', 'says why itself: too slow'],
    ['no reason', 'skipping.test.ts', 'silent', '', 'says nothing: without a reason'],
    ['another file', 'other.test.ts', 'note', 'no engine', 'says why itself: no engine'],
  ])('fails with a skip that has %s (%s, by %s)', (_what, file, way, reason, line) => {
    const run = runFixture(file, { CI: 'true', SKIP_BY: way, SKIP_REASON: reason });
    expect(run).toEqual({
      status: 1,
      last: '3 passed, 0 failed, 1 skipped',
      unlisted: [NOT_LISTED, `  ${file} > ${line}`],
    });
  });
});

it('lets any test be skipped outside CI, where programs may be missing', () => {
  expect(runFixture('skipping.test.ts', { SKIP_BY: 'silent' }).status).toBe(0);
});

describe('the list of allowed skips', () => {
  it('names files that exist, with reasons', () => {
    for (const { file, reason } of allowedSkips) {
      expect([file, existsSync(join(ROOT, file)), reason !== '']).toEqual([file, true, true]);
    }
    expect(new Set(allowedSkips.map(({ file, reason }) => `${file} ${reason}`)).size).toBe(allowedSkips.length);
  });

  it('is kept by the reporter of every run', () => {
    expect(config.test?.reporters).toContain('./test/support/closing-line-reporter.ts');
  });
});
