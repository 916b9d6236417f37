/** `quantity()` and `semver()` of Kubernetes (k8s.io/apiserver, pkg/cel/library/quantity.go and semverlib.go). */

import { compareQuantities, parseQuantity, type Quantity } from '../quantity.ts';
import { type Declaration, declare, readsFirst } from './functions.ts';
import { CelFailure, CelOpaque, type CelValue } from './values.ts';

const NANO = 1_000_000_000n;
const QUANTITY = 'kubernetes.Quantity';
const SEMVER = 'kubernetes.Semver';

class CelQuantity extends CelOpaque {
  readonly typeName = QUANTITY;
  readonly quantity: Quantity;
  constructor(quantity: Quantity) {
    super();
    this.quantity = quantity;
  }
  equals(other: CelOpaque): boolean {
    return other instanceof CelQuantity && compareQuantities(this.quantity, other.quantity) === 0;
  }
}

function quantityOf(text: string): CelValue {
  const parsed = parseQuantity(text);
  return parsed.kind === 'parsed' ? new CelQuantity(parsed.quantity) : new CelFailure(parsed.message);
}

function integerOf({ quantity: { nanos } }: CelQuantity): bigint | undefined {
  const whole = nanos / NANO;
  return nanos % NANO === 0n && whole === BigInt.asIntN(64, whole) ? whole : undefined;
}

/** A sum has the format of its first part, or of the second one if that is zero. */
function sum(one: CelQuantity, other: Quantity, sign: bigint): CelValue {
  const { nanos, format } = one.quantity;
  return new CelQuantity({ nanos: nanos + sign * other.nanos, format: nanos === 0n ? other.format : format });
}

const fromInt = (value: bigint): Quantity => ({ nanos: value * NANO, format: 'exponent' });

const compared = (one: CelQuantity, other: CelQuantity): number => compareQuantities(one.quantity, other.quantity);

const quantities: readonly Declaration[] = [
  declare('quantity', `string -> ${QUANTITY}`, quantityOf, readsFirst),
  declare('isQuantity', 'string -> bool', (text: string) => parseQuantity(text).kind === 'parsed', readsFirst),
  declare('.sign', `${QUANTITY} -> int`, signOf),
  declare(
    '.isGreaterThan',
    `${QUANTITY},${QUANTITY} -> bool`,
    (one: CelQuantity, other: CelQuantity) => compared(one, other) > 0,
  ),
  declare(
    '.isLessThan',
    `${QUANTITY},${QUANTITY} -> bool`,
    (one: CelQuantity, other: CelQuantity) => compared(one, other) < 0,
  ),
  declare('.compareTo', `${QUANTITY},${QUANTITY} -> int`, (one: CelQuantity, other: CelQuantity) =>
    BigInt(compared(one, other)),
  ),
  declare('.asApproximateFloat', `${QUANTITY} -> double`, ({ quantity: { nanos } }: CelQuantity) =>
    nanos % NANO === 0n ? Number(nanos / NANO) : Number(nanos) / 1e9,
  ),
  declare(
    '.asInteger',
    `${QUANTITY} -> int`,
    (value: CelQuantity) => integerOf(value) ?? new CelFailure('cannot convert value to integer'),
  ),
  declare('.isInteger', `${QUANTITY} -> bool`, (value: CelQuantity) => integerOf(value) !== undefined),
  declare('.add', `${QUANTITY},${QUANTITY} -> ${QUANTITY}`, (one: CelQuantity, other: CelQuantity) =>
    sum(one, other.quantity, 1n),
  ),
  declare('.add', `${QUANTITY},int -> ${QUANTITY}`, (one: CelQuantity, other: bigint) => sum(one, fromInt(other), 1n)),
  declare('.sub', `${QUANTITY},${QUANTITY} -> ${QUANTITY}`, (one: CelQuantity, other: CelQuantity) =>
    sum(one, other.quantity, -1n),
  ),
  declare('.sub', `${QUANTITY},int -> ${QUANTITY}`, (one: CelQuantity, other: bigint) => sum(one, fromInt(other), -1n)),
];

function signOf({ quantity: { nanos } }: CelQuantity): bigint {
  return nanos === 0n ? 0n : nanos < 0n ? -1n : 1n;
}

