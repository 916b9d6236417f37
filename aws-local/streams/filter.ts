import { StartError } from '../../shared/host/start-error.ts';
import { isObject } from '../assembly/template.ts';

/**
 * Event filtering of event source mappings, by the rules of EventBridge patterns as Lambda applies them: fields inside
 * one pattern must all match, a list of values needs one that does, several patterns are alternatives.
 * Operators look at leaves only: `exists` on an attribute of a DynamoDB image says nothing (its value is an object such
 * as {"S": "x"}), it has to be put on the type inside. Numbers of DynamoDB are strings there, so `numeric` never
 * matches one.
 * Source: AWS Lambda Developer Guide, "Control which events Lambda sends to your function".
 */
export type EventFilter = (event: unknown) => boolean;

type Leaf = string | number | boolean | null;
type LeafTest = (leaves: readonly Leaf[]) => boolean;

/**
 * @param patterns the mapping's patterns, each a JSON text. None at all lets everything through.
 * @throws StartError on a pattern Lambda would refuse or that uses an operator unknown here.
 */
export function compileFilters(patterns: readonly string[], where: string): EventFilter {
  if (patterns.length === 0) return () => true;
  const filters = patterns.map((text) => compilePattern(parsePattern(text, where), where));
  return (event) => filters.some((filter) => filter(event));
}

function parsePattern(text: string, where: string): Record<string, unknown> {
  let pattern: unknown;
  try {
    pattern = JSON.parse(text);
  } catch (cause) {
    throw new StartError(`${where}: the filter pattern is not JSON: ${text}`, { cause });
  }
  if (!isObject(pattern)) throw new StartError(`${where}: the filter pattern is not an object: ${text}`);
  return pattern;
}

function compilePattern(pattern: Record<string, unknown>, where: string): EventFilter {
  const tests = Object.entries(pattern).map(([name, rule]): EventFilter => {
    if (name === '$or' && Array.isArray(rule)) {
      const alternatives = rule.map((entry) => compilePattern(isObject(entry) ? entry : {}, where));
      return (event) => alternatives.some((alternative) => alternative(event));
    }
    if (Array.isArray(rule)) {
      const test = compileLeaf(rule, where);
      return (event) => test(leavesOf(childrenOf(event, name)));
    }
    if (!isObject(rule)) throw new StartError(`${where}: filter rule for ${name} must be a list or an object`);
    const inner = compilePattern(rule, where);
    return (event) => {
      const children = childrenOf(event, name).filter(isObject);
      return children.length === 0 ? inner({}) : children.some(inner);
    };
  });
  return (event) => tests.every((test) => test(event));
}

function childrenOf(event: unknown, name: string): unknown[] {
  if (!isObject(event) || !Object.hasOwn(event, name)) return [];
  const child = event[name];
  return Array.isArray(child) ? child.flat(Number.POSITIVE_INFINITY) : [child];
}

function leavesOf(values: readonly unknown[]): Leaf[] {
  return values.filter((value): value is Leaf => value === null || typeof value !== 'object');
}

function compileLeaf(alternatives: readonly unknown[], where: string): LeafTest {
  const tests = alternatives.map((alternative) => compileAlternative(alternative, where));
  return (leaves) => tests.some((test) => test(leaves));
}

function compileAlternative(alternative: unknown, where: string): LeafTest {
  if (!isObject(alternative)) return (leaves) => leaves.includes(alternative as Leaf);
  const [operator = '', operand] = Object.entries(alternative)[0] ?? [];
  const some =
    (test: (leaf: Leaf) => boolean): LeafTest =>
    (leaves) =>
      leaves.some(test);
  switch (operator) {
    case 'exists':
      return (leaves) => leaves.length > 0 === operand;
    case 'prefix':
      return some((leaf) => typeof leaf === 'string' && leaf.startsWith(String(operand)));
    case 'suffix':
      return some((leaf) => typeof leaf === 'string' && leaf.endsWith(String(operand)));
    case 'equals-ignore-case':
      return some((leaf) => typeof leaf === 'string' && leaf.toLowerCase() === String(operand).toLowerCase());
    case 'anything-but': {
      const excluded = isObject(operand) ? [operand] : Array.isArray(operand) ? operand : [operand];
      const test = compileLeaf(excluded, where);
      return some((leaf) => !test([leaf]));
    }
    case 'numeric':
      return some(numericRange(operand, where));
    default:
      throw new StartError(`${where}: filter operator ${operator} is not supported here`);
  }
}

/** `[">", 0, "<=", 5]`: all comparisons hold. Only real numbers, never numbers written as text. */
function numericRange(operand: unknown, where: string): (leaf: Leaf) => boolean {
  const comparisons: ((value: number) => boolean)[] = [];
  const parts = Array.isArray(operand) ? operand : [];
  for (let index = 0; index < parts.length; index += 2) {
    const bound = Number(parts[index + 1]);
    switch (parts[index]) {
      case '=':
        comparisons.push((value) => value === bound);
        break;
      case '<':
        comparisons.push((value) => value < bound);
        break;
      case '<=':
        comparisons.push((value) => value <= bound);
        break;
      case '>':
        comparisons.push((value) => value > bound);
        break;
      case '>=':
        comparisons.push((value) => value >= bound);
        break;
      default:
        throw new StartError(`${where}: numeric comparison ${String(parts[index])} is not known`);
    }
  }
  return (leaf) => typeof leaf === 'number' && comparisons.every((holds) => holds(leaf));
}
