/**
 * Expressions to syntax trees, with the macros of cel-go: has, all, exists, existsOne, map, filter, their forms with
 * two variables, and those of optionals.
 *
 * Bounds: characters of an expression, and the depth of its tree. Time is linear in the characters.
 */

import type { Expression, FieldEntry, FoldOperator, Issue, MapEntry } from './syntax.ts';
import { numberValue, SyntaxFault, type Token, tokensOf } from './tokens.ts';
import type { CelValue } from './values.ts';

/** cel-go's limit. Code points there, UTF-16 units here. */
export const EXPRESSION_LENGTH_MAX = 100_000;
/** Nested expressions: the limit of cel-go. */
const NESTING_MAX = 250;
/** Nodes from the root to a leaf. Chains of operators and selections are nested too. */
const DEPTH_MAX = 1_000;

const RESERVED = new Set(
  'as break const continue else for function if import in let loop package namespace return var void while'.split(' '),
);
const LITERALS = new Map<string, CelValue>([
  ['true', true],
  ['false', false],
  ['null', null],
]);

export type Parsed =
  | { readonly kind: 'parsed'; readonly expression: Expression }
  | { readonly kind: 'malformed'; readonly issues: readonly Issue[] };

export function parseExpression(source: string): Parsed {
  if (source.length > EXPRESSION_LENGTH_MAX) {
    const message = `expression code point size exceeds limit: size: ${source.length}, limit ${EXPRESSION_LENGTH_MAX}`;
    return { kind: 'malformed', issues: [{ at: 0, message }] };
  }
  try {
    return { kind: 'parsed', expression: parser(tokensOf(source)).whole() };
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    return { kind: 'malformed', issues: [{ at: error.at, message: error.message }] };
  }
}

/** What a kind of node has besides its place and depth. */
type Parts<T = Expression> = T extends unknown ? Omit<T, 'at' | 'depth'> : never;

export function childrenOf(parts: Parts): readonly Expression[] {
  switch (parts.kind) {
    case 'constant':
    case 'identifier':
      return [];
    case 'select':
      return [parts.operand];
    case 'index':
      return [parts.operand, parts.key];
    case 'call':
      return parts.target === undefined ? parts.args : [parts.target, ...parts.args];
    case 'and':
    case 'or':
      return parts.operands;
    case 'conditional':
      return [parts.condition, parts.yes, parts.no];
    case 'list':
      return parts.items;
    case 'map':
      return parts.entries.flatMap(({ key, value }) => [key, value]);
    case 'message':
      return parts.fields.map(({ value }) => value);
    case 'fold':
      return [parts.range, parts.body, ...(parts.filter === undefined ? [] : [parts.filter])];
    default:
      return [parts.operand, parts.body];
  }
}

function node(at: number, parts: Parts): Expression {
  const depth = 1 + childrenOf(parts).reduce((deepest, child) => Math.max(deepest, child.depth), 0);
  if (depth > DEPTH_MAX) throw new SyntaxFault(at, `expression recursion limit exceeded: ${DEPTH_MAX}`);
  return { ...parts, at, depth } as Expression;
}

const RELATIONS = ['==', '!=', '<', '<=', '>', '>=', 'in'];
const LEVELS: readonly (readonly string[])[] = [RELATIONS, ['+', '-'], ['*', '/', '%']];

