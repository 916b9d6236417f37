/**
 * Label and field selectors of list, watch and deletecollection: full grammar, with the texts an API server answers
 * to a malformed one (apimachinery pkg/labels/selector.go, pkg/fields/selector.go). A selector is never ignored:
 * drain relies on it to leave other nodes' pods alone.
 */
import { invalidValue, required } from './causes.ts';
import type { Cause } from './status.ts';
import { labelValueErrors, qualifiedNameErrors, validateLabels } from './validate-metadata.ts';

export type LabelOperator = '=' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values: readonly string[];
}

export interface LabelSelector {
  readonly kind: 'parsed';
  readonly requirements: readonly LabelRequirement[];
  matches(labels: Readonly<Record<string, string>> | undefined): boolean;
}

export interface FieldRequirement {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

export interface FieldSelector {
  readonly kind: 'parsed';
  readonly requirements: readonly FieldRequirement[];
  /** `read` returns a field of the object. */
  matches(read: (field: string) => string): boolean;
  /** The value a field must have, when the selector fixes it. */
  exact(field: string): string | undefined;
}

export interface MalformedSelector {
  readonly kind: 'malformed';
  readonly message: string;
}

function requirementHolds(requirement: LabelRequirement, labels: Readonly<Record<string, string>>): boolean {
  const present = Object.hasOwn(labels, requirement.key);
  const value = present ? (labels[requirement.key] ?? '') : '';
  switch (requirement.operator) {
    case 'exists':
      return present;
    case '!':
      return !present;
    case '=':
    case 'in':
      return present && requirement.values.includes(value);
    case '!=':
    case 'notin':
      return !present || !requirement.values.includes(value);
    case 'gt':
      return present && /^-?\d+$/.test(value) && BigInt(value) > BigInt(requirement.values[0] ?? '0');
    case 'lt':
      return present && /^-?\d+$/.test(value) && BigInt(value) < BigInt(requirement.values[0] ?? '0');
  }
}

type Token =
  | { readonly type: 'symbol'; readonly text: string }
  | { readonly type: 'word'; readonly text: string }
  | { readonly type: 'end'; readonly text: '' };

const SYMBOLS = ['==', '!=', '=', '!', '(', ')', ',', '>', '<'];
const isSpecial = (char: string): boolean => '=!(),><'.includes(char);
const isSpace = (char: string): boolean => ' \t\r\n'.includes(char);

function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at] ?? '';
    if (isSpace(char)) {
      at += 1;
      continue;
    }
    const symbol = SYMBOLS.find((candidate) => text.startsWith(candidate, at));
    if (symbol !== undefined) {
      found.push({ type: 'symbol', text: symbol });
      at += symbol.length;
      continue;
    }
    let end = at;
    while (end < text.length && !isSpace(text[end] ?? '') && !isSpecial(text[end] ?? '')) end += 1;
    found.push({ type: 'word', text: text.slice(at, end) });
    at = end;
  }
  return found;
}

class SelectorSyntaxError extends Error {}

const OPERATORS: Readonly<Record<string, LabelOperator>> = {
  '=': '=',
  '==': '=',
  '!=': '!=',
  in: 'in',
  notin: 'notin',
  '>': 'gt',
  '<': 'lt',
};
const OPERATORS_TEXT = 'in, notin, =, ==, !=, gt, lt';

/** Reads tokens one by one; throws SelectorSyntaxError, which parseLabelSelector turns into a value. */
class LabelParser {
  private readonly found: readonly Token[];
  private at = 0;

  constructor(text: string) {
    this.found = tokens(text);
  }

  private peek(): Token {
    return this.found[this.at] ?? { type: 'end', text: '' };
  }

  private next(): Token {
    const token = this.peek();
    this.at += 1;
    return token;
  }

  private isSymbol(text: string): boolean {
    const token = this.peek();
    return token.type === 'symbol' && token.text === text;
  }

