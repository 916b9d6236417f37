/** What a measurement says about a fact. */
export interface Verdict {
  readonly verdict: 'true' | 'false' | 'unknown';
  /** What was measured, in words. */
  readonly reason: string;
}

export interface Fact<Measured> {
  /** One sentence, as this project relies on it. */
  readonly sentence: string;
  /** The page of AWS, or who observed it. */
  readonly source: string;
  readonly expected: string;
  /** Pure. */
  readonly evaluate: (measured: Measured) => Verdict;
}

/** For tables that list facts of different measurements. */
export const fact = <Measured>(one: Fact<Measured>): Fact<Measured> => one;

export const unknown = (reason: string): Verdict => ({ verdict: 'unknown', reason });
export const holdsIf = (condition: boolean, reason: string): Verdict => ({
  verdict: condition ? 'true' : 'false',
  reason,
});