function parser(tokens: readonly Token[]) {
  let position = 0;
  let nesting = 0;

  const peek = (): Token => tokens[position] as Token;
  const is = (text: string): boolean => {
    const { kind, text: found } = peek();
    return found === text && (kind === 'symbol' || (text === 'in' && kind === 'name'));
  };
  const take = (): Token => {
    const token = peek();
    position += 1;
    return token;
  };
  const accept = (text: string): boolean => {
    if (!is(text)) return false;
    position += 1;
    return true;
  };
  const fault = (token: Token, expected: string): SyntaxFault => {
    const found = token.kind === 'end' ? '<EOF>' : token.text;
    return new SyntaxFault(token.at, `Syntax error: mismatched input '${found}' expecting ${expected}`);
  };
  const expect = (text: string): Token => {
    if (!is(text)) throw fault(peek(), `'${text}'`);
    return take();
  };

  function expression(): Expression {
    nesting += 1;
    if (nesting > NESTING_MAX) {
      throw new SyntaxFault(peek().at, `expression recursion limit exceeded: ${NESTING_MAX}`);
    }
    const condition = logical('or');
    const { at } = peek();
    if (!accept('?')) {
      nesting -= 1;
      return condition;
    }
    const yes = logical('or');
    expect(':');
    const no = expression();
    nesting -= 1;
    return node(at, { kind: 'conditional', condition, yes, no });
  }

  /** Operands in one node: a long chain must not be a deep tree. */
  function logical(kind: 'or' | 'and'): Expression {
    const operandOf = () => (kind === 'or' ? logical('and') : binary(0));
    const first = operandOf();
    const { at } = peek();
    const operands = [first];
    while (accept(kind === 'or' ? '||' : '&&')) operands.push(operandOf());
    return operands.length === 1 ? first : node(at, { kind, operands });
  }

  function binary(level: number): Expression {
    const operators = LEVELS[level];
    if (operators === undefined) return unary();
    let left = binary(level + 1);
    for (;;) {
      const operator = operators.find(is);
      if (operator === undefined) return left;
      const { at } = take();
      const right = binary(level + 1);
      left = node(at, { kind: 'call', name: operator === 'in' ? '@in' : `_${operator}_`, args: [left, right] });
    }
  }

  function unary(): Expression {
    const { at, text } = peek();
    if (is('!')) return repeated('!', '!_');
    if (!is('-')) return member();
    const next = tokens[position + 1];
    if (text === '-' && next?.kind === 'number') return member();
    return repeated('-', '-_', at);
  }

  /** An even number of the operator has no effect, as in cel-go. */
  function repeated(operator: string, name: string, from = peek().at): Expression {
    let count = 0;
    while (is(operator) && !(operator === '-' && count > 0 && tokens[position + 1]?.kind === 'number')) {
      position += 1;
      count += 1;
    }
    const operand = member();
    return count % 2 === 0 ? operand : node(from, { kind: 'call', name, args: [operand] });
  }

  function member(): Expression {
    let value = primary();
    for (;;) {
      const { at } = peek();
      if (accept('.')) {
        const isOptional = accept('?');
        const name = selector();
        if (!isOptional && is('(')) {
          const { at: open } = take();
          value = withMacros(open, { target: value, name: name.text, args: list(')') });
        } else {
          value = node(at, { kind: 'select', operand: value, field: name.text, isTest: false, isOptional });
        }
      } else if (accept('[')) {
        const isOptional = accept('?');
        const key = expression();
        expect(']');
        value = node(at, { kind: 'index', operand: value, key, isOptional });
      } else if (is('{')) {
        const name = qualifiedName(value);
        if (name === undefined) return value;
        position += 1;
        value = node(at, { kind: 'message', name, fields: fields() });
      } else {
        return value;
      }
    }
  }

  function selector(): Token {
    const token = take();
    if (token.kind !== 'name' || token.text === 'in' || LITERALS.has(token.text)) throw fault(token, 'IDENTIFIER');
    return token;
  }

  function primary(): Expression {
    const token = take();
    switch (token.kind) {
      case 'literal':
        return node(token.at, { kind: 'constant', value: token.value });
      case 'number':
        return node(token.at, { kind: 'constant', value: numberValue(token.text, false, token.at) });
      case 'name':
        return named(token);
      default:
    }
    const { at, text } = token;
    if (text === '-') {
      const number = take();
      return node(at, { kind: 'constant', value: numberValue(number.text, true, at) });
    }
    if (text === '(') {
      const inner = expression();
      expect(')');
      return inner;
    }
    if (text === '[') return listLiteral(at);
    if (text === '{') return node(at, { kind: 'map', entries: entries() });
    if (text === '.') {
      const name = selector();
      return named({ ...name, text: `.${name.text}` });
    }
    throw fault(token, 'an expression');
  }

  function named({ text, at }: Token): Expression {
    const literal = LITERALS.get(text);
    if (literal !== undefined) return node(at, { kind: 'constant', value: literal });
    if (RESERVED.has(text)) throw new SyntaxFault(at, `reserved identifier: ${text}`);
    if (!is('(')) return node(at, { kind: 'identifier', name: text });
    const { at: open } = take();
    return withMacros(open, { name: text, args: list(')') });
  }

  /** Items up to the end. A comma may follow the last one of a list. */
  function list(end: ')' | ']', each: () => Expression = expression): Expression[] {
    const items: Expression[] = [];
    while (!is(end)) {
      items.push(each());
      if (!accept(',')) break;
      if (end === ')' && is(end)) throw fault(peek(), 'an expression');
    }
    expect(end);
    return items;
  }

  function listLiteral(at: number): Expression {
    const optionalItems = new Set<number>();
    let count = 0;
    const items = list(']', () => {
      if (accept('?')) optionalItems.add(count);
      count += 1;
      return expression();
    });
    return node(at, { kind: 'list', items, optionalItems });
  }

  function entries(): MapEntry[] {
    return braces(() => {
      const isOptional = accept('?');
      const key = expression();
      expect(':');
      return { key, value: expression(), isOptional };
    });
  }

  function fields(): FieldEntry[] {
    return braces(() => {
      const isOptional = accept('?');
      const { text: name } = selector();
      expect(':');
      return { name, value: expression(), isOptional };
    });
  }

  function braces<T>(each: () => T): T[] {
    const all: T[] = [];
    while (!is('}')) {
      all.push(each());
      if (!accept(',')) break;
    }
    expect('}');
    return all;
  }

  return {
    whole(): Expression {
      const value = expression();
      if (peek().kind !== 'end') throw fault(peek(), '<EOF>');
      return value;
    },
  };
}

