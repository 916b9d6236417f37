/** Options of a command line. Every fault is a StartError with one line. */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { StartError } from './start-error.ts';

type Options = NonNullable<ParseArgsConfig['options']>;
type Parsed<T extends Options> = ReturnType<typeof parseArgs<{ options: T; allowNegative: true }>>['values'];

/** `--no-x` is `x: false` for an option that is on or off. */
export function optionValues<const T extends Options>(args: readonly string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args: [...args], allowNegative: true, options }).values as Parsed<T>;
  } catch (cause) {
    const [firstSentence] = (cause as Error).message.split(/\. |\n/);
    throw new StartError(`${firstSentence} (--help lists the options)`, { cause });
  }
}

export interface NumberOption {
  readonly otherwise: number;
  readonly least: number;
  readonly most: number;
}

export function wholeNumber(name: string, text: string | undefined, { otherwise, least, most }: NumberOption): number {
  if (text === undefined) return otherwise;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new StartError(`--${name} must be a whole number from ${least} to ${most}, not ${text}`);
}

/** One of these words; the first if the option is absent. */
export function oneOf<const T extends string>(
  name: string,
  value: string | undefined,
  allowed: readonly [T, ...T[]],
): T {
  if (value === undefined) return allowed[0];
  const found = allowed.find((each) => each === value);
  if (found === undefined) throw new StartError(`--${name} must be ${inWords(allowed)}, not ${value}`);
  return found;
}

/** `auto, always or never`. */
const inWords = (words: readonly string[]): string => words.join(', ').replace(/, (?=[^,]*$)/, ' or ');