  private fail(expected: string, within: 'requirement' | 'list' = 'requirement'): never {
    throw new SelectorSyntaxError(`found '${this.peek().text}', expected: ${expected}`, { cause: within });
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    if (this.peek().type === 'end') return requirements;
    for (;;) {
      if (this.peek().type !== 'word' && !this.isSymbol('!')) this.fail("!, identifier, or 'end of string'", 'list');
      requirements.push(this.requirement());
      if (this.peek().type === 'end') return requirements;
      if (!this.isSymbol(',')) this.fail("',' or 'end of string'", 'list');
      this.next();
      if (this.peek().type !== 'word' && !this.isSymbol('!')) this.fail("identifier after ','", 'list');
    }
  }

  private requirement(): LabelRequirement {
    const negated = this.isSymbol('!');
    if (negated) this.next();
    const token = this.peek();
    if (token.type !== 'word') this.fail('identifier');
    this.next();
    const key = checkedKey(token.text);
    if (negated) return { key, operator: '!', values: [] };
    if (this.peek().type === 'end' || this.isSymbol(',')) return { key, operator: 'exists', values: [] };
    const operator = OPERATORS[this.peek().text];
    if (operator === undefined) this.fail(OPERATORS_TEXT);
    this.next();
    const values = operator === 'in' || operator === 'notin' ? this.valueSet() : [this.exactValue()];
    for (const value of values) checkValue(key, operator, value);
    return { key, operator, values };
  }

  private exactValue(): string {
    if (this.peek().type === 'end' || this.isSymbol(',')) return '';
    if (this.peek().type !== 'word') this.fail('identifier');
    return this.next().text;
  }

  private valueSet(): string[] {
    if (!this.isSymbol('(')) throw new SelectorSyntaxError(`found '${this.peek().text}' expected: '('`);
    this.next();
    const values: string[] = [];
    let wantsValue = true;
    for (let isFirst = true; ; isFirst = false) {
      const token = this.peek();
      if (token.type === 'word' && wantsValue) {
        values.push(token.text);
        wantsValue = false;
      } else if (this.isSymbol(',')) {
        // Two commas, or one at the start, hold an empty value between them.
        if (wantsValue) values.push('');
        wantsValue = true;
      } else if (this.isSymbol(')')) {
        if (wantsValue) values.push('');
        this.next();
        return [...new Set(values)].sort();
      } else if (isFirst) this.fail("',', ')' or identifier");
      else this.fail(wantsValue ? "',', or identifier" : "',' or ')'");
      this.next();
    }
  }
}

function checkedKey(key: string): string {
  const errors = qualifiedNameErrors(key);
  if (errors.length > 0) {
    throw new SelectorSyntaxError(`<nil>: Invalid value: ${JSON.stringify(key)}: ${errors.join('; ')}`);
  }
  return key;
}

