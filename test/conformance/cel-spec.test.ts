/**
 * The conformance tests of cel-spec, which @bufbuild/cel-spec carries, against the expressions of Kubernetes. Cases
 * about what Kubernetes' expressions do not have are left out, each for a reason. Every other case holds.
 */

import {
  getConformanceSuite,
  type IncrementalTest,
  type IncrementalTestSuite,
} from '@bufbuild/cel-spec/testdata/tests.js';
import { describe, expect, it } from 'vitest';
import { checkTypes } from '../../shared/kubernetes/cel/check.ts';
import type { Environment } from '../../shared/kubernetes/cel/environment.ts';
import { celFunctions } from '../../shared/kubernetes/cel/expressions.ts';
import { compile, Run } from '../../shared/kubernetes/cel/interpret.ts';
import { parseExpression } from '../../shared/kubernetes/cel/parse.ts';
import type { Issue } from '../../shared/kubernetes/cel/syntax.ts';
import { type CelType, DYN } from '../../shared/kubernetes/cel/types.ts';
import {
  CelDuration,
  CelFailure,
  CelMap,
  CelTimestamp,
  CelTypeName,
  CelUint,
  type CelValue,
  celEqual,
  isList,
  typeNameOf,
} from '../../shared/kubernetes/cel/values.ts';

type SimpleTest = IncrementalTest['original'];
type Wire = Extract<SimpleTest['resultMatcher'], { case: 'value' }>['value'];

const MESSAGES = 'messages and enumerations of Protocol Buffers: objects of Kubernetes are maps';
const LEFT_OUT: readonly (readonly [string, (test: SimpleTest, suite: string) => boolean])[] = [
  ['library math', ({ expr }) => expr.includes('math.')],
  ['library bindings and blocks', ({ expr }) => /\bcel\.(bind|block|iterVar|index)\b/.test(expr)],
  ['library encoders', ({ expr }) => expr.includes('base64.')],
  ['library proto', ({ expr }) => expr.includes('proto.')],
  ['quoted identifiers: EnableIdentifierEscapeSyntax is off', ({ expr }) => expr.includes('.`')],
  ['containers and variables with dots in their names', isQualified],
  [MESSAGES, isAboutMessages],
  ['functions that the case declares', ({ typeEnv }) => typeEnv.some(({ declKind }) => declKind.case === 'function')],
];

function isQualified({ container, typeEnv, bindings }: SimpleTest): boolean {
  const names = [...typeEnv.map(({ name }) => name), ...Object.keys(bindings)];
  return container === 'x' || names.some((name) => name.includes('.'));
}

