/**
 * What an expression costs at most, before there is a value: its operations, by the sizes that texts, lists and maps
 * may have. A loop costs its body times the items of its range.
 *
 * What is known of the size of a value is found by its path: `self`, field names, `@items`, `@keys`, `@values`.
 *
 * Sources: cel-go checker/cost.go and ext/{lists,sets}.go, k8s.io/apiserver pkg/cel/library/cost.go.
 */

import { type Checked, type CheckedCall, checkTypes } from './check.ts';
import type { Environment } from './environment.ts';
import type { Expression, Fold } from './syntax.ts';
import { type CelType, typeText } from './types.ts';
import { sizeOf } from './values.ts';

/** The size of the value at a path, at most. undefined: nothing is known of it. */
export type SizeAt = (path: readonly string[]) => number | undefined;

interface Size {
  readonly min: number;
  readonly max: number;
}

/** The sizes of the items of a list, or of the keys and values of a map. */
interface Items {
  readonly isList: boolean;
  readonly key: Size;
  readonly value: Size;
}

/** What is known of a variable of a loop. */
interface Local {
  readonly path: readonly string[];
  readonly size?: Size | undefined;
}

interface Called {
  readonly cost: number;
  readonly size?: Size;
}

type Scope = ReadonlyMap<string, Local>;

const exactly = (size: number): Size => ({ min: size, max: size });
const ONE = exactly(1);
const UNKNOWN: Size = { min: 0, max: Number.POSITIVE_INFINITY };
const NO_ITEM: Size = { min: Number.POSITIVE_INFINITY, max: 0 };

/** Nothing of something that has no bound is nothing. */
export const times = (one: number, other: number): number => (one === 0 || other === 0 ? 0 : one * other);
const product = (one: Size, other: Size): Size => ({ min: times(one.min, other.min), max: times(one.max, other.max) });
const sum = (one: Size, other: Size): Size => ({ min: one.min + other.min, max: one.max + other.max });
const union = (one: Size, other: Size): Size => ({
  min: Math.min(one.min, other.min),
  max: Math.max(one.max, other.max),
});
const part = (size: Size | undefined, factor: number): number => Math.ceil(times((size ?? ONE).max, factor));

const SCALARS = /^(?:optional_type\()*(?:bool|u?int|double|google\.protobuf\.(?:Duration|Timestamp))\)*$/;
const sizeOfType = (type: CelType): Size | undefined => (SCALARS.test(typeText(type)) ? ONE : undefined);
const isText = (type: CelType | undefined): boolean => type !== undefined && /^(?:string|bytes)$/.test(typeText(type));

/** A call: its arguments, the one that it is called on first. */
interface Arguments {
  readonly nodes: readonly Expression[];
  readonly sizes: readonly Size[];
  readonly params: readonly CelType[];
  readonly typeOf: (node: Expression) => CelType;
  /** The size of an item of the first argument. */
  readonly itemSize: () => Size;
}

type Estimate = (args: Arguments) => Called | undefined;

const reads =
  (factor: number, at = 0): Estimate =>
  ({ sizes }) => ({ cost: part(sizes[at], factor) });
const copies: Estimate = ({ sizes: [text = ONE] }) => ({ cost: part(text, 0.1), size: text });
const matches: Estimate = ({ sizes: [text = ONE, pattern] }) => ({
  cost: times(part(sum(text, ONE), 0.1), part(pattern, 0.25)),
  size: { min: 0, max: text.max },
});
const compares: Estimate = ({ sizes: [one = ONE, other = ONE] }) => ({
  cost: part(exactly(Math.min(one.max, other.max)), 0.1),
});
const makesList = (size: Size, factor: number): Called => ({ cost: part(size, factor) + 11, size });
const integerAt = ({ nodes }: Arguments, at: number, otherwise: number): number => {
  const node = nodes[at];
  if (node?.kind !== 'constant' || typeof node.value !== 'bigint') return otherwise;
  return Number(node.value);
};
const orders: Estimate = (args) => (isText(args.params[0]) ? compares(args) : undefined);
const isParameter =
  (at: number, text: RegExp, estimate: Estimate): Estimate =>
  (args) =>
    text.test(typeText(args.params[at] as CelType)) ? estimate(args) : undefined;

