/**
 * Syntax trees to functions that evaluate them, with the cost of cel-go (interpreter/runtimecost.go): one unit for a
 * variable, a selection and most calls, more for what reads texts and lists. An evaluation that exceeds its limit ends
 * with CostExceeded.
 *
 * `a && b` and `a || b`, and `all` and `exists`, ignore an error of one operand if another one decides.
 */

import { type Environment, namedType, namespacedFunction, withoutDot } from './environment.ts';
import { noSuchOverload, type Overload, overloadFor } from './functions.ts';
import type { Expression, Fold } from './syntax.ts';
import {
  CelFailure,
  CelMap,
  CelMessage,
  CelOpaque,
  CelOptional,
  CelTypeName,
  CelUint,
  type CelValue,
  comparisons,
  isList,
  NONE,
  typeNameOf,
} from './values.ts';

/** The cost of an evaluation exceeds its limit. */
export class CostExceeded extends Error {
  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/** Fields that are computed when an expression reads them. */
export abstract class CelLazyFields extends CelOpaque {
  /** undefined: there is no such field. */
  abstract read(field: string, run: Run): CelValue | undefined;
  equals(other: CelOpaque): boolean {
    return this === other;
  }
}

export type Activation = (variable: string) => CelValue | undefined;

/** One evaluation: the values of its variables, and its cost. */
export class Run {
  readonly variable: Activation;
  readonly slots: CelValue[] = [];
  readonly costMax: number;
  cost = 0;

  constructor(variable: Activation, costMax: number) {
    this.variable = variable;
    this.costMax = costMax;
  }

