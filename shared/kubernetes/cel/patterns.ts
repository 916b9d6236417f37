/**
 * Regular expressions with RE2's syntax, matched in time linear in the text. JavaScript's own take exponential time for
 * some.
 */

import { RE2JS } from 're2js';
import { CelFailure, type CelValue } from './values.ts';

/** Compiled patterns in memory. Expressions mostly have constant ones. */
const COMPILED_MAX = 200;
/** A repetition multiplies the program of a pattern. Characters. */
const PATTERN_LENGTH_MAX = 10_000;

const compiled = new Map<string, RE2JS | CelFailure>();

/** Why a pattern cannot be used. undefined: it can. */
export function patternFault(pattern: string): string | undefined {
  const made = compile(pattern);
  return made instanceof CelFailure ? made.message : undefined;
}

function compile(pattern: string): RE2JS | CelFailure {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  const made = compileNew(pattern);
  if (compiled.size >= COMPILED_MAX) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

function compileNew(pattern: string): RE2JS | CelFailure {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    return new CelFailure(
      `regular expression of ${pattern.length} characters; at most ${PATTERN_LENGTH_MAX} are allowed`,
    );
  }
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    return new CelFailure(error instanceof Error ? error.message : String(error));
  }
}

function using(pattern: string, match: (compiledPattern: RE2JS) => CelValue): CelValue {
  const made = compile(pattern);
  return made instanceof CelFailure ? made : match(made);
}

export const matchesPattern = (text: string, pattern: string): CelValue =>
  using(pattern, (made) => made.matcher(text).find());

/** The first match, '' if there is none. */
export const findPattern = (text: string, pattern: string): CelValue =>
  using(pattern, (made) => {
    const matcher = made.matcher(text);
    return matcher.find() ? (matcher.group() ?? '') : '';
  });

/** @param countMax negative: all */
export const findAllPattern = (text: string, pattern: string, countMax = -1n): CelValue =>
  using(pattern, (made) => {
    const found: string[] = [];
    const matcher = made.matcher(text);
    while ((countMax < 0n || BigInt(found.length) < countMax) && matcher.find()) found.push(matcher.group() ?? '');
    return found;
  });
