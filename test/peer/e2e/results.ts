/** What upstream's test program prints, as outcomes. */

export type Outcome = 'passed' | 'failed' | 'skipped';

export interface TestResult {
  /** The full name, such as `[sig-apps] Job should delete a job`. */
  readonly name: string;
  readonly outcome: Outcome;
  readonly seconds: number;
  /** Why a test failed: what it expected, or that its time was over. */
  readonly reason?: string;
}

/**
 * Specs are also reported as one JSON text each: `{"msg":"PASSED [sig-apps] …","total":1,…}`. The dot of a passed spec
 * stands before it, on the same line.
 */
const PROGRESS = /\{"msg":"(PASSED|FAILED) (.*)","total":/;
const REASON_LINES_MAX = 12;

/** Names by outcome, from the output of one run. A test that skipped itself, or was never started, has no entry. */
export function reportedIn(output: string): ReadonlyMap<string, Exclude<Outcome, 'skipped'>> {
  const outcomes = new Map<string, Exclude<Outcome, 'skipped'>>();
  for (const line of output.split('\n')) {
    const match = PROGRESS.exec(line);
    if (match === null) continue;
    const name = JSON.parse(`"${match[2]}"`) as string;
    outcomes.set(withoutTags(name), match[1] === 'PASSED' ? 'passed' : 'failed');
  }
  return outcomes;
}

/**
 * The outcome of the one test of a run. Before it the suite waits for nodes and pods; if that fails, none is reported.
 */
export function outcomeOf(name: string, output: string): Outcome {
  const isSkipped = /\[SKIPPING\]|Ran 0 of \d+ Specs/.test(output) && !/BeforeSuite\].*Fail|FAIL!/.test(output);
  return reportedIn(output).get(name) ?? (isSkipped ? 'skipped' : 'failed');
}

/** A name may end in `[Conformance]`, which lists of names leave out. */
export const withoutTags = (name: string): string => name.replace(/\s*\[Conformance\]\s*/g, ' ').trim();

/**
 * What a test expected: the last `FAIL:` and the lines after it. A run that ended before its first test has none; then
 * its last error.
 */
export function failureReason(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const expected = lines.findLastIndex((line) => /^(?!--- FAIL).*\bFAIL: |• Failure|^panic: /.test(line));
  if (expected >= 0) return lines.slice(expected, expected + REASON_LINES_MAX).join('\n');
  const error = lines.findLast((line) => /\bINFO: Error |: error/i.test(line));
  return error ?? lines.slice(-REASON_LINES_MAX).join('\n');
}

/** The group of a test: the first bracket of its name, such as `sig-apps`. */
export const areaOf = (name: string): string => /^\[([^\]]+)\]/.exec(name)?.[1] ?? 'other';

/**
 * The whole name as a regular expression that matches it and nothing longer, but for the tags that a name may end with.
 */
export const focusOf = (name: string): string =>
  `${name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&').replaceAll(' ', '\\s+')}(\\s+\\[Conformance\\])?\\s*$`;

/** One line per area, and the total. */
export function summaryOf(results: readonly TestResult[]): readonly string[] {
  const areas = [...new Set(results.map(({ name }) => areaOf(name)))].sort();
  const count = (of: readonly TestResult[], outcome: Outcome) => of.filter((each) => each.outcome === outcome).length;
  const line = (label: string, of: readonly TestResult[]): string =>
    `${label.padEnd(22)} ${count(of, 'passed')} passed, ${count(of, 'failed')} failed, ${count(of, 'skipped')} skipped`;
  return [
    ...areas.map((area) =>
      line(
        area,
        results.filter(({ name }) => areaOf(name) === area),
      ),
    ),
    line('all', results),
  ];
}