/** Each item is compared; of a text its characters. */
const searches: Estimate = ({ nodes: [list], sizes: [size], typeOf, itemSize }) => {
  const type = typeOf(list as Expression);
  if (type.kind !== 'list') return { cost: part(size, 0.1) };
  return { cost: part(size, 1 + (isText(type.of) ? part(itemSize(), 0.1) : 0)) };
};
/** Addresses have 4 to 16 bytes. */
const contains =
  (cost: number): Estimate =>
  ({ sizes, params }) => ({ cost: cost + (isText(params[1]) ? part(sizes[1], 0.1) : 0) });
const selector: Estimate = ({ sizes }) => ({
  cost: 10 + part(sizes[1], 0.1) + times(part(sizes[1], 0.5), 50),
});
const ofSets =
  (factor: number): Estimate =>
  ({ sizes: [one = ONE, other = ONE] }) => ({ cost: part(product(one, other), factor) + 1 });

/** The least and the most characters of a text in which a part of one size is replaced by one of another. */
function replaced(text: Size, from: Size, to: Size): Size {
  const longest = (): number => {
    if (from.min === 0) return times(text.max + 1, to.max) + text.max;
    return to.max <= from.min ? text.max : times(Math.ceil(text.max / from.min), to.max);
  };
  const shortest = (): number => {
    if (from.max === 0) return times(text.min + 1, to.min) + text.min;
    return from.max <= to.min ? text.min : times(Math.ceil(text.min / from.max), to.min);
  };
  return { min: shortest(), max: longest() };
}

