/** Static types of expressions, and which type may stand where another one is expected. */

export type CelType =
  | { readonly kind: 'primitive'; readonly name: string }
  | { readonly kind: 'dyn' }
  | { readonly kind: 'list'; readonly of: CelType }
  | { readonly kind: 'map'; readonly key: CelType; readonly value: CelType }
  | { readonly kind: 'optional'; readonly of: CelType }
  | { readonly kind: 'type'; readonly of: CelType }
  /** A type with named fields. */
  | { readonly kind: 'object'; readonly name: string }
  /** A type parameter of a function, or a type that is not known yet. */
  | { readonly kind: 'parameter'; readonly name: string };

const primitive = (name: string): CelType => ({ kind: 'primitive', name });

export const DYN: CelType = { kind: 'dyn' };
export const BOOL = primitive('bool');
export const INT = primitive('int');
export const UINT = primitive('uint');
export const DOUBLE = primitive('double');
export const STRING = primitive('string');
export const BYTES = primitive('bytes');
export const NULL = primitive('null');
export const listOf = (of: CelType): CelType => ({ kind: 'list', of });
export const mapOf = (key: CelType, value: CelType): CelType => ({ kind: 'map', key, value });
export const optionalOf = (of: CelType): CelType => ({ kind: 'optional', of });
export const objectType = (name: string): CelType => ({ kind: 'object', name });
export const typeOf = (of: CelType): CelType => ({ kind: 'type', of });

const BY_NAME = new Map<string, CelType>([
  ['dyn', DYN],
  ...[BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL].map((type) => [typeText(type), type] as const),
]);

/** Reads `int`, `list<A>`, `map<string,dyn>`. A single capital letter is a parameter; other names are objects. */
export function readType(text: string): CelType {
  const [type, rest] = typeAt(text.trim());
  if (rest !== '') throw new Error(`not a type: ${text}`);
  return type;
}

function typeAt(text: string): [CelType, string] {
  const name = /^[A-Za-z_][\w.]*/.exec(text)?.[0] ?? '';
  if (name === '') throw new Error(`not a type: ${text}`);
  let rest = text.slice(name.length);
  if (!rest.startsWith('<')) {
    const known = BY_NAME.get(name);
    if (known !== undefined) return [known, rest];
    return [/^[A-Z]$/.test(name) ? { kind: 'parameter', name } : objectType(name), rest];
  }
  const parts: CelType[] = [];
  do {
    const [part, after] = typeAt(rest.slice(1).trimStart());
    parts.push(part);
    rest = after;
  } while (rest.startsWith(','));
  const [first = DYN, second = DYN] = parts;
  const after = rest.slice(1);
  if (name === 'list') return [listOf(first), after];
  if (name === 'map') return [mapOf(first, second), after];
  return [name === 'optional' ? optionalOf(first) : typeOf(first), after];
}

/** A type as cel-go writes it in messages. */
export function typeText(type: CelType): string {
  switch (type.kind) {
    case 'dyn':
      return 'dyn';
    case 'list':
      return `list(${typeText(type.of)})`;
    case 'map':
      return `map(${typeText(type.key)}, ${typeText(type.value)})`;
    case 'optional':
      return `optional_type(${typeText(type.of)})`;
    case 'type':
      return `type(${typeText(type.of)})`;
    default:
      return type.name;
  }
}

/** What type parameters stand for. */
export type Substitution = Map<string, CelType>;

/** A copy for a trial. Iterates what the trial adds; the cost is that alone. */
export class TrialSubstitution extends Map<string, CelType> {
  readonly #known: Substitution;
  constructor(known: Substitution) {
    super();
    this.#known = known;
  }
  override get(name: string): CelType | undefined {
    return super.get(name) ?? this.#known.get(name);
  }
}

/** A type with its known parameters replaced. Unknown ones are dyn if `final`. */
export function substitute(type: CelType, known: Substitution, final = false): CelType {
  switch (type.kind) {
    case 'parameter': {
      const found = known.get(type.name);
      if (found !== undefined) return substitute(found, known, final);
      return final ? DYN : type;
    }
    case 'list':
      return listOf(substitute(type.of, known, final));
    case 'optional':
      return optionalOf(substitute(type.of, known, final));
    case 'type':
      return typeOf(substitute(type.of, known, final));
    case 'map':
      return mapOf(substitute(type.key, known, final), substitute(type.value, known, final));
    default:
      return type;
  }
}

function occurs(name: string, type: CelType, known: Substitution): boolean {
  const resolved = substitute(type, known);
  switch (resolved.kind) {
    case 'parameter':
      return resolved.name === name;
    case 'list':
    case 'optional':
    case 'type':
      return occurs(name, resolved.of, known);
    case 'map':
      return occurs(name, resolved.key, known) || occurs(name, resolved.value, known);
    default:
      return false;
  }
}

/** Types that null may stand for: those of messages, timestamps and durations, and opaque ones. */
const isNullable = (type: CelType): boolean => type.kind === 'object' || type.kind === 'optional';

/**
 * True if a value of `actual` may be used where `expected` is. Adds what parameters stand for to `known`; after a false
 * answer `known` may hold a part of it, so callers try with a copy.
 */
export function isAssignable(expected: CelType, actual: CelType, known: Substitution): boolean {
  const target = expected.kind === 'parameter' ? substitute(expected, known) : expected;
  const source = actual.kind === 'parameter' ? substitute(actual, known) : actual;
  if (target.kind === 'parameter') return bound(target.name, source, known);
  if (source.kind === 'parameter') return bound(source.name, target, known);
  if (target.kind === 'dyn' || source.kind === 'dyn') return true;
  if (target.kind !== source.kind) {
    if (source === NULL) return isNullable(target);
    return target === NULL && isNullable(source);
  }
  switch (target.kind) {
    case 'list':
    case 'optional':
    case 'type':
      return target.kind === 'type' || isAssignable(target.of, (source as { of: CelType }).of, known);
    case 'map': {
      const other = source as Extract<CelType, { kind: 'map' }>;
      return isAssignable(target.key, other.key, known) && isAssignable(target.value, other.value, known);
    }
    default:
      return target.name === (source as { name: string }).name;
  }
}

function bound(name: string, type: CelType, known: Substitution): boolean {
  if (type.kind === 'parameter' && type.name === name) return true;
  if (occurs(name, type, known)) return false;
  known.set(name, type);
  return true;
}