  /** @throws CostExceeded */
  charge(cost: number): void {
    this.cost += cost;
    if (this.cost > this.costMax) throw new CostExceeded();
  }
}

type Step = (run: Run) => CelValue;

/** The costs of literals (cel-go, common/cost.go). */
const LIST_COST = 10;
const MAP_COST = 30;
const MESSAGE_COST = 40;

/** Variables of macros in scope, by name: the place of their value. */
type Scope = ReadonlyMap<string, number>;

/** @returns what evaluates the expression; its value is never a partial one: errors are CelFailure */
export function compile(environment: Environment, expression: Expression): Step {
  let slotCount = 0;
  const newSlot = (): number => {
    slotCount += 1;
    return slotCount - 1;
  };

  /** @param isFree the variable at its root costs nothing, as where cel-go resolves it without a step of its own */
  function step(node: Expression, scope: Scope, isFree = false): Step {
    switch (node.kind) {
      case 'constant': {
        const { value } = node;
        return () => value;
      }
      case 'identifier':
        return identifier(node, scope, isFree);
      case 'select':
        return select(node, scope, isFree);
      case 'index':
        return index(node, scope, isFree);
      case 'call':
        return call(node, scope);
      case 'and':
      case 'or':
        return logical(
          node.operands.map((each) => step(each, scope)),
          node.kind === 'or',
        );
      case 'conditional': {
        const condition = step(node.condition, scope);
        const yes = step(node.yes, scope, true);
        const no = step(node.no, scope, true);
        return (run) => {
          const decided = condition(run);
          if (typeof decided === 'boolean') return decided ? yes(run) : no(run);
          return decided instanceof CelFailure ? decided : new CelFailure('no such overload');
        };
      }
      case 'list': {
        const constant = constantOf(node);
        return constant === undefined ? list(node, scope) : literal(constant, LIST_COST);
      }
      case 'map': {
        const constant = constantOf(node);
        if (constant !== undefined) return literal(constant, MAP_COST);
        const entries = node.entries.map(({ key, value, isOptional }) => ({
          key: step(key, scope),
          value: step(value, scope),
          isOptional,
        }));
        return (run) => makeMap(entries, run);
      }
      case 'message':
        return message(node, scope);
      case 'fold':
        return fold(node, scope);
      default:
        return optionalMap(node, scope);
    }
  }

  function identifier(node: Extract<Expression, { kind: 'identifier' }>, scope: Scope, isFree: boolean): Step {
    const slot = scope.get(node.name);
    const cost = isFree ? 0 : 1;
    if (slot !== undefined) {
      return (run) => {
        run.charge(cost);
        return run.slots[slot] as CelValue;
      };
    }
    const name = withoutDot(node.name);
    const type = namedType(node, (each) => environment.variables.has(each));
    if (type !== undefined) return () => new CelTypeName(type);
    return (run) => {
      run.charge(cost);
      const value = run.variable(name);
      return value === undefined ? new CelFailure(`no such attribute(s): ${name}`) : value;
    };
  }

  const isVariable = (scope: Scope) => (name: string) => scope.has(name) || environment.variables.has(name);

  function select(node: Extract<Expression, { kind: 'select' }>, scope: Scope, isFree: boolean): Step {
    const type = namedType(node, isVariable(scope));
    if (type !== undefined) return () => new CelTypeName(type);
    const operand = step(node.operand, scope, isFree);
    const { field, isTest, isOptional } = node;
    return (run) => {
      const value = operand(run);
      if (value instanceof CelFailure) return value;
      run.charge(isTest ? 0 : 1);
      const found = fieldOf(value, field, run);
      if (isTest) return hasValue(found, value);
      return isOptional && !(value instanceof CelOptional) ? optionally(found) : present(found);
    };
  }

  function index(node: Extract<Expression, { kind: 'index' }>, scope: Scope, isFree: boolean): Step {
    const operand = step(node.operand, scope, isFree);
    const key = step(node.key, scope, true);
    const { isOptional } = node;
    return (run) => {
      const value = operand(run);
      if (value instanceof CelFailure) return value;
      const at = key(run);
      if (at instanceof CelFailure) return at;
      run.charge(1);
      const found = itemOf(value, at, run);
      if (isOptional && !(value instanceof CelOptional)) return optionally(found);
      return present(found);
    };
  }

  function call(node: Extract<Expression, { kind: 'call' }>, scope: Scope): Step {
    const namespaced = namespacedFunction(environment, node, isVariable(scope));
    const name = namespaced ?? (node.target === undefined ? withoutDot(node.name) : `.${node.name}`);
    const nodes = node.target === undefined || namespaced !== undefined ? node.args : [node.target, ...node.args];
    const overloads = environment.functions.get(name) ?? [];
    return invoke(
      name,
      overloads,
      nodes.map((each) => step(each, scope)),
    );
  }

  function list(node: Extract<Expression, { kind: 'list' }>, scope: Scope): Step {
    const items = node.items.map((each) => step(each, scope));
    const { optionalItems } = node;
    return (run) => {
      const values: CelValue[] = [];
      for (const [position, item] of items.entries()) {
        const value = item(run);
        if (value instanceof CelFailure) return value;
        if (!optionalItems.has(position)) values.push(value);
        else if (!(value instanceof CelOptional)) return notOptional(position, value);
        else if (value.value !== undefined) values.push(value.value);
      }
      run.charge(LIST_COST);
      return values;
    };
  }

  function message(node: Extract<Expression, { kind: 'message' }>, scope: Scope): Step {
    const name = withoutDot(node.name);
    const fields = node.fields.map((each) => ({ ...each, value: step(each.value, scope) }));
    return (run) => {
      const values = new Map<string, CelValue>();
      for (const { name: field, value: made, isOptional } of fields) {
        const value = made(run);
        if (value instanceof CelFailure) return value;
        if (!isOptional) values.set(field, value);
        else if (!(value instanceof CelOptional)) return notOptional(field, value);
        else if (value.value !== undefined) values.set(field, value.value);
      }
      run.charge(MESSAGE_COST);
      return new CelMessage(name, values);
    };
  }

  function fold(node: Fold, scope: Scope): Step {
    const range = step(node.range, scope);
    const slots = node.variables.map(newSlot);
    const inner = new Map([...scope, ...node.variables.map((name, i) => [name, slots[i] as number] as const)]);
    const body = step(node.body, inner);
    const filter = node.filter === undefined ? undefined : step(node.filter, inner);
    const evaluate = FOLDS[node.operator];
    return (run) => {
      const value = range(run);
      if (value instanceof CelFailure) return value;
      const items = itemsOf(value, slots.length);
      if (items === undefined) return new CelFailure('no such overload');
      const result = evaluate({ run, items, slots, body, ...(filter && { filter }) });
      run.charge(1);
      return result;
    };
  }

  function optionalMap(node: Extract<Expression, { kind: 'optionalMap' }>, scope: Scope): Step {
    const operand = step(node.operand, scope);
    const slot = newSlot();
    const body = step(node.body, new Map([...scope, [node.variable, slot]]));
    return (run) => {
      const value = operand(run);
      if (value instanceof CelFailure) return value;
      if (!(value instanceof CelOptional)) return noSuchOverload('optMap', [value]);
      if (value.value === undefined) return NONE;
      run.slots[slot] = value.value;
      const result = body(run);
      return node.isFlat || result instanceof CelFailure ? result : new CelOptional(result);
    };
  }

  return step(expression, new Map());
}

/** Values of nested lists and maps that one unit of cost compares. */
const COMPARED_PER_UNIT = 10;
/** Characters of an argument that one unit of cost reads: to count code points reads a text, whatever the call. */
const CHARACTERS_PER_UNIT = 1_000;

const literal =
  (value: CelValue, cost: number): Step =>
  (run) => {
    run.charge(cost);
    return value;
  };

/** Literals of constants are made once: the cost of a literal does not grow with its items. undefined: it is none. */
function constantOf(node: Expression): CelValue | undefined {
  if (node.kind === 'constant') return node.value;
  if (node.kind === 'list' && node.optionalItems.size === 0) {
    return allOrNone(node.items.map((item) => (item.kind === 'constant' ? item.value : undefined)));
  }
  if (node.kind !== 'map' || node.entries.some(({ isOptional }) => isOptional)) return undefined;
  const keys = allOrNone(node.entries.map(({ key }) => (key.kind === 'constant' ? key.value : undefined)));
  const values = allOrNone(node.entries.map(({ value }) => (value.kind === 'constant' ? value.value : undefined)));
  return keys === undefined || values === undefined
    ? undefined
    : CelMap.of(keys.map((key, i) => [key, values[i] as CelValue]));
}

const allOrNone = (values: readonly (CelValue | undefined)[]): readonly CelValue[] | undefined =>
  values.includes(undefined) ? undefined : (values as readonly CelValue[]);

function invoke(name: string, overloads: readonly Overload[], args: readonly Step[]): Step {
  let likely: Overload | undefined;
  return (run) => {
    const values: CelValue[] = [];
    for (const arg of args) {
      const value = arg(run);
      if (value instanceof CelFailure) return value;
      if (typeof value === 'string' && value.length >= CHARACTERS_PER_UNIT) {
        run.charge(Math.floor(value.length / CHARACTERS_PER_UNIT));
      }
      values.push(value);
    }
    const overload = overloadFor(overloads, values, likely);
    if (overload === undefined) return noSuchOverload(name, values);
    likely = overload;
    const { cost } = overload;
    // The cost of most calls is known by their arguments: what is too expensive does not start.
    const isKnown = cost !== undefined && cost.length < 2;
    if (isKnown) run.charge(cost(values, null));
    const before = comparisons.count;
    const result = overload.call(...values);
    if (!isKnown) run.charge(cost === undefined ? 1 : cost(values, result));
    // cel-go compares nested values at no cost.
    const compared = comparisons.count - before;
    if (compared >= COMPARED_PER_UNIT) run.charge(Math.floor(compared / COMPARED_PER_UNIT));
    return result;
  };
}

function logical(operands: readonly Step[], deciding: boolean): Step {
  return (run) => {
    let failure: CelFailure | undefined;
    for (const operand of operands) {
      const value = operand(run);
      if (value === deciding) return deciding;
      if (value instanceof CelFailure) failure ??= value;
      else if (typeof value !== 'boolean') failure ??= new CelFailure('no such overload');
    }
    return failure ?? !deciding;
  };
}

interface EntrySteps {
  readonly key: Step;
  readonly value: Step;
  readonly isOptional: boolean;
}

function makeMap(entries: readonly EntrySteps[], run: Run): CelValue {
  const values: [CelValue, CelValue][] = [];
  for (const { key: keyOf, value: made, isOptional } of entries) {
    const key = keyOf(run);
    if (key instanceof CelFailure) return key;
    const value = made(run);
    if (value instanceof CelFailure) return value;
    if (!isOptional) values.push([key, value]);
    else if (!(value instanceof CelOptional)) return notOptional(String(key), value);
    else if (value.value !== undefined) values.push([key, value.value]);
  }
  run.charge(MAP_COST);
  return CelMap.of(values);
}

const notOptional = (place: string | number, value: CelValue): CelFailure =>
  new CelFailure(`cannot initialize optional entry '${place}' from non-optional value ${typeNameOf(value)}`);

/** Why a value has no such field or item. Unlike a failure it is no error for `has` and for optionals. */
class Missing {
  readonly why: string;
  constructor(why: string) {
    this.why = why;
  }
}

function fieldOf(value: CelValue, field: string, run: Run): CelValue | Missing {
  if (value instanceof CelMap) return orMissing(value.get(field), () => `no such key: ${field}`);
  if (value instanceof CelMessage) return orMissing(value.fields.get(field), () => `no such field '${field}'`);
  if (value instanceof CelLazyFields) return orMissing(value.read(field, run), () => `no such key: ${field}`);
  if (!(value instanceof CelOptional)) return new CelFailure('no such overload');
  if (value.value === undefined) return NONE;
  return optionally(fieldOf(value.value, field, run));
}

function itemOf(value: CelValue, key: CelValue, run: Run): CelValue | Missing {
  if (isList(value)) return listItem(value, key);
  if (value instanceof CelMap) {
    const name = typeof key;
    if (name === 'object' && !(key instanceof CelUint))
      return new CelFailure(`unsupported key type: ${typeNameOf(key)}`);
    return orMissing(value.get(key), () => `no such key: ${key instanceof CelUint ? key.value : String(key)}`);
  }
  if (value instanceof CelOptional) {
    return value.value === undefined ? NONE : optionally(itemOf(value.value, key, run));
  }
  if (typeof key === 'string' && (value instanceof CelMessage || value instanceof CelLazyFields)) {
    return fieldOf(value, key, run);
  }
  return new CelFailure('no such overload');
}

function listItem(items: readonly CelValue[], key: CelValue): CelValue | Missing {
  const number = key instanceof CelUint ? key.value : key;
  if (typeof number !== 'bigint' && !(typeof number === 'number' && Number.isInteger(number))) {
    return new CelFailure(`unsupported index type '${typeNameOf(key)}' in list`);
  }
  const at = Number(number);
  return orMissing(items[at], () => `index out of bounds: ${at}`);
}

/** null is a value. */
const orMissing = (found: CelValue | undefined, why: () => string): CelValue | Missing =>
  found === undefined ? new Missing(why()) : found;

const present = (found: CelValue | Missing): CelValue => (found instanceof Missing ? new CelFailure(found.why) : found);

const optionally = (found: CelValue | Missing): CelValue => {
  if (found instanceof Missing) return NONE;
  return found instanceof CelFailure || found instanceof CelOptional ? found : new CelOptional(found);
};

function hasValue(found: CelValue | Missing, of: CelValue): CelValue {
  if (found instanceof CelFailure) return found;
  if (of instanceof CelOptional) return found instanceof CelOptional && found.value !== undefined;
  return !(found instanceof Missing);
}

/** The values of the variables of a fold for one item. */
type Item = readonly [CelValue] | readonly [CelValue, CelValue];

/** Made one by one: a fold that ends early must not cost what it does not read. undefined: the value has no items. */
function itemsOf(range: CelValue, variableCount: number): Iterable<Item> | undefined {
  if (isList(range)) return listItems(range, variableCount);
  return range instanceof CelMap ? mapItems(range, variableCount) : undefined;
}

function* listItems(items: readonly CelValue[], variableCount: number): Iterable<Item> {
  let at = 0n;
  for (const item of items) {
    yield variableCount === 1 ? [item] : [at, item];
    at += 1n;
  }
}

function* mapItems(map: CelMap, variableCount: number): Iterable<Item> {
  for (const key of map.eachKey()) yield variableCount === 1 ? [key] : [key, map.get(key) as CelValue];
}

interface FoldRun {
  readonly run: Run;
  readonly items: Iterable<Item>;
  readonly slots: readonly number[];
  readonly body: Step;
  readonly filter?: Step;
}

function bind({ run, slots }: FoldRun, item: Item): void {
  for (const [i, slot] of slots.entries()) run.slots[slot] = item[i] as CelValue;
}

/** The costs of an iteration are those of the loops that cel-go's macros expand to. */
function quantifier(each: FoldRun, deciding: boolean): CelValue {
  const { run, items, body } = each;
  const cost = deciding ? 4 : 3;
  let failure: CelFailure | undefined;
  for (const item of items) {
    bind(each, item);
    run.charge(cost);
    const value = body(run);
    if (value === deciding) return deciding;
    if (value instanceof CelFailure) failure = value;
    else if (typeof value !== 'boolean') failure = new CelFailure('no such overload');
  }
  return failure ?? !deciding;
}

/** Whether the item counts; a failure ends the loop. */
function isKept({ run, filter }: FoldRun): boolean | CelFailure {
  if (filter === undefined) return true;
  const kept = filter(run);
  return typeof kept === 'boolean' || kept instanceof CelFailure ? kept : new CelFailure('no such overload');
}

/** A list of one value for each item. */
function collect(each: FoldRun, made: (item: Item) => CelValue): CelValue {
  const values: CelValue[] = [];
  each.run.charge(LIST_COST);
  for (const item of each.items) {
    bind(each, item);
    const kept = isKept(each);
    if (kept instanceof CelFailure) return kept;
    if (!kept) continue;
    each.run.charge(2 + LIST_COST);
    const value = made(item);
    if (value instanceof CelFailure) return value;
    values.push(value);
  }
  return values;
}

/** A map of the entries for each item. */
function collectMap(each: FoldRun, entriesOf: (item: Item) => readonly [CelValue, CelValue][] | CelFailure) {
  const entries: [CelValue, CelValue][] = [];
  each.run.charge(MAP_COST);
  for (const item of each.items) {
    bind(each, item);
    const kept = isKept(each);
    if (kept instanceof CelFailure) return kept;
    if (!kept) continue;
    each.run.charge(2);
    const made = entriesOf(item);
    if (made instanceof CelFailure) return made;
    for (const entry of made) entries.push(entry);
  }
  return CelMap.of(entries);
}

const FOLDS: Readonly<Record<Fold['operator'], (each: FoldRun) => CelValue>> = {
  all: (each) => quantifier(each, false),
  exists: (each) => quantifier(each, true),
  existsOne(each) {
    let count = 0;
    for (const item of each.items) {
      bind(each, item);
      const value = each.body(each.run);
      if (value instanceof CelFailure) return value;
      if (typeof value !== 'boolean') return new CelFailure('no such overload');
      each.run.charge(value ? 2 : 0);
      if (value) count += 1;
    }
    each.run.charge(1);
    return count === 1;
  },
  map: (each) => collect(each, () => each.body(each.run)),
  transformList: (each) => collect(each, () => each.body(each.run)),
  filter: (each) =>
    collect({ ...each, filter: each.body }, (item) => {
      each.run.charge(1);
      return item[0];
    }),
  transformMap: (each) =>
    collectMap(each, ([key]) => {
      const value = each.body(each.run);
      return value instanceof CelFailure ? value : [[key, value]];
    }),
  transformMapEntry: (each) =>
    collectMap(each, () => {
      const made = each.body(each.run);
      if (made instanceof CelFailure) return made;
      if (!(made instanceof CelMap)) return new CelFailure('no such overload');
      return made.keys().map((key) => [key, made.get(key) as CelValue]);
    }),
};
