/** Arithmetic on lists of amounts. Source: k8s.io/apiserver pkg/quota/v1/resources.go. */
import { compareQuantities, formatQuantity, parseQuantity, type Quantity } from '../../kubernetes/quantity.ts';
import type { ResourceList } from '../types.ts';

/** Amounts by resource name. */
export type Amounts = ReadonlyMap<string, Quantity>;

const ZERO: Quantity = { nanos: 0n, format: 'decimal' };
const NANOS = 1_000_000_000n;

export const whole = (count: number): Quantity => ({ nanos: BigInt(count) * NANOS, format: 'decimal' });

/** Texts that are no quantities are left out. */
export function amountsOf(list: ResourceList = {}): Amounts {
  const amounts = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(list)) {
    const parsed = parseQuantity(String(text));
    if (parsed.kind === 'parsed') amounts.set(name, parsed.quantity);
  }
  return amounts;
}

/** Names are in order: equal amounts have equal texts. */
export const listOf = (amounts: Amounts): ResourceList =>
  Object.fromEntries(namesOf(amounts).map((name) => [name, formatQuantity(amounts.get(name) ?? ZERO)]));

export const namesOf = (amounts: Amounts): readonly string[] => [...amounts.keys()].sort();

/** The sum has the suffixes of the first amount that is not zero. */
const sumOf = (one: Quantity, other: Quantity): Quantity => ({
  nanos: one.nanos + other.nanos,
  format: one.nanos === 0n ? other.format : one.format,
});

export function add(one: Amounts, other: Amounts): Amounts {
  const sums = new Map(one);
  for (const [name, amount] of other) sums.set(name, sumOf(sums.get(name) ?? ZERO, amount));
  return sums;
}

export function highest(one: Amounts, other: Amounts): Amounts {
  const amounts = new Map(one);
  for (const [name, amount] of other) {
    const found = amounts.get(name);
    if (found === undefined || compareQuantities(found, amount) < 0) amounts.set(name, amount);
  }
  return amounts;
}

/** What `next` has more than `before`, by name. Names without an increase are left out. */
export function increaseOf(next: Amounts, before: Amounts): Amounts {
  const increases = new Map<string, Quantity>();
  for (const [name, amount] of next) {
    const nanos = amount.nanos - (before.get(name)?.nanos ?? 0n);
    if (nanos > 0n) increases.set(name, { nanos, format: amount.format });
  }
  return increases;
}

export function only(amounts: Amounts, names: readonly string[]): Amounts {
  return new Map([...amounts].filter(([name]) => names.includes(name)));
}

/** Names with more than their limit, in order. */
export const namesAbove = (amounts: Amounts, limits: Amounts): readonly string[] =>
  namesOf(amounts).filter((name) => {
    const limit = limits.get(name);
    return limit !== undefined && compareQuantities(amounts.get(name) ?? ZERO, limit) > 0;
  });

/** `cpu=500m,memory=1Gi`, as in messages. */
export const textOf = (amounts: Amounts): string =>
  namesOf(amounts)
    .map((name) => `${name}=${formatQuantity(amounts.get(name) ?? ZERO)}`)
    .join(',');
