/** Kubernetes' functions on lists and texts, and named formats (k8s.io/apiserver, pkg/cel/library). */

import {
  dns1035LabelErrors,
  labelName,
  labelValueErrors,
  type NameRule,
  qualifiedNameErrors,
  subdomainName,
} from '../validate-metadata.ts';
import { isUri } from './addresses.ts';
import { type Declaration, declare, matchCost, readsFirst, traversal } from './functions.ts';
import { findAllPattern, findPattern } from './patterns.ts';
import { asDuration } from './standard.ts';
import { parseTimestamp } from './times.ts';
import {
  CelDuration,
  CelFailure,
  CelOpaque,
  CelOptional,
  CelUint,
  type CelValue,
  celCompare,
  celEqual,
  isList,
  NONE,
} from './values.ts';

const COMPARABLE = [
  'int',
  'uint',
  'double',
  'bool',
  'google.protobuf.Duration',
  'google.protobuf.Timestamp',
  'string',
  'bytes',
];

type List = readonly CelValue[];

function isSorted(list: List): CelValue {
  for (let i = 1; i < list.length; i += 1) {
    const sign = celCompare(list[i - 1] as CelValue, list[i] as CelValue);
    if (typeof sign !== 'number') return new CelFailure('no such overload');
    if (sign > 0) return false;
  }
  return true;
}

const extreme =
  (name: string, wanted: -1 | 1) =>
  (list: List): CelValue => {
    let [best] = list;
    if (best === undefined) return new CelFailure(`${name} called on empty list`);
    for (const item of list) {
      const sign = celCompare(item, best);
      if (typeof sign !== 'number') return new CelFailure('no such overload');
      if (Math.sign(sign) === wanted) best = item;
    }
    return best;
  };

/** The values of one type that a sum adds: each with the sum so far. */
function sum(list: List): CelValue {
  const [first] = list;
  if (first === undefined) return 0n;
  let total = first;
  for (const item of list.slice(1)) {
    const next = added(total, item);
    if (next instanceof CelFailure) return next;
    total = next;
  }
  return total;
}

function added(one: CelValue, other: CelValue): CelValue {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  if (typeof one === 'bigint' && typeof other === 'bigint') {
    const total = one + other;
    return total === BigInt.asIntN(64, total) ? total : new CelFailure('integer overflow');
  }
  if (one instanceof CelUint && other instanceof CelUint) {
    const total = one.value + other.value;
    return total === BigInt.asUintN(64, total) ? new CelUint(total) : new CelFailure('unsigned integer overflow');
  }
  if (one instanceof CelDuration && other instanceof CelDuration) return asDuration(one.nanos + other.nanos);
  return new CelFailure('no such overload');
}

const ofComparable = (name: string, result: (type: string) => string, call: (list: List) => CelValue): Declaration[] =>
  COMPARABLE.map((type) => declare(name, `list<${type}> -> ${result(type)}`, call, readsFirst));

const indexOf = (list: List, item: CelValue): bigint => BigInt(list.findIndex((each) => celEqual(each, item)));
const lastIndexOf = (list: List, item: CelValue): bigint => BigInt(list.findLastIndex((each) => celEqual(each, item)));

const includes = (whole: CelValue, item: CelValue): boolean =>
  isList(whole) ? whole.some((each) => celEqual(each, item)) : celEqual(whole, item);

const lists: readonly Declaration[] = [
  ...ofComparable('.isSorted', () => 'bool', isSorted),
  ...ofComparable('.max', (type) => type, extreme('max', 1)),
  ...ofComparable('.min', (type) => type, extreme('min', -1)),
  ...['int', 'uint', 'double', 'google.protobuf.Duration'].map((type) =>
    declare('.sum', `list<${type}> -> ${type}`, sum, readsFirst),
  ),
  declare('.indexOf', 'list<A>,A -> int', indexOf, readsFirst),
  declare('.lastIndexOf', 'list<A>,A -> int', lastIndexOf, readsFirst),
  declare('.includes', 'dyn,dyn -> bool', includes, readsFirst),
];

const patterns: readonly Declaration[] = [
  declare('.find', 'string,string -> string', findPattern, matchCost),
  declare('.findAll', 'string,string -> list<string>', findAllPattern, matchCost),
  declare('.findAll', 'string,string,int -> list<string>', findAllPattern, matchCost),
];

const FORMAT = 'kubernetes.NamedFormat';

class CelFormat extends CelOpaque {
  readonly typeName = FORMAT;
  readonly name: string;
  readonly errorsOf: (text: string) => readonly string[];
  /** A validation is charged as if it were a regular expression of this length. */
  readonly patternLength: number;
  constructor(name: string, patternLength: number, errorsOf: (text: string) => readonly string[]) {
    super();
    this.name = name;
    this.errorsOf = errorsOf;
    this.patternLength = patternLength;
  }
  equals(other: CelOpaque): boolean {
    return other instanceof CelFormat && this.name === other.name;
  }
}

const matching = (isValid: (text: string) => boolean, error: string) => (text: string) =>
  isValid(text) ? [] : [error];

const whole = (rule: NameRule) => (text: string) => rule(text, false);
/** Something follows the text. */
const prefix = (rule: NameRule) => (text: string) => rule(text, true);

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const isDate = (text: string): boolean => parseTimestamp(`${text}T00:00:00Z`) !== undefined;

const FORMATS = new Map(
  (
    [
      ['dns1123Label', 30, whole(labelName)],
      ['dns1123Subdomain', 60, whole(subdomainName)],
      ['dns1035Label', 30, dns1035LabelErrors],
      ['qualifiedName', 60, qualifiedNameErrors],
      ['dns1123LabelPrefix', 30, prefix(labelName)],
      ['dns1123SubdomainPrefix', 60, prefix(subdomainName)],
      ['dns1035LabelPrefix', 30, prefix((name) => dns1035LabelErrors(name.replace(/-$/, 'a')))],
      ['labelValue', 40, labelValueErrors],
      ['uri', 1_103, matching(isUri, 'invalid URI for request')],
      ['uuid', 54, matching((text) => UUID.test(text), 'does not match the UUID format')],
      ['byte', 84, matching((text) => text !== '' && BASE64.test(text), 'invalid base64')],
      ['date', 109, matching(isDate, 'invalid date')],
      ['datetime', 109, matching((text) => parseTimestamp(text) !== undefined, 'invalid datetime')],
    ] as const
  ).map(([name, patternLength, errorsOf]) => [name as string, new CelFormat(name, patternLength, errorsOf)] as const),
);

function namedFormat(name: string): CelValue {
  const format = FORMATS.get(name);
  return format === undefined ? NONE : new CelOptional(format);
}

function validate(format: CelFormat, text: string): CelValue {
  const errors = format.errorsOf(text);
  return errors.length === 0 ? NONE : new CelOptional(errors);
}

const formats: readonly Declaration[] = [
  declare('format.named', `string -> optional<${FORMAT}>`, namedFormat),
  declare('.validate', `${FORMAT},string -> optional<list<string>>`, validate, ([format, text = '']) =>
    format instanceof CelFormat
      ? Math.ceil((1 + String(text).length) * 0.1) * Math.ceil(format.patternLength * 0.25)
      : traversal(text),
  ),
  ...[...FORMATS].map(([name, format]) => declare(`format.${name}`, `-> ${FORMAT}`, () => format)),
];

export const kubernetesFunctions: readonly Declaration[] = [...lists, ...patterns, ...formats];