const MESSAGE_NAMES =
  /TestAllTypes|TestRequired|GlobalEnum|NestedEnum|\b(?:Bool|Int32|Int64|UInt32|UInt64|Float|Double|String|Bytes)Value\b|google\.protobuf\.(?:Any|Struct|Value|ListValue|\w+Value|Empty|FieldMask|NullValue)|\b(?:Value|Struct|ListValue|Any)\{|cel\.expr\.conformance/;

function isAboutMessages({ expr, container, typeEnv, bindings, resultMatcher }: SimpleTest): boolean {
  const text = JSON.stringify([typeEnv, bindings, resultMatcher], (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return (
    MESSAGE_NAMES.test(expr) ||
    (container.startsWith('cel.expr') && /msg|Enum|\bx\b/.test(expr)) ||
    /cel\.expr\.conformance\.proto|"enumValue"|type\.googleapis\.com\/(?!google\.protobuf\.(?:Timestamp|Duration)")/.test(
      text,
    ) ||
    /"wrapper"/.test(text)
  );
}

/** A field of a Timestamp or Duration message: seconds, then nanoseconds, as varints. */
function secondsAndNanos(bytes: Uint8Array): bigint {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at] as number;
      at += 1;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  };
  let total = 0n;
  while (at < bytes.length) total += varint() >> 3n === 1n ? varint() * 1_000_000_000n : BigInt.asIntN(32, varint());
  return total;
}

function celValueOf({ kind }: Wire): CelValue {
  switch (kind.case) {
    case 'uint64Value':
      return new CelUint(kind.value);
    case 'listValue':
      return kind.value.values.map(celValueOf);
    case 'mapValue':
      return CelMap.of(
        kind.value.entries.map(({ key, value }) => [celValueOf(key as Wire), celValueOf(value as Wire)]),
      );
    case 'typeValue':
      return new CelTypeName(kind.value);
    case 'nullValue':
      return null;
    case 'objectValue': {
      const nanos = secondsAndNanos(kind.value.value);
      return kind.value.typeUrl.endsWith('Timestamp') ? new CelTimestamp(nanos) : new CelDuration(nanos);
    }
    default:
      return kind.value as CelValue;
  }
}

/** Equal, of the same types. NaN equals itself here. */
function isSame(one: CelValue, other: CelValue): boolean {
  if (typeof one === 'number' && typeof other === 'number') return Object.is(one, other) || one === other;
  if (typeNameOf(one) !== typeNameOf(other)) return false;
  if (isList(one) && isList(other)) {
    return one.length === other.length && one.every((item, i) => isSame(item, other[i] as CelValue));
  }
  if (one instanceof CelMap && other instanceof CelMap) {
    return one.size === other.size && one.keys().every((key) => isSame(one.get(key) as CelValue, other.get(key) ?? ''));
  }
  return celEqual(one, other);
}

function environmentOf({ typeEnv, bindings }: SimpleTest): Environment {
  const names = [...typeEnv.map(({ name }) => name), ...Object.keys(bindings)];
  const variables = new Map<string, CelType>(names.map((name) => [name, DYN]));
  return { variables, functions: celFunctions, fieldsOf: () => undefined, isConstructible: () => false };
}

/** Kubernetes refuses literals of several types (HomogeneousAggregateLiterals). They are evaluated all the same. */
const isNotAboutMixtures = ({ message }: Issue): boolean => !message.startsWith("expected type '");

/** undefined: the case holds. Otherwise what is different. */
function difference(test: SimpleTest): string | undefined {
  const { resultMatcher: expected, disableCheck, checkOnly } = test;
  const wantsError = expected.case === 'evalError';
  const parsed = parseExpression(test.expr);
  if (parsed.kind === 'malformed') return wantsError ? undefined : String(parsed.issues[0]?.message);
  const environment = environmentOf(test);
  const issues = disableCheck ? [] : checkTypes(environment, parsed.expression).issues.filter(isNotAboutMixtures);
  if (issues.length > 0) return wantsError ? undefined : `does not check: ${issues[0]?.message}`;
  if (checkOnly) return undefined;
  const bindings = new Map<string, CelValue>();
  for (const [name, { kind }] of Object.entries(test.bindings)) {
    if (kind.case === 'value') bindings.set(name, celValueOf(kind.value));
  }
  const value = compile(environment, parsed.expression)(new Run((name) => bindings.get(name), 1e9));
  if (value instanceof CelFailure) return wantsError ? undefined : `fails: ${value.message}`;
  if (wantsError) return 'is no error';
  if (expected.case === undefined) return value === true ? undefined : 'is not true';
  const wanted = expected.case === 'typedResult' ? expected.value.result : expected.value;
  return wanted?.$typeName === 'cel.expr.Value' && isSame(value, celValueOf(wanted)) ? undefined : 'has another value';
}

interface Case {
  readonly name: string;
  readonly test: SimpleTest;
}

const casesIn = (suite: IncrementalTestSuite, path = ''): Case[] => [
  ...(suite.tests ?? []).map(({ original }) => ({ name: `${path}${original.name}`, test: original })),
  ...(suite.suites ?? []).flatMap((each) => casesIn(each, `${path}${each.name}/`)),
];

const reasonOf = (file: string, test: SimpleTest): string | undefined =>
  LEFT_OUT.find(([, matches]) => matches(test, file))?.[0];

const files = getConformanceSuite().suites.map((suite) => {
  const cases = casesIn(suite).map((each) => ({ ...each, reason: reasonOf(suite.name, each.test) }));
  return { name: suite.name, cases };
});

describe('cel-spec', () => {
  it.each(files)('$name', ({ name, cases }) => {
    const served = cases.filter(({ reason }) => reason === undefined);
    const failed = served.flatMap(({ name: of, test }) => {
      const different = difference(test);
      return different === undefined ? [] : [`${of}: ${test.expr}: ${different}`];
    });
    console.log(
      `${name}: ${served.length - failed.length} of ${served.length}; left out ${cases.length - served.length}`,
    );
    expect(failed).toEqual([]);
  });

  it('leaves out what Kubernetes does not have, and nothing else', () => {
    const counts = new Map<string, number>();
    for (const { reason } of files.flatMap(({ cases }) => cases)) {
      if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
    console.log(Object.fromEntries(counts));
    const total = files.reduce((sum, { cases }) => sum + cases.length, 0);
    expect({ total, leftOut: [...counts.values()].reduce((sum, each) => sum + each, 0) }).toEqual({
      total: 2344,
      leftOut: 945,
    });
  });
});