/** `a.b.c` of plain selections. undefined: another expression. */
export function qualifiedName(expression: Expression): string | undefined {
  if (expression.kind === 'identifier') return expression.name;
  if (expression.kind !== 'select' || expression.isTest || expression.isOptional) return undefined;
  const operand = qualifiedName(expression.operand);
  return operand === undefined ? undefined : `${operand}.${expression.field}`;
}

interface Written {
  readonly target?: Expression;
  readonly name: string;
  readonly args: readonly Expression[];
}

/** The operator of a macro by its name and its number of arguments. */
const FOLDS = new Map<string, FoldOperator>([
  ...(['all', 'exists', 'existsOne', 'map', 'filter'] as const).map((name) => [`${name}/2`, name] as const),
  ['exists_one/2', 'existsOne'],
  ['map/3', 'map'],
  ...(['all', 'exists', 'existsOne'] as const).map((name) => [`${name}/3`, name] as const),
  ['exists_one/3', 'existsOne'],
  ...(['transformList', 'transformMap', 'transformMapEntry'] as const).flatMap((name) => [
    [`${name}/3`, name] as const,
    [`${name}/4`, name] as const,
  ]),
]);

/** Operators with one variable and, with three arguments, a filter. The others have two variables then. */
const isMap = (operator: FoldOperator): boolean => operator === 'map';

function withMacros(at: number, written: Written): Expression {
  const { target, name, args } = written;
  if (target === undefined) {
    const [operand] = args;
    if (name !== 'has' || args.length !== 1) return node(at, { kind: 'call', ...written });
    if (operand?.kind !== 'select' || operand.isTest) throw new SyntaxFault(at, 'invalid argument to has() macro');
    return node(at, { ...operand, isTest: true });
  }
  const operator = FOLDS.get(`${name}/${args.length}`);
  if (operator !== undefined) return fold(at, target, operator, args);
  const [variable, body] = args;
  if ((name === 'optMap' || name === 'optFlatMap') && args.length === 2 && body !== undefined) {
    const isFlat = name === 'optFlatMap';
    return node(at, { kind: 'optionalMap', operand: target, variable: variableOf(variable, name), body, isFlat });
  }
  return node(at, { kind: 'call', ...written });
}

function fold(at: number, range: Expression, operator: FoldOperator, args: readonly Expression[]): Expression {
  const variableCount = args.length === 2 || isMap(operator) ? 1 : 2;
  const variables = args.slice(0, variableCount).map((each) => variableOf(each, ''));
  if (variables[0] === variables[1]) {
    throw new SyntaxFault(at, `duplicate variable name: ${variables[0]}`);
  }
  const rest = args.slice(variableCount);
  const body = rest.at(-1) as Expression;
  const [filter] = rest;
  return node(at, { kind: 'fold', operator, range, variables, body, ...(rest.length === 2 && filter && { filter }) });
}

function variableOf(expression: Expression | undefined, macro: string): string {
  if (expression?.kind === 'identifier' && !expression.name.startsWith('.')) return expression.name;
  const of = macro === '' ? 'argument' : `${macro}() variable name`;
  throw new SyntaxFault(expression?.at ?? 0, `${of} must be a simple ${macro === '' ? 'name' : 'identifier'}`);
}
