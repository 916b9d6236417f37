/** Regular expressions of expressions. Most are constants, so the compiled ones are kept. */

import { compilePattern } from '../../patterns.ts';
import { CelFailure, type CelValue } from './values.ts';

/** Compiled patterns in memory. */
const COMPILED_MAX = 200;

type Compiled = ReturnType<typeof compilePattern>;

const compiled = new Map<string, Compiled>();

function compile(pattern: string): Compiled {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  const made = compilePattern(pattern);
  if (compiled.size >= COMPILED_MAX) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

/** Why a pattern cannot be used. undefined: it can. */
export function patternFault(pattern: string): string | undefined {
  const made = compile(pattern);
  return made.kind === 'malformed' ? made.message : undefined;
}

type Usable = Extract<Compiled, { kind: 'compiled' }>;

function using(pattern: string, match: (usable: Usable) => CelValue): CelValue {
  const made = compile(pattern);
  return made.kind === 'malformed' ? new CelFailure(made.message) : match(made);
}

export const matchesPattern = (text: string, pattern: string): CelValue =>
  using(pattern, ({ matches }) => matches(text));

/** The first match, '' if there is none. */
export const findPattern = (text: string, pattern: string): CelValue =>
  using(pattern, ({ find }) => find(text, 1)[0] ?? '');

/** @param countMax negative: all */
export const findAllPattern = (text: string, pattern: string, countMax = -1n): CelValue =>
  using(pattern, ({ find }) => find(text, countMax < 0n ? Number.POSITIVE_INFINITY : Number(countMax)));