/** The cost of a call besides its arguments, where it is not 1. Names as in Functions. */
const ESTIMATES: Readonly<Record<string, Estimate>> = {
  '.check': () => ({ cost: 350_000 }),
  '.fieldSelector': selector,
  '.labelSelector': selector,
  ...Object.fromEntries(
    ['isSorted', 'sum', 'max', 'min', 'indexOf', 'lastIndexOf'].map((name) => [`.${name}`, searches]),
  ),
  ...Object.fromEntries(
    ['url', 'jsonpatch.escapeKey', '.lowerAscii', '.upperAscii', '.substring', '.trim'].map((name) => [name, copies]),
  ),
  ...Object.fromEntries(
    'cidr isIP isCIDR ip quantity isQuantity semver isSemver .format'.split(' ').map((name) => [name, reads(0.1)]),
  ),
  'ip.isCanonical': reads(0.2),
  '.replace': ({ sizes: [text = ONE, from = ONE, to = ONE] }) => ({
    cost: part(text, 0.2),
    size: replaced(text, from, to),
  }),
  '.split'(args) {
    const max = integerAt(args, 2, (args.sizes[0] ?? ONE).max);
    return { cost: part(args.sizes[0], 0.2), size: { min: 0, max: max < 0 ? Number.POSITIVE_INFINITY : max } };
  },
  '.join'({ sizes: [list = ONE, separator], itemSize }) {
    const gaps = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
    const items = product(list, itemSize());
    const size = separator === undefined ? items : sum(items, product(separator, gaps));
    return { cost: part(size, 0.1), size };
  },
  '.find': matches,
  '.findAll': matches,
  '.matches': (args) => ({ cost: matches(args)?.cost ?? 0 }),
  '.containsIP': contains(4),
  '.containsCIDR': contains(7),
  /** As if the format were a pattern of 128 characters. */
  '.validate': ({ sizes }) => ({ cost: times(part(sizes[1], 0.1), 32) }),
  'sets.contains': ofSets(1),
  'sets.intersects': ofSets(1),
  'sets.equivalent': ofSets(2),
  '.slice'(args) {
    const count = Math.max(0, integerAt(args, 2, (args.sizes[0] ?? ONE).max)) - Math.max(0, integerAt(args, 1, 0));
    return makesList(exactly(count < 0 ? Number.POSITIVE_INFINITY : count), 1);
  },
  'lists.range': (args) => makesList(exactly(Math.max(0, integerAt(args, 0, Number.POSITIVE_INFINITY))), 1),
  '.reverse': ({ sizes: [list = ONE] }) => makesList(list, 1),
  '.flatten': (args) =>
    makesList(
      args.sizes[0] ?? ONE,
      args.nodes.length === 1 ? 1 : Math.max(0, integerAt(args, 1, Number.POSITIVE_INFINITY)),
    ),
  '.distinct': ({ sizes: [list = ONE] }) => makesList(product(list, list), 2),
  '.sort'({ nodes: [node], sizes: [list = ONE], typeOf }) {
    const type = typeOf(node as Expression);
    const isOfNumbers = type.kind === 'list' && sizeOfType(type.of) !== undefined;
    return makesList(product(list, list), isOfNumbers ? 2 : 2.1);
  },
  'strings.quote': ({ sizes: [text = ONE] }) => ({
    cost: part(text, 0.1),
    size: { min: text.min + 2, max: text.max * 2 + 2 },
  }),
  bytes: isParameter(0, /^string$/, ({ sizes: [text = ONE] }) => ({
    cost: part(text, 0.1),
    size: { min: text.min, max: text.max * 4 },
  })),
  string: isParameter(0, /^bytes$/, ({ sizes: [bytes = ONE] }) => ({
    cost: part(bytes, 0.1),
    size: { min: Math.floor(bytes.min / 4), max: bytes.max },
  })),
  '.startsWith': reads(0.1, 1),
  '.endsWith': reads(0.1, 1),
  '.contains': ({ sizes: [text, other] }) => ({ cost: times(part(text, 0.1), part(other, 0.1)) }),
  '@in': isParameter(1, /^list/, reads(1, 1)),
  '_+_': isParameter(0, /^(?:string|bytes|list)/, ({ params, sizes: [one = ONE, other = ONE] }) => {
    const size = sum(one, other);
    return { cost: isText(params[0]) ? part(size, 0.1) : 1, size };
  }),
  ...Object.fromEntries(['<', '<=', '>', '>='].map((operator) => [`_${operator}_`, orders])),
  '_!=_': compares,
  '_==_'(args) {
    const [one = '', other] = args.nodes.map((node) => typeText(args.typeOf(node)));
    if (one !== other || !/^(?:net|kubernetes)\./.test(one)) return compares(args);
    if (one === 'kubernetes.NamedFormat') return { cost: 7 };
    const { max } = args.sizes[1] ?? ONE;
    return { cost: one === 'kubernetes.URL' && max !== Number.POSITIVE_INFINITY ? Math.ceil(max * 0.1) : 1 };
  },
};

/** @returns units of cel-go; infinite where a size has no bound */
export function estimateCost(environment: Environment, expression: Expression, sizeAt: SizeAt): number {
  return new Estimation(checkTypes(environment, expression), sizeAt).cost(expression, new Map());
}

class Estimation {
  readonly #checked: Checked;
  readonly #sizeAt: SizeAt;
  readonly #paths = new Map<Expression, readonly string[]>();
  readonly #sizes = new Map<Expression, Size>();
  readonly #items = new Map<Expression, Items>();

  constructor(checked: Checked, sizeAt: SizeAt) {
    this.#checked = checked;
    this.#sizeAt = sizeAt;
  }

