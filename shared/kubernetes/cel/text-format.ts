/** `'%s is %d'.format([a, b])` and `strings.quote` (cel-go, ext/strings.go and ext/formatting.go). */

import { doubleText } from './standard.ts';
import { durationText, timestampText } from './times.ts';
import {
  CelDuration,
  CelFailure,
  CelMap,
  CelOptional,
  CelTimestamp,
  CelTypeName,
  CelUint,
  type CelValue,
  isList,
  numberOf,
  typeNameOf,
} from './values.ts';

const SIMPLE: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: what Go escapes
const ESCAPED = /[\x07\b\f\n\r\t\v\\"]/g;

/** A text in quotes, with escapes. Unpaired surrogates become the replacement character. */
export const quoted = (text: string): string =>
  `"${text.toWellFormed().replace(ESCAPED, (each) => SIMPLE[each] ?? each)}"`;

const CLAUSE = /%(?:\.(\d*))?(.?)/gsu;

/** Digits after the point. Larger ones make texts that no cost charges. */
const PRECISION_MAX = 1_000;

export function formatText(format: string, args: readonly CelValue[]): CelValue {
  let next = 0;
  let failure: CelFailure | undefined;
  const text = format.replace(CLAUSE, (clause, digits: string | undefined, verb: string) => {
    if (failure !== undefined) return '';
    if (clause === '%%') return '%';
    const arg = args[next];
    next += 1;
    if (arg === undefined) {
      failure = new CelFailure(`index ${next - 1} out of range`);
      return '';
    }
    const written = formatted(verb, arg, digits);
    if (typeof written === 'string') return written;
    failure = written;
    return '';
  });
  return failure ?? text;
}

function formatted(verb: string, arg: CelValue, digits: string | undefined): string | CelFailure {
  if (digits !== undefined && (digits === '' || Number(digits) > PRECISION_MAX)) {
    return new CelFailure(`could not parse formatting clause: error while parsing precision: ${digits}`);
  }
  const precision = digits === undefined ? 6 : Number(digits);
  switch (verb) {
    case 's':
      return plain(arg);
    case 'd':
      return decimal(arg);
    case 'f':
      return real(arg, 'f', (value) => fixed(value, Math.min(100, precision)));
    case 'e':
      return real(arg, 'e', (value) => value.toExponential(Math.min(100, precision)).replace(/e([+-])(\d)$/, 'e$10$2'));
    case 'b':
      if (typeof arg === 'boolean') return arg ? '1' : '0';
      return whole(arg, 'b', 2, 'only ints, uints and bools can be formatted as binary; the argument is');
    case 'o':
      return whole(arg, 'o', 8, 'only ints and uints can be formatted as octal; the argument is');
    case 'x':
      return hexadecimal(arg);
    case 'X': {
      const written = hexadecimal(arg);
      return typeof written === 'string' ? written.toUpperCase() : written;
    }
    default:
      return new CelFailure(
        verb === ''
          ? 'unexpected end of string'
          : `could not parse formatting clause: unrecognized formatting clause "${verb}"`,
      );
  }
}

const refused = (why: string, arg: CelValue): CelFailure =>
  new CelFailure(`error during formatting: ${why} ${typeNameOf(arg)}`);

const special = (value: number): string | undefined =>
  Number.isFinite(value) ? undefined : Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';

function decimal(arg: CelValue): string | CelFailure {
  const number = numberOf(arg);
  if (typeof number === 'bigint') return String(number);
  if (typeof number === 'number') return special(number) ?? doubleText(number);
  return refused('decimal clause can only be used on ints, uints, and doubles; the argument is', arg);
}

function real(arg: CelValue, verb: string, write: (value: number) => string): string | CelFailure {
  const number = numberOf(arg);
  if (number === undefined) {
    const name = verb === 'f' ? 'fixed-point' : 'scientific notation';
    return refused(`${name} clause can only be used on ints, uints, and doubles, the argument is`, arg);
  }
  const value = Number(number);
  return special(value) ?? write(value);
}

/** Exact ties go to the even digit, as in Go. JavaScript rounds them up. */
function fixed(value: number, digits: number): string {
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}${digits === 0 ? '' : `.${'0'.repeat(digits)}`}`;
  const exact = value.toFixed(100);
  const cut = exact.slice(0, exact.length - 100 + (digits === 0 ? -1 : digits));
  const isTie = /^5?0*$/.test(exact.slice(exact.length - 100 + digits)) && exact[exact.length - 100 + digits] === '5';
  return isTie && /[02468]\.?$/.test(cut) ? cut : value.toFixed(digits);
}

function whole(arg: CelValue, _verb: string, radix: number, why: string): string | CelFailure {
  const number = numberOf(arg);
  return typeof number === 'bigint' ? number.toString(radix) : refused(why, arg);
}

function hexadecimal(arg: CelValue): string | CelFailure {
  if (typeof arg === 'string') return Buffer.from(arg).toString('hex');
  if (arg instanceof Uint8Array) return Buffer.from(arg).toString('hex');
  return whole(arg, 'x', 16, 'only ints, uints, bytes, and strings can be formatted as hex; the argument is');
}

/** Nested lists and maps in a text. */
const NESTING_MAX = 100;

function plain(arg: CelValue, nesting = 0): string | CelFailure {
  switch (typeof arg) {
    case 'string':
      return arg;
    case 'boolean':
    case 'bigint':
      return String(arg);
    case 'number':
      return special(arg) ?? doubleText(arg);
    default:
  }
  if (arg === null) return 'null';
  if (arg instanceof CelUint) return String(arg.value);
  if (arg instanceof Uint8Array) return Buffer.from(arg).toString('utf8');
  if (arg instanceof CelTimestamp) return timestampText(arg);
  if (arg instanceof CelDuration) return durationText(arg);
  if (arg instanceof CelTypeName) return arg.name;
  if (nesting > NESTING_MAX || arg instanceof CelOptional) return cannotFormat(arg);
  if (isList(arg))
    return joined(
      arg.map((item) => plain(item, nesting + 1)),
      '[',
      ']',
    );
  if (!(arg instanceof CelMap)) return cannotFormat(arg);
  const pairs = arg.keys().map((key) => {
    const value = plain(arg.get(key) as CelValue, nesting + 1);
    const name = plain(key, nesting + 1);
    return typeof value === 'string' && typeof name === 'string' ? `${name}: ${value}` : value;
  });
  return joined(pairs, '{', '}', true);
}

const cannotFormat = (arg: CelValue): CelFailure =>
  refused(
    'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps; the argument is',
    arg,
  );

function joined(parts: readonly (string | CelFailure)[], open: string, close: string, isSorted = false) {
  const failure = parts.find((part) => part instanceof CelFailure);
  if (failure !== undefined) return failure;
  return `${open}${(isSorted ? [...parts].sort() : parts).join(', ')}${close}`;
}