function checkValue(key: string, operator: LabelOperator, value: string): void {
  if ((operator === 'gt' || operator === 'lt') && !/^-?\d+$/.test(value)) {
    throw new SelectorSyntaxError(
      `<nil>: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  }
  const errors = labelValueErrors(value);
  if (errors.length > 0) {
    throw new SelectorSyntaxError(`values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${errors.join('; ')}`);
  }
}

export function labelSelectorOf(requirements: readonly LabelRequirement[]): LabelSelector {
  return {
    kind: 'parsed',
    requirements,
    matches: (labels) => requirements.every((requirement) => requirementHolds(requirement, labels ?? {})),
  };
}

/** An empty text selects everything. */
export function parseLabelSelector(text: string): LabelSelector | MalformedSelector {
  try {
    return labelSelectorOf(new LabelParser(text).parse());
  } catch (error) {
    if (!(error instanceof SelectorSyntaxError)) throw error;
    // Upstream says so of what is wrong within a requirement, not of what stands between two.
    const prefix = error.cause === 'list' ? '' : 'unable to parse requirement: ';
    return { kind: 'malformed', message: `${prefix}${error.message}` };
  }
}

/** The object form of a selector, as in a PodDisruptionBudget's spec. */
export interface LabelSelectorSpec {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

const EXPRESSION_OPERATORS: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/** Absent selects nothing, empty selects everything (metav1.LabelSelectorAsSelector). Call on validated specs. */
export function selectorFromSpec(spec: LabelSelectorSpec | undefined | null): LabelSelector {
  if (spec === undefined || spec === null) return { kind: 'parsed', requirements: [], matches: () => false };
  return labelSelectorOf([
    ...Object.entries(spec.matchLabels ?? {}).map(([key, value]) => ({ key, operator: '=' as const, values: [value] })),
    ...(spec.matchExpressions ?? []).map((each) => ({
      key: each.key,
      operator: EXPRESSION_OPERATORS[each.operator] ?? 'exists',
      values: each.values ?? [],
    })),
  ]);
}

/** Cuts at commas that are not escaped by a backslash. */
function fieldTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  terms.push(text.slice(start));
  return terms.filter((term) => term !== '');
}

function unescapeValue(value: string): string | MalformedSelector {
  let plain = '';
  for (let at = 0; at < value.length; at += 1) {
    const char = value[at] ?? '';
    if (char === '\\') {
      at += 1;
      const escaped = value[at] ?? '';
      if (escaped === '' || !'\\,='.includes(escaped)) {
        return { kind: 'malformed', message: `invalid field selector: invalid escape sequence: \\${escaped}` };
      }
      plain += escaped;
    } else if (char === '=' || char === ',') {
      return { kind: 'malformed', message: `invalid field selector: unescaped character in value: ${char}` };
    } else plain += char;
  }
  return plain;
}

/** An empty text selects everything. Which fields exist is for unsupportedField to say. */
export function parseFieldSelector(text: string): FieldSelector | MalformedSelector {
  const requirements: FieldRequirement[] = [];
  for (const term of fieldTerms(text)) {
    const match = /!=|==|=/.exec(term);
    if (match === null) {
      return { kind: 'malformed', message: `invalid selector: '${text}'; can't understand '${term}'` };
    }
    const value = unescapeValue(term.slice(match.index + match[0].length));
    if (typeof value !== 'string') return value;
    requirements.push({ field: term.slice(0, match.index), operator: match[0] === '!=' ? '!=' : '=', value });
  }
  return {
    kind: 'parsed',
    requirements,
    matches: (read) => requirements.every((each) => (read(each.field) === each.value) === (each.operator === '=')),
    exact: (field) => requirements.find((each) => each.field === field && each.operator === '=')?.value,
  };
}

/**
 * The text of the 400 for a field that the resource does not select by; undefined when all are known.
 * The core group, and kinds with selectable fields of their own, word it differently from the others.
 */
export function unsupportedField(
  selector: FieldSelector,
  resource: { readonly group: string; readonly selectableFields: Readonly<Record<string, unknown>> },
): string | undefined {
  const unknown = selector.requirements.find((each) => !Object.hasOwn(resource.selectableFields, each.field));
  if (unknown === undefined) return undefined;
  return resource.group === '' || Object.keys(resource.selectableFields).length > 2
    ? `field label not supported: ${unknown.field}`
    : `${JSON.stringify(unknown.field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
}

const SELECTOR_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

export function validateSelector(selector: LabelSelectorSpec | undefined, field: string): Cause[] {
  const causes = validateLabels(selector?.matchLabels, `${field}.matchLabels`);
  for (const [index, expression] of (selector?.matchExpressions ?? []).entries()) {
    const path = `${field}.matchExpressions[${index}]`;
    const { key = '', operator = '', values = [] } = expression;
    for (const error of qualifiedNameErrors(key)) causes.push(invalidValue(`${path}.key`, key, error));
    if (!SELECTOR_OPERATORS.includes(operator)) {
      causes.push(invalidValue(`${path}.operator`, operator, 'not a valid selector operator'));
    } else if (operator.endsWith('In')) {
      if (values.length === 0) {
        causes.push(required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (values.length > 0) {
      causes.push({
        reason: 'FieldValueForbidden',
        message: "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        field: `${path}.values`,
      });
    }
    for (const [at, value] of values.entries()) {
      for (const error of labelValueErrors(value)) {
        causes.push(invalidValue(`${path}.values[${at}]`, value, error));
      }
    }
  }
  return causes;
}
