/** Runs mutants against the tests that reach them, one by one, until a test fails. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Accepted, accepts } from './accepted.ts';
import { Compiler } from './compiler.ts';
import { Lint } from './lint.ts';
import { apply, type Mutant } from './mutators.ts';
import type { RelatedTests } from './related-tests.ts';
import { TestProcess } from './test-process.ts';

export type Verdict =
  | { readonly kind: 'killed'; readonly test: string; readonly failure: string }
  /** Hangs, or breaks the process: detected too. */
  | { readonly kind: 'timeout'; readonly test: string }
  | { readonly kind: 'refused by the compiler' }
  | { readonly kind: 'refused by the linter' }
  | { readonly kind: 'accepted'; readonly reason: string }
  | { readonly kind: 'survived'; readonly tests: readonly string[] };

/**
 * Test files per mutant. A survivor of wiring that every test builds would otherwise run for minutes. What only a test
 * further away detects lacks a test that is near.
 */
const TEST_FILES_MAX = 12;

/** A test that runs this much longer than without a mutant hangs. The machine may be busy with other things. */
const HANG_FACTOR = 8;
const HANG_EXTRA_MS = 10_000;

export async function* hunt(
  root: string,
  mutants: readonly Mutant[],
  related: RelatedTests,
  accepted: readonly Accepted[],
  hangExtraMs = HANG_EXTRA_MS,
): AsyncGenerator<{ readonly mutant: Mutant; readonly verdict: Verdict }> {
  const process = new TestProcess(root);
  const compiler = new Compiler(root);
  const lint = new Lint(root);
  try {
    for (const mutant of mutants) {
      const entry = accepted.find((each) => accepts(each, mutant));
      if (entry !== undefined) {
        yield { mutant, verdict: { kind: 'accepted', reason: entry.reason } };
        continue;
      }
      const verdict = await testsAgainst(root, process, mutant, related, hangExtraMs);
      if (verdict.kind !== 'survived') yield { mutant, verdict };
      else if (compiler.refuses(mutant)) yield { mutant, verdict: { kind: 'refused by the compiler' } };
      else if (lint.refuses(mutant)) yield { mutant, verdict: { kind: 'refused by the linter' } };
      else yield { mutant, verdict };
    }
  } finally {
    process.close();
    lint.close();
  }
}

async function testsAgainst(
  root: string,
  process: TestProcess,
  mutant: Mutant,
  related: RelatedTests,
  hangExtraMs: number,
): Promise<Verdict> {
  const change = { file: mutant.file, text: apply(readFileSync(join(root, mutant.file), 'utf8'), mutant) };
  const tests = related.of(mutant).slice(0, TEST_FILES_MAX);
  for (const { test, tookMs } of tests) {
    const answer = await process.run({ test, change }, HANG_FACTOR * tookMs + hangExtraMs);
    if (answer === 'timeout') return { kind: 'timeout', test };
    if (answer.passed) continue;
    related.detected(test, mutant);
    return { kind: 'killed', test, failure: answer.failures[0] ?? 'no test ran' };
  }
  return { kind: 'survived', tests: tests.map(({ test }) => test) };
}

/** Detected of those that a test can detect. */
export function scoreOf(verdicts: readonly Verdict[]): { readonly detected: number; readonly of: number } {
  const detected = verdicts.filter(({ kind }) => kind === 'killed' || kind === 'timeout').length;
  return { detected, of: detected + verdicts.filter(({ kind }) => kind === 'survived').length };
}
