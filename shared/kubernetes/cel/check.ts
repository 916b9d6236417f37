/**
 * The static type of an expression, and what cannot be right in it, with the messages of cel-go's checker. What is dyn
 * is left to the evaluation.
 */

import { type Environment, namedType, namespacedFunction, withoutDot } from './environment.ts';
import type { Overload } from './functions.ts';
import type { Expression, Fold, Issue } from './syntax.ts';
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DYN,
  INT,
  isAssignable,
  listOf,
  mapOf,
  NULL,
  objectType,
  optionalOf,
  STRING,
  type Substitution,
  substitute,
  TrialSubstitution,
  typeOf,
  typeText,
  UINT,
} from './types.ts';
import { type CelValue, typeNameOf } from './values.ts';

export interface Checked {
  /** dyn where it is not known. */
  readonly type: CelType;
  readonly issues: readonly Issue[];
  /** The type of a node of the expression. */
  readonly typeOf: (node: Expression) => CelType;
  /** undefined: the node is no call, or there is no such function. */
  readonly callOf: (node: Expression) => CheckedCall | undefined;
}

/** A function, with a leading dot if it is called on its first argument, and what a call may mean by its types. */
export interface CheckedCall {
  readonly name: string;
  readonly overloads: readonly Overload[];
}

/** Issues of one expression. */
const ISSUES_MAX = 20;

const CONSTANTS = new Map<string, CelType>([
  ['string', STRING],
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['bool', BOOL],
  ['bytes', BYTES],
  ['null_type', NULL],
]);

const constantType = (value: CelValue): CelType => CONSTANTS.get(typeNameOf(value)) ?? DYN;

type Scope = ReadonlyMap<string, CelType>;

