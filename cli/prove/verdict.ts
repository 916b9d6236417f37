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

/** Errors of the caller's rights or limits. They say nothing about a fact. */
const INCONCLUSIVE =
  /^(Throttl|ProvisionedThroughput|RequestLimitExceeded|AccessDenied|Unauthorized|AuthFailure|UnrecognizedClient|ExpiredToken|RequestExpired|InvalidSignature|HTTP status 5)/;

export const isInconclusive = (error: string | undefined): error is string => INCONCLUSIVE.test(error ?? '');

export const unknown = (reason: string): Verdict => ({ verdict: 'unknown', reason });
export const holdsIf = (condition: boolean, reason: string): Verdict => ({
  verdict: condition ? 'true' : 'false',
  reason,
});