  cost(node: Expression, scope: Scope): number {
    switch (node.kind) {
      case 'constant':
        return 0;
      case 'identifier': {
        const local = scope.get(node.name);
        const path = local?.path ?? [node.name];
        this.#paths.set(node, path);
        this.#keep(node, this.#sizeOfLocal({ path, size: local?.size }, this.#typeOf(node)));
        return 1;
      }
      case 'select':
        return this.#select(node, scope);
      case 'index': {
        const cost = this.cost(node.operand, scope) + this.cost(node.key, scope) + 1;
        if (node.isOptional || this.#typeOf(node.operand).kind === 'optional') return cost;
        const isList = this.#typeOf(node.operand).kind === 'list';
        this.#paths.set(node, [...this.#pathOf(node.operand), isList ? '@items' : '@values']);
        this.#keep(node, this.#items.get(node.operand)?.value);
        return cost;
      }
      case 'call':
        return this.#call(node, scope);
      case 'and':
      case 'or':
        return this.#all(node.operands, scope);
      case 'conditional': {
        const { condition, yes, no } = node;
        const cost = this.cost(condition, scope) + Math.max(this.cost(yes, scope), this.cost(no, scope));
        this.#sizes.set(node, union(this.#size(yes), this.#size(no)));
        const [items, others] = [this.#items.get(yes), this.#items.get(no)];
        if (items && others) {
          const { isList } = items;
          this.#items.set(node, {
            isList,
            key: union(items.key, others.key),
            value: union(items.value, others.value),
          });
        }
        return cost;
      }
      case 'list': {
        const cost = this.#all(node.items, scope) + LIST_COST;
        this.#items.set(node, { isList: true, key: ONE, value: this.#sizeOfAny(node.items) });
        return cost;
      }
      case 'map': {
        const [keys, values] = [node.entries.map(({ key }) => key), node.entries.map(({ value }) => value)];
        const cost = this.#all([...keys, ...values], scope) + MAP_COST;
        this.#items.set(node, { isList: false, key: this.#sizeOfAny(keys), value: this.#sizeOfAny(values) });
        return cost;
      }
      case 'message':
        return (
          this.#all(
            node.fields.map(({ value }) => value),
            scope,
          ) + 40
        );
      case 'fold':
        return this.#fold(node, scope);
      default: {
        // `operand.hasValue() ? optional.of(body with operand.value()) : optional.none()`
        const operand = this.cost(node.operand, scope);
        const type = this.#typeOf(node.operand);
        const size = type.kind === 'optional' ? sizeOfType(type.of) : undefined;
        const body = this.cost(node.body, new Map([...scope, [node.variable, { path: [], size }]]));
        return operand + 1 + (node.isFlat ? 0 : 1) + LIST_COST + operand + 1 + body;
      }
    }
  }

  #all(nodes: readonly Expression[], scope: Scope): number {
    return nodes.reduce((total, node) => total + this.cost(node, scope), 0);
  }

  readonly #typeOf = (node: Expression): CelType => this.#checked.typeOf(node);

  #pathOf(node: Expression): readonly string[] {
    return this.#paths.get(node) ?? [];
  }

  #keep(node: Expression, size: Size | undefined): void {
    if (size !== undefined) this.#sizes.set(node, size);
  }

  #locate(path: readonly string[]): Size | undefined {
    const max = path.length === 0 ? undefined : this.#sizeAt(path);
    return max === undefined ? undefined : { min: 0, max };
  }

  #sizeOfLocal({ path, size }: Local, type: CelType): Size | undefined {
    return this.#locate(path) ?? sizeOfType(type) ?? size;
  }

  #known(node: Expression): Size | undefined {
    if (node.kind === 'list') return exactly(node.items.length);
    if (node.kind === 'map') return exactly(node.entries.length);
    if (node.kind === 'constant') {
      const { value } = node;
      return exactly(typeof value === 'string' || value instanceof Uint8Array ? sizeOf(value) : 1);
    }
    return this.#sizes.get(node) ?? this.#locate(this.#pathOf(node)) ?? sizeOfType(this.#typeOf(node));
  }

  #size(node: Expression): Size {
    return this.#known(node) ?? UNKNOWN;
  }

  #sizeOfAny(nodes: readonly Expression[]): Size {
    if (nodes.length === 0) return exactly(0);
    return nodes.reduce((all, node) => union(all, this.#size(node)), NO_ITEM);
  }

  #select(node: Extract<Expression, { kind: 'select' }>, scope: Scope): number {
    const cost = this.cost(node.operand, scope);
    if (node.isTest) return cost;
    if (node.isOptional) return cost + 1;
    this.#paths.set(node, [...this.#pathOf(node.operand), node.field]);
    return cost + (['map', 'object', 'parameter'].includes(this.#typeOf(node.operand).kind) ? 1 : 0);
  }

  #call(node: Extract<Expression, { kind: 'call' }>, scope: Scope): number {
    const call = this.#checked.callOf(node);
    if (call === undefined) return 0;
    const isMember = call.name.startsWith('.');
    const nodes = isMember && node.target ? [node.target, ...node.args] : node.args;
    const cost = this.#all(nodes, scope);
    if (call.name === 'dyn') {
      this.#copy(node, nodes[0] as Expression);
      return cost + 1;
    }
    const { cost: own, size } = this.#called(call, nodes, node);
    this.#keep(node, size ?? this.#known(node));
    return cost + own;
  }

  /** The highest cost of what the call may mean. */
  #called({ name, overloads }: CheckedCall, nodes: readonly Expression[], node: Expression): Called {
    const args = {
      nodes,
      sizes: nodes.map((each) => this.#size(each)),
      typeOf: this.#typeOf,
      itemSize: () => {
        const path = this.#pathOf(nodes[0] as Expression);
        return (path.length === 0 ? undefined : this.#locate([...path, '@items'])) ?? UNKNOWN;
      },
    };
    const estimate = Object.hasOwn(ESTIMATES, name) ? ESTIMATES[name] : undefined;
    const found = overloads.map(({ params }) => estimate?.({ ...args, params }) ?? { cost: 1 });
    const sizes = found.flatMap(({ size }) => (size === undefined ? [] : [size]));
    if (name === '_+_') {
      const [one, other] = nodes.map((each) => this.#items.get(each));
      if (one && other) this.#items.set(node, { ...one, value: union(one.value, other.value) });
    }
    return {
      cost: Math.max(...found.map(({ cost }) => cost)),
      ...(sizes.length > 0 && { size: sizes.reduce(union) }),
    };
  }

  #copy(to: Expression, from: Expression): void {
    const items = this.#items.get(from);
    this.#keep(to, this.#known(from));
    if (items !== undefined) this.#items.set(to, items);
  }

  /** The loops that cel-go's macros expand to. */
  #fold(node: Fold, scope: Scope): number {
    const range = this.cost(node.range, scope);
    const count = this.#size(node.range);
    const items = this.#items.get(node.range);
    const isList = items?.isList ?? this.#typeOf(node.range).kind === 'list';
    const path = this.#pathOf(node.range);
    const keys: Local = {
      path: [...path, node.variables.length > 1 && isList ? '@indices' : '@keys'],
      size: items?.key,
    };
    const values: Local = { path: [...path, isList ? '@items' : '@values'], size: items?.value };
    const locals = node.variables.length > 1 ? [keys, values] : [isList ? values : keys];
    const inner = new Map([...scope, ...node.variables.map((name, i) => [name, locals[i] as Local] as const)]);
    const filter = node.filter === undefined ? 0 : this.cost(node.filter, inner);
    const body = this.cost(node.body, inner);
    const [start, each] = LOOP_COSTS[node.operator];
    const isMade = !['all', 'exists', 'existsOne'].includes(node.operator);
    this.#sizes.set(node, isMade ? count : ONE);
    if (isMade && !node.operator.startsWith('transformMap')) {
      const type = this.#typeOf(node);
      const made =
        node.operator === 'filter' && type.kind === 'list'
          ? (this.#sizeOfLocal(locals[0] as Local, type.of) ?? UNKNOWN)
          : this.#size(node.body);
      this.#items.set(node, { isList: true, key: ONE, value: { min: 0, max: made.max } });
    }
    return range + start + times(count.max, filter + body + each);
  }
}

const LIST_COST = 10;
const MAP_COST = 30;

/** Of each loop: what it costs without items, and for one item besides its body. */
const LOOP_COSTS: Readonly<Record<Fold['operator'], readonly [start: number, each: number]>> = {
  all: [1, 3],
  exists: [1, 4],
  existsOne: [2, 2],
  map: [11, 12],
  transformList: [11, 12],
  filter: [11, 13],
  transformMap: [31, 3],
  transformMapEntry: [31, 2],
};