class CelSemver extends CelOpaque {
  readonly typeName = SEMVER;
  readonly numbers: readonly bigint[];
  readonly preRelease: readonly string[];
  constructor(numbers: readonly bigint[], preRelease: readonly string[]) {
    super();
    this.numbers = numbers;
    this.preRelease = preRelease;
  }
  equals(other: CelOpaque): boolean {
    return other instanceof CelSemver && compareVersions(this, other) === 0;
  }
}

const NUMBER = '(0|[1-9]\\d{0,19})';
const IDENTIFIERS = '[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*';
const VERSION = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-(${IDENTIFIERS}))?(?:\\+(${IDENTIFIERS}))?$`);

function parseVersion(text: string): CelSemver | undefined {
  const match = VERSION.exec(text);
  if (match === null) return undefined;
  const numbers = match.slice(1, 4).map(BigInt);
  const preRelease = match[4]?.split('.') ?? [];
  const isOrdered = preRelease.every((each) => !/^0\d+$/.test(each));
  return isOrdered && numbers.every((each) => each < 2n ** 64n) ? new CelSemver(numbers, preRelease) : undefined;
}

/** A version with a leading v, leading zeros, or without its last numbers. */
function normalized(text: string): string {
  const parts = text.replace(/^v/, '').split('.');
  const [major = '', minor, ...rest] = parts;
  const short = [major, ...(minor === undefined ? [] : [minor]), ...(rest.length === 0 ? [] : [rest.join('.')])];
  const trimmed = short.map((part) => part.replace(/^0+(?=\d)/, ''));
  if (trimmed.length < 3 && /[+-]/.test(trimmed.at(-1) ?? '')) return '';
  while (trimmed.length < 3) trimmed.push('0');
  return trimmed.join('.');
}

function compareVersions(one: CelSemver, other: CelSemver): number {
  for (const [i, number] of one.numbers.entries()) {
    const right = other.numbers[i] as bigint;
    if (number !== right) return number < right ? -1 : 1;
  }
  if (one.preRelease.length === 0 || other.preRelease.length === 0) {
    return Math.sign(other.preRelease.length - one.preRelease.length) === 0 ? 0 : one.preRelease.length === 0 ? 1 : -1;
  }
  for (const [i, left] of one.preRelease.entries()) {
    const right = other.preRelease[i];
    if (right === undefined) return 1;
    const order = compareIdentifiers(left, right);
    if (order !== 0) return order;
  }
  return one.preRelease.length < other.preRelease.length ? -1 : 0;
}

function compareIdentifiers(left: string, right: string): number {
  if (left === right) return 0;
  const areNumbers = [/^\d+$/.test(left), /^\d+$/.test(right)];
  if (areNumbers[0] && areNumbers[1]) return BigInt(left) < BigInt(right) ? -1 : BigInt(left) > BigInt(right) ? 1 : 0;
  if (areNumbers[0] !== areNumbers[1]) return areNumbers[0] ? -1 : 1;
  return left < right ? -1 : 1;
}

const versionOf = (text: string, isLoose = false): CelSemver | undefined =>
  parseVersion(isLoose ? normalized(text) : text);
const semver = (text: string, isLoose?: boolean): CelValue =>
  versionOf(text, isLoose) ?? new CelFailure(`Invalid semantic version: ${text}`);
const isSemver = (text: string, isLoose?: boolean): boolean => versionOf(text, isLoose) !== undefined;

const part = (name: string, i: number): Declaration =>
  declare(name, `${SEMVER} -> int`, ({ numbers }: CelSemver) => numbers[i] as bigint);

const versions: readonly Declaration[] = [
  declare('semver', `string -> ${SEMVER}`, semver, readsFirst),
  declare('semver', `string,bool -> ${SEMVER}`, semver, readsFirst),
  declare('isSemver', 'string -> bool', isSemver, readsFirst),
  declare('isSemver', 'string,bool -> bool', isSemver, readsFirst),
  declare(
    '.isGreaterThan',
    `${SEMVER},${SEMVER} -> bool`,
    (one: CelSemver, other: CelSemver) => compareVersions(one, other) > 0,
  ),
  declare(
    '.isLessThan',
    `${SEMVER},${SEMVER} -> bool`,
    (one: CelSemver, other: CelSemver) => compareVersions(one, other) < 0,
  ),
  declare('.compareTo', `${SEMVER},${SEMVER} -> int`, (one: CelSemver, other: CelSemver) =>
    BigInt(compareVersions(one, other)),
  ),
  part('.major', 0),
  part('.minor', 1),
  part('.patch', 2),
];

export const quantityFunctions: readonly Declaration[] = [...quantities, ...versions];
