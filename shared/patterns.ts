/** Regular expressions of clients, in RE2's syntax as upstream. The time of a match is linear in the text. */
import { RE2JS } from 're2js';

/** A longer one could take seconds to compile. Characters. */
export const PATTERN_LENGTH_MAX = 10_000;

interface Matching {
  readonly kind: 'compiled';
  readonly matches: (text: string) => boolean;
}

interface Searching extends Matching {
  /** The parts of the text that match, in their order, at most so many. */
  readonly find: (text: string, countMax: number) => readonly string[];
}

interface Malformed {
  readonly kind: 'malformed';
  readonly message: string;
}

export type CompiledPattern = Matching | Malformed;

/** `matches` is true if any part of the text matches. */
export function compilePattern(pattern: string): Searching | Malformed {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    return {
      kind: 'malformed',
      message: `has ${pattern.length} characters, at most ${PATTERN_LENGTH_MAX} are allowed`,
    };
  }
  try {
    const compiled = RE2JS.compile(pattern);
    return {
      kind: 'compiled',
      matches: (text) => compiled.matcher(text).find(),
      find(text, countMax) {
        const matcher = compiled.matcher(text);
        const found: string[] = [];
        while (found.length < countMax && matcher.find()) found.push(matcher.group() ?? '');
        return found;
      },
    };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { kind: 'malformed', message: error.message };
  }
}