export function checkTypes(environment: Environment, expression: Expression): Checked {
  const issues: Issue[] = [];
  const known: Substitution = new Map();
  const types = new Map<Expression, CelType>();
  const calls = new Map<Expression, CheckedCall>();
  let parameters = 0;
  /** Above 0 within the arguments of `format`. Their literals may have items of several types. */
  let formats = 0;

  const report = (at: number, message: string): CelType => {
    if (issues.length < ISSUES_MAX) issues.push({ at, message });
    return DYN;
  };
  const fresh = (): CelType => {
    parameters += 1;
    return { kind: 'parameter', name: `_var${parameters}` };
  };
  const resolved = (type: CelType): CelType => substitute(type, known);
  const shown = (type: CelType): string => typeText(substitute(type, known, true));

  /** Adds what follows to `known` only if the type fits. */
  function fits(expected: CelType, actual: CelType): boolean {
    const trial = new TrialSubstitution(known);
    if (!isAssignable(expected, actual, trial)) return false;
    for (const [name, type] of trial) known.set(name, type);
    return true;
  }

  const noOverload = (at: number, name: string, args: readonly CelType[], isMember = false): CelType => {
    const texts = args.map(shown);
    const [first = ''] = texts;
    const applied = isMember ? `${first}.(${texts.slice(1).join(', ')})` : `(${texts.join(', ')})`;
    return report(at, `found no matching overload for '${name}' applied to '${applied}'`);
  };

  const isVariable = (scope: Scope) => (name: string) => scope.has(name) || environment.variables.has(name);

  function typeOfNode(node: Expression, scope: Scope): CelType {
    const type = typeOfAny(node, scope);
    types.set(node, type);
    return type;
  }

  function typeOfAny(node: Expression, scope: Scope): CelType {
    switch (node.kind) {
      case 'constant':
        return constantType(node.value);
      case 'identifier':
      case 'select':
        return named(node, scope);
      case 'index': {
        const operand = resolved(typeOfNode(node.operand, scope));
        return indexed(node, operand, typeOfNode(node.key, scope));
      }
      case 'call':
        return called(node, scope);
      case 'and':
      case 'or': {
        const types = node.operands.map((each) => typeOfNode(each, scope));
        if (types.every((type) => fits(BOOL, type))) return BOOL;
        return noOverload(node.at, node.kind === 'and' ? '_&&_' : '_||_', types);
      }
      case 'conditional': {
        const condition = typeOfNode(node.condition, scope);
        const yes = typeOfNode(node.yes, scope);
        const no = typeOfNode(node.no, scope);
        const joined = fits(BOOL, condition) ? join(yes, no) : undefined;
        return joined ?? noOverload(node.at, '_?_:_', [condition, yes, no]);
      }
      case 'list':
        return listOf(
          elements(
            node.items.map((item, i) => ({ item, isOptional: node.optionalItems.has(i) })),
            scope,
          ),
        );
      case 'map': {
        const key = elements(
          node.entries.map(({ key: item }) => ({ item, isOptional: false })),
          scope,
        );
        const value = elements(
          node.entries.map(({ value: item, isOptional }) => ({ item, isOptional })),
          scope,
        );
        return mapOf(key, value);
      }
      case 'message':
        return message(node, scope);
      case 'fold':
        return fold(node, scope);
      default: {
        const operand = resolved(typeOfNode(node.operand, scope));
        if (operand.kind !== 'optional' && operand.kind !== 'dyn') {
          return noOverload(node.at, node.isFlat ? 'optFlatMap' : 'optMap', [operand], true);
        }
        const of = operand.kind === 'optional' ? operand.of : DYN;
        const body = typeOfNode(node.body, new Map([...scope, [node.variable, of]]));
        return node.isFlat ? body : optionalOf(body);
      }
    }
  }

  function named(node: Extract<Expression, { kind: 'identifier' | 'select' }>, scope: Scope): CelType {
    const type = namedType(node, isVariable(scope));
    if (type !== undefined) return typeOf(CONSTANTS.get(type) ?? objectType(type));
    if (node.kind === 'identifier') {
      const name = withoutDot(node.name);
      const found = scope.get(node.name) ?? environment.variables.get(name);
      return found ?? report(node.at, `undeclared reference to '${name}' (in container '')`);
    }
    const operand = resolved(typeOfNode(node.operand, scope));
    const isOptional = operand.kind === 'optional';
    const field = fieldType(node, isOptional ? resolved(operand.of) : operand);
    if (node.isTest) return BOOL;
    return isOptional || node.isOptional ? optionalOf(field) : field;
  }

  function fieldType(node: Extract<Expression, { kind: 'select' }>, operand: CelType): CelType {
    switch (operand.kind) {
      case 'map':
        return operand.value;
      case 'dyn':
      case 'parameter':
        return DYN;
      case 'object': {
        const fields = environment.fieldsOf(operand.name);
        if (fields === undefined) break;
        return fields.typeOf(node.field) ?? report(node.at, `undefined field '${node.field}'`);
      }
      default:
    }
    return report(node.at, `type '${shown(operand)}' does not support field selection`);
  }

  function indexed(node: Extract<Expression, { kind: 'index' }>, whole: CelType, key: CelType): CelType {
    const isOptional = whole.kind === 'optional';
    const operand = isOptional ? resolved(whole.of) : whole;
    const item = itemType(operand, key);
    if (item === undefined) return noOverload(node.at, node.isOptional ? '_[?_]' : '_[_]', [whole, key]);
    return isOptional || node.isOptional ? optionalOf(item) : item;
  }

  function itemType(operand: CelType, key: CelType): CelType | undefined {
    if (operand.kind === 'dyn' || operand.kind === 'parameter') return DYN;
    if (operand.kind === 'list') return fits(INT, key) ? operand.of : undefined;
    return operand.kind === 'map' && fits(operand.key, key) ? operand.value : undefined;
  }

  function called(node: Extract<Expression, { kind: 'call' }>, scope: Scope): CelType {
    const namespaced = namespacedFunction(environment, node, isVariable(scope));
    const isMember = node.target !== undefined && namespaced === undefined;
    const shownName = namespaced ?? withoutDot(node.name);
    const name = isMember ? `.${node.name}` : shownName;
    const overloads = environment.functions.get(name);
    const nodes = isMember && node.target !== undefined ? [node.target, ...node.args] : node.args;
    const isFormat = isMember && node.name === 'format';
    formats += isFormat ? 1 : 0;
    const args = nodes.map((each) => typeOfNode(each, scope));
    formats -= isFormat ? 1 : 0;
    if (overloads === undefined) {
      return report(node.at, `undeclared reference to '${shownName}' (in container '')`);
    }
    const results = overloads.flatMap((overload) => resultOf(overload, args));
    calls.set(node, { name, overloads: results.map(({ overload }) => overload) });
    const [first, ...others] = results;
    if (first === undefined) return noOverload(node.at, shownName, args, isMember);
    if (others.length === 0) {
      for (const [parameter, type] of first.known) known.set(parameter, type);
      return resolved(first.type);
    }
    const text = typeText(first.type);
    return others.every(({ type }) => typeText(type) === text) ? first.type : DYN;
  }

  function resultOf(overload: Overload, args: readonly CelType[]) {
    if (overload.params.length !== args.length) return [];
    const instance = instantiated(overload);
    const trial = new TrialSubstitution(known);
    if (!instance.params.every((param, i) => isAssignable(param, args[i] as CelType, trial))) return [];
    return [{ overload, type: substitute(instance.result, trial), known: trial }];
  }

  /** The overload with type parameters of its own. */
  function instantiated({ params, result }: Overload): Pick<Overload, 'params' | 'result'> {
    const own: Substitution = new Map();
    const name = (type: CelType): void => {
      if (type.kind === 'parameter') own.set(type.name, own.get(type.name) ?? fresh());
      if (type.kind === 'list' || type.kind === 'optional' || type.kind === 'type') name(type.of);
      if (type.kind !== 'map') return;
      name(type.key);
      name(type.value);
    };
    for (const type of [...params, result]) name(type);
    if (own.size === 0) return { params, result };
    return { params: params.map((param) => substitute(param, own)), result: substitute(result, own) };
  }

  /** The type of both. undefined: they have none. */
  function join(one: CelType, other: CelType): CelType | undefined {
    const left = resolved(one);
    const right = resolved(other);
    if (left.kind === 'dyn' || right.kind === 'dyn') return DYN;
    if (fits(left, right)) return typeText(right).includes('dyn') ? resolved(right) : resolved(left);
    return undefined;
  }

  function elements(
    items: readonly { readonly item: Expression; readonly isOptional: boolean }[],
    scope: Scope,
  ): CelType {
    let all: CelType | undefined;
    for (const { item, isOptional } of items) {
      const whole = resolved(typeOfNode(item, scope));
      const type = isOptional && whole.kind === 'optional' ? whole.of : whole;
      if (isOptional && whole.kind !== 'optional' && whole.kind !== 'dyn') {
        report(item.at, `expected type 'optional_type(${shown(whole)})' but found '${shown(whole)}'`);
      }
      const joined = all === undefined ? type : join(all, type);
      if (joined === undefined && formats === 0)
        report(item.at, `expected type '${shown(all as CelType)}' but found '${shown(type)}'`);
      all = joined ?? DYN;
    }
    return all ?? fresh();
  }

  function message(node: Extract<Expression, { kind: 'message' }>, scope: Scope): CelType {
    const name = withoutDot(node.name);
    const fields = environment.fieldsOf(name);
    if (!environment.isConstructible(name)) {
      return report(node.at, `undeclared reference to '${name}' (in container '')`);
    }
    for (const field of node.fields) {
      const whole = resolved(typeOfNode(field.value, scope));
      const type = field.isOptional && whole.kind === 'optional' ? whole.of : whole;
      const expected = fields === undefined ? DYN : fields.typeOf(field.name);
      if (expected === undefined) report(field.value.at, `undefined field '${field.name}'`);
      else if (!fits(expected, type)) {
        const provided = `expected type of field '${field.name}' is '${shown(expected)}' but provided type is`;
        report(field.value.at, `${provided} '${shown(type)}'`);
      }
    }
    return objectType(name);
  }

  function fold(node: Fold, scope: Scope): CelType {
    const range = resolved(typeOfNode(node.range, scope));
    const variables = rangeTypes(range, node.variables.length);
    if (variables === undefined) {
      const why = 'cannot be range of a comprehension (must be list, map, or dynamic)';
      return report(node.range.at, `expression of type '${shown(range)}' ${why}`);
    }
    const inner = new Map([...scope, ...node.variables.map((name, i) => [name, variables[i] as CelType] as const)]);
    if (node.filter !== undefined) condition(node.filter, inner, '_?_:_');
    const [first = DYN] = variables;
    switch (node.operator) {
      case 'all':
      case 'exists':
        condition(node.body, inner, node.operator === 'all' ? '_&&_' : '_||_');
        return BOOL;
      case 'existsOne':
        condition(node.body, inner, '_?_:_');
        return BOOL;
      case 'filter':
        condition(node.body, inner, '_?_:_');
        return listOf(first);
      case 'map':
      case 'transformList':
        return listOf(typeOfNode(node.body, inner));
      case 'transformMap':
        return mapOf(first, typeOfNode(node.body, inner));
      default:
        return typeOfNode(node.body, inner);
    }
  }

  function condition(node: Expression, scope: Scope, operator: string): void {
    const type = typeOfNode(node, scope);
    if (!fits(BOOL, type)) noOverload(node.at, operator, [BOOL, type]);
  }

  const final = (type: CelType): CelType => substitute(type, known, true);
  return {
    type: final(typeOfNode(expression, new Map())),
    issues,
    typeOf: (node) => final(types.get(node) ?? DYN),
    callOf: (node) => calls.get(node),
  };
}

/** The types of the variables of a fold. undefined: the type has no items. */
function rangeTypes(range: CelType, count: number): readonly CelType[] | undefined {
  switch (range.kind) {
    case 'list':
      return count === 1 ? [range.of] : [INT, range.of];
    case 'map':
      return count === 1 ? [range.key] : [range.key, range.value];
    case 'dyn':
    case 'parameter':
      return [DYN, DYN];
    default:
      return undefined;
  }
}
