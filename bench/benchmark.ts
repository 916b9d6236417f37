import { setTimeout as pause } from 'node:timers/promises';
import { type ParseArgsConfig, parseArgs } from 'node:util';

/** A benchmark: a function that reports figures. Names carry the units: beatsPerSecond, p99Ms, sizeBytes. */
export type Figures = Readonly<Record<string, string | number | boolean | undefined>>;

export type Report = (figures: Figures) => void;

export interface Benchmark {
  readonly name: string;
  /** One line for the list. */
  readonly about: string;
  /** Its options, as on the command line. Absent: none. */
  readonly usage?: string;
  /** Runs only when named, because it needs many minutes. */
  readonly onlyByName?: boolean;
  /** Options with which it ends after about a second. benches.test.ts runs it so. */
  readonly smallest?: readonly string[];
  /** Starts a local mode, unless `--kubeconfig` names a running cluster. */
  readonly startsLocalMode?: boolean;
  /** `options`: the arguments after its name. @throws UsageError */
  run(report: Report, options: readonly string[]): Promise<void>;
}

/** The options cannot be read; the message states why. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

type OptionShapes = NonNullable<ParseArgsConfig['options']>;

/** Options as `--name value`, without positional arguments. @throws UsageError */
export function readOptions<Shapes extends OptionShapes>(words: readonly string[], options: Shapes) {
  try {
    return parseArgs({ args: [...words], options, strict: true, allowPositionals: false }).values;
  } catch (cause) {
    throw new UsageError((cause as Error).message, { cause });
  }
}

/** A whole number in a range, or the default. @throws UsageError */
export function wholeNumber(
  name: string,
  text: string | undefined,
  { least, most, otherwise }: { readonly least: number; readonly most: number; readonly otherwise: number },
): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new UsageError(`--${name} expects a whole number from ${least} to ${most}, not ${text}`);
  }
  return value;
}

/** Whole numbers separated by commas. @throws UsageError */
export function wholeNumbers(
  name: string,
  text: string | undefined,
  { least, most, otherwise }: { readonly least: number; readonly most: number; readonly otherwise: readonly number[] },
): readonly number[] {
  return text === undefined
    ? otherwise
    : text.split(',').map((part) => wholeNumber(name, part, { least, most, otherwise: least }));
}

/** The part of this name, or all of them in order. @throws UsageError */
export function oneOrAll<Part>(
  name: string,
  text: string | undefined,
  parts: Readonly<Record<string, Part>>,
): readonly Part[] {
  if (text === undefined) return Object.values(parts);
  const part = Object.hasOwn(parts, text) ? parts[text] : undefined;
  if (part === undefined)
    throw new UsageError(`--${name} expects one of ${Object.keys(parts).join(', ')}, not ${text}`);
  return [part];
}

/** Rounded to significant digits: more digits would suggest a precision that a shared machine does not have. */
export const rounded = (value: number, digits = 4): number => Number(value.toPrecision(digits));

/** The value below which this share of the samples lies. The samples may be in any order. */
export function percentile(samples: readonly number[], share: number): number {
  if (samples.length === 0) return Number.NaN;
  const ordered = Float64Array.from(samples).sort();
  return ordered[Math.min(ordered.length - 1, Math.max(0, Math.ceil(share * ordered.length) - 1))]!;
}

const LOOK_EVERY_MS = 100;

/** Seconds until the condition holds; undefined after the time limit. */
export async function secondsUntil(holds: () => boolean, limitMs: number): Promise<number | undefined> {
  const startedMs = performance.now();
  while (!holds()) {
    if (performance.now() - startedMs > limitMs) return undefined;
    await pause(LOOK_EVERY_MS);
  }
  return rounded((performance.now() - startedMs) / 1_000);
}
